/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the layer above the engine: operations that go on without the lost, as
 * common/upcall/survive.c does it. */
#include "common/tracker/values/retry.h"
#include "ci/campaign.d/campaign.h"

#include <stdio.h>
#include <stdlib.h>

void hand_over(struct call *call)
{
    struct engine *engine = loopback_engine(call->op->group->run->net, call->caller->proc.rank);
    if (!call->caller->leader)
        engine_join(engine, &call->call);
    else if (call->op->method == METHOD_BOOTSTRAP)
        engine_lead(engine, &call->call);
    else
        engine_call(engine, &call->call);
}

/* The signature and the added members without those who are lost. */
static void sign_again(struct call *call)
{
    struct wire_out sig = {0}, added = {0};
    free(call->sig);
    free((void *)call->call.added);
    signature_write(&sig, call->op->kind, call->op->group->id, &call->left);
    call->call.sig = call->sig = wire_out_take(&sig, &call->call.siglen);
    call->call.added = NULL;
    call->call.addedlen = 0;
    if (call->adds.nparts == 0)
        return;
    procset_write(&call->adds, &added);
    call->call.added = wire_out_take(&added, &call->call.addedlen);
}

static const char *names(const struct procset *set)
{
    static char text[256];
    size_t len = 0;
    text[0] = '\0';
    for (char ns = 'a'; ns <= 'b'; ns++)
        for (uint32_t rank = 0; rank < NODES_MAX && len + 8 < sizeof text; rank++)
            if (procset_has(set, ns_name(ns), rank))
                len += (size_t)snprintf(text + len, sizeof text - len, " %c%u", ns, rank);
    return text;
}

/* Whether one is dead of those whom the call is for. */
static bool has_dead(const struct call *call)
{
    const struct run *run = call->op->group->run;
    uint32_t rank = call->caller->proc.rank;
    for (char ns = 'a'; ns <= 'b'; ns++)
        if (procset_has(&call->left, ns_name(ns), rank) && is_dead(run, (struct proc){ns, rank}))
            return true;
    return false;
}

bool try_again(struct call *call, const struct engine_result *result)
{
    struct run *run = call->op->group->run;
    uint64_t spent = loopback_now(run->net) - call->made_at;
    bool over;
    if (result->status == 0 || result->status == LOOPBACK_TIMEOUT || !call->op->survives ||
        run->ending || loopback_dead(run->net, call->caller->proc.rank))
        return false;
    call->call.timeout = retry_timeout(call->timeout, (int64_t)spent, &over);
    if (!call->caller->leader) {
        if (result->gone == NULL && result->status != LOOPBACK_LOST)
            return false;
        if (over)
            call->call.status = LOOPBACK_TIMEOUT;
    } else {
        call->call.gone = &call->gone;
        if (result->gone == NULL ||
            !retry_without(&call->left, &call->adds, &call->gone, result->gone))
            return false;
        if (call->call.status == STATUS_DEAD || call->call.status == 0)
            call->call.status = has_dead(call) ? STATUS_DEAD : 0;
        if (call->call.status == 0 && over)
            call->call.status = LOOPBACK_TIMEOUT;
        sign_again(call);
    }
    call->retries++;
    trace(run, "%c%u of %s: tries again without%s", call->caller->proc.ns, call->caller->proc.rank,
          trace_op(call->op), names(&call->gone));
    hand_over(call);
    return true;
}
