/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Requests on their way to the holder, and their answers on the way back. One whose asker is gone,
 * or was told already, is over once the server above has answered; only the turn (serve.c) frees
 * it.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS_MAX = 32 << 20, /* bytes of requests that wait */
    REFUSED_LINE = 10000,    /* requests for which there is one more line */
    REQUEST_BYTES = 512,     /* that it takes to keep one, and the question for it */
};

bool request_has_room(struct holder *holder, const void *body, size_t len)
{
    unsigned char op = *(const unsigned char *)body;
    bool of_process = op == HOLDER_PUBLISH || op == HOLDER_LOOKUP || op == HOLDER_UNPUBLISH;
    if (!of_process || holder->bytes == 0 || holder->bytes + len <= REQUESTS_MAX)
        return true;
    uint64_t n = ++holder->refused;
    if (n == 1 || n % REFUSED_LINE == 0)
        log_error("a request to publish, look up or unpublish is refused, as %d MiB of such ones "
                  "wait here for a server that is slow or stands still; %llu so far",
                  REQUESTS_MAX >> 20, (unsigned long long)n);
    return false;
}

struct request *request_new(struct holder *holder, uint32_t from, uint64_t id, const void *body,
                            size_t len)
{
    struct request *r = calloc(1, sizeof *r);
    r->body = malloc(len);
    memcpy(r->body, body, len);
    r->holder = holder;
    r->from = from;
    r->id = id;
    r->op = *(unsigned char *)r->body;
    r->len = len;
    holder->bytes += len + REQUEST_BYTES;
    TAILQ_INSERT_TAIL(&holder->requests, r, link);
    return r;
}

void request_free(struct request *r)
{
    TAILQ_REMOVE(&r->holder->requests, r, link);
    r->holder->bytes -= r->len + REQUEST_BYTES;
    timer_stop(&r->deadline);
    store_free_lookup(&r->lookup);
    free(r->body);
    free(r);
}

/* Tells the asker. */
static void tell(struct request *r, int32_t status, const void *data, size_t len)
{
    const struct holder_env *env = &r->holder->env;
    timer_stop(&r->deadline);
    holder_turn(r->holder);
    if (r->answered)
        return;
    r->answered = true; /* first: done() may ask again */
    if (r->from != env->self) {
        env->reply(env->arg, r->from, r->id, status, data, len);
    } else if (r->done != NULL)
        r->done(r->arg, status, data, len);
}

bool request_is_over(const struct request *r)
{
    return r->answered && (r->state == QUEUED || r->state == WAITS);
}

static void settled(void *arg)
{
    struct request *r = arg;
    r->state = QUEUED;
    tell(r, r->holder->env.codes.success, r->body, r->len);
}

/* The namespaces that the asker has to know: of the publishers in the answer to a lookup, or of the
 * holder. @return whether there are any */
static bool read_named(const struct request *r, const void *data, size_t len, struct procset *set)
{
    struct wire_in in;
    char nspace[PROCSET_NAME_MAX + 1], key[STORE_KEY_MAX + 1];
    size_t size;
    wire_in_init(&in, data, len);
    if (r->op == HOLDER_LOOKUP)
        wire_get_i32(&in);
    uint32_t n = r->op == HOLDER_LOOKUP ? wire_get_count(&in, 16) : 1;
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        wire_get_str(&in, nspace, sizeof nspace);
        uint32_t rank = wire_get_u32(&in);
        if (r->op == HOLDER_LOOKUP) {
            wire_get_str(&in, key, sizeof key);
            wire_get_block(&in, &size);
        }
        if (!in.bad)
            procset_add(set, nspace, r->op == HOLDER_LOOKUP ? rank : 0,
                        r->op == HOLDER_LOOKUP ? rank : 0);
    }
    procset_canonical(set);
    return set->nparts > 0;
}

/* Has the others of the step know the publishers, and then tells the asker. */
static void settle(struct request *r, const void *data, size_t len, const struct procset *set)
{
    free(r->body);
    r->body = malloc(len);
    memcpy(r->body, data, len);
    r->holder->bytes += len - r->len;
    r->len = len;
    r->state = SETTLES; /* it cannot be forgotten */
    timer_stop(&r->deadline);
    r->holder->env.settle(r->holder->env.arg, set, settled, r);
}

void request_answer(struct request *r, int32_t status, const void *data, size_t len)
{
    struct holder *holder = r->holder;
    const struct holder_env *env = &holder->env;
    struct procset set = {0};
    bool good = status == env->codes.success;
    bool names = good && len > 0 && !r->answered && holder_is_head(holder) &&
                 (r->op == HOLDER_LOOKUP || r->op == HOLDER_WHERE) &&
                 read_named(r, data, len, &set);
    if (r->op == HOLDER_PUBLISH && !good && !r->answered && !holder->closing &&
        holder_is_own(holder, r->from))
        edit_undo(holder, r);
    if (names && r->op == HOLDER_LOOKUP && holder_is_own(holder, r->from)) {
        settle(r, data, len, &set);
    } else {
        if (names && r->from != env->self)
            env->acquaint(env->arg, r->from, &set);
        tell(r, status, data, len);
    }
    procset_free(&set);
}

static void on_late(void *arg, struct timer *timer)
{
    struct request *r = TIMER_OF(timer, struct request, deadline);
    const struct holder *holder = arg;
    if (!r->answered && !holder->closing)
        request_answer(r, holder->env.codes.timeout, NULL, 0);
}

void request_expires(struct request *r, uint32_t ms)
{
    timer_init(&r->deadline, r->holder->env.timers, on_late, r->holder);
    if (ms > 0)
        timer_after(&r->deadline, ms);
}

static void came(void *arg, int32_t status, const void *data, size_t len)
{
    struct request *r = arg;
    r->state = QUEUED;
    holder_turn(r->holder);
    if (!r->answered)
        r->holder->came(r, status, data, len);
    r->answered |= r->word;
}

void request_send(struct request *r, uint32_t node)
{
    r->state = SENT;
    r->to = node;
    r->holder->env.ask(r->holder->env.arg, node, r->body, r->len, came, r);
}

void request_tell(struct holder *holder, uint32_t node, const void *body, size_t len)
{
    struct request *r = request_new(holder, holder->env.self, 0, body, len);
    r->word = true;
    request_send(r, node);
}

void request_tell_op(struct holder *holder, uint32_t node, enum holder_op op)
{
    const unsigned char body = (unsigned char)op;
    request_tell(holder, node, &body, sizeof body);
}

void request_forget(struct holder *holder, uint32_t from)
{
    struct request *r;
    TAILQ_FOREACH (r, &holder->requests, link)
        if (r->from == from && !r->word)
            r->answered = true;
}
