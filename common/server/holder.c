/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Who the holder is, as this server sees it, and which way requests go. holder.h has the states.
 *
 * Two holders may come about when servers see different steps: one that has only just begun, a list
 * of the resource manager's that is late, a node that was cut off. So a holder looks again after
 * seconds, and then every few minutes, whether there is an older one; then it follows that one, and
 * the steps that it served are told to look again.
 */
#include "common/server/holder_private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAUSE_FIRST_MS = 50, /* until the holder is looked for again */
    PAUSE_MAX_MS = 2000,
    VAIN_MS = 30000,   /* what does not wait for data fails when there is no holder for so long */
    ANSWER_S = 10,     /* for the answer to a HELLO */
    COLLECT_MS = 4000, /* for the other steps to say what they have */
    SUCCEED_MS = 1000, /* the same where the other steps come by themselves */
    PING_MS = 10000,
    CHECK_MAX_MS = 300000,
};

static const int64_t checks[] = {2000, 8000, 30000}; /* ms, after a holder has begun to hold */

static void set_state(struct holder *holder, enum holder_state state)
{
    static const char *const names[] = {"rests", "seeks", "greets", "follows", "collects", "holds"};
    if (holder->state != state)
        log_debug("holder: %s, then %s", names[holder->state], names[state]);
    holder->state = state;
}

static int64_t now_of(const struct holder *holder)
{
    return holder->env.now(holder->env.arg);
}

static bool is_deputy(const struct holder *holder)
{
    return holder->deputy == holder->env.self;
}

static uint32_t find_deputy(const struct holder *holder)
{
    for (uint32_t node = 0; node < holder->env.self; node++)
        if (!holder->env.is_lost(holder->env.arg, node))
            return node;
    return holder->env.self;
}

/* Where requests go from here, or HOLDER_NONE: not yet, or to our own desk. */
static uint32_t above(const struct holder *holder)
{
    if (!is_deputy(holder))
        return holder->deputy;
    return holder->state == FOLLOWS ? holder->node : HOLDER_NONE;
}

static bool is_needed(const struct holder *holder)
{
    const struct carry *c;
    if (store_counts(holder->kept).entries > 0)
        return true;
    TAILQ_FOREACH (c, &holder->carries, link)
        if (!c->answered)
            return true;
    return false;
}

static void set_range(struct holder *holder, uint64_t range)
{
    if (holder->range != 0 || range == 0)
        return;
    holder->range = range;
    holder->env.ranged(holder->env.arg, range);
}

/* ---- ourselves as the holder ---- */

static void serve_queue(struct holder *holder);

static void begin_to_hold(struct holder *holder)
{
    set_state(holder, HOLDS);
    if (holder->range == 0) /* after those that others have told of */
        set_range(holder, desk_range(holder));
    holder->checks = 0;
    holder->check = now_of(holder) + checks[0];
    serve_queue(holder);
}

/* Our own step's entries are held, too. */
static void hold_kept(struct holder *holder)
{
    const struct store_entry *e;
    struct wire_out out = {0};
    struct wire_in in;
    wire_put_u32(&out, store_counts(holder->kept).entries);
    for (e = store_first(holder->kept); e != NULL; e = TAILQ_NEXT(e, link))
        store_put_entry(&out, e);
    wire_in_init(&in, out.data, out.len);
    if (!out.failed)
        desk_take(holder, holder->held, &in);
    wire_out_free(&out);
}

static void collected(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    (void)data, (void)len;
    if (status == HOLDER_AGAIN && holder->check > now_of(holder))
        holder->check = now_of(holder); /* it knows an older one */
    if (holder->collecting > 0 && --holder->collecting == 0 && holder->state == COLLECTS)
        begin_to_hold(holder);
}

static void collect_from(struct holder *holder, uint32_t node)
{
    const unsigned char op = HOLDER_COLLECT;
    holder->collecting++;
    holder->env.ask(holder->env.arg, node, &op, 1, ANSWER_S, collected, holder);
}

static void begin_to_collect(struct holder *holder)
{
    const struct holder_env *env = &holder->env;
    hold_kept(holder);
    if (env->find == NULL) {
        begin_to_hold(holder);
        return;
    }
    set_state(holder, COLLECTS);
    holder->until = now_of(holder) + COLLECT_MS;
    holder->collecting = 1; /* until the last of them is named */
    if (env->others == NULL || !env->others(env->arg)) {
        holder->until = now_of(holder) + SUCCEED_MS;
        if (!holder->succeeds)
            begin_to_hold(holder);
    }
}

void holder_other(struct holder *holder, uint32_t node)
{
    if (holder->state != COLLECTS && holder->state != HOLDS)
        return;
    if (node == HOLDER_NONE)
        collected(holder, 0, NULL, 0);
    else if (holder->state == COLLECTS)
        collect_from(holder, node);
}

/* ---- looking for the holder ---- */

static void seek(struct holder *holder)
{
    if (holder->closing || !is_deputy(holder) || holder->asked)
        return;
    if (holder->state != COLLECTS && holder->state != HOLDS) {
        set_state(holder, SEEKS);
        if (holder->since == 0)
            holder->since = now_of(holder);
    }
    holder->again = 0;
    if (holder->env.find == NULL) {
        holder_found(holder, holder->env.self, NULL);
        return;
    }
    holder->asked = true;
    holder->env.find(holder->env.arg);
}

static void seek_later(struct holder *holder)
{
    set_state(holder, SEEKS);
    if (holder->since == 0)
        holder->since = now_of(holder);
    holder->pause = holder->pause == 0                 ? PAUSE_FIRST_MS
                    : holder->pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                       : holder->pause * 2;
    holder->again = now_of(holder) + holder->pause;
}

static void greeted(void *arg, int32_t status, const void *data, size_t len);

/* Says to the server above what has come through here. */
static bool greet(struct holder *holder, uint32_t node, ask_done_fn *done)
{
    const struct store_entry *e;
    struct wire_out out = {0};
    wire_put_u8(&out, HOLDER_HELLO);
    wire_put_u64(&out, holder->range);
    wire_put_u32(&out, store_counts(holder->kept).entries);
    for (e = store_first(holder->kept); e != NULL; e = TAILQ_NEXT(e, link))
        store_put_entry(&out, e);
    bool good = !out.failed;
    if (good)
        holder->env.ask(holder->env.arg, node, out.data, out.len, ANSWER_S, done, holder);
    wire_out_free(&out);
    return good;
}

static void follow(struct holder *holder, uint32_t node)
{
    holder->node = node;
    set_state(holder, GREETS);
    holder->more = false;
    if (!greet(holder, node, greeted))
        seek_later(holder);
}

/* What other steps have told us they tell the next holder; of those that are gone we know alone. */
static void adopt(struct holder *holder)
{
    struct store_entry *e, *next;
    struct wire_out out = {0};
    struct wire_in in;
    struct client *client;
    uint32_t n = 0;
    wire_put_u32(&out, 0);
    for (e = store_first(holder->held); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        bool has_step = false;
        TAILQ_FOREACH (client, &holder->clients, link)
            has_step |= strcmp(client->nspace, e->who.nspace) == 0;
        if (!has_step) {
            store_put_entry(&out, e);
            n++;
        }
    }
    wire_set_u32(&out, 0, n);
    wire_in_init(&in, out.data, out.len);
    if (!out.failed)
        desk_take(holder, holder->kept, &in);
    wire_out_free(&out);
}

static void nothing(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
}

/* There is an older holder. */
static void step_down(struct holder *holder, uint32_t node)
{
    const unsigned char op = HOLDER_COLLECT;
    struct carry *c, *next;
    adopt(holder);
    while (store_first(holder->held) != NULL)
        store_remove(holder->held, store_first(holder->held));
    holder->state = SEEKS;
    for (c = TAILQ_FIRST(&holder->carries); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->state != CARRY_WAITS || c->lookup.keys == NULL)
            continue;
        store_free_lookup(&c->lookup);
        c->state = CARRY_QUEUED;
        if (!holder_is_own(holder, c->from))
            carry_answer(c, HOLDER_AGAIN, NULL, 0);
    }
    while (!TAILQ_EMPTY(&holder->clients)) {
        struct client *client = TAILQ_FIRST(&holder->clients);
        if (client->gone == 0) /* it looks again */
            holder->env.ask(holder->env.arg, client->node, &op, 1, ANSWER_S, nothing, NULL);
        TAILQ_REMOVE(&holder->clients, client, link);
        free(client);
    }
    follow(holder, node);
}

/* Servers that took us for the holder are to look again. */
static void send_away(struct holder *holder)
{
    struct carry *c, *next;
    for (c = TAILQ_FIRST(&holder->carries); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (!holder_is_own(holder, c->from) && c->state == CARRY_QUEUED)
            carry_answer(c, HOLDER_AGAIN, NULL, 0);
    }
}

static void greeted(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    (void)data, (void)len;
    if (holder->closing || holder->state != GREETS)
        return;
    if (status != holder->env.codes.success) {
        seek_later(holder);
        return;
    }
    set_state(holder, FOLLOWS);
    holder->succeeds = true;
    holder->pause = 0;
    holder->since = 0;
    holder->ping = now_of(holder) + PING_MS;
    if (holder->more)
        greet(holder, holder->node, nothing);
    send_away(holder);
    serve_queue(holder);
}

void holder_found(struct holder *holder, uint32_t node, const char *why)
{
    bool holding = holder->state == COLLECTS || holder->state == HOLDS;
    holder->asked = false;
    if (holder->closing || !is_deputy(holder))
        return;
    if (node == HOLDER_NONE) {
        log_info("the session's holder is not known: %s", why != NULL ? why : "?");
        if (!holding)
            seek_later(holder);
        return;
    }
    if (node == holder->env.self) {
        holder->since = 0;
        holder->pause = 0;
        if (!holding)
            begin_to_collect(holder);
    } else if (holder->env.is_lost(holder->env.arg, node)) {
        if (!holding)
            seek_later(holder);
    } else if (holding) {
        step_down(holder, node);
    } else {
        follow(holder, node);
    }
}

/* ---- requests ---- */

/* Whether the asker knows that the server with these names is gone. */
static bool is_avoided(const struct carry *c, const char *nspace, uint32_t index)
{
    char gone[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    wire_get_str(&in, gone, sizeof gone);
    return wire_get_u32(&in) == index && !in.bad && strcmp(gone, nspace) == 0;
}

static void ponged(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    (void)data, (void)len;
    if (!holder->closing && holder->state == FOLLOWS && status != holder->env.codes.success)
        seek(holder);
}

static void ping(struct holder *holder)
{
    const unsigned char op = HOLDER_PING;
    holder->ping = now_of(holder) + PING_MS;
    holder->env.ask(holder->env.arg, holder->node, &op, 1, ANSWER_S, ponged, holder);
}

static void put_where(struct holder *holder, struct carry *c)
{
    const struct holder_env *env = &holder->env;
    uint32_t node = holder->state == FOLLOWS ? holder->node : env->self, first = 0;
    const char *nspace = env->nspace(env->arg, node);
    struct wire_out out = {0};
    struct procset set = {0};
    if (nspace == NULL || env->server(env->arg, nspace, 0, &first) != 0) {
        carry_answer(c, env->codes.unreach, NULL, 0);
        return;
    }
    if (holder->state == FOLLOWS && is_avoided(c, nspace, node - first)) {
        ping(holder); /* it goes on when we know, too */
        return;
    }
    if (c->from != env->self && procset_add(&set, nspace, 0, 0) == 0)
        env->acquaint(env->arg, c->from, &set); /* else it cannot send there */
    procset_free(&set);
    wire_put_str(&out, nspace);
    wire_put_u32(&out, node - first);
    carry_answer(c, env->codes.success, out.data, out.len);
    wire_out_free(&out);
}

/* The owner of what was read forgets it. */
static void forget_read(struct holder *holder, struct carry *c)
{
    const struct holder_env *env = &holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    wire_get_str(&in, nspace, sizeof nspace);
    uint32_t rank = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    struct store_entry *e = wire_end(&in) ? store_named(holder->kept, nspace, rank, number) : NULL;
    if (e != NULL)
        store_remove(holder->kept, e);
    if (e != NULL && env->node_of(env->arg, nspace, rank, &node) == 0 && node < env->nnodes &&
        node != env->self && node != c->from && !env->is_lost(env->arg, node))
        env->ask(env->arg, node, c->body, (uint32_t)c->len, ANSWER_S, nothing, NULL);
    carry_answer(c, env->codes.success, NULL, 0);
}

/* A server says that it is the holder. */
static void on_collect(struct holder *holder, struct carry *c)
{
    uint32_t from = c->from;
    bool knows = holder->state == FOLLOWS && holder->node == from;
    bool holds = holder->state == HOLDS || holder->state == COLLECTS;
    bool deputy = is_deputy(holder);
    if (deputy && !holds && !knows &&
        (store_counts(holder->kept).entries > 0 || holder->range != 0))
        follow(holder, from); /* it hears HELLO before our answer */
    carry_answer(c, holds || !deputy ? HOLDER_AGAIN : holder->env.codes.success, NULL, 0);
    if (deputy && holds)
        seek(holder); /* one of us has to step down */
    else if (deputy && !knows && holder->state != GREETS && is_needed(holder))
        follow(holder, from);
}

/* A server of the own step that took us for its deputy before has told what it has. */
static void on_hello(struct holder *holder, struct carry *c)
{
    struct wire_in in;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    uint64_t range = wire_get_u64(&in);
    bool good = desk_take(holder, holder->kept, &in) && wire_end(&in);
    if (good)
        set_range(holder, range);
    if (range > holder->ranges)
        holder->ranges = range;
    carry_answer(c, good ? holder->env.codes.success : holder->env.codes.bad, NULL, 0);
    if (holder->state == HOLDS || holder->state == COLLECTS) {
        hold_kept(holder);
        desk_retry(holder);
    } else if (above(holder) != HOLDER_NONE) {
        greet(holder, above(holder), nothing);
    } else if (holder->state == RESTS && is_needed(holder)) {
        seek(holder);
    }
    holder->more = true;
}

static bool has_range(struct holder *holder, struct carry *c)
{
    struct wire_out out = {0};
    if (holder->range == 0)
        return false;
    wire_put_u64(&out, holder->range);
    carry_answer(c, holder->env.codes.success, out.data, out.len);
    wire_out_free(&out);
    return true;
}

/* Does one request, or leaves it in the queue. */
static void serve_one(struct holder *holder, struct carry *c)
{
    bool own = holder_is_own(holder, c->from);
    bool holds = holder->state == HOLDS, collects = holder->state == COLLECTS;
    if (c->op == HOLDER_READ) {
        forget_read(holder, c);
    } else if (!own && !is_deputy(holder)) {
        carry_answer(c, HOLDER_AGAIN, NULL, 0);
    } else if (!own && c->op == HOLDER_COLLECT) {
        on_collect(holder, c);
    } else if (own && c->from != holder->env.self && c->op == HOLDER_HELLO && is_deputy(holder)) {
        on_hello(holder, c);
    } else if (own && c->op == HOLDER_RANGE && has_range(holder, c)) {
        return;
    } else if (!is_deputy(holder)) {
        carry_send(c, holder->deputy);
    } else if (own && c->op == HOLDER_WHERE) {
        if (holds || collects || holder->state == FOLLOWS)
            put_where(holder, c);
        else if (holder->state == RESTS)
            seek(holder);
    } else if (holds || (collects && c->op == HOLDER_HELLO)) {
        desk_serve(holder, c);
    } else if (own && holder->state == FOLLOWS) {
        carry_send(c, holder->node);
    } else if (!own && holder->state == GREETS) {
        carry_answer(c, HOLDER_AGAIN, NULL, 0); /* two that greet each other would both wait */
    } else if (!own && holder->state == FOLLOWS) {
        seek(holder); /* it may know better: the one that we follow may be gone */
    } else if (holder->state == RESTS) {
        seek(holder);
    }
}

static void serve_queue(struct holder *holder)
{
    bool more = true;
    while (more) { /* a request that is answered may bring others */
        struct carry *c;
        enum holder_state state = holder->state;
        more = false;
        TAILQ_FOREACH (c, &holder->carries, link)
            if (c->state == CARRY_QUEUED && !c->answered && !c->tried) {
                c->tried = true;
                serve_one(holder, c);
                more = true;
                break;
            }
        if (state != holder->state)
            break;
    }
    struct carry *c;
    TAILQ_FOREACH (c, &holder->carries, link)
        c->tried = false;
}

static void came(struct carry *c, int32_t status, const void *data, size_t len)
{
    struct holder *holder = c->holder;
    const struct holder_codes *codes = &holder->env.codes;
    if (holder->closing) {
        carry_answer(c, codes->unreach, NULL, 0);
        return;
    }
    bool changes = c->op == HOLDER_PUBLISH || c->op == HOLDER_UNPUBLISH || c->op == HOLDER_ENDED;
    if (changes && status == codes->success && above(holder) != c->to) {
        serve_queue(holder); /* another one is above now, or we are: it has not heard of this */
        return;
    }
    if (status == HOLDER_AGAIN || status == codes->lost) {
        if (is_deputy(holder) && holder->state == FOLLOWS)
            seek_later(holder);
        else if (!is_deputy(holder) && holder->again == 0)
            holder->again = now_of(holder) + PAUSE_FIRST_MS;
        return; /* it is queued */
    }
    if (status == codes->success && c->op == HOLDER_RANGE) {
        struct wire_in in;
        wire_in_init(&in, data, len);
        set_range(holder, wire_get_u64(&in));
        if (has_range(holder, c)) /* the step's first one is that of all of it */
            return;
    }
    if (status == codes->success && holder_is_own(holder, c->from))
        carry_keep(holder, c);
    carry_answer(c, status, data, len);
}

void holder_serve(struct holder *holder, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct carry *c;
    unsigned char op = len > 0 ? *(const unsigned char *)body : 0;
    bool own = holder_is_own(holder, from);
    if (op == 0 || op >= HOLDER_OPS || (!own && op == HOLDER_WHERE)) {
        holder->env.reply(holder->env.arg, from, id, holder->env.codes.bad, NULL, 0);
        return;
    }
    TAILQ_FOREACH (c, &holder->carries, link)
        if (c->from == from && c->id == id && !c->answered)
            return; /* it was asked again */
    c = holder->closing ? NULL : carry_new(holder, from, id, body, len);
    if (c == NULL) {
        holder->env.reply(holder->env.arg, from, id,
                          holder->closing ? HOLDER_AGAIN : holder->env.codes.unreach, NULL, 0);
        return;
    }
    serve_queue(holder);
}

void holder_request(struct holder *holder, const void *body, size_t len, uint32_t ms,
                    holder_done_fn *done, void *arg)
{
    struct carry *c = holder->closing ? NULL : carry_new(holder, holder->env.self, 0, body, len);
    if (c == NULL) {
        done(arg, holder->env.codes.unreach, NULL, 0);
        return;
    }
    c->done = done;
    c->arg = arg;
    c->deadline = ms > 0 ? now_of(holder) + ms : 0;
    serve_queue(holder);
}

/* ---- where ---- */

struct where {
    struct holder *holder;
    holder_where_fn *done;
    void *arg;
    int64_t until; /* ms */
};

static void where_came(void *arg, int32_t status, const void *data, size_t len);

static void ask_where(struct where *w, const char *gone, uint32_t index)
{
    struct wire_out out = {0};
    int64_t left = w->until - now_of(w->holder);
    wire_put_u8(&out, HOLDER_WHERE);
    wire_put_str(&out, gone);
    wire_put_u32(&out, index);
    if (out.failed)
        where_came(w, w->holder->env.codes.unreach, NULL, 0);
    else
        holder_request(w->holder, out.data, out.len, left > 1 ? (uint32_t)left : 1, where_came, w);
    wire_out_free(&out);
}

static void where_came(void *arg, int32_t status, const void *data, size_t len)
{
    struct where *w = arg;
    const struct holder_env *env = &w->holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node = HOLDER_NONE;
    const char *why = "the step's first server does not say which one it is";
    wire_in_init(&in, data, len);
    if (status == env->codes.success) {
        wire_get_str(&in, nspace, sizeof nspace);
        uint32_t index = wire_get_u32(&in);
        bool good = wire_end(&in);
        /* The deputy has introduced it: one that is not known here has ended, and was forgotten. */
        bool gone = good && (env->server(env->arg, nspace, index, &node) != 0 ||
                             env->is_lost(env->arg, node));
        if (gone && env->now(env->arg) < w->until) {
            ask_where(w, nspace, index);
            return;
        }
        if (!good)
            node = HOLDER_NONE;
    } else {
        why = "no holder of the session is found";
    }
    w->done(w->arg, node, node == HOLDER_NONE ? why : NULL);
    free(w);
}

void holder_where(struct holder *holder, holder_where_fn *done, void *arg)
{
    struct where *w = malloc(sizeof *w);
    if (w == NULL) {
        done(arg, HOLDER_NONE, "out of memory");
        return;
    }
    *w = (struct where){holder, done, arg, now_of(holder) + VAIN_MS};
    ask_where(w, "", 0);
}

void holder_range(struct holder *holder, holder_done_fn *done, void *arg)
{
    const unsigned char op = HOLDER_RANGE;
    holder_request(holder, &op, 1, VAIN_MS, done, arg);
}

/* ---- losses, time, the end ---- */

static void change_deputy(struct holder *holder)
{
    uint32_t deputy = find_deputy(holder);
    if (deputy == holder->deputy)
        return;
    holder->deputy = deputy;
    holder->succeeds = true;
    if (is_deputy(holder)) {
        if (is_needed(holder))
            seek(holder);
    } else if (store_counts(holder->kept).entries > 0) {
        greet(holder, deputy, nothing);
    }
}

void holder_lost(struct holder *holder, uint32_t node)
{
    struct client *client = desk_client(holder, node);
    if (holder->closing)
        return;
    carry_forget(holder, node);
    if (client != NULL)
        client->gone = now_of(holder);
    change_deputy(holder);
    bool followed = (holder->state == FOLLOWS || holder->state == GREETS) && node == holder->node;
    if (is_deputy(holder) && followed) {
        holder->succeeds = true;
        set_state(holder, RESTS);
        holder->since = holder->again = 0;
        holder->node = HOLDER_NONE;
        if (is_needed(holder))
            seek(holder);
    }
    if (holder->again == 0)
        serve_queue(holder);
}

void holder_ended(struct holder *holder, const char *nspace, uint32_t rank)
{
    struct wire_out out = {0};
    if (store_ended(holder->kept, nspace, rank) == 0 || holder->closing)
        return;
    wire_put_u8(&out, HOLDER_ENDED);
    wire_put_str(&out, nspace);
    wire_put_u32(&out, rank);
    if (!out.failed)
        holder_request(holder, out.data, out.len, VAIN_MS, nothing, NULL);
    wire_out_free(&out);
}

/* The next deputy of the own step; else, of a holder, a deputy of another step. */
static uint32_t find_heir(const struct holder *holder)
{
    const struct client *client;
    for (uint32_t node = holder->env.self + 1; node < holder->env.nnodes; node++)
        if (!holder->env.is_lost(holder->env.arg, node))
            return node;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (client->gone == 0 && holder->state == HOLDS)
            return client->node;
    return HOLDER_NONE;
}

void holder_leave(struct holder *holder)
{
    const char *own = holder->env.nspace(holder->env.arg, holder->env.self);
    uint32_t heir = is_deputy(holder) ? find_heir(holder) : HOLDER_NONE;
    if (holder->closing || heir == HOLDER_NONE)
        return;
    if (holder->state == HOLDS || holder->state == COLLECTS)
        adopt(holder);
    if (!holder_is_own(holder, heir) && own != NULL)
        store_ended(holder->kept, own, STORE_ANY_RANK);
    if (store_counts(holder->kept).entries > 0)
        greet(holder, heir, nothing);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int64_t left_of(int64_t when, int64_t now)
{
    return when == 0 ? -1 : when > now ? when - now : 0;
}

int64_t holder_next(const struct holder *holder)
{
    const struct carry *c;
    int64_t now = now_of(holder), ms = left_of(holder->again, now);
    if (holder->closing)
        return -1;
    TAILQ_FOREACH (c, &holder->carries, link)
        if (!c->answered)
            ms = sooner(ms, left_of(c->deadline, now));
    if (holder->state == COLLECTS)
        ms = sooner(ms, left_of(holder->until, now));
    if (holder->state == HOLDS && holder->env.find != NULL && !holder->asked)
        ms = sooner(ms, left_of(holder->check, now));
    if (holder->state == FOLLOWS && store_counts(holder->kept).entries > 0)
        ms = sooner(ms, left_of(holder->ping, now));
    if (holder->state == HOLDS)
        ms = sooner(ms, desk_next(holder, now));
    return ms;
}

/* A request whose time is over, or that waits for a holder in vain. @return whether there was one
 */
static bool expire(struct holder *holder, int64_t now)
{
    const struct holder_codes *codes = &holder->env.codes;
    struct carry *c;
    bool vain = holder->since != 0 && now >= holder->since + VAIN_MS;
    TAILQ_FOREACH (c, &holder->carries, link) {
        bool late = c->deadline != 0 && c->deadline <= now;
        bool hopeless = vain && c->state == CARRY_QUEUED && c->op != HOLDER_LOOKUP;
        if (c->answered || !(late || hopeless))
            continue;
        carry_answer(c, late ? codes->timeout : codes->unreach, NULL, 0);
        return true;
    }
    return false;
}

static void check(struct holder *holder, int64_t now)
{
    uint32_t n = ++holder->checks;
    holder->check = now + (n < sizeof checks / sizeof *checks ? checks[n] : CHECK_MAX_MS);
    seek(holder);
}

void holder_tick(struct holder *holder)
{
    int64_t now = now_of(holder);
    if (holder->closing)
        return;
    while (expire(holder, now))
        ;
    if (holder->again != 0 && holder->again <= now) {
        holder->again = 0;
        if (is_deputy(holder))
            seek(holder);
        else
            serve_queue(holder);
    }
    if (holder->state == COLLECTS && holder->until <= now)
        begin_to_hold(holder);
    if (holder->state == HOLDS && holder->env.find != NULL && holder->check <= now &&
        !holder->asked)
        check(holder, now);
    if (holder->state == HOLDS)
        desk_tick(holder, now);
    if (holder->state == FOLLOWS && holder->ping <= now) {
        holder->ping = now + PING_MS;
        if (store_counts(holder->kept).entries > 0)
            ping(holder);
    }
}

struct holder_view holder_view(const struct holder *holder)
{
    static const char *const names[] = {"rests", "seeks", "greets", "follows", "collects", "holds"};
    const struct carry *c;
    const struct client *client;
    bool holds = holder->state == HOLDS || holder->state == COLLECTS;
    struct holder_view view = {.state = is_deputy(holder) ? names[holder->state] : "sends",
                               .node = holds                      ? holder->env.self
                                       : holder->state == FOLLOWS ? holder->node
                                                                  : HOLDER_NONE,
                               .kept = store_counts(holder->kept),
                               .held = store_counts(holder->held)};
    TAILQ_FOREACH (c, &holder->carries, link)
        view.waiting += !c->answered;
    TAILQ_FOREACH (client, &holder->clients, link)
        view.steps += client->gone == 0;
    return view;
}

struct holder *holder_new(const struct holder_env *env)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL)
        return NULL;
    holder->env = *env;
    holder->node = HOLDER_NONE;
    holder->came = came;
    TAILQ_INIT(&holder->carries);
    TAILQ_INIT(&holder->clients);
    holder->deputy = env->self == 0 ? 0 : find_deputy(holder);
    holder->kept = store_new();
    holder->held = store_new();
    if (holder->kept != NULL && holder->held != NULL)
        return holder;
    holder_free(holder);
    return NULL;
}

void holder_close(struct holder *holder)
{
    struct carry *c;
    holder->closing = true;
    do {
        TAILQ_FOREACH (c, &holder->carries, link)
            if (!c->answered)
                break;
        if (c != NULL)
            carry_answer(c, c->from == holder->env.self ? holder->env.codes.unreach : HOLDER_AGAIN,
                         NULL, 0);
    } while (c != NULL);
}

void holder_free(struct holder *holder)
{
    if (holder == NULL)
        return;
    carry_free_all(holder);
    while (!TAILQ_EMPTY(&holder->clients)) {
        struct client *client = TAILQ_FIRST(&holder->clients);
        TAILQ_REMOVE(&holder->clients, client, link);
        free(client);
    }
    store_free(holder->kept);
    store_free(holder->held);
    free(holder);
}
