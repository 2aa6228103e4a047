/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the leaders of a bootstrap meet: the home of its id. Home counts distinct leaders, not
 * calls. One leader more than the count is the first leader of the id's next construct.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* What a LEAD says. */
struct lead {
    uint32_t from, library, count, timeout;
    uint64_t number, left;
    char id[PROCSET_NAME_MAX + 1];
    struct procset leader, added;
    int32_t status;
    uint8_t announced; /* before: it fails since */
    uint32_t flags;
    struct engine_entry *entry;
};

/* Tells a leader's server that its call, which it has taken back, has ended. */
static void give_back(struct engine *engine, const struct lead *lead)
{
    struct tracker_release release = {.result.status = engine->env.codes.closing};
    struct assembly *a = assembly_new(engine, lead->id, NULL);
    struct assembly_part *part = a != NULL ? parts_add(&a->leaders, lead->from) : NULL;
    if (a != NULL)
        assembly_remove(engine, a);
    if (part != NULL) {
        part->number = lead->number;
        procset_unite(&a->leading, &lead->leader);
        assembly_tell(engine, a, NULL, NULL, &release);
        release_end(&release);
    }
    assembly_free(a);
}

static uint64_t deadline_of(const struct engine *engine, uint32_t timeout, uint64_t left)
{
    uint64_t most = timeout * 1000ull;
    return engine_clock(engine) + (left < most ? left : most);
}

static struct assembly *find(struct engine *engine, const struct lead *lead)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->membership->assemblies, all)
        if (a->tracker == NULL && strcmp(a->id, lead->id) == 0 &&
            procset_has_first(&a->leading, &lead->leader))
            return a; /* its second call gets the result of the first */
    TAILQ_FOREACH (a, &engine->membership->assemblies, all)
        if (a->tracker == NULL && strcmp(a->id, lead->id) == 0 && a->state == ASSEMBLY_LEADERS)
            return a;
    a = assembly_new(engine, lead->id, NULL);
    if (a != NULL)
        a->count = lead->count;
    return a;
}

/* What is wrong with a leader's call in this bootstrap, or 0. */
static int32_t check(struct engine *engine, const struct assembly *a, const struct lead *lead)
{
    const struct engine_env *env = &engine->env;
    if (lead->library != env->library) {
        log_error("group \"%s\" bootstrap: node %s runs another libpmix than node %s; install one "
                  "version everywhere",
                  a->id, env->name(env->arg, lead->from), env->name(env->arg, env->self));
        return env->codes.library;
    }
    if (lead->count != a->count) {
        const struct assembly_part *first = &a->leaders.v[0];
        log_error("group \"%s\" bootstrap: rank %u on node %s says %u leaders, and rank %u on node "
                  "%s says %u: all leaders must give the same number",
                  a->id, first->procs.parts[0].ranks.v[0].first, env->name(env->arg, first->node),
                  a->count, lead->leader.parts[0].ranks.v[0].first, env->name(env->arg, lead->from),
                  lead->count);
        return env->codes.count;
    }
    return lead->status;
}

/* Whether this very call is here already. */
static bool is_known(const struct assembly *a, const struct lead *lead)
{
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == lead->from && a->leaders.v[i].number == lead->number)
            return true;
    return false;
}

/* A leader's call that was announced before fails since, as its server leaves. Fails the bootstrap
 * of this leader. A bootstrap that is over by now, or whose call was
 * taken back, is not begun again by that. */
static void lose_leader(struct engine *engine, const struct lead *lead)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->membership->assemblies, all)
        if (a->tracker == NULL && strcmp(a->id, lead->id) == 0 && is_known(a, lead)) {
            assembly_decide(engine, a, lead->status);
            return;
        }
}

static void count_leader(struct engine *engine, struct lead *lead)
{
    struct assembly *a = find(engine, lead);
    if (a == NULL || is_known(a, lead))
        return;
    bool repeats = procset_has_first(&a->leading, &lead->leader);
    int32_t status = a->leaders.n > 0 || lead->library != engine->env.library
                         ? check(engine, a, lead)
                         : lead->status;
    struct assembly_part *part = parts_add(&a->leaders, lead->from);
    if (part != NULL) {
        part->number = lead->number;
        part->have = true;
        procset_unite(&part->procs, &lead->leader);
        procset_unite(&part->added, &lead->added);
        part->timeout = lead->timeout;
        part->deadline = deadline_of(engine, lead->timeout, lead->left);
        if (!repeats && !part_fill(part, lead->flags, lead->entry, 1) && status == 0)
            status = engine->env.codes.invalid;
    }
    procset_unite(&a->leading, &lead->leader);
    if (a->state == ASSEMBLY_LEADERS) /* else the added members are claimed already */
        procset_unite(&a->added, &lead->added);
    assembly_arm(engine, a, lead->timeout, lead->left);
    if (status != 0)
        assembly_decide(engine, a, status);
    else
        assembly_progress(engine, a);
}

/* What the leaders that are left add up to. */
static void recount(struct engine *engine, struct assembly *a)
{
    uint64_t now = engine_clock(engine);
    procset_free(&a->leading);
    procset_free(&a->added);
    a->leading = a->added = (struct procset){0};
    a->timeout = 0;
    a->deadline = 0;
    for (uint32_t i = 0; i < a->leaders.n; i++) {
        const struct assembly_part *part = &a->leaders.v[i];
        procset_unite(&a->leading, &part->procs);
        procset_unite(&a->added, &part->added);
        assembly_arm(engine, a, part->timeout, part->deadline > now ? part->deadline - now : 0);
    }
}

bool home_take_back(struct engine *engine, uint32_t from, uint64_t number, struct procset *leader)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->membership->assemblies, all) {
        uint32_t n = a->leaders.n;
        if (a->tracker != NULL || a->state == ASSEMBLY_MEMBERS)
            continue;
        for (uint32_t i = n; i-- > 0;)
            if (a->leaders.v[i].node == from && a->leaders.v[i].number == number) {
                procset_unite(leader, &a->leaders.v[i].procs);
                parts_remove(&a->leaders, i);
            }
        if (a->leaders.n == n)
            continue;
        recount(engine, a);
        if (a->leaders.n == 0) {
            assembly_remove(engine, a);
            assembly_free(a);
        }
        return true;
    }
    return false;
}

static bool is_of(const struct engine *engine, const struct lead *lead)
{
    uint32_t node;
    return procset_size(&lead->leader) == 1 &&
           engine->env.node_of(engine->env.arg, lead->leader.parts[0].nspace,
                               lead->leader.parts[0].ranks.v[0].first, &node) == 0 &&
           node == lead->from;
}

void home_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct wire_in *in = &frame->in;
    uint32_t from = frame->from;
    struct lead lead = {.from = from};
    (void)t;
    wire_get_str(in, lead.id, sizeof lead.id);
    lead.number = wire_get_u64(in);
    lead.library = wire_get_u32(in);
    lead.count = wire_get_u32(in);
    if (lead.count == 0 && wire_end(in)) {
        if (home_take_back(engine, from, lead.number, &lead.leader))
            give_back(engine, &lead);
        procset_free(&lead.leader);
        return;
    }
    lead.timeout = wire_get_u32(in);
    lead.left = wire_get_u64(in);
    procset_read(&lead.leader, in);
    lead.status = wire_get_i32(in);
    lead.announced = wire_get_u8(in);
    lead.flags = wire_get_u32(in);
    uint32_t n;
    lead.entry = entries_get(in, UINT32_MAX, &n);
    if (lead.entry == NULL || n != 1 || lead.count == 0 || !is_of(engine, &lead) ||
        entry_added(lead.entry, &lead.added) != 0 || (lead.announced && lead.status == 0))
        log_warning("a malformed call of a leader of node %u was dropped", from);
    else if (lead.announced)
        lose_leader(engine, &lead);
    else
        count_leader(engine, &lead);
    procset_free(&lead.leader);
    procset_free(&lead.added);
    free(lead.entry);
}
