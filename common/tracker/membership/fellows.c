/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaders of a bootstrap over steps, as each other's servers know them: a leader's fellows.
 *
 * Home alone knows which leaders have called, and it may be lost together with some of them: its
 * own, or those of other servers of its step. The others would wait for these at the next home. So
 * once a bootstrap has waited for half a second, and when home leaves, home tells the leaders'
 * servers which leaders have called. When a server has lost its leader's home, and a fellow of that
 * leader is lost, the leader's call fails, and with it the bootstrap at the next home.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

void fellows_changed(struct engine *engine, struct assembly *a)
{
    if (engine->env.home == NULL || a->tell != 0)
        return;
    a->tell = engine_now(engine) + ENGINE_FLUSH_MS;
    timer_sooner(&a->due, (int64_t)a->tell);
}

static void tell_one(struct engine *engine, const struct assembly *a, uint32_t node)
{
    struct wire_out out = {0}, numbers = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == node) {
            wire_put_u64(&numbers, a->leaders.v[i].number);
            n++;
        }
    engine_acquaint(engine, node, &a->leading);
    wire_put_u8(&out, FRAME_FELLOWS);
    procset_write(&a->leading, &out);
    wire_put_u32(&out, n);
    wire_put_raw(&out, numbers.data, numbers.len);
    out.failed = out.failed || numbers.failed;
    wire_out_free(&numbers);
    assembly_send(engine, node, &out);
}

void fellows_tell(struct engine *engine, struct assembly *a)
{
    a->tell = 0;
    for (uint32_t i = 0; i < a->leaders.n; i++) {
        uint32_t node = a->leaders.v[i].node, first = 0;
        while (a->leaders.v[first].node != node)
            first++;
        if (first == i && node != engine->env.self)
            tell_one(engine, a, node);
    }
}

static void keep(struct engine *engine, uint32_t home, uint64_t number, const struct procset *set)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->leads, all)
        if (w->number == number && w->home == home) {
            procset_free(&w->fellows);
            w->fellows = (struct procset){0};
            procset_unite(&w->fellows, set);
        }
}

void fellows_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct wire_in *in = &frame->in;
    struct procset set = {0};
    (void)t;
    procset_read(&set, in);
    uint32_t n = wire_get_count(in, 8);
    if (in->bad || (size_t)(in->end - in->p) != n * 8ul)
        log_warning("a malformed word of node %u on leaders was dropped", frame->from);
    else
        for (uint32_t i = 0; i < n; i++)
            keep(engine, frame->from, wire_get_u64(in), &set);
    procset_free(&set);
}

void fellows_lose_home(struct waiting *w)
{
    procset_unite(&w->former, &w->fellows);
    procset_free(&w->fellows);
    w->fellows = (struct procset){0};
}

int32_t fellows_loss(const struct engine *engine, const struct waiting *w)
{
    struct assembly_parts parts = {0};
    /* All were known when home named them: of a step that is forgotten since, the server is lost.
     */
    int32_t status = parts_split(engine, &w->former, &parts) == 0 ? 0 : engine->env.codes.lost;
    for (uint32_t i = 0; i < parts.n && status == 0; i++)
        if (engine_is_lost(engine, parts.v[i].node))
            status = tracker_loss(engine, COLL_CONSTRUCT, parts.v[i].node);
    parts_free(&parts);
    return status;
}

void fellows_ping(struct engine *engine, const struct waiting *w)
{
    struct assembly_parts parts = {0};
    parts_split(engine, &w->former, &parts);
    for (uint32_t i = 0; i < parts.n; i++)
        assembly_ping(engine, parts.v[i].node);
    parts_free(&parts);
}

void fellows_free(struct waiting *w)
{
    procset_free(&w->fellows);
    procset_free(&w->former);
}
