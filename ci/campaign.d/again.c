/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that have ended and run again, once the schedule is over and while its failures are
 * remembered. A fault begins with the name of its invariant. */
#include "ci/campaign.d/campaign.h"

enum {
    QUIET_MS = 120000, /* all that was sent has arrived */
    AGAIN_S = 600      /* a call's deadline: its time, with the grace, passes here */
};

/* A call of the second run. */
struct again {
    struct engine_call call;
    unsigned answers;
    int32_t status;
};

static void done(struct engine_call *call, const struct engine_result *result)
{
    struct again *again = (struct again *)call;
    again->answers++;
    again->status = result->status;
}

static void count(void *arg, const struct engine_view *view)
{
    (void)view;
    ++*(uint32_t *)arg;
}

/* Whether anything is under way, or to come. */
static bool is_busy(struct run *run, uint32_t ncalls)
{
    uint32_t n = run->ncalls - ncalls;
    for (uint32_t i = 0; i < run->ncalls; i++)
        n += run->calls[i]->answers == 0 && !run->calls[i]->taken_back;
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i))
            engine_walk(loopback_engine(run->net, i), count, &n);
    return n > 0;
}

/* Both namespaces end: some of their servers do so now. All of these begin again, if they can. */
static void requeue(struct run *run)
{
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i) && run->foreign && chance(run, 30))
            loopback_kill(run->net, i, 0, TOLD_MS);
    loopback_run(run->net, QUIET_MS);
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i))
            engine_nspace_ended(loopback_engine(run->net, i), "b");
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i))
            engine_nspace_ended(loopback_engine(run->net, i), "a");
        else if (run->foreign)
            loopback_rerun(run->net, i, "a");
}

/* Again: what a signature has met in the first run is nothing to the second. */
static void call_again(struct run *run, const struct op *op)
{
    struct again all[NODES_MAX] = {0};
    for (uint32_t i = 0; i < op->ncallers; i++) {
        all[i].call = (struct engine_call){
            .sig = op->sig, .siglen = op->siglen, .timeout = AGAIN_S, .done = done};
        engine_call(loopback_engine(run->net, op->callers[i].proc.rank), &all[i].call);
    }
    loopback_run(run->net, 2 * AGAIN_S * 1000ull);
    for (uint32_t i = 0; i < op->ncallers; i++)
        if (all[i].answers != 1 || all[i].status != 0)
            fault(run, "again", "server %u had %u answers and status %d to %s in the second run",
                  op->callers[i].proc.rank, all[i].answers, all[i].status, trace_op(op));
}

/* End: what is known of a namespace does not survive it. */
void check_again(struct run *run)
{
    const struct weather *w = &run->weather;
    uint64_t end = loopback_now(run->net) + SETTLE_MS;
    uint32_t ncalls;
    do {
        ncalls = run->ncalls;
        loopback_run(run->net, QUIET_MS);
    } while (is_busy(run, ncalls) && loopback_now(run->net) < end);
    requeue(run);
    run->again = true;
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i) && engine_counts(loopback_engine(run->net, i)).trackers > 0)
            fault(run, "end", "server %u knows an operation of namespaces that have ended", i);
    for (const struct group *group = run->groups; group != NULL; group = group->next)
        for (const struct op *op = group->ops; op != NULL; op = op->next)
            if (run->foreign && op->method == METHOD_PLAIN && !w->lossy && !w->cancels)
                call_again(run, op);
    run->again = false;
}
