/* SPDX-License-Identifier: BSD-3-Clause */
/* What the holder's end needs of its surroundings. */
#include "common/server/steps/meeting.h"

#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_lost(void *arg, uint32_t node)
{
    const struct server *server = arg;
    const struct nspace *ns = nspace_of(server->nspace, node);
    return engine_is_lost(server->engine, node) ||
           (ns != NULL && ns->foreign != NULL && foreign_gone(ns, node));
}

static uint32_t head(void *arg)
{
    const struct server *server = arg;
    return view_head(server->view);
}

static uint32_t heir(void *arg)
{
    const struct server *server = arg;
    for (uint32_t node = server->boot.node + 1; node < server->boot.nnodes; node++)
        if (view_has(server->view, node))
            return node;
    return server->boot.node;
}

/* @return a handle, or HOLDER_NONE with @p err */
static uint32_t handle_of(struct server *server, const struct rm_server *found, struct err *err)
{
    if (strcmp(found->nspace, server->boot.nspace) == 0) {
        if (found->node == server->boot.node)
            return server->boot.node;
        err_set(err, "node %u of this %s is said to be it", found->node, log_unit());
        return HOLDER_NONE;
    }
    struct nspace *ns = steps_attach(server, found, err);
    if (ns == NULL || found->node >= ns->nnodes)
        return HOLDER_NONE;
    return ns->base + found->node;
}

static void on_found(void *arg, const struct rm_server *found, const char *why)
{
    struct server *server = arg;
    struct err err = {0};
    uint32_t node = found != NULL ? handle_of(server, found, &err) : HOLDER_NONE;
    holder_found(server->holder, node, found != NULL ? err.text : why);
}

static void find(void *arg)
{
    struct server *server = arg;
    if (server->rm != NULL)
        server->rm_ops->rendezvous(server->rm, on_found, server);
}

static void on_other(void *arg, const struct rm_server *found, const char *why)
{
    struct server *server = arg;
    struct err err = {0};
    uint32_t node = found != NULL ? handle_of(server, found, &err) : HOLDER_NONE;
    (void)why;
    if (found == NULL || (node != HOLDER_NONE && node != server->boot.node))
        holder_other(server->holder, node);
}

static void others(void *arg)
{
    struct server *server = arg;
    if (server->rm != NULL)
        server->rm_ops->others(server->rm, on_other, server);
}

static void ask(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg)
{
    struct server *server = arg;
    asks_send(server->asks, node, ASK_DATA, body, len, 0, done, done_arg);
}

static void reply(void *arg, uint32_t node, uint64_t id, int32_t status, const void *data,
                  size_t len)
{
    struct server *server = arg;
    asks_reply(server->asks, node, id, status, data, len);
}

static const char *nspace_at(void *arg, uint32_t node)
{
    struct server *server = arg;
    const struct nspace *ns = nspace_of(server->nspace, node);
    if (ns == NULL || (ns->foreign != NULL && ns->foreign->name[0] == '\0'))
        return NULL;
    return ns->foreign != NULL ? ns->foreign->name : ns->boot->nspace;
}

static int server_at(void *arg, const char *nspace, uint32_t index, uint32_t *node)
{
    const struct server *server = arg;
    const struct nspace *ns = nspace_find(server->nspace, nspace);
    if (ns == NULL || index >= ns->nnodes)
        return -1;
    *node = ns->base + index;
    return 0;
}

/* ---- publishers are introduced to the own step ---- */

struct settling {
    struct spread_wait wait;
    struct procset set;
    void (*done)(void *arg);
    void *arg;
};

static void on_settled(struct spread_wait *wait)
{
    struct settling *s = (struct settling *)wait;
    s->done(s->arg);
    procset_free(&s->set);
    free(s);
}

void meeting_register(struct server *server, const struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++) {
        struct procset one = {0};
        if (nspace_find(server->nspace, set->parts[i].nspace) == NULL)
            continue;
        procset_add(&one, set->parts[i].nspace, 0, 0);
        steps_register(server, &one);
        procset_free(&one);
    }
}

/* A process of this node in the set makes this server tell the others. */
static void settle(void *arg, const struct procset *set, void (*done)(void *arg), void *done_arg)
{
    struct server *server = arg;
    const struct boot_node *here = boot_here(&server->boot);
    meeting_register(server, set);
    if (here->ntasks == 0) {
        done(done_arg);
        return;
    }
    struct settling *s = calloc(1, sizeof *s);
    procset_add(&s->set, server->boot.nspace, here->ranks[0], here->ranks[0]);
    procset_canonical(&s->set);
    procset_unite(&s->set, set);
    s->wait.set = &s->set;
    s->wait.done = on_settled;
    s->done = done;
    s->arg = done_arg;
    spread_await(server, &s->wait);
}

/* ---- */

void meeting_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    holder_serve(server->holder, from, id, body, len);
}

static void describe_lookup(struct wire_in *in, char *buf, size_t cap)
{
    struct store_lookup lookup;
    if (store_get_lookup(in, &lookup) == 0 && lookup.nkeys > 0)
        snprintf(buf, cap, "PMIx_Lookup by %s rank %u: key \"%s\" has not been published",
                 lookup.who.nspace, lookup.who.rank, lookup.keys[0]);
    store_free_lookup(&lookup);
}

void meeting_describe(const char *node, const void *body, size_t len, char *buf, size_t cap)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint8_t op = wire_get_u8(&in);
    snprintf(buf, cap, "a question about what is published: no answer of %s", node);
    if (op == HOLDER_LOOKUP)
        describe_lookup(&in, buf, cap);
}

void meeting_open(struct server *server)
{
    struct holder_env env = {
        .arg = server,
        .self = server->boot.node,
        .nnodes = server->boot.nnodes,
        .codes = {.success = PMIX_SUCCESS,
                  .duplicate = PMIX_ERR_DUPLICATE_KEY,
                  .full = PMIX_ERR_OUT_OF_RESOURCE,
                  .not_found = PMIX_ERR_NOT_FOUND,
                  .partial = PMIX_ERR_PARTIAL_SUCCESS,
                  .timeout = PMIX_ERR_TIMEOUT,
                  .unreach = PMIX_ERR_UNREACH,
                  .bad = PMIX_ERR_BAD_PARAM,
                  .lost = PMIX_ERR_LOST_CONNECTION},
        .timers = &server->timers,
        .is_lost = is_lost,
        .head = head,
        .heir = heir,
        .ask = ask,
        .reply = reply,
        .nspace = nspace_at,
        .server = server_at,
        .node_of = server_node_of,
        .acquaint = steps_acquaint,
        .settle = settle,
    };
    if (server->rm_ops->rendezvous != NULL)
        env.find = find;
    if (server->rm_ops->others != NULL)
        env.others = others;
    server->published = server->boot.run << 24; /* of another run of this step they differ */
    server->holder = holder_new(&env);
}
