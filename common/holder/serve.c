/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of this server and of others: which one is done here, and which way the rest goes. What
 * is queued is done in a turn of its own, so that no answer comes within the call that asks. */
#include "common/holder/private.h"

/* ---- words between heads ---- */

/* Whoever keeps what was read forgets it. */
static void forget_read(struct holder *holder, struct request *r)
{
    const struct holder_env *env = &holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node;
    wire_in_init(&in, r->body, r->len);
    wire_get_u8(&in);
    wire_get_str(&in, nspace, sizeof nspace);
    uint32_t rank = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    struct store_entry *e = wire_end(&in) ? store_named(holder->store, nspace, rank, number) : NULL;
    if (e != NULL)
        store_remove(holder->store, e);
    if (e != NULL && env->node_of(env->arg, nspace, rank, &node) == 0 && node < env->nnodes &&
        node != env->self && node != r->from && !env->is_lost(env->arg, node))
        request_tell(holder, node, r->body, r->len);
    request_answer(r, env->codes.success, NULL, 0);
}

/* A server says that it is the holder, and asks what this step has. The first server of a step has
 * heard of all that the step has published. */
static void collect(struct holder *holder, struct request *r)
{
    struct wire_out out = {0};
    if (holder_is_holder(holder)) { /* one of us has to step down */
        if (!r->sought)
            seek_now(holder);
        else if (!holder->asked)
            request_answer(r, HOLDER_AGAIN, NULL, 0);
        r->sought = true;
        return;
    }
    seek_follow(holder, r->from);
    seek_ends(holder);
    edit_put(holder, holder->env.self == 0, holder_keeps, &out);
    request_answer(r, holder->env.codes.success, out.data, out.len);
    wire_out_free(&out);
}

/* From our head, which leaves: we may be the next one. */
static void keep(struct holder *holder, struct request *r)
{
    uint32_t next = holder->env.heir(holder->env.arg);
    edit_kept(holder, r);
    if (holder->leaves && next != holder->env.self)
        request_tell(holder, next, r->body, r->len);
    request_answer(r, holder->env.codes.success, NULL, 0);
}

/* ---- requests ---- */

/* What is passed on is kept from now on: the server above may be lost before it answers. */
static void pass_on(struct holder *holder, struct request *r, uint32_t node)
{
    edit_kept(holder, r);
    request_send(r, node);
}

/* From the head of another step, which leaves: what it keeps is ours to keep. */
static void inherit(struct holder *holder, struct request *r)
{
    edit_kept(holder, r);
    if (holder->state == FOLLOWS && holder->node != r->from)
        request_send(r, holder->node); /* which is to hear of it */
    else
        request_answer(r, holder->env.codes.success, NULL, 0);
}

/* Of another step, at our head: we are the holder, or look whether we are. */
static void serve_other(struct holder *holder, struct request *r)
{
    bool keeps = r->op == HOLDER_HEIR;
    if (r->op == HOLDER_COLLECT) {
        collect(holder, r);
    } else if (r->op == HOLDER_PING) {
        bool follows = holder->state == FOLLOWS && holder->node == r->from;
        if (follows)
            timer_after(&holder->look, QUIET_MS);
        else if (holder_is_holder(holder))
            seek_now(holder);
        request_answer(r, follows ? holder->env.codes.success : HOLDER_AGAIN, NULL, 0);
    } else if (holder->leaves) {
        request_answer(r, HOLDER_AGAIN, NULL, 0); /* it would be lost with us */
    } else if (holder->state == HOLDS || (holder->state == COLLECTS && keeps)) {
        desk_serve(holder, r);
    } else if (holder->state == COLLECTS) {
        desk_meet(holder, r->from);
    } else if (keeps) {
        inherit(holder, r);
    } else if (holder->state == FOLLOWS) {
        seek_now(holder); /* the holder that we follow may be gone */
        request_answer(r, HOLDER_AGAIN, NULL, 0);
    } else if (holder->state == RESTS) {
        seek_now(holder);
    }
}

/* Whether a request fails when no holder is found for long. */
static bool ends_in_vain(enum holder_op op)
{
    return op <= HOLDER_WHERE && op != HOLDER_LOOKUP && op != HOLDER_KEEP;
}

/* Does one request, or leaves it in the queue. */
static void serve_one(struct holder *holder, struct request *r)
{
    bool own = holder_is_own(holder, r->from), head = holder_is_head(holder);
    if (r->op == HOLDER_READ)
        forget_read(holder, r);
    else if (!head && !own)
        request_answer(r, HOLDER_AGAIN, NULL, 0);
    else if (!head && r->op == HOLDER_KEEP && r->from == holder->env.head(holder->env.arg))
        keep(holder, r);
    else if (!head && !timer_runs(&holder->again))
        pass_on(holder, r, holder->env.head(holder->env.arg));
    else if (!head)
        return; /* after a pause */
    else if (ends_in_vain(r->op) && seek_is_vain(holder))
        request_answer(r, holder->env.codes.unreach, NULL, 0);
    else if (!own)
        serve_other(holder, r);
    else if (holder->state == HOLDS)
        desk_serve(holder, r);
    else if (holder->state == FOLLOWS)
        pass_on(holder, r, holder->node);
    else if (holder->state == RESTS)
        seek_now(holder);
}

/* Views become smaller only: a head stays that. */
static void check_head(struct holder *holder)
{
    uint32_t head = holder->env.head(holder->env.arg);
    struct wire_out out = {0};
    if (head == holder->head)
        return;
    holder->head = head;
    holder->succeeds = true;
    if (holder_first(holder) == NULL)
        return;
    edit_put(holder, HOLDER_KEEP, holder_keeps, &out);
    request_new(holder, holder->env.self, 0, out.data, out.len);
    wire_out_free(&out);
}

void serve_turn(struct holder *holder)
{
    struct request *r, *next;
    bool news = holder->news;
    holder->news = false;
    check_head(holder);
    leave_offer(holder);
    for (r = TAILQ_FIRST(&holder->requests); r != NULL; r = next) {
        if (!r->answered && r->state == QUEUED)
            serve_one(holder, r);
        else if (!r->answered && r->state == WAITS && news)
            desk_retry(holder, r);
        next = TAILQ_NEXT(r, link);
        if (request_is_over(r))
            request_free(r);
    }
}

/* ---- answers ---- */

static void again(struct holder *holder, const struct request *r, int32_t status)
{
    if (!holder_is_head(holder)) {
        timer_sooner(&holder->again, holder_now(holder) + PAUSE_FIRST_MS);
    } else if (holder->state == FOLLOWS && r->to == holder->node) {
        if (status ==
            holder->env.codes.lost) /* its goodbye would end the pause, as often as it is named */
            holder->node = HOLDER_NONE;
        seek_later(holder);
    }
}

static void heard(struct holder *holder, const struct request *r, int32_t status, const void *data,
                  size_t len)
{
    bool refuses = status == HOLDER_AGAIN, good = status == holder->env.codes.success;
    if (r->op == HOLDER_COLLECT || r->op == HOLDER_PING) {
        desk_hear(holder, r, status, data, len);
        if (refuses && holder_is_holder(holder))
            seek_now(holder); /* it may know another one */
        seek_hold(holder);
    } else if (r->op == HOLDER_HEIR && r->to == holder->heir) {
        leave_heard(holder, r, good);
    } else if (r->op == HOLDER_JOIN && good) {
        seek_ends(holder);
    } else if (r->op == HOLDER_JOIN) {
        again(holder, r, status);
    }
}

/* The holder that is above now decides what counts: it may have been told by COLLECT what the
 * former one has refused, or have refused what that one has taken. */
static bool is_void(const struct holder *holder, const struct request *r)
{
    uint32_t above = !holder_is_head(holder)    ? holder->env.head(holder->env.arg)
                     : holder->state == FOLLOWS ? holder->node
                                                : HOLDER_NONE;
    return r->op == HOLDER_PUBLISH && r->to != above;
}

uint32_t serve_where(const struct holder *holder, const void *data, size_t len)
{
    const struct holder_env *env = &holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node;
    wire_in_init(&in, data, len);
    wire_get_str(&in, nspace, sizeof nspace);
    uint32_t index = wire_get_u32(&in);
    /* The head has introduced it: one that is not known here has ended, and was forgotten. */
    return wire_end(&in) && env->server(env->arg, nspace, index, &node) == 0 &&
                   !env->is_lost(env->arg, node)
               ? node
               : HOLDER_NONE;
}

void serve_answer(struct request *r, int32_t status, const void *data, size_t len)
{
    struct holder *holder = r->holder;
    const struct holder_codes *codes = &holder->env.codes;
    bool lost = r->op == HOLDER_WHERE && r->from == holder->env.self && status == codes->success &&
                serve_where(holder, data, len) == HOLDER_NONE;
    if (holder->closing && !r->word)
        request_answer(r, codes->unreach, NULL, 0);
    else if (r->word && !holder->closing)
        heard(holder, r, status, data, len);
    else if (!r->word && (status == HOLDER_AGAIN || status == codes->lost || lost))
        again(holder, r, status); /* it is queued */
    else if (!r->word && !is_void(holder, r)) {
        seek_ends(holder);
        request_answer(r, status, data, len);
    }
}

void holder_serve(struct holder *holder, uint32_t from, uint64_t id, const void *body, size_t len)
{
    unsigned char op = len > 0 ? *(const unsigned char *)body : 0;
    bool heads =
        op == HOLDER_JOIN || op == HOLDER_COLLECT || op == HOLDER_PING || op == HOLDER_HEIR;
    if (op == 0 || op >= HOLDER_OPS || (heads && holder_is_own(holder, from))) {
        holder->env.reply(holder->env.arg, from, id, holder->env.codes.bad, NULL, 0);
        return;
    }
    if (holder->closing) {
        holder->env.reply(holder->env.arg, from, id, HOLDER_AGAIN, NULL, 0);
        return;
    }
    if (!request_has_room(holder, body, len)) {
        holder->env.reply(holder->env.arg, from, id, holder->env.codes.full, NULL, 0);
        return;
    }
    request_new(holder, from, id, body, len);
    holder_turn(holder);
}

void holder_request(struct holder *holder, const void *body, size_t len, uint32_t ms,
                    holder_done_fn *done, void *arg)
{
    if (holder->closing || !request_has_room(holder, body, len)) {
        done(arg, holder->closing ? holder->env.codes.unreach : holder->env.codes.full, NULL, 0);
        return;
    }
    struct request *r = request_new(holder, holder->env.self, 0, body, len);
    r->done = done;
    r->arg = arg;
    request_expires(r, ms);
    holder_turn(holder);
}
