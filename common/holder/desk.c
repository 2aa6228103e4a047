/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The holder's desk: what it does with the requests of its own step and of others. Which other
 * steps there are it knows by their deputies. What only lives as long as its step is dropped when
 * that step has had no deputy for a while.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEXT_DEPUTY_MS = 5000, /* for a step whose deputy is gone to send another one */
    SILENCE_MS = 60000, /* a deputy that has published something says more often that it is there */
};

/* ---- other steps ---- */

struct client *desk_client(struct holder *holder, uint32_t node)
{
    struct client *client;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (client->node == node && !client->gone)
            return client;
    return NULL;
}

void desk_free(struct holder *holder, struct client *client)
{
    TAILQ_REMOVE(&holder->clients, client, link);
    timer_stop(&client->end);
    free(client);
}

void desk_gone(struct client *client)
{
    client->gone = true;
    timer_after(&client->end, NEXT_DEPUTY_MS);
}

/* What only living steps have ends. */
static void on_end(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    struct client *client = TIMER_OF(timer, struct client, end);
    if (holder->state != HOLDS) {
        timer_after(timer, NEXT_DEPUTY_MS);
        return;
    }
    uint32_t n = store_ended(holder->held, client->nspace, STORE_ANY_RANK);
    log_debug("%s is there no more: %u of its published entries have ended with it", client->nspace,
              n);
    desk_free(holder, client);
}

void desk_note(struct holder *holder, uint32_t node)
{
    const char *nspace = holder->env.nspace(holder->env.arg, node);
    struct client *client;
    if (nspace == NULL || holder_is_own(holder, node))
        return;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (strcmp(client->nspace, nspace) == 0)
            break;
    if (client == NULL) {
        client = calloc(1, sizeof *client);
        if (client == NULL)
            return;
        snprintf(client->nspace, sizeof client->nspace, "%s", nspace);
        timer_init(&client->end, holder->env.timers, on_end, holder);
        TAILQ_INSERT_TAIL(&holder->clients, client, link);
    } else if (client->node != node) {
        client->hello = 0;
        client->parted = true;
    }
    client->node = node;
    client->gone = false;
    timer_after(&client->end, SILENCE_MS);
}

/* ---- requests ---- */

static int32_t code_of(const struct holder *holder, enum store_answer answer)
{
    const struct holder_codes *codes = &holder->env.codes;
    return answer == STORE_OK          ? codes->success
           : answer == STORE_DUPLICATE ? codes->duplicate
                                       : codes->full;
}

static bool read_entries(struct wire_in *in, struct store_list *list)
{
    uint32_t n = wire_get_count(in, 1);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct store_entry *e = store_get_entry(in);
        if (e != NULL)
            TAILQ_INSERT_TAIL(list, e, link);
    }
    return !in->bad;
}

static struct store_entry *first_of(struct store_list *list)
{
    struct store_entry *e = TAILQ_FIRST(list);
    if (e != NULL)
        TAILQ_REMOVE(list, e, link);
    return e;
}

static int32_t publish(struct holder *holder, struct wire_in *in)
{
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *e;
    int32_t status = holder->env.codes.bad;
    if (read_entries(in, &list) && wire_end(in))
        status = code_of(holder, store_may_add(holder->held, &list));
    while ((e = first_of(&list)) != NULL)
        if (status != holder->env.codes.success || store_add(holder->held, e) != STORE_OK)
            store_entry_free(e);
    return status;
}

bool desk_take(struct store *store, struct wire_in *in)
{
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *e;
    bool good = read_entries(in, &list);
    while ((e = first_of(&list)) != NULL)
        if (!good || store_add(store, e) != STORE_OK) {
            if (good)
                log_debug("an entry that %s rank %u has published is in the way of another one",
                          e->who.nspace, e->who.rank);
            store_entry_free(e);
        }
    return good;
}

static int32_t unpublish(struct holder *holder, struct wire_in *in)
{
    struct store_who who;
    uint32_t n;
    store_get_who(in, &who);
    enum store_range range = wire_get_u8(in);
    char **keys = store_get_keys(in, &n);
    bool good = !in->bad && range <= STORE_RANGES;
    if (good)
        store_unpublish(holder->held, &who, keys, n, range);
    store_free_keys(keys, n);
    return good ? holder->env.codes.success : holder->env.codes.bad;
}

/* Its owner's server is to forget what was read. */
static void tell_read(struct holder *holder, const struct store_entry *e)
{
    const struct holder_env *env = &holder->env;
    struct wire_out out = {0};
    struct client *client;
    uint32_t node = HOLDER_NONE;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (strcmp(client->nspace, e->who.nspace) == 0 && !client->gone)
            node = client->node;
    struct store_entry *kept = store_named(holder->kept, e->who.nspace, e->who.rank, e->number);
    if (kept != NULL)
        store_remove(holder->kept, kept);
    if (node == HOLDER_NONE && env->node_of(env->arg, e->who.nspace, e->who.rank, &node) != 0)
        return;
    if (node == env->self || env->is_lost(env->arg, node))
        return;
    wire_put_u8(&out, HOLDER_READ);
    wire_put_str(&out, e->who.nspace);
    wire_put_u32(&out, e->who.rank);
    wire_put_u64(&out, e->number);
    struct carry *c = out.failed ? NULL : carry_new(holder, env->self, 0, out.data, out.len);
    if (c != NULL) {
        c->answered = true;
        carry_send(c, node);
    }
    wire_out_free(&out);
}

/* What is found of a lookup; without memory less. @return how many keys */
static uint32_t collect(struct holder *holder, const struct store_lookup *lookup,
                        struct store_entry **found)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < lookup->nkeys; i++) {
        struct store_entry *e = store_find(holder->held, lookup, lookup->keys[i]);
        bool twice = false;
        for (uint32_t k = 0; k < n && e != NULL; k++)
            twice |= found[k] == e;
        if (e != NULL && !twice)
            found[n++] = e;
    }
    return n;
}

/* Answers a lookup if there is enough, or it does not wait. @return whether it was answered */
static bool try_lookup(struct holder *holder, struct carry *c)
{
    const struct holder_codes *codes = &holder->env.codes;
    struct store_lookup *lookup = &c->lookup;
    struct store_entry **found = calloc(lookup->nkeys + 1ul, sizeof(struct store_entry *));
    uint32_t n = found != NULL ? collect(holder, lookup, found) : 0;
    struct wire_out out = {0};
    if (n < lookup->want) {
        free(found);
        return false;
    }
    wire_put_i32(&out, n == lookup->nkeys ? codes->success : codes->partial);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++) {
        wire_put_str(&out, found[i]->who.nspace);
        wire_put_u32(&out, found[i]->who.rank);
        wire_put_str(&out, found[i]->key);
        wire_put_block(&out, found[i]->value, found[i]->len);
    }
    for (uint32_t i = 0; i < n && !out.failed; i++)
        if (found[i]->life == STORE_FIRST_READ) {
            tell_read(holder, found[i]);
            store_remove(holder->held, found[i]);
        }
    if (n == 0 || out.failed)
        carry_answer(c, out.failed ? codes->unreach : codes->not_found, NULL, 0);
    else
        carry_answer(c, codes->success, out.data, out.len);
    wire_out_free(&out);
    free(found);
    return true;
}

static void lookup(struct holder *holder, struct carry *c, struct wire_in *in)
{
    if (store_get_lookup(in, &c->lookup) != 0 || !wire_end(in)) {
        carry_answer(c, holder->env.codes.bad, NULL, 0);
        return;
    }
    if (c->lookup.want > c->lookup.nkeys)
        c->lookup.want = c->lookup.nkeys;
    c->state = CARRY_WAITS;
    if (c->from != holder->env.self && c->lookup.left > 0)
        carry_expires(c, c->lookup.left);
    try_lookup(holder, c);
}

void desk_retry(struct holder *holder)
{
    struct carry *c = TAILQ_FIRST(&holder->carries);
    while (c != NULL) {
        struct carry *next = TAILQ_NEXT(c, link);
        if (c->state == CARRY_WAITS && c->lookup.keys != NULL && !c->answered &&
            try_lookup(holder, c))
            next = TAILQ_FIRST(&holder->carries); /* its asker may have asked for more */
        c = next;
    }
}

/* Forgets what is held of a step, which is about to say all that it has. An entry that it does not
 * say was unpublished, read or ended while the step followed another holder. */
static void forget_step(struct holder *holder, uint32_t node)
{
    const char *nspace = holder->env.nspace(holder->env.arg, node);
    struct store_entry *e, *next;
    for (e = store_first(holder->held); e != NULL && nspace != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (strcmp(e->who.nspace, nspace) == 0)
            store_remove(holder->held, e);
    }
}

/* Is answered once we hold: a server that follows us tells others that leaders meet here. What is
 * said again, as its answer was late, may be older than what the step has published since. */
static void hello(struct holder *holder, struct carry *c, struct wire_in *in)
{
    uint64_t number = wire_get_u64(in);
    struct wire_out out = {0};
    bool whole = wire_get_u8(in) != 0, good = !in->bad;
    desk_note(holder, c->from);
    struct client *client = desk_client(holder, c->from);
    bool again = client != NULL && number <= client->hello;
    if (good && !again) {
        if (whole && client != NULL && !client->parted)
            forget_step(holder, c->from);
        good = desk_take(holder->held, in) && wire_end(in);
    }
    if (good && client != NULL && !again)
        client->hello = number;
    if (good && holder->state == COLLECTS)
        return;
    wire_put_u64(&out, number);
    good = good && !out.failed;
    carry_answer(c, good ? holder->env.codes.success : holder->env.codes.bad, out.data,
                 good ? out.len : 0);
    wire_out_free(&out);
    desk_retry(holder);
}

static void ended(struct holder *holder, struct carry *c, struct wire_in *in)
{
    char nspace[PROCSET_NAME_MAX + 1];
    wire_get_str(in, nspace, sizeof nspace);
    uint32_t rank = wire_get_u32(in);
    bool good = wire_end(in);
    if (good)
        store_ended(holder->held, nspace, rank);
    if (good && holder_is_own(holder, c->from))
        carry_keep(holder, c);
    carry_answer(c, good ? holder->env.codes.success : holder->env.codes.bad, NULL, 0);
}

void desk_serve(struct holder *holder, struct carry *c)
{
    struct wire_in in;
    struct client *client = desk_client(holder, c->from);
    int32_t status = holder->env.codes.bad;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    if (client != NULL)
        timer_after(&client->end, SILENCE_MS);
    if (c->op == HOLDER_LOOKUP) {
        lookup(holder, c, &in);
        return;
    } else if (c->op == HOLDER_HELLO) {
        hello(holder, c, &in);
        return;
    } else if (c->op == HOLDER_ENDED) {
        ended(holder, c, &in);
        return;
    } else if (c->op == HOLDER_PING) {
        status = client != NULL ? holder->env.codes.success : HOLDER_AGAIN;
    } else if (c->op == HOLDER_PUBLISH) {
        desk_note(holder, c->from); /* it may have been silent for long */
        status = publish(holder, &in);
    } else if (c->op == HOLDER_UNPUBLISH) {
        status = unpublish(holder, &in);
    }
    if (status == holder->env.codes.success && holder_is_own(holder, c->from))
        carry_keep(holder, c);
    bool retry = c->op == HOLDER_PUBLISH;
    carry_answer(c, status, NULL, 0);
    if (retry)
        desk_retry(holder);
}
