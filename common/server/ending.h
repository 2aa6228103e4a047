/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The exit status of a step that muster ends: what `srun`, `flux run` or musterrun ends with.
 *
 * | what the step ends for | its status |
 * | --- | --- |
 * | PMIx_Abort | the abort's, as exit() would have it |
 * | a lost task | its exit code, or 128 + its signal; 1 for code 0, or when it is not known |
 * | a lost server | 137, of the SIGKILL that the tasks get |
 *
 * The server that is first to have the step ended says it; rm.h has what the RM does with it.
 * @thread any
 */
#pragma once

#include "common/transport/rm.h"

/** Instead of a node whose server tells the user why the step ends. */
enum {
    ENDING_ALL_TELL = 0xffffffff,     /**< each other server */
    ENDING_NOBODY_TELLS = 0xfffffffe, /**< the user reads it elsewhere */
    ENDING_RM_TELLS = 0xfffffffd,     /**< the RM ends the step by itself, and says why */
};

/** @param status as given to PMIx_Abort. A status other than 0 does not become 0, as 256 would by
 * its low byte: that becomes 1. @param why borrowed, here and below */
struct rm_ending ending_of_abort(int status, const char *why);

/** @param sig signal number, or 0 @param code exit code, or BOOT_CODE_UNKNOWN */
struct rm_ending ending_of_task(uint32_t sig, uint32_t code, const char *why);

/** A server was lost: 137, as when SIGKILL has ended a task. */
struct rm_ending ending_of_host(const char *why);
