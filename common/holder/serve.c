/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of this server and of others: which one is done here, and which way the rest goes. */
#include "common/holder/private.h"

#include <string.h>

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
        seek_now(holder);
}

void serve_ping(struct holder *holder)
{
    const unsigned char op = HOLDER_PING;
    timer_after(&holder->ping, PING_MS);
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
        serve_ping(holder); /* it goes on when we know, too */
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
        env->ask(env->arg, node, c->body, (uint32_t)c->len, ANSWER_S, holder_ignore, NULL);
    carry_answer(c, env->codes.success, NULL, 0);
}

/* A server says that it is the holder. */
static void on_collect(struct holder *holder, struct carry *c)
{
    uint32_t from = c->from;
    bool knows = holder->state == FOLLOWS && holder->node == from;
    bool holds = holder_is_holder(holder);
    bool deputy = holder_is_deputy(holder);
    /* One that is followed already begins anew, or is the holder no more and says so to HELLO. */
    if (deputy && !holds && (knows || store_counts(holder->kept).entries > 0))
        seek_follow(holder, from); /* it hears HELLO before our answer */
    carry_answer(c, holds || !deputy ? HOLDER_AGAIN : holder->env.codes.success, NULL, 0);
    if (deputy && holds)
        seek_now(holder); /* one of us has to step down */
    else if (deputy && holder->state != GREETS && holder_is_needed(holder))
        seek_follow(holder, from);
}

/* A server of the own step that took us for its deputy before has told what it has. */
static void on_hello(struct holder *holder, struct carry *c)
{
    struct wire_in in;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    wire_get_u64(&in);
    wire_get_u8(&in); /* others of the step have said the rest */
    bool good = desk_take(holder->kept, &in) && wire_end(&in);
    carry_answer(c, good ? holder->env.codes.success : holder->env.codes.bad, NULL, 0);
    seek_say_kept(holder);
}

/* Does one request, or leaves it in the queue. */
static void serve_one(struct holder *holder, struct carry *c)
{
    bool own = holder_is_own(holder, c->from);
    bool holds = holder->state == HOLDS, collects = holder->state == COLLECTS;
    if (c->op == HOLDER_READ) {
        forget_read(holder, c);
    } else if (c->op == HOLDER_HEIR) {
        leave_inherit(holder, c);
    } else if (!own && holder->leave != LEAVE_NOT) {
        if (c->op == HOLDER_HELLO)
            desk_note(holder, c->from);         /* perhaps an heir */
        carry_answer(c, HOLDER_AGAIN, NULL, 0); /* it would be lost with us */
    } else if (!own && !holder_is_deputy(holder)) {
        carry_answer(c, HOLDER_AGAIN, NULL, 0);
    } else if (!own && c->op == HOLDER_COLLECT) {
        on_collect(holder, c);
    } else if (own && c->from != holder->env.self && c->op == HOLDER_HELLO &&
               holder_is_deputy(holder)) {
        on_hello(holder, c);
    } else if (!holder_is_deputy(holder)) {
        carry_send(c, holder->deputy);
    } else if (own && c->op == HOLDER_WHERE) {
        if (holds || holder->state == FOLLOWS)
            put_where(holder, c);
        else if (holder->state == RESTS)
            seek_now(holder);
    } else if (holds || (collects && c->op == HOLDER_HELLO)) {
        desk_serve(holder, c);
    } else if (own && holder->state == FOLLOWS) {
        carry_send(c, holder->node);
    } else if (!own && holder->state == GREETS) {
        carry_answer(c, HOLDER_AGAIN, NULL, 0); /* two that greet each other would both wait */
    } else if (!own && holder->state == FOLLOWS) {
        seek_now(holder); /* it may know better: the holder that we follow may be gone */
    } else if (holder->state == RESTS) {
        seek_now(holder);
    }
}

void serve_queue(struct holder *holder)
{
    bool more = true;
    leave_offer(holder);
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

void serve_answer(struct carry *c, int32_t status, const void *data, size_t len)
{
    struct holder *holder = c->holder;
    const struct holder_codes *codes = &holder->env.codes;
    if (holder->closing) {
        carry_answer(c, codes->unreach, NULL, 0);
        return;
    }
    bool changes = c->op == HOLDER_PUBLISH || c->op == HOLDER_UNPUBLISH || c->op == HOLDER_ENDED;
    if (changes && status == codes->success && holder_above(holder) != c->to) {
        serve_queue(holder); /* another one is above now, or we are: it has not heard of this */
        return;
    }
    if (status == HOLDER_AGAIN || status == codes->lost) {
        if (holder_is_deputy(holder) && holder->state == FOLLOWS)
            seek_again(holder, status);
        else if (!holder_is_deputy(holder) && !timer_runs(&holder->again))
            timer_after(&holder->again, PAUSE_FIRST_MS);
        return; /* it is queued */
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
    if (!holder->closing && !carry_has_room(holder, body, len)) {
        holder->env.reply(holder->env.arg, from, id, holder->env.codes.full, NULL, 0);
        return;
    }
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
    if (!holder->closing && !carry_has_room(holder, body, len)) {
        done(arg, holder->env.codes.full, NULL, 0);
        return;
    }
    struct carry *c = holder->closing ? NULL : carry_new(holder, holder->env.self, 0, body, len);
    if (c == NULL) {
        done(arg, holder->env.codes.unreach, NULL, 0);
        return;
    }
    c->done = done;
    c->arg = arg;
    carry_expires(c, ms);
    serve_queue(holder);
}
