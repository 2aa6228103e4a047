/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays a schedule: makes the calls in their time, takes some back, and lets mishaps happen. */
#include "ci/campaign.d/campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_call(struct loopback *net, void *arg);

bool is_dead(const struct run *run, struct proc proc)
{
    return !run->again && run->dead[proc.ns == 'b'][proc.rank];
}

size_t payload(unsigned char *data, uint32_t number)
{
    size_t len = sizeof number + number % (PAYLOAD_MAX - sizeof number);
    memcpy(data, &number, sizeof number);
    for (size_t i = sizeof number; i < len; i++)
        data[i] = (unsigned char)(i * 31 + number);
    return len;
}

static void call_in(struct caller *caller, uint32_t ms)
{
    struct run *run = caller->op->group->run;
    loopback_at(run->net, loopback_now(run->net) + ms, make_call, caller);
}

/* The same caller's part in the next operation of a plain group. */
static void next_plain(struct caller *caller)
{
    struct op *op = caller->op;
    if (op->next != NULL)
        call_in(&op->next->callers[caller - op->callers],
                chance(op->group->run, 50) ? 0 : below(op->group->run, SPREAD_MS));
}

static void begin_round(struct op *op)
{
    for (uint32_t i = 0; i < op->ncallers; i++)
        call_in(&op->callers[i], below(op->group->run, SPREAD_MS));
}

/* A caller has its answer, or will not call. Rounds of members that are added follow one another:
 * only then is it certain which of them a call of that id belongs to. */
static void over(struct caller *caller, bool called)
{
    struct op *op = caller->op;
    op->over++;
    if (op->method == METHOD_PLAIN) {
        if ((called && !op->group->pipelined) || caller->cancelled)
            next_plain(caller);
    } else if (op->over == op->ncallers && op->next != NULL) {
        begin_round(op->next);
    }
}

static void over_by_loss(struct loopback *net, void *arg)
{
    struct caller *caller = arg;
    (void)net;
    if (!caller->op->group->run->ending)
        over(caller, true);
}

static void done(struct engine_call *engine_call, const struct engine_result *result)
{
    struct call *call = (struct call *)engine_call;
    struct run *run = call->op->group->run;
    check_gone(call, result);
    if (try_again(call, result))
        return;
    call->status = result->status;
    call->context_id = result->context_id;
    call->answered_at = loopback_now(run->net);
    trace(run, "%c%u of %s: status %d, context id %llu", call->caller->proc.ns,
          call->caller->proc.rank, trace_op(call->op), call->status,
          (unsigned long long)call->context_id);
    run->failed = run->failed || call->status != 0;
    check_answer(call, result);
    if (call->answers++ > 0 || run->ending)
        return;
    /* What a lost server has called for stands elsewhere until the loss is known there. */
    if (run->lost_at[call->caller->proc.rank] != 0 && call->op->method != METHOD_PLAIN)
        loopback_at(run->net, loopback_now(run->net) + TOLD_MS + 1, over_by_loss, call->caller);
    else
        over(call->caller, true);
}

static void take_back(struct loopback *net, void *arg)
{
    struct call *call = arg;
    struct run *run = call->op->group->run;
    uint32_t node = call->caller->proc.rank;
    if (call->answers > 0 || loopback_dead(net, node))
        return;
    call->taken_back = engine_withdraw(loopback_engine(net, node), &call->call);
    trace(run, "%c%u of %s: taken back: %s", call->caller->proc.ns, node, trace_op(call->op),
          call->taken_back ? "yes" : "no, it belongs to an operation");
    if (call->taken_back)
        over(call->caller, false);
}

/* A caller that could wait for ever has a deadline. It could
 * - where frames are lost;
 * - where others give up before the decider's word, and then call for the next operation;
 * - where a process can be missing of which no other one knows: a bootstrap's leader, or the only
 *   leader that adds a member;
 * - after what may shadow the operation (is_shadowed()).
 * A member's deadline is long, since leaders without a deadline wait for the member. So is that of
 * a call which the failure of its operation may overtake, as it then waits for the next one. Where
 * all callers shall get one status, members have no other deadline, because it would give them
 * another.
 */
static uint32_t draw_timeout(struct run *run, const struct caller *caller)
{
    const struct weather *w = &run->weather;
    enum method method = caller->op->method;
    bool gone = w->deaths || w->crashes;
    bool must = w->lossy || (w->slow && (w->deadlines || w->cancels)) ||
                (method != METHOD_PLAIN && w->cancels) || (method == METHOD_BOOTSTRAP && gone) ||
                is_shadowed(caller->op);
    bool may = w->deadlines && caller->leader && chance(run, 25);
    if (must || may)
        return 1 + below(run, TIMEOUT_MAX);
    bool fails = gone || w->failures || w->deadlines || caller->op->disagree;
    return method != METHOD_PLAIN && fails ? PATIENCE : 0;
}

static struct call *new_call(struct run *run, struct caller *caller)
{
    const struct op *op = caller->op;
    struct call *call = calloc(1, sizeof *call);
    struct wire_out out = {0};
    struct call **calls = realloc(run->calls, (run->ncalls + 1ul) * sizeof *calls);
    if (call == NULL || calls == NULL)
        abort();
    run->calls = calls;
    calls[run->ncalls] = caller->call = call;
    call->op = caller->op;
    call->caller = caller;
    call->number = run->ncalls++;
    call->made_at = loopback_now(run->net);
    if (!run->weather.nameless || caller->leader)
        procset_add(&call->identity, ns_name(caller->proc.ns), caller->proc.rank,
                    caller->proc.rank);
    call->call = (struct engine_call){
        .sig = op->sig,
        .siglen = op->siglen,
        .flags = op->kind == COLL_CONSTRUCT && (caller == op->callers || op->survives)
                     ? ENGINE_WANT_CONTEXT_ID
                     : 0,
        .data = call->data,
        .len = payload(call->data, call->number),
        .timeout = draw_timeout(run, caller),
        .id = op->group->id,
        .caller = &call->identity,
        .leaders = op->nleaders + (op->disagree && caller == &op->callers[op->nleaders - 1]),
        .done = done,
    };
    call->timeout = call->call.timeout;
    if (op->quiet && chance(run, 70))
        call->call.len = 0;
    procset_unite(&call->left, &op->leaders);
    procset_unite(&call->adds, &caller->adds);
    if (run->weather.failures && chance(run, 5))
        call->call.status = STATUS_OWN - (int32_t)caller->proc.rank;
    if (caller->adds.nparts > 0) {
        procset_write(&caller->adds, &out);
        call->call.added = wire_out_take(&out, &call->call.addedlen);
    }
    return call;
}

/* Why a caller cannot take part. A server calls for two processes of a plain operation: it calls
 * without them only when its library hands up what a dead one takes part in; it always does what
 * goes on without. */
static int32_t obstacle(struct run *run, const struct caller *caller, bool *calls)
{
    uint32_t rank = caller->proc.rank, alive = 0, gone = 0;
    bool survives = caller->op->survives || caller->op->group->survives;
    *calls = !loopback_dead(run->net, rank);
    for (char ns = 'a'; ns <= 'b'; ns++) {
        struct proc proc = {ns, rank};
        bool ours = caller->op->method == METHOD_PLAIN
                        ? procset_has(&caller->op->all, ns_name(ns), rank)
                        : ns == caller->proc.ns;
        alive += ours && !is_dead(run, proc);
        gone += ours && is_dead(run, proc);
    }
    if (gone > 0 && (alive == 0 || (!run->weather.hands_up && !survives)))
        *calls = false;
    return gone > 0 ? STATUS_DEAD : 0;
}

/* Whether the server has missed the construct before, and its library has not ended that one. Then
 * the engine takes what the library says next for a word on that one (docs/limits.md). */
static bool missed_last(const struct caller *caller)
{
    const struct op *op = caller->op->group->ops;
    const struct caller *last = NULL;
    for (; op != caller->op; op = op->next)
        if (same_group(op, caller->op) && op->method == METHOD_PLAIN)
            last = &op->callers[caller - caller->op->callers];
    return last != NULL && last->missed && !last->cancelled;
}

/* Whether the library ends a plain construct by itself before it hands it up: a participant is
 * lost, or late. Nobody but one construct of the id is under way on the server then. */
static bool is_cancelled(struct run *run, struct caller *caller, int32_t status)
{
    if (missed_last(caller))
        return false;
    const struct op *op = caller->op;
    bool may = run->weather.cancels && op->kind == COLL_CONSTRUCT && op->method == METHOD_PLAIN &&
               op->group->alone && !op->group->pipelined && !op->survives &&
               !loopback_dead(run->net, caller->proc.rank);
    return may && (status != 0 ? chance(run, 70) : chance(run, 10));
}

static void cancel(struct run *run, struct caller *caller, bool lost)
{
    trace(run, "%c%u of %s: cancelled%s", caller->proc.ns, caller->proc.rank, trace_op(caller->op),
          lost ? " for a loss" : "");
    caller->cancelled = run->failed = true;
    engine_cancel(loopback_engine(run->net, caller->proc.rank), caller->op->group->id, lost);
    over(caller, false);
}

/* Whether a failure of that signature is one of the operation, or of a later try of it. */
static bool is_of(const struct op *op, const struct signature *sig)
{
    return op->method != METHOD_BOOTSTRAP && op->kind == sig->kind &&
           strcmp(op->group->id, sig->id) == 0 &&
           (op->survives ? procset_within(&sig->members, &op->leaders)
                         : procset_equal(&sig->members, &op->leaders));
}

/* Whether the deadline of a call may have passed. By nothing else does an operation that goes on
 * fail before all have called; a failure that is heard may still be of the one before. */
static bool may_be_late(const struct op *op)
{
    for (uint32_t i = 0; i < op->ncallers; i++) {
        const struct call *call = op->callers[i].call;
        if (call != NULL && call->timeout > 0 &&
            loopback_now(run_of(call)->net) >= call->made_at + 1000)
            return true;
    }
    return false;
}

/* The first operation of that signature for which the server has not called, unless its call for
 * the one before still waits. What goes on without the lost does so after a loss. */
void miss(void *arg, uint32_t node, const void *bytes, size_t len,
          const struct engine_result *result)
{
    struct run *run = arg;
    struct signature sig;
    struct caller *missed = NULL;
    bool waits = false;
    if (signature_read(&sig, bytes, len) != 0)
        abort();
    for (struct group *group = run->groups; group != NULL; group = group->next)
        for (struct op *op = group->ops; op != NULL && missed == NULL; op = op->next)
            for (uint32_t i = 0; i < op->nleaders && is_of(op, &sig); i++) {
                struct caller *caller = &op->callers[i];
                if (caller->proc.rank != node || caller->missed || caller->cancelled)
                    continue;
                if (caller->call != NULL)
                    waits = caller->call->answers == 0;
                else if (missed == NULL)
                    missed = caller;
            }
    signature_free(&sig);
    bool goes_on = result->gone != NULL && result->status != LOOPBACK_TIMEOUT;
    if (missed == NULL || waits || (missed->op->survives && (goes_on || !may_be_late(missed->op))))
        return;
    trace(run, "%c%u of %s: missed", missed->proc.ns, node, trace_op(missed->op));
    missed->missed = true;
}

static void make_call(struct loopback *net, void *arg)
{
    struct caller *caller = arg;
    struct op *op = caller->op;
    struct run *run = op->group->run;
    bool calls;
    int32_t status = obstacle(run, caller, &calls);
    if (is_cancelled(run, caller, status)) {
        cancel(run, caller, status != 0);
        return;
    }
    if (caller->missed) {
        over(caller, true);
        if (op->group->pipelined)
            next_plain(caller);
        return;
    }
    if (op->method != METHOD_PLAIN &&
        failed_before(op, UINT64_MAX)) { /* its call would be of the next one */
        over(caller, true);
        return;
    }
    if (!calls) {
        over(caller, false);
        return;
    }
    struct call *call = new_call(run, caller);
    if (status != 0)
        call->call.status = status;
    trace(run, "%c%u of %s: calls, timeout %u s, status %d", caller->proc.ns, caller->proc.rank,
          trace_op(op), call->call.timeout, call->call.status);
    if (op->method != METHOD_PLAIN && run->weather.cancels && chance(run, 15))
        loopback_at(net, loopback_now(net) + below(run, 2000), take_back, call);
    hand_over(call);
    if (op->method == METHOD_PLAIN && op->group->pipelined)
        next_plain(caller);
}

/* ---- mishaps ---- */

static void crash(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint32_t node = below(run, run->nnodes);
    if (loopback_dead(net, node))
        return;
    bool leaves = chance(run, 30); /* it can say so, then */
    trace(run, "server %u %s", node, leaves ? "leaves" : "dies");
    run->lost_at[node] = loopback_now(net);
    if (leaves)
        loopback_leave(net, node, 0, NOTICE_MS);
    else
        loopback_kill(net, node, 0, NOTICE_MS);
}

/* Two servers lose each other. More than one such pair, or few servers, could make two parts that
 * hear nothing of each other, and both go on. */
static void part(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint32_t a = below(run, run->nnodes), b = below(run, run->nnodes);
    if (a == b || loopback_dead(net, a) || loopback_dead(net, b))
        return;
    trace(run, "the link of servers %u and %u is cut", a, b);
    loopback_part(net, a, b, 0, NOTICE_MS);
}

static void die(struct loopback *net, void *arg)
{
    struct run *run = arg;
    struct proc proc = {chance(run, 50) ? 'a' : 'b', below(run, run->nnodes)};
    if (loopback_dead(net, proc.rank))
        return;
    trace(run, "%c%u dies", proc.ns, proc.rank);
    if (!is_dead(run, proc))
        run->died_at[proc.ns == 'b'][proc.rank] = loopback_now(net);
    run->dead[proc.ns == 'b'][proc.rank] = true;
    engine_local_loss(loopback_engine(net, proc.rank));
}

static void cut(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint8_t sides[NODES_MAX];
    for (size_t i = 0; i < sizeof sides; i++)
        sides[i] = chance(run, 30);
    trace(run, "the network is cut");
    loopback_partition(net, sides, loopback_now(net) + below(run, 20000));
}

static void some(struct run *run, uint32_t most, void (*mishap)(struct loopback *net, void *arg))
{
    for (uint32_t n = 1 + below(run, most); n > 0; n--)
        loopback_at(run->net, loopback_now(run->net) + below(run, 3 * SPREAD_MS), mishap, run);
}

void play(struct run *run)
{
    for (struct group *group = run->groups; group != NULL; group = group->next)
        begin_round(group->ops);
    if (run->weather.crashes)
        some(run, 2, crash);
    if (run->weather.parts)
        some(run, 1, part);
    if (run->weather.deaths)
        some(run, 3, die);
    if (run->weather.slow && chance(run, 50))
        some(run, 2, cut);
    if (run->seed % 2 == 0)
        check_again(run);
    loopback_run(run->net, SETTLE_MS);
}
