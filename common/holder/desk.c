/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The holder's desk: what it does with the requests of its own step and of others. It serves
 * another step once it has heard from the step's head what the step has.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- other steps ---- */

void desk_free(struct holder *holder, struct client *client)
{
    TAILQ_REMOVE(&holder->clients, client, link);
    free(client);
}

static struct client *client_of(struct holder *holder, const char *nspace)
{
    struct client *client;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (strcmp(client->nspace, nspace) == 0)
            return client;
    return NULL;
}

static struct client *add_client(struct holder *holder, const char *nspace)
{
    struct client *client = calloc(1, sizeof *client);
    snprintf(client->nspace, sizeof client->nspace, "%s", nspace);
    client->node = HOLDER_NONE;
    TAILQ_INSERT_TAIL(&holder->clients, client, link);
    return client;
}

static void ask(struct holder *holder, struct client *client, enum holder_op op)
{
    client->state = op == HOLDER_COLLECT ? CLIENT_ASKED : CLIENT_LOOKED_AT;
    request_tell_op(holder, client->node, op); /* may be answered before this returns */
}

struct client *desk_meet(struct holder *holder, uint32_t node)
{
    const char *nspace = holder->env.nspace(holder->env.arg, node);
    if (nspace == NULL || holder_is_own(holder, node))
        return NULL;
    struct client *client = client_of(holder, nspace);
    if (client == NULL)
        client = add_client(holder, nspace);
    if (client->node != node) {
        client->node = node;
        client->state = CLIENT_STRANGE;
        client->refuses = false;
    }
    if (client->state <= CLIENT_STRANGE && !client->refuses)
        ask(holder, client, HOLDER_COLLECT);
    return client;
}

/* Forgets what is held of a step, which has said all that it has. An entry that it does not say was
 * unpublished, read or ended while the step followed another holder. */
static void forget_step(struct holder *holder, const struct client *client)
{
    struct store_entry *e, *next;
    for (e = store_first(holder->store); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->keeper == client)
            store_remove(holder->store, e);
    }
}

void desk_hear(struct holder *holder, const struct request *r, int32_t status, const void *data,
               size_t len)
{
    const char *nspace = holder->env.nspace(holder->env.arg, r->to);
    struct client *client = nspace != NULL ? client_of(holder, nspace) : NULL;
    struct wire_in in;
    if (client == NULL || client->node != r->to)
        return; /* another server speaks for the step by now */
    if (status != holder->env.codes.success) {
        client->state = CLIENT_STRANGE;
        client->refuses = true;
    } else if (r->op == HOLDER_PING && client->state == CLIENT_LOOKED_AT) {
        client->state = CLIENT_KNOWN;
    } else if (r->op == HOLDER_COLLECT && client->state == CLIENT_ASKED) {
        wire_in_init(&in, data, len);
        if (wire_get_u8(&in) != 0)
            forget_step(holder, client);
        if (!edit_take(holder->store, &in, client))
            log_warning("%s says in a malformed way what it has published", client->nspace);
        client->state = CLIENT_KNOWN;
        client->refuses = false;
        holder->news = true;
        holder_turn(holder);
    }
}

bool desk_awaits(const struct holder *holder)
{
    const struct client *client;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (client->state == CLIENT_ASKED)
            return true;
    return false;
}

/* The step is there no more: what outlives it is ours now. */
static void end_client(struct holder *holder, struct client *client)
{
    struct store_entry *e, *next;
    uint32_t n = 0;
    for (e = store_first(holder->store); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->keeper != client)
            continue;
        e->keeper = NULL;
        if (!store_outlives(e)) {
            store_remove(holder->store, e);
            n++;
        }
    }
    log_debug("%s is there no more: %u of its published entries have ended with it", client->nspace,
              n);
    desk_free(holder, client);
}

void desk_adopt(struct holder *holder)
{
    struct client *client = TAILQ_FIRST(&holder->clients), *next;
    for (; client != NULL; client = next) {
        next = TAILQ_NEXT(client, link);
        if (client->state == CLIENT_GONE)
            end_client(holder, client);
    }
}

/* Heads follow each other in the order of the nodes. */
void desk_lost(struct holder *holder, uint32_t node)
{
    const struct holder_env *env = &holder->env;
    const char *nspace = env->nspace(env->arg, node);
    struct client *client = nspace != NULL ? client_of(holder, nspace) : NULL;
    uint32_t first;
    if (client == NULL || client->node != node)
        return;
    client->state = CLIENT_GONE;
    bool knows = env->server(env->arg, nspace, 0, &first) == 0;
    for (uint32_t i = node - first + 1; knows && env->server(env->arg, nspace, i, &node) == 0; i++)
        if (!env->is_lost(env->arg, node)) {
            client->node = node; /* it says so itself if it has something, or is asked */
            client->refuses = false;
            return;
        }
    end_client(holder, client);
}

static bool has_entries(const struct holder *holder, const struct client *client)
{
    for (const struct store_entry *e = store_first(holder->store); e != NULL;
         e = TAILQ_NEXT(e, link))
        if (e->keeper == client)
            return true;
    return false;
}

/* One that does not answer is found to be lost by that. */
void desk_look(struct holder *holder)
{
    struct client *client = TAILQ_FIRST(&holder->clients), *next;
    for (; client != NULL; client = next) {
        next = TAILQ_NEXT(client, link);
        if (client->state <= CLIENT_STRANGE)
            ask(holder, client, HOLDER_COLLECT);
        else if (client->state == CLIENT_KNOWN && has_entries(holder, client))
            ask(holder, client, HOLDER_PING);
    }
}

void desk_close(struct holder *holder)
{
    while (!TAILQ_EMPTY(&holder->clients)) {
        struct client *client = TAILQ_FIRST(&holder->clients);
        forget_step(holder, client);
        desk_free(holder, client);
    }
}

/* ---- requests ---- */

/* Whoever keeps it is to forget what was read. */
static void tell_read(struct holder *holder, const struct store_entry *e)
{
    const struct holder_env *env = &holder->env;
    const struct client *client = e->keeper;
    struct wire_out out = {0};
    uint32_t node = HOLDER_NONE;
    if (client != NULL)
        node = client->node;
    else if (env->node_of(env->arg, e->who.nspace, e->who.rank, &node) != 0)
        return;
    if (node == env->self || env->is_lost(env->arg, node))
        return;
    wire_put_u8(&out, HOLDER_READ);
    wire_put_str(&out, e->who.nspace);
    wire_put_u32(&out, e->who.rank);
    wire_put_u64(&out, e->number);
    request_tell(holder, node, out.data, out.len);
    wire_out_free(&out);
}

/* What is found of a lookup. @return how many keys */
static uint32_t collect(struct holder *holder, const struct store_lookup *lookup,
                        struct store_entry **found)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < lookup->nkeys; i++) {
        struct store_entry *e = store_find(holder->store, lookup, lookup->keys[i]);
        bool twice = false;
        for (uint32_t k = 0; k < n && e != NULL; k++)
            twice |= found[k] == e;
        if (e != NULL && !twice)
            found[n++] = e;
    }
    return n;
}

/* Answers a lookup if there is enough, or it does not wait. */
void desk_retry(struct holder *holder, struct request *r)
{
    const struct holder_codes *codes = &holder->env.codes;
    struct store_lookup *lookup = &r->lookup;
    struct store_entry **found = calloc(lookup->nkeys + 1ul, sizeof(struct store_entry *));
    uint32_t n = collect(holder, lookup, found);
    struct wire_out out = {0};
    if (n < lookup->want) {
        free(found);
        return;
    }
    wire_put_i32(&out, n == lookup->nkeys ? codes->success : codes->partial);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++) {
        wire_put_str(&out, found[i]->who.nspace);
        wire_put_u32(&out, found[i]->who.rank);
        wire_put_str(&out, found[i]->key);
        wire_put_block(&out, found[i]->value, found[i]->len);
    }
    for (uint32_t i = 0; i < n; i++)
        if (found[i]->life == STORE_FIRST_READ) {
            tell_read(holder, found[i]);
            store_remove(holder->store, found[i]);
        }
    request_answer(r, n > 0 ? codes->success : codes->not_found, out.data, n > 0 ? out.len : 0);
    wire_out_free(&out);
    free(found);
}

static void lookup(struct holder *holder, struct request *r)
{
    struct wire_in in;
    wire_in_init(&in, r->body, r->len);
    wire_get_u8(&in);
    store_free_lookup(&r->lookup);
    if (store_get_lookup(&in, &r->lookup) != 0 || !wire_end(&in)) {
        request_answer(r, holder->env.codes.bad, NULL, 0);
        return;
    }
    if (r->lookup.want > r->lookup.nkeys)
        r->lookup.want = r->lookup.nkeys;
    r->state = WAITS;
    if (r->from != holder->env.self && r->lookup.left > 0)
        request_expires(r, r->lookup.left);
    desk_retry(holder, r);
}

/* It is named by itself alone: one that collects may still hear of an older one. */
static void where(struct holder *holder, struct request *r)
{
    const struct holder_env *env = &holder->env;
    struct wire_out out = {0};
    wire_put_str(&out, env->nspace(env->arg, env->self));
    wire_put_u32(&out, env->self);
    request_answer(r, env->codes.success, out.data, out.len);
    wire_out_free(&out);
}

void desk_serve(struct holder *holder, struct request *r)
{
    struct client *client = NULL;
    bool own = holder_is_own(holder, r->from), refuses = false;
    if (!own) {
        client = desk_meet(holder, r->from);
        refuses = client == NULL || (client->refuses && r->op <= HOLDER_WHERE);
        if (client != NULL && r->op == HOLDER_JOIN && client->state != CLIENT_ASKED)
            ask(holder, client, HOLDER_COLLECT); /* it may have followed another one meanwhile */
        else if (!refuses && r->op <= HOLDER_WHERE && client->state < CLIENT_KNOWN)
            return; /* once we know what it has */
    }
    if (refuses) {
        request_answer(r, HOLDER_AGAIN, NULL, 0);
    } else if (r->op == HOLDER_LOOKUP) {
        lookup(holder, r);
    } else if (r->op == HOLDER_WHERE) {
        where(holder, r);
    } else {
        holder->news |= r->op != HOLDER_UNPUBLISH && r->op != HOLDER_ENDED;
        if (holder->news)
            holder_turn(holder);
        request_answer(r, edit_held(holder, r, client), NULL, 0);
    }
}
