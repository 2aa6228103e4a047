/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Requests on their way to the holder, and their answers on the way back. One whose asker is gone,
 * or was told already, is freed when the server above has answered.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    CARRY_MAX = 32 << 20, /* bytes of requests that wait */
    REFUSED_LINE = 10000, /* requests for which there is one more line */
    CARRY_BYTES = 512,    /* that it takes to keep one, and the question for it */
};

bool holder_is_own(const struct holder *holder, uint32_t node)
{
    return node < holder->env.nnodes;
}

bool carry_has_room(struct holder *holder, const void *body, size_t len)
{
    unsigned char op = *(const unsigned char *)body;
    bool of_process = op == HOLDER_PUBLISH || op == HOLDER_LOOKUP || op == HOLDER_UNPUBLISH;
    if (!of_process || holder->carried == 0 || holder->carried + len <= CARRY_MAX)
        return true;
    uint64_t n = ++holder->refused;
    if (n == 1 || n % REFUSED_LINE == 0)
        log_error("a request to publish, look up or unpublish is refused, as %d MiB of such ones "
                  "wait here for a server that is slow or stands still; %llu so far",
                  CARRY_MAX >> 20, (unsigned long long)n);
    return false;
}

struct carry *carry_new(struct holder *holder, uint32_t from, uint64_t id, const void *body,
                        size_t len)
{
    struct carry *c = calloc(1, sizeof *c);
    if (c == NULL || (c->body = malloc(len)) == NULL) {
        free(c);
        return NULL;
    }
    memcpy(c->body, body, len);
    c->holder = holder;
    c->from = from;
    c->id = id;
    c->op = *(unsigned char *)c->body;
    c->len = len;
    holder->carried += len + CARRY_BYTES;
    TAILQ_INSERT_TAIL(&holder->carries, c, link);
    return c;
}

static void free_carry(struct carry *c)
{
    TAILQ_REMOVE(&c->holder->carries, c, link);
    c->holder->carried -= c->len + CARRY_BYTES;
    timer_stop(&c->deadline);
    store_free_lookup(&c->lookup);
    free(c->data);
    free(c->body);
    free(c);
}

/* Tells the asker. */
static void tell(struct carry *c)
{
    const struct holder_env *env = &c->holder->env;
    bool sent = c->state == CARRY_SENT, news = !c->answered;
    c->answered = true; /* first: done() may ask again, and serves what is queued */
    timer_stop(&c->deadline);
    if (news && c->from != env->self) {
        env->reply(env->arg, c->from, c->id, c->status, c->data, c->datalen);
    } else if (news && c->done != NULL)
        c->done(c->arg, c->status, c->data, c->datalen);
    if (!sent)
        free_carry(c);
}

static void settled(void *arg)
{
    struct carry *c = arg;
    c->state = CARRY_QUEUED;
    tell(c);
}

/* The publishers in the answer to a lookup. @return whether there are any */
static bool read_publishers(const struct carry *c, struct procset *set)
{
    struct wire_in in;
    char nspace[PROCSET_NAME_MAX + 1], key[STORE_KEY_MAX + 1];
    size_t len;
    wire_in_init(&in, c->data, c->datalen);
    wire_get_i32(&in);
    uint32_t n = wire_get_count(&in, 16);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        wire_get_str(&in, nspace, sizeof nspace);
        uint32_t rank = wire_get_u32(&in);
        wire_get_str(&in, key, sizeof key);
        wire_get_block(&in, &len);
        if (!in.bad)
            procset_add(set, nspace, rank, rank);
    }
    procset_canonical(set);
    return set->nparts > 0;
}

void carry_answer(struct carry *c, int32_t status, const void *data, size_t len)
{
    const struct holder_env *env = &c->holder->env;
    struct procset set = {0};
    c->status = status;
    c->data = len > 0 ? malloc(len) : NULL;
    if (c->data != NULL)
        memcpy(c->data, data, len);
    c->datalen = c->data != NULL ? len : 0;
    if (len > 0 && c->data == NULL)
        c->status = env->codes.unreach;
    bool introduces = c->op == HOLDER_LOOKUP && c->status == env->codes.success &&
                      c->holder->deputy == env->self && !c->answered && read_publishers(c, &set);
    if (introduces && holder_is_own(c->holder, c->from)) {
        c->state = CARRY_WAITS; /* it cannot be forgotten */
        timer_stop(&c->deadline);
        store_free_lookup(&c->lookup);
        env->settle(env->arg, &set, settled, c);
    } else {
        if (introduces)
            env->acquaint(env->arg, c->from, &set);
        tell(c);
    }
    procset_free(&set);
}

static void on_late(void *arg, struct timer *timer)
{
    struct carry *c = arg;
    (void)timer;
    if (!c->answered && !c->holder->closing)
        carry_answer(c, c->holder->env.codes.timeout, NULL, 0);
}

void carry_expires(struct carry *c, uint32_t ms)
{
    timer_init(&c->deadline, c->holder->env.timers, on_late, c);
    if (ms > 0)
        timer_after(&c->deadline, ms);
}

static void came(void *arg, int32_t status, const void *data, size_t len)
{
    struct carry *c = arg;
    c->state = CARRY_QUEUED;
    if (c->answered)
        free_carry(c);
    else
        c->holder->came(c, status, data, len);
}

void carry_send(struct carry *c, uint32_t node)
{
    c->state = CARRY_SENT;
    c->to = node;
    c->went = true;
    c->holder->env.ask(c->holder->env.arg, node, c->body, c->len, 0, came, c);
}

void carry_forget(struct holder *holder, uint32_t from)
{
    struct carry *c, *next;
    for (c = TAILQ_FIRST(&holder->carries); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->from != from)
            continue;
        c->answered = true;
        if (c->state == CARRY_QUEUED || (c->state == CARRY_WAITS && c->lookup.keys != NULL))
            free_carry(c);
    }
}

void carry_free_all(struct holder *holder)
{
    while (!TAILQ_EMPTY(&holder->carries))
        free_carry(TAILQ_FIRST(&holder->carries));
}

void carry_keep(struct holder *holder, const struct carry *c)
{
    struct wire_in in;
    struct store_who who;
    uint32_t n;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    if (c->op == HOLDER_PUBLISH) {
        n = wire_get_count(&in, 1);
        for (uint32_t i = 0; i < n && !in.bad; i++) {
            struct store_entry *e = store_get_entry(&in);
            if (e != NULL && store_add(holder->kept, e) != STORE_OK)
                store_entry_free(e);
        }
    } else if (c->op == HOLDER_UNPUBLISH) {
        store_get_who(&in, &who);
        enum store_range range = wire_get_u8(&in);
        char **keys = store_get_keys(&in, &n);
        if (!in.bad)
            store_unpublish(holder->kept, &who, keys, n, range);
        store_free_keys(keys, n);
    } else if (c->op == HOLDER_ENDED) {
        wire_get_str(&in, who.nspace, sizeof who.nspace);
        who.rank = wire_get_u32(&in);
        if (!in.bad)
            store_ended(holder->kept, who.nspace, who.rank);
    }
}
