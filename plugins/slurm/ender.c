/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends the step, in a thread of its own, as all that send may hang.
 *
 * srun ends with its tasks, so it is told first why, and with what status. The tasks die everywhere
 * at once, which would hide the reason from a server that has not got it yet: so what there is for
 * these goes out before slurmctld is asked. slurmctld is asked until the step has ended
 * (step_end.h).
 *
 *     RESTS --order--> TELLS --srun has answered--> WAITS --sent, or 500 ms--> ASKS <--> LOOKS
 *
 * ASKS and LOOKS change with slurmctld's answers, and go to DONE when slurmctld knows no such step,
 * or when this server leaves and slurmctld has taken the order. Tasks that live on then are killed
 * by the servers of their nodes. */
#include "plugins/slurm/rm_slurm.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/thread.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/step_end.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SENDING_MS = 500, /* for other servers to hear which server tells the user why */
    OWED_MS = 5000,   /* what a server that leaves waits longer for slurmctld to take the order */
    AGENT_MS = 2000,  /* for srun's agent */
};

#define BIT(state) (1U << (state))

static const struct {
    const char *name;
    unsigned next; /* states that may follow */
} states[] = {
    [ENDER_RESTS] = {"rests", BIT(ENDER_TELLS)},
    [ENDER_TELLS] = {"tells srun", BIT(ENDER_WAITS)},
    [ENDER_WAITS] = {"waits for what is being sent", BIT(ENDER_ASKS)},
    [ENDER_ASKS] = {"asks slurmctld", BIT(ENDER_LOOKS) | BIT(ENDER_DONE)},
    [ENDER_LOOKS] = {"looks whether the step has ended", BIT(ENDER_ASKS) | BIT(ENDER_DONE)},
    [ENDER_DONE] = {"is done", 0},
};

/* @thread any, locked */
static void move(struct rm *rm, enum ender_state state)
{
    if (state == rm->ender.state)
        return;
    assert(states[rm->ender.state].next & BIT(state));
    log_debug("the end of the step: %s, then %s", states[rm->ender.state].name, states[state].name);
    rm->ender.state = state;
}

static bool has_order(const struct rm *rm)
{
    return rm->ender.state != ENDER_RESTS && rm->ender.state != ENDER_DONE;
}

/* Whether slurmctld has yet to take the order. @thread any, locked */
static bool is_owed(const struct rm *rm)
{
    return rm->ender.state >= ENDER_TELLS && rm->ender.state <= ENDER_ASKS;
}

/* @thread the ender's, locked; unlocks while it calls */
static void tell_agent(struct rm *rm)
{
    struct rm_ending ending = rm->ender.ending;
    struct err err = {0};
    pthread_mutex_unlock(&rm->lock);
    if (agent_call_status(rm->agent, &ending, AGENT_MS, &err) != 0) {
        if (!ending.told)
            log_error("%s", ending.why);
        if (ending.status != 0)
            log_warning("srun cannot be told that the step ends with status %u, and ends with "
                        "Slurm's own: %s",
                        ending.status, err.text);
    }
    pthread_mutex_lock(&rm->lock);
}

/* @thread the ender's, not locked */
static bool pause_ender(void *arg, enum step_end_answer answer, unsigned ms)
{
    struct rm *rm = arg;
    pthread_mutex_lock(&rm->lock);
    int64_t until = now_ms() + ms, soon = now_ms() + STEP_END_AGAIN_MS;
    move(rm, answer == STEP_END_REFUSED ? ENDER_ASKS : ENDER_LOOKS);
    while (now_ms() < (rm->closing && soon < until ? soon : until) && (!rm->closing || is_owed(rm)))
        rm_wait(rm, &rm->ender.wake, rm->closing && soon < until ? soon : until);
    bool enough = rm->closing && !is_owed(rm);
    pthread_mutex_unlock(&rm->lock);
    return enough;
}

/* @thread the ender's, locked; unlocks while it calls slurmctld */
static void end_step(struct rm *rm)
{
    uint32_t jobs[STEP_END_JOBS_MAX];
    struct step_run list[STEP_END_JOBS_MAX];
    struct step_end end = {.jobs = jobs,
                           .runs = list,
                           .step = rm->step,
                           .fails = rm->ender.ending.status != 0,
                           .pause = pause_ender,
                           .arg = rm};
    const char *at = rm->jobs, *runs = rm->runs;
    char *next;
    pthread_mutex_unlock(&rm->lock);
    for (unsigned long job = strtoul(at, &next, 10); next != at && end.njobs < STEP_END_JOBS_MAX;
         job = strtoul(at, &next, 10)) {
        jobs[end.njobs] = (uint32_t)job;
        list[end.njobs++] = step_run_next(&runs);
        at = next + (*next == ',');
    }
    step_end(&end);
    pthread_mutex_lock(&rm->lock);
}

/* Tells srun's agent of a line. @thread the ender's, locked; unlocks while it calls */
static void tell_line(struct rm *rm)
{
    char text[sizeof rm->ender.text] = "";
    struct err err = {0};
    bool here = rm->ender.line == ENDER_LINE_HERE;
    if (here)
        memcpy(text, rm->ender.text, sizeof text);
    rm->ender.line = ENDER_NO_LINE;
    pthread_mutex_unlock(&rm->lock);
    if (agent_call_line(rm->agent, text, AGENT_MS, &err) != 0) {
        if (here)
            log_error("%s", text);
        log_info("srun cannot be told of a line for the user: %s", err.text);
    }
    pthread_mutex_lock(&rm->lock);
}

static void *run(void *arg)
{
    struct rm *rm = arg;
    pthread_mutex_lock(&rm->lock);
    while (!rm->closing || has_order(rm) || rm->ender.line != ENDER_NO_LINE)
        switch (rm->ender.state) {
        case ENDER_RESTS:
        case ENDER_DONE:
            if (rm->ender.line != ENDER_NO_LINE)
                tell_line(rm);
            else
                rm_wait(rm, &rm->ender.wake, INT64_MAX);
            break;
        case ENDER_TELLS:
            tell_agent(rm);
            move(rm, ENDER_WAITS);
            break;
        case ENDER_WAITS:
            if (rm->idle || now_ms() >= rm->ender.wait_until)
                move(rm, ENDER_ASKS);
            else
                rm_wait(rm, &rm->ender.wake, rm->ender.wait_until);
            break;
        case ENDER_ASKS:
        case ENDER_LOOKS:
            end_step(rm);
            move(rm, ENDER_DONE);
            break;
        }
    pthread_mutex_unlock(&rm->lock);
    return NULL;
}

int ender_start(struct rm *rm)
{
    int rc = thread_start(&rm->ender.thread, run, rm);
    rm->ender.started = rc == 0;
    return rc;
}

void ender_order(struct rm *rm, const struct rm_ending *ending)
{
    pthread_mutex_lock(&rm->lock);
    if (rm->ender.state == ENDER_RESTS) {
        snprintf(rm->ender.why, sizeof rm->ender.why, "%s", ending->why);
        rm->ender.ending = *ending;
        rm->ender.ending.why = rm->ender.why;
        rm->ender.wait_until = now_ms() + SENDING_MS;
        move(rm, ENDER_TELLS);
    }
    pthread_cond_signal(&rm->ender.wake);
    pthread_mutex_unlock(&rm->lock);
}

void ender_show(struct rm *rm, const char *line)
{
    pthread_mutex_lock(&rm->lock);
    rm->ender.line = line[0] != '\0' ? ENDER_LINE_HERE : ENDER_LINE_COMES;
    snprintf(rm->ender.text, sizeof rm->ender.text, "%s", line);
    pthread_cond_signal(&rm->ender.wake);
    pthread_mutex_unlock(&rm->lock);
}

void ender_join(struct rm *rm, int64_t by)
{
    if (!rm->ender.started)
        return;
    pthread_mutex_lock(&rm->lock);
    pthread_cond_signal(&rm->ender.wake);
    bool owed = is_owed(rm), line = rm->ender.line != ENDER_NO_LINE;
    pthread_mutex_unlock(&rm->lock);
    if (owed)
        by += OWED_MS;
    else if (line)
        by += AGENT_MS;
    if (thread_join_until(rm->ender.thread, by))
        return;
    if (owed)
        log_warning("slurmctld has not taken the order to end step %u of job %s: each server with "
                    "tasks that live kills them",
                    rm->step, rm->jobs);
    _exit(0);
}
