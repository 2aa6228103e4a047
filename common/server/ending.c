/* SPDX-License-Identifier: BSD-3-Clause */
/* The exit status of a step that muster ends. */
#include "common/server/ending.h"

#include <signal.h>

enum { SIGNAL_BASE = 128, FAILED = 1 };

struct rm_ending ending_of_abort(int status, const char *why)
{
    uint8_t seen = (uint8_t)(status & 0xff);
    return (struct rm_ending){
        .cause = RM_CAUSE_ABORT, .status = seen == 0 && status != 0 ? FAILED : seen, .why = why};
}

struct rm_ending ending_of_task(uint32_t sig, uint32_t code, const char *why)
{
    struct rm_ending ending = {.cause = RM_CAUSE_TASK, .status = FAILED, .why = why};
    if (sig != 0)
        ending.status = (uint8_t)(SIGNAL_BASE + (sig & (SIGNAL_BASE - 1)));
    else if (code != BOOT_CODE_UNKNOWN && (code & 0xff) != 0)
        ending.status = (uint8_t)(code & 0xff);
    return ending;
}

struct rm_ending ending_of_host(const char *why)
{
    return (struct rm_ending){.cause = RM_CAUSE_HOST, .status = SIGNAL_BASE + SIGKILL, .why = why};
}
