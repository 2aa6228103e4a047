/* SPDX-License-Identifier: BSD-3-Clause */
/* What has to hold for the schedule as a whole. A fault begins with the name of its invariant. */
#include "ci/campaign.d/campaign.h"

#include <string.h>

/* Its time counts from its turn, after those that the same server made of that signature. */
static uint64_t turn_of(const struct call *call)
{
    uint64_t turn = call->made_at;
    const struct run *run = run_of(call);
    for (uint32_t i = 0; call->op->method == METHOD_PLAIN && i < call->number; i++) {
        const struct call *before = run->calls[i];
        if (before->caller->proc.rank == call->caller->proc.rank &&
            same_group(before->op, call->op) && before->answered_at > turn)
            turn = before->answered_at;
    }
    return turn;
}

/* Whether the turn of a call is not known here: the failed call that the engine has made for a
 * construct that was cancelled may wait long for the word of who decides. */
static bool is_behind_cancel(const struct call *call)
{
    const struct weather *w = &run_of(call)->weather;
    bool may = w->lossy || w->slow;
    for (const struct op *op = call->op->group->ops; may && op != call->op; op = op->next)
        for (uint32_t i = 0; i < op->ncallers; i++)
            if (op->callers[i].cancelled && op->callers[i].proc.rank == call->caller->proc.rank)
                return true;
    return false;
}

/* Whether somebody is left of those whom a call was for. */
static bool lives(const struct call *call)
{
    uint32_t rank = call->caller->proc.rank;
    bool all = call->op->method == METHOD_PLAIN;
    for (char ns = 'a'; ns <= 'b'; ns++)
        if (procset_has(&call->op->all, ns_name(ns), rank) &&
            (all || ns == call->caller->proc.ns) && !is_gone(run_of(call), (struct proc){ns, rank}))
            return true;
    return false;
}

/* How long after its deadline a call may wait for the word of the server that decides. */
static uint64_t grace_of(const struct run *run, uint32_t rank)
{
    uint64_t hops = 0;
    for (; run->parents[0] == TREE_NONE && rank != 0; rank = run->parents[rank])
        hops += HOP_MS;
    return hops > GRACE_MS ? hops : GRACE_MS;
}

/* Hangs: every call is answered once, in time. */
static void check_hangs(struct run *run, const struct call *call)
{
    uint64_t turn = turn_of(call), grace = grace_of(run, call->caller->proc.rank);
    uint64_t late = grace + call->retries * (grace + 1000); /* the time left is rounded up */
    late += call->op->method == METHOD_PLAIN ? LATENESS_MS : LATENESS_ADDED_MS;
    if (call->taken_back)
        return;
    if (call->answers == 0)
        fault(run, "hang", "%s was called at %llu and never answered", call_name(call),
              (unsigned long long)call->made_at);
    else if (call->timeout > 0 && !is_behind_cancel(call) &&
             call->answered_at > turn + call->timeout * 1000ull + late)
        fault(run, "deadline", "%s was answered after %llu ms with a timeout of %u s",
              call_name(call), (unsigned long long)(call->answered_at - turn), call->timeout);
}

static bool is_crash(int32_t status)
{
    return status == LOOPBACK_LOST || status == LOOPBACK_LEFT || status == LOOPBACK_CLOSING;
}

/* Told that a server is lost or leaves: the word was on its way over that one. For a group's
 * operation that is no other word than a failure, unless it is a bootstrap. */
static bool lost_its_way(const struct call *call, const struct call *first)
{
    bool any = call->op->kind == COLL_FENCE || call->op->method == METHOD_BOOTSTRAP;
    return run_of(call)->weather.crashes && (any || (call->status != 0 && first->status != 0)) &&
           (is_crash(call->status) || is_crash(first->status));
}

/* Whether a server of a participant was lost, or left, before @p at. */
static bool has_lost(const struct op *op, uint64_t at)
{
    const struct run *run = op->group->run;
    for (uint32_t i = 0; i < op->ncallers; i++) {
        uint32_t rank = op->callers[i].proc.rank;
        if (run->lost_at[rank] != 0 && run->lost_at[rank] <= at)
            return true;
    }
    return false;
}

static bool has_dead(const struct op *op)
{
    for (uint32_t i = 0; i < op->ncallers; i++)
        for (char ns = 'a'; ns <= 'b'; ns++)
            if (procset_has(&op->all, ns_name(ns), op->callers[i].proc.rank) &&
                is_dead(op->group->run, (struct proc){ns, op->callers[i].proc.rank}))
                return true;
    return false;
}

/* Whether a fence's status is that of a lost server or of an ended participant, or was given by a
 * participant to this fence or to one of the same participants before it, as its deadline may be.
 */
static bool is_accounted_for(const struct call *call)
{
    const struct op *op = call->op->group->ops;
    for (; op != call->op->next; op = op->next)
        for (uint32_t i = 0; i < op->ncallers && same_group(op, call->op); i++) {
            const struct call *given = op->callers[i].call;
            if (given != NULL && (call->status == given->call.status ||
                                  (call->status == LOOPBACK_TIMEOUT && given->timeout > 0)))
                return true;
        }
    return is_crash(call->status) || (call->status == STATUS_DEAD && has_dead(call->op));
}

/* Statuses of a fence with a lost server: all are failures, and each comes from somewhere
 * (docs/limits.md). */
static bool is_lost_fence(const struct call *call, const struct call *other)
{
    uint64_t at = call->answered_at > other->answered_at ? call->answered_at : other->answered_at;
    return call->op->kind == COLL_FENCE && call->status != 0 && other->status != 0 &&
           has_lost(call->op, at) && is_accounted_for(call) && is_accounted_for(other);
}

/* Whether a server missed a fence's result, because a lost server should have passed it on, and
 * was told next of the failure of a later fence of the same participants. It takes that failure for
 * the answer (docs/limits.md). */
static bool is_next_failure(const struct call *call)
{
    bool may =
        call->op->kind == COLL_FENCE && call->status != 0 && has_lost(call->op, call->answered_at);
    for (const struct op *op = call->op->next; op != NULL && may; op = op->next)
        for (uint32_t i = 0; i < op->ncallers && same_group(op, call->op); i++)
            if (op->callers[i].call != NULL && call->status == op->callers[i].call->call.status)
                return true;
    return false;
}

/* Whether a process had ended when its call was answered. */
static bool was_for_nobody(const struct run *run, const struct call *call)
{
    return call->op->method != METHOD_PLAIN && was_gone(run, call->caller->proc, call->answered_at);
}

/* Whether a caller's answer has to be that of all. */
static bool counts(const struct run *run, const struct caller *caller)
{
    const struct call *call = caller->call;
    return call != NULL && call->answers > 0 && run->lost_at[caller->proc.rank] == 0 &&
           !own_timeout(call) && !is_behind(call) && !was_for_nobody(run, call) &&
           (!caller->op->survives || lives(call));
}

static const struct call *first_answer(const struct run *run, const struct op *op, bool success)
{
    for (uint32_t i = 0; i < op->ncallers; i++)
        if (counts(run, &op->callers[i]) && (!success || op->callers[i].call->status == 0))
            return op->callers[i].call;
    return NULL;
}

/* Whether an added member gave up because all servers of the leaders were lost: its own server
 * knows no other server that it could ask (docs/limits.md). */
static bool has_nobody_to_ask(const struct call *call)
{
    const struct run *run = run_of(call);
    const struct op *op = call->op;
    bool alone =
        op->method == METHOD_ADDING && !call->caller->leader && call->status == LOOPBACK_LOST;
    for (uint32_t i = 0; i < op->nleaders && alone; i++) {
        uint64_t lost_at = run->lost_at[op->callers[i].proc.rank];
        alone = lost_at != 0 && lost_at <= call->answered_at;
    }
    return alone;
}

static void compare(struct run *run, const struct call *call, const struct call *other)
{
    if (other == NULL || lost_its_way(call, other) || is_lost_fence(call, other) ||
        is_next_failure(call) || is_next_failure(other))
        return;
    if ((other->status == 0 && has_nobody_to_ask(call)) ||
        (call->status == 0 && has_nobody_to_ask(other)))
        return;
    if (call->status != other->status || call->context_id != other->context_id ||
        !procset_equal(&call->members, &other->members))
        fault(run, "agreement", "%s got %d and %s got %d", call_name(other), other->status,
              call_name(call), call->status);
}

/* Agreement: all survivors have one status, membership and context id. Each is compared with the
 * first one, and with the first success, as the first one may be excused. */
static void check_agreement(struct run *run, const struct op *op)
{
    const struct call *first = first_answer(run, op, false), *success = first_answer(run, op, true);
    for (uint32_t i = 0; i < op->ncallers && must_agree(op); i++)
        if (counts(run, &op->callers[i])) {
            compare(run, op->callers[i].call, first);
            compare(run, op->callers[i].call, success);
        }
}

/* Success: on a fine day nothing fails. */
static void check_success(struct run *run, const struct call *call)
{
    struct weather w = run->weather;
    const struct weather fine = {0};
    w.nameless = w.slow = false;
    if (memcmp(&w, &fine, sizeof w) == 0 && call->status != 0)
        fault(run, "success", "%s got %d for no reason", call_name(call), call->status);
}

/* Whether a construct of this operation was cancelled, or the loss of a participant fails it. */
static bool may_fail(const struct op *op)
{
    const struct run *run = op->group->run;
    for (uint32_t i = 0; i < op->ncallers; i++)
        if (op->callers[i].cancelled)
            return true;
    return run->weather.deaths && !op->survives;
}

/* Going on: losses do not fail what is to survive them, and a cancelled construct does not fail
 * the next one of its id. */
static void check_going_on(struct run *run, const struct call *call)
{
    struct weather w = run->weather;
    const struct weather fine = {0};
    w.nameless = w.slow = w.hands_up = w.deaths = w.cancels = false;
    if (memcmp(&w, &fine, sizeof w) == 0 && call->op->method == METHOD_PLAIN &&
        !may_fail(call->op) && !is_overtaken(call->op) && call->status != 0 && lives(call))
        fault(run, "going on", "%s got %d for no reason", call_name(call), call->status);
}

/* Leaks: what has ended leaves nothing, and what failed nothing for ever. */
static void check_leaks(struct run *run, const char *when)
{
    for (uint32_t i = 0; i < run->nnodes; i++)
        if (!loopback_dead(run->net, i) && !loopback_is_empty(run->net, i))
            fault(run, "leak", "server %u keeps something %s", i, when);
}

void check_end(struct run *run)
{
    const struct weather *w = &run->weather;
    for (uint32_t i = 0; i < run->ncalls; i++) {
        check_hangs(run, run->calls[i]);
        check_success(run, run->calls[i]);
        check_going_on(run, run->calls[i]);
    }
    for (const struct group *group = run->groups; group != NULL; group = group->next)
        for (const struct op *op = group->ops; op != NULL; op = op->next)
            check_agreement(run, op);
    /* Where frames are slow, a claim may come after its operation; the next call of its id clears
     * it away. */
    if (!run->failed && !w->crashes && !w->deaths && !w->cancels && !w->lossy && !w->slow)
        check_leaks(run, "although nothing failed");
    loopback_run(run->net, FORGET_MS);
    check_leaks(run, "for ever");
}
