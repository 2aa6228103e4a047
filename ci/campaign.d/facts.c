/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of calls and operations, and what can be promised of them. */
#include "ci/campaign.d/campaign.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault(struct run *run, const char *invariant, const char *fmt, ...)
{
    va_list ap;
    if (run->fault[0] != '\0')
        return;
    int n = snprintf(run->fault, sizeof run->fault, "%s: ", invariant);
    va_start(ap, fmt);
    vsnprintf(run->fault + n, sizeof run->fault - (size_t)n, fmt, ap);
    va_end(ap);
    trace(run, "FAULT %s", run->fault);
}

const char *call_name(const struct call *call)
{
    static char texts[2][128];
    static unsigned turn;
    char *text = texts[turn++ % 2];
    snprintf(text, sizeof texts[0], "%c%u of %s", call->caller->proc.ns, call->caller->proc.rank,
             trace_op(call->op));
    return text;
}

struct run *run_of(const struct call *call)
{
    return call->op->group->run;
}

uint32_t decider_of(const struct op *op)
{
    const char *id = op->group->id;
    if (op->method == METHOD_BOOTSTRAP)
        return (uint32_t)(signature_hash(id, strlen(id)) % op->group->run->nnodes);
    return op->callers[signature_hash(op->sig, op->siglen) % op->nleaders].proc.rank;
}

static bool same_signature(const struct op *a, const struct op *b)
{
    return a->siglen == b->siglen && memcmp(a->sig, b->sig, a->siglen) == 0;
}

bool same_group(const struct op *a, const struct op *b)
{
    return a->group == b->group && a->kind == b->kind &&
           (a->method != METHOD_PLAIN || same_signature(a, b));
}

/* The failed call that the engine makes for a construct that was cancelled has one, too. */
static bool has_timeout(const struct op *op)
{
    for (uint32_t i = 0; i < op->ncallers; i++)
        if (op->callers[i].cancelled ||
            (op->callers[i].call != NULL && op->callers[i].call->call.timeout > 0))
            return true;
    return false;
}

bool own_timeout(const struct call *call)
{
    return call != NULL && !call->caller->leader && call->status == LOOPBACK_TIMEOUT &&
           call->call.timeout > 0;
}

bool was_gone(const struct run *run, struct proc proc, uint64_t at)
{
    uint64_t lost_at = run->lost_at[proc.rank];
    return (lost_at != 0 && lost_at <= at) ||
           (is_dead(run, proc) && run->died_at[proc.ns == 'b'][proc.rank] <= at);
}

bool failed_before(const struct op *op, uint64_t at)
{
    for (uint32_t i = 0; i < op->ncallers; i++) {
        const struct call *call = op->callers[i].call;
        if (call != NULL && call->answers > 0 && call->status != 0 && call->answered_at < at &&
            !was_gone(op->group->run, op->callers[i].proc, call->answered_at))
            return true;
    }
    return false;
}

bool is_behind(const struct call *call)
{
    return call->op->method != METHOD_PLAIN && call->status != 0 &&
           failed_before(call->op, call->made_at + 4ull * run_of(call)->delay_max);
}

/* Whether the failure may come when a caller has called again: it did not wait for it. A member
 * that gave up by its own deadline calls again later than that, unless a second try fails for good,
 * or the frames are slow. */
static bool may_come_late(const struct caller *caller)
{
    bool late = caller->op->survives || caller->op->group->run->weather.slow;
    return caller->call == NULL || (late && own_timeout(caller->call));
}

bool is_shadowed(const struct op *op)
{
    const struct op *before = op->group->ops;
    for (; op->method != METHOD_PLAIN && before != op; before = before->next)
        for (uint32_t i = 0; i < before->ncallers; i++)
            if (may_come_late(&before->callers[i]))
                return true;
    return false;
}

bool is_overtaken(const struct op *op)
{
    const struct op *before = op->group->ops;
    for (; op->group->run->weather.slow && before != op->next; before = before->next)
        if (has_timeout(before))
            return true;
    return false;
}

bool must_agree(const struct op *op)
{
    const struct weather *w = &op->group->run->weather;
    bool cancels = op->method != METHOD_PLAIN && w->cancels;
    return !w->lossy && !cancels && !is_overtaken(op) && !is_shadowed(op);
}

bool is_gone(const struct run *run, struct proc proc)
{
    return is_dead(run, proc) || run->lost_at[proc.rank] != 0;
}
