/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which processes of a step wait for a debugger, and where: what the user, or the process that has
 * spawned the step, has asked for.
 *
 *     stop-in-init        all, in PMIx_Init
 *     stop-in-init:3      rank 3 alone
 *     stop-on-exec        all, before the first instruction; of spawned processes alone
 *     stop-in-app         all, where the program itself looks for it (Open MPI: in MPI_Init)
 *     target:RANK NSPACE  none: they are a debugger's daemons, for that namespace, or that rank of
 *                         it; RANK "*": all
 *
 * @thread any
 */
#pragma once

#include "common/launch/boot.h"

enum { STOP_ALL = 0xffffffff /**< stop::rank: all ranks */ };

enum stop_where { STOP_NOWHERE, STOP_IN_INIT, STOP_IN_APP, STOP_ON_EXEC };

struct stop {
    enum stop_where where;
    uint32_t rank; /**< the one that stops, or STOP_ALL */
};

/** Reads the setting BOOT_DEBUG of @p boot. @return 0, or -1 with what is wrong and what to do in
 * @p err */
int stop_read(struct stop *stop, const struct boot *boot, struct err *err);

/** Which processes a debugger's daemons are for, by the same setting.
 * @param nspace of STOP_NSPACE_SIZE bytes @param rank STOP_ALL: all
 * @return whether the step has daemons */
bool stop_target(const struct boot *boot, char *nspace, uint32_t *rank);

/** Whether this libpmix can do it. @param library server.h's number @return 0, or -1 with the
 * reason in @p err */
int stop_judge(const struct stop *stop, uint32_t library, struct err *err);

/** Writes such a target as the setting has it. @param text of STOP_TEXT_SIZE bytes */
void stop_put_target(char *text, const char *nspace, uint32_t rank);

/** Writes it as the setting has it. @param text of STOP_TEXT_SIZE bytes @return text, or NULL: no
 * process is to stop */
const char *stop_text(const struct stop *stop, char *text);

enum {
    STOP_NSPACE_SIZE = 256,
    STOP_TEXT_SIZE = STOP_NSPACE_SIZE + 32,
};
