/* SPDX-License-Identifier: BSD-3-Clause */
/* What has to hold for one answer. A fault begins with the name of its invariant. */
#include "ci/campaign.d/campaign.h"

#include <stdlib.h>
#include <string.h>

/* Participants: the contributions of a success are those of calls that were made, for this
 * operation, one of each caller, byte by byte. */
static struct call *check_entry(struct call *call, const struct engine_entry *entry)
{
    struct run *run = run_of(call);
    unsigned char expected[PAYLOAD_MAX];
    uint32_t number = UINT32_MAX;
    if (entry->len >= sizeof number)
        memcpy(&number, entry->data, sizeof number);
    if (number >= run->ncalls || entry->len != payload(expected, number) ||
        memcmp(entry->data, expected, entry->len) != 0) {
        fault(run, "participants", "%s: a contribution that no server made", call_name(call));
        return NULL;
    }
    struct call *from = run->calls[number];
    bool same = from->op == call->op || is_overtaken(call->op) ||
                (call->op->method == METHOD_PLAIN && !must_agree(call->op));
    if (!same || !same_group(from->op, call->op))
        fault(run, "participants", "%s has a contribution of %s", call_name(call), call_name(from));
    else if (from->taken_back)
        fault(run, "participants", "%s has a contribution of %s, which was taken back",
              call_name(call), call_name(from));
    else if (from->call.status != 0)
        fault(run, "participants", "%s succeeded with the failed contribution of %s",
              call_name(call), call_name(from));
    return from;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* How many contributions a success has to have. Participants that contribute no data are no less
 * awaited: all have called, and none of these calls was a failure or was taken back. */
static uint32_t expected_entries(struct call *call)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->op->ncallers; i++) {
        const struct call *from = call->op->callers[i].call;
        bool out = from == NULL || from->taken_back || from->call.status != 0;
        if (out && call->op->quiet)
            fault(run_of(call), "participants", "%s succeeded without %c%u's contribution",
                  call_name(call), call->op->callers[i].proc.ns, call->op->callers[i].proc.rank);
        n += from == NULL || from->call.len > 0;
    }
    return n;
}

/* Contributions: each is used in one result only, which all have alike. */
static void check_use(struct call *call)
{
    for (uint32_t i = 0; i < call->nused; i++) {
        struct call *from = run_of(call)->calls[call->used[i]];
        /* What a lost server got does not bind the others. */
        if (from->used_by == NULL ||
            loopback_dead(run_of(call)->net, from->used_by->caller->proc.rank))
            from->used_by = call;
        const struct call *other = from->used_by;
        if (other->nused != call->nused || other->context_id != call->context_id ||
            memcmp(other->used, call->used, call->nused * sizeof *call->used) != 0)
            fault(run_of(call), "contributions", "%s and %s have two results with that of %s",
                  call_name(call), call_name(other), "one call");
    }
}

static void check_entries(struct call *call, const struct engine_result *result)
{
    struct run *run = run_of(call);
    bool own = false;
    call->used = calloc(result->nentries + 1ul, sizeof *call->used);
    if (call->used == NULL)
        abort();
    for (uint32_t i = 0; i < result->nentries; i++) {
        const struct call *from = check_entry(call, &result->entries[i]);
        if (from == NULL)
            return;
        call->used[call->nused++] = from->number;
        own = own || from == call;
    }
    qsort(call->used, call->nused, sizeof *call->used, compare);
    for (uint32_t i = 1; i < call->nused; i++)
        if (run->calls[call->used[i]]->caller->proc.rank ==
                run->calls[call->used[i - 1]]->caller->proc.rank &&
            call->used[i] == call->used[i - 1])
            fault(run, "participants", "%s has one contribution twice", call_name(call));
    bool mixed = is_overtaken(call->op); /* with contributions for operations before it */
    bool counts = !mixed && !call->op->survives && (!call->op->quiet || must_agree(call->op));
    if (call->op->disagree && !mixed)
        fault(run, "participants", "%s succeeded although the leaders disagree", call_name(call));
    else if (counts && call->nused != expected_entries(call))
        fault(run, "participants", "%s succeeded with %u contributions of %u", call_name(call),
              call->nused, call->op->ncallers);
    else if (!own && !mixed && call->call.len > 0)
        fault(run, "participants", "%s succeeded without its own contribution", call_name(call));
    check_use(call);
}

/* Lost: only who has ended is said to be, and of these only who takes part. */
void check_gone(struct call *call, const struct engine_result *result)
{
    struct run *run = run_of(call);
    bool mixed = is_overtaken(call->op) || is_shadowed(call->op) ||
                 (call->op->method != METHOD_PLAIN && run->weather.cancels);
    for (char ns = 'a'; ns <= 'b' && result->gone != NULL && !mixed; ns++)
        for (uint32_t rank = 0; rank < run->nnodes; rank++)
            if (procset_has(result->gone, ns_name(ns), rank) &&
                (!is_gone(run, (struct proc){ns, rank}) ||
                 !procset_has(&call->op->all, ns_name(ns), rank)))
                fault(run, "lost", "%s: %c%u is said to be lost", call_name(call), ns, rank);
    if (result->gone != NULL && result->status == 0 && !call->op->survives)
        fault(run, "lost", "%s succeeded with a list of the lost", call_name(call));
    if (result->status == 0 && !mixed && call->call.gone != NULL && result->gone == NULL)
        fault(run, "lost", "%s went on without some and is not told without whom", call_name(call));
}

/* The call of the server, or of the process, whose contribution is in the result. */
static const struct call *call_of(const struct call *call, struct proc proc)
{
    for (uint32_t i = 0; i < call->nused; i++) {
        const struct call *from = run_of(call)->calls[call->used[i]];
        bool plain = from->op->method == METHOD_PLAIN || from->caller->leader;
        if (from->caller->proc.rank == proc.rank && (plain || from->caller->proc.ns == proc.ns))
            return from;
    }
    return NULL;
}

/* Survival: an operation that went on without the lost has every process that lives, and no process
 * that had ended before its server's call or whose server has made no call. */
static void check_survivors(struct call *call)
{
    struct run *run = run_of(call);
    for (char ns = 'a'; ns <= 'b'; ns++)
        for (uint32_t rank = 0; rank < run->nnodes; rank++) {
            struct proc proc = {ns, rank};
            const struct call *from = call_of(call, proc);
            if (!procset_has(&call->op->all, ns_name(ns), rank))
                continue;
            if (!procset_has(&call->members, ns_name(ns), rank)) {
                if (!is_gone(run, proc))
                    fault(run, "survival", "%s went on without %c%u, who lives", call_name(call),
                          ns, rank);
            } else if (from == NULL ||
                       (is_dead(run, proc) && run->died_at[ns == 'b'][rank] < from->made_at)) {
                fault(run, "survival", "%s has %c%u, who has not called", call_name(call), ns,
                      rank);
            }
        }
}

/* Membership: the participants, and whom any leader has added. */
static void check_members(struct call *call, const struct engine_result *result)
{
    procset_unite(&call->members, result->members != NULL ? result->members : &call->left);
    if (call->op->survives && !is_overtaken(call->op))
        check_survivors(call);
    else if (!procset_equal(&call->members, &call->op->all) && !is_overtaken(call->op))
        fault(run_of(call), "membership", "%s has %llu members, expected %llu", call_name(call),
              (unsigned long long)procset_size(&call->members),
              (unsigned long long)procset_size(&call->op->all));
}

/* Whether one of the calls whose contributions are in the result asked for a context id. */
static bool has_asked(const struct call *call)
{
    for (uint32_t i = 0; i < call->nused; i++)
        if ((run_of(call)->calls[call->used[i]]->call.flags & ENGINE_WANT_CONTEXT_ID) != 0)
            return true;
    return false;
}

/* Context ids: one where it was asked for, and no other operation's. A result with contributions of
 * several operations may lack the caller that asks. */
static void check_context_id(struct call *call)
{
    struct run *run = run_of(call);
    bool may = call->op->kind == COLL_CONSTRUCT, has = call->context_id != 0;
    bool must = is_overtaken(call->op) ? has_asked(call) : may;
    if ((has && !may) || (must && !has))
        fault(run, "context id", "%s got %llu", call_name(call),
              (unsigned long long)call->context_id);
    for (uint32_t i = 0; i < run->ncalls && call->context_id != 0; i++) {
        const struct call *other = run->calls[i];
        bool quiet = call->op->quiet || other->op->quiet;
        if (other->context_id == call->context_id && other->status == 0 &&
            (quiet ? other->op != call->op && must_agree(call->op) && must_agree(other->op)
                   : other->nused > 0 && other->used[0] != call->used[0]))
            fault(run, "context id", "%s and %s both got %llu", call_name(call), call_name(other),
                  (unsigned long long)call->context_id);
    }
}

void check_answer(struct call *call, const struct engine_result *result)
{
    struct run *run = run_of(call);
    if (call->answers > 0 || call->taken_back)
        fault(run, "answers", "%s was answered again%s", call_name(call),
              call->taken_back ? ", after it was taken back" : "");
    else if (result->status != 0 && (result->nentries != 0 || result->context_id != 0))
        fault(run, "answers", "%s got a failure with a result", call_name(call));
    else if (result->status == 0) {
        check_entries(call, result);
        check_members(call, result);
        if (call->nused > 0 || call->op->quiet)
            check_context_id(call);
    }
}
