/* SPDX-License-Identifier: BSD-3-Clause */
/* Has slurmctld end a step, and tries until it has ended. */
#include "plugins/slurm/step_end.h"

#include "common/util/log.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>

/* @return 0, or -1 with errno set: SLURM_ABI_ALREADY_DONE when our run is not there any more */
static int find_run(const struct step_end *end, uint32_t i)
{
    struct step_run run;
    if (end->runs[i].first != 0 || end->begun == 0)
        return 0;
    if (step_run_read(end->jobs[i], end->step, &run) == 0 && run.first <= end->begun) {
        end->runs[i] = run;
        return 0;
    }
    if (run.first != 0 || errno == ENOENT)
        errno = SLURM_ABI_ALREADY_DONE;
    return -1;
}

/* One round over the components that are there. @return whether one is left */
static bool ask(const struct step_end *end, bool *gone, enum step_end_answer *answer, int *error)
{
    bool there = false;
    *answer = STEP_END_ASKED;
    for (uint32_t i = 0; i < end->njobs && i < STEP_END_JOBS_MAX; i++) {
        if (gone[i])
            continue;
        if (find_run(end, i) == 0 &&
            step_run_kill(end->jobs[i], end->step, &end->runs[i], end->fails) == 0) {
            there = true;
            continue;
        }
        gone[i] = errno == SLURM_ABI_ALREADY_DONE || errno == SLURM_ABI_INVALID_JOB_ID;
        there |= !gone[i];
        if (gone[i] || *answer == STEP_END_REFUSED)
            continue;
        *error = errno;
        *answer = errno == SLURM_ABI_TRANSITION ? STEP_END_BUSY : STEP_END_REFUSED;
    }
    return there;
}

bool step_end(const struct step_end *end)
{
    bool gone[STEP_END_JOBS_MAX] = {false}, told = false;
    unsigned ms = STEP_END_AGAIN_MS;
    enum step_end_answer answer;
    int error = 0;
    for (unsigned tries = 1; ask(end, gone, &answer, &error); tries++) {
        if (answer != STEP_END_ASKED && !told &&
            (answer != STEP_END_BUSY || tries >= STEP_END_BUSY_TRIES)) {
            told = true;
            log_write(end->hangs ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                      "step %u.%u cannot be ended yet: %s; muster tries on, or end it with: "
                      "scancel %u.%u",
                      end->jobs[0], end->step, slurm_abi_strerror(error), end->jobs[0], end->step);
        }
        if (end->pause(end->arg, answer, answer == STEP_END_ASKED ? STEP_END_LOOK_MS : ms))
            return false;
        if (answer == STEP_END_ASKED)
            ms = STEP_END_AGAIN_MS;
        else if (tries >= STEP_END_BUSY_TRIES)
            ms = 2 * ms < STEP_END_SELDOM_MS ? 2 * ms : STEP_END_SELDOM_MS;
    }
    return true;
}
