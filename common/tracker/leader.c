/* Leaders of a bootstrap. Each knows the group's id and how many leaders there are, so they meet at
 * the id's home, a server that everybody can compute. There distinct leaders are counted, not
 * calls. One more than the count is the first of the id's next construct.
 *
 * LEAD: str id, u64 number of the sender's call, u32 library, u32 leaders (0: the call is taken
 *       back, and nothing follows), u32 timeout in s (0: none), u64 ms left of it, the leader, one
 *       entry
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* What a LEAD says. */
struct lead {
    uint32_t from, library, count, timeout;
    uint64_t number, left;
    char id[PROCSET_NAME_MAX + 1];
    struct procset leader, added;
    struct engine_entry *entry;
};

static void refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call->done(call, &result);
}

static void put_head(struct engine *engine, struct wire_out *out, const struct waiting *w,
                     uint32_t leaders)
{
    wire_put_u8(out, FRAME_LEAD);
    wire_put_str(out, w->call->id);
    wire_put_u64(out, w->number);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, leaders);
}

static void send_lead(struct engine *engine, const struct waiting *w, int32_t status)
{
    const struct engine_call *call = w->call;
    struct engine_entry entry = {0,         status,      call->flags,   call->data,
                                 call->len, call->added, call->addedlen};
    struct wire_out out = {0};
    put_head(engine, &out, w, call->leaders);
    wire_put_u32(&out, call->timeout);
    wire_put_u64(&out, call->timeout * 1000ull);
    procset_write(call->caller, &out);
    wire_put_u32(&out, 1);
    entry_put(&out, &entry);
    assembly_send(engine, w->home, &out);
}

void engine_lead(struct engine *engine, struct engine_call *call)
{
    uint32_t home = (uint32_t)(signature_hash(call->id, strlen(call->id)) % engine->env.nnodes);
    struct waiting *w = calloc(1, sizeof *w);
    if (w == NULL || engine->closing || tracker_node_lost(engine, home)) {
        free(w);
        refuse(call, engine->closing ? engine->env.codes.closing : engine->env.codes.lost);
        return;
    }
    w->call = call;
    w->home = home;
    w->number = ++engine->numbers;
    w->opened = engine->env.now(engine->env.arg);
    if (call->timeout > 0)
        w->deadline = w->opened + call->timeout * 1000ull + ENGINE_GRACE_MS;
    TAILQ_INSERT_TAIL(&engine->leads, w, all);
    send_lead(engine, w, call->status); /* may end it */
}

bool leader_withdraw(struct engine *engine, struct engine_call *call)
{
    struct waiting *w;
    struct wire_out out = {0};
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->call == call)
            break;
    if (w == NULL)
        return false;
    TAILQ_REMOVE(&engine->leads, w, all);
    put_head(engine, &out, w, 0);
    assembly_send(engine, w->home, &out);
    free(w);
    return true;
}

void leader_end(struct engine *engine, uint64_t number, struct waiting_list *ended)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->number == number) {
            TAILQ_REMOVE(&engine->leads, w, all);
            TAILQ_INSERT_TAIL(ended, w, all);
            return;
        }
}

/* Answers one call that is decided without the home's word. */
static void give_up(struct engine *engine, struct waiting *w, int32_t status)
{
    struct engine_call *call = w->call;
    TAILQ_REMOVE(&engine->leads, w, all);
    free(w);
    refuse(call, status);
}

void leader_lost(struct engine *engine, uint32_t node)
{
    struct waiting *w = TAILQ_FIRST(&engine->leads);
    while (w != NULL) {
        if (w->home == node) {
            give_up(engine, w, engine->env.codes.lost);
            w = TAILQ_FIRST(&engine->leads);
        } else {
            w = TAILQ_NEXT(w, all);
        }
    }
}

/* ---- at home ---- */

static void free_failure(struct engine *engine, struct assembly_failure *f)
{
    TAILQ_REMOVE(&engine->failures, f, all);
    procset_free(&f->answered);
    procset_free(&f->told);
    free(f);
}

void leader_forget(struct engine *engine, const char *id)
{
    struct assembly_failure *f, *next;
    for (f = TAILQ_FIRST(&engine->failures); f != NULL; f = next) {
        next = TAILQ_NEXT(f, all);
        if (strcmp(f->id, id) == 0)
            free_failure(engine, f);
    }
}

void leader_failed(struct engine *engine, struct assembly *a, int32_t status)
{
    uint64_t have = procset_size(&a->leading);
    leader_forget(engine, a->id);
    struct assembly_failure *f = have < a->count ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return;
    memcpy(f->id, a->id, sizeof f->id);
    f->status = status;
    f->at = engine->env.now(engine->env.arg);
    f->left = a->count - have;
    procset_unite(&f->answered, &a->leading);
    procset_unite(&f->told, &a->added);
    TAILQ_INSERT_TAIL(&engine->failures, f, all);
}

static bool overlaps(const struct procset *set, const struct procset *one)
{
    return procset_has(set, one->parts[0].nspace, one->parts[0].ranges[0].first);
}

/* Whether this is the call of a leader that an operation which failed has waited for; then it is
 * answered as the others were, and so are those that it alone has added. */
static bool is_late(struct engine *engine, struct lead *lead)
{
    struct assembly_failure *f;
    TAILQ_FOREACH (f, &engine->failures, all)
        if (strcmp(f->id, lead->id) == 0 && f->left > 0 && !overlaps(&f->answered, &lead->leader))
            break;
    struct assembly *a = f != NULL ? assembly_new(engine, lead->id, NULL) : NULL;
    struct assembly_part *part = a != NULL ? parts_add(&a->leaders, lead->from) : NULL;
    if (part == NULL) {
        if (a != NULL)
            TAILQ_REMOVE(&engine->assemblies, a, all);
        assembly_free(a);
        return false;
    }
    struct engine_result result = {.status = f->status};
    part->number = lead->number;
    procset_unite(&a->leading, &lead->leader);
    procset_unite(&f->answered, &lead->leader);
    procset_unite(&f->told, &f->answered); /* who leads does not call as a member */
    procset_except(&a->added, &lead->added, &f->told);
    procset_unite(&f->told, &a->added);
    if (--f->left == 0)
        free_failure(engine, f);
    TAILQ_REMOVE(&engine->assemblies, a, all);
    assembly_place(engine, a);
    assembly_tell(engine, a, NULL, &result);
    assembly_free(a);
    return true;
}

void leader_arm(struct engine *engine, struct assembly *a, uint32_t timeout, uint64_t left)
{
    if (timeout == 0)
        return;
    if (left > timeout * 1000ull)
        left = timeout * 1000ull;
    uint64_t deadline = engine->env.now(engine->env.arg) + left;
    if (a->deadline != 0 && a->deadline <= deadline)
        return;
    a->timeout = timeout;
    a->deadline = deadline;
}

static struct assembly *find(struct engine *engine, const struct lead *lead)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->assemblies, all)
        if (a->tracker == NULL && strcmp(a->id, lead->id) == 0 &&
            overlaps(&a->leading, &lead->leader))
            return a; /* its second call gets the result of the first */
    TAILQ_FOREACH (a, &engine->assemblies, all)
        if (a->tracker == NULL && strcmp(a->id, lead->id) == 0 && !a->asked)
            return a;
    a = assembly_new(engine, lead->id, NULL);
    if (a != NULL)
        a->count = lead->count;
    return a;
}

/* What is wrong with a leader's call in this bootstrap, or 0. */
static int32_t check(struct engine *engine, struct assembly *a, const struct lead *lead)
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
                  a->id, first->procs.parts[0].ranges[0].first, env->name(env->arg, first->node),
                  a->count, lead->leader.parts[0].ranges[0].first, env->name(env->arg, lead->from),
                  lead->count);
        if (lead->count > a->count)
            a->count = lead->count; /* as many may still call, and get the same answer */
        return env->codes.count;
    }
    return lead->entry->status;
}

static void count_leader(struct engine *engine, struct lead *lead)
{
    struct assembly *a = find(engine, lead);
    if (a == NULL)
        return;
    bool again = overlaps(&a->leading, &lead->leader);
    int32_t status = a->leaders.n > 0 || lead->library != engine->env.library
                         ? check(engine, a, lead)
                         : lead->entry->status;
    struct assembly_part *part = parts_add(&a->leaders, lead->from);
    if (part != NULL) {
        part->number = lead->number;
        part->have = true;
        procset_unite(&part->procs, &lead->leader);
        if (!again && !part_fill(part, lead->entry, 1) && status == 0)
            status = engine->env.codes.invalid;
    }
    procset_unite(&a->leading, &lead->leader);
    if (!a->asked) /* else those who were added are claimed already */
        procset_unite(&a->added, &lead->added);
    leader_arm(engine, a, lead->timeout, lead->left);
    if (status != 0)
        assembly_decide(engine, a, status);
    else
        assembly_progress(engine, a);
}

/* A call that libpmix has answered, or whose server leaves. */
static void take_back(struct engine *engine, uint32_t from, uint64_t number)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->assemblies, all) {
        struct procset leading = {0};
        bool found = false;
        if (a->tracker != NULL || a->asked)
            continue;
        for (uint32_t i = a->leaders.n; i-- > 0;) {
            const struct assembly_part *part = &a->leaders.v[i];
            if (part->node == from && part->number == number) {
                parts_remove(&a->leaders, i);
                found = true;
            } else {
                procset_unite(&leading, &part->procs);
            }
        }
        if (!found) {
            procset_free(&leading);
            continue;
        }
        procset_free(&a->leading);
        a->leading = leading;
        if (leading.nparts == 0) {
            TAILQ_REMOVE(&engine->assemblies, a, all);
            assembly_free(a);
        }
        return;
    }
}

static bool is_of(const struct engine *engine, const struct lead *lead)
{
    uint32_t node;
    return procset_size(&lead->leader) == 1 &&
           engine->env.node_of(engine->env.arg, lead->leader.parts[0].nspace,
                               lead->leader.parts[0].ranges[0].first, &node) == 0 &&
           node == lead->from;
}

void leader_take(struct engine *engine, uint32_t from, struct wire_in *in)
{
    struct lead lead = {.from = from};
    wire_get_str(in, lead.id, sizeof lead.id);
    lead.number = wire_get_u64(in);
    lead.library = wire_get_u32(in);
    lead.count = wire_get_u32(in);
    if (lead.count == 0 && wire_end(in)) {
        take_back(engine, from, lead.number);
        return;
    }
    lead.timeout = wire_get_u32(in);
    lead.left = wire_get_u64(in);
    procset_read(&lead.leader, in);
    uint32_t n = wire_get_count(in, 20);
    lead.entry = entries_get(in, n, UINT32_MAX);
    if (lead.entry == NULL || n != 1 || lead.count == 0 || !is_of(engine, &lead) ||
        entry_added(lead.entry, &lead.added) != 0)
        log_warning("a malformed call of a leader of node %u was dropped", from);
    else if (!is_late(engine, &lead))
        count_leader(engine, &lead);
    procset_free(&lead.leader);
    procset_free(&lead.added);
    free(lead.entry);
}

/* ---- time ---- */

uint64_t leader_next(const struct engine *engine)
{
    const struct assembly_failure *f = TAILQ_FIRST(&engine->failures); /* the oldest */
    const struct waiting *w;
    uint64_t at = f != NULL ? f->at + ENGINE_REMEMBER_MS : UINT64_MAX;
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->deadline != 0 && w->deadline < at)
            at = w->deadline;
    return at;
}

bool leader_tick(struct engine *engine, uint64_t now)
{
    struct assembly_failure *f = TAILQ_FIRST(&engine->failures);
    struct waiting *w;
    if (f != NULL && f->at + ENGINE_REMEMBER_MS <= now) {
        free_failure(engine, f);
        return true;
    }
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->deadline != 0 && w->deadline <= now) {
            log_error("timed out after %u s: group \"%s\" bootstrap: no word of node %s, which "
                      "decides",
                      w->call->timeout, w->call->id, engine->env.name(engine->env.arg, w->home));
            give_up(engine, w, engine->env.codes.timeout);
            return true;
        }
    return false;
}

void leader_close(struct engine *engine)
{
    struct waiting *w;
    struct assembly_failure *f;
    while ((w = TAILQ_FIRST(&engine->leads)) != NULL) {
        if (w->home != engine->env.self)
            send_lead(engine, w, engine->env.codes.closing); /* the others learn of it */
        give_up(engine, w, engine->env.codes.closing);
    }
    while ((f = TAILQ_FIRST(&engine->failures)) != NULL)
        free_failure(engine, f);
}
