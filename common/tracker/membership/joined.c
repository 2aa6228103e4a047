/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server that decides learns of added members: they have joined, or their server is lost.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdlib.h>

static struct assembly *find(struct engine *engine, uint64_t op)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->membership->assemblies, all)
        if (a->op == op)
            return a;
    return NULL;
}

void assembly_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct wire_in *in = &frame->in;
    uint32_t from = frame->from;
    (void)t;
    uint64_t op = wire_get_u64(in);
    struct assembly *a = find(engine, op);
    uint32_t library = wire_get_u32(in), timeout = wire_get_u32(in), at = 0;
    uint64_t left = wire_get_u64(in);
    int32_t status = wire_get_i32(in);
    uint32_t flags = wire_get_u32(in);
    struct procset gone = {0};
    procset_read(&gone, in);
    uint32_t n;
    struct engine_entry *entries = entries_get(in, UINT32_MAX, &n);
    while (a != NULL && at < a->members.n && a->members.v[at].node != from)
        at++;
    if (entries == NULL || a == NULL || at == a->members.n || a->members.v[at].have) {
        if (entries != NULL && a == NULL) /* it was claimed late: those calls are not for us */
            assembly_unclaim(engine, from, op);
        else
            log_debug("tracker: node %u's word on its added members was dropped", from);
        procset_free(&gone);
        free(entries);
        return;
    }
    if (library != engine->env.library) {
        log_error("group \"%s\" construct: node %s runs another libpmix than node %s; install one "
                  "version everywhere",
                  a->id, engine->env.name(engine->env.arg, from),
                  engine->env.name(engine->env.arg, engine->env.self));
        status = engine->env.codes.library;
    }
    assembly_arm(engine, a, timeout, left);
    if (a->tracker != NULL)
        procset_unite(&a->tracker->gone, &gone);
    procset_free(&gone);
    if (status == 0 && !part_fill(&a->members.v[at], flags, entries, n))
        status = engine->env.codes.invalid;
    free(entries);
    if (status != 0)
        assembly_fail(engine, a, status);
    else
        assembly_go_on(engine, a);
}

static bool needs(const struct assembly *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->members.n; i++)
        if (a->members.v[i].node == node && !a->members.v[i].have)
            return true;
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == node)
            return true;
    return false;
}

void assembly_lost(struct engine *engine, uint32_t node)
{
    struct assembly *a;
    bool found = true;
    while (found) {
        found = false;
        TAILQ_FOREACH (a, &engine->membership->assemblies, all)
            if (needs(a, node)) {
                assembly_lose(a, node);
                assembly_fail(engine, a, tracker_loss(engine, COLL_CONSTRUCT, node));
                found = true;
                break;
            }
    }
}

/* Leaders of a bootstrap ask for another home as soon as they hear that this one has left
 * (leader_lost()), and the next home claims the members: then this server tells them nothing but
 * which processes lead. But a leader of this server calls no more, and the others would wait for
 * it. */
static bool moves(const struct engine *engine, const struct assembly *a)
{
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == engine->env.self)
            return false;
    return a->tracker == NULL && engine->env.home != NULL;
}

void assembly_close(struct engine *engine)
{
    struct assembly *a;
    while ((a = TAILQ_FIRST(&engine->membership->assemblies)) != NULL)
        if (moves(engine, a)) {
            assembly_remove(engine, a);
            assembly_free(a);
        } else {
            assembly_fail(engine, a, engine->env.codes.closing);
        }
}
