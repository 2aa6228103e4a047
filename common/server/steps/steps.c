/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Introduces this server to servers of other steps, learns their namespaces, asks where a bootstrap
 * has its home, and drops frames that another step's server may not send.
 */
#include "common/server/steps/steps.h"

#include "common/holder/holder.h"
#include "common/nspace/foreign.h"
#include "common/server/spawned/streams.h"
#include "common/server/steps/seek.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <stdlib.h>
#include <string.h>

/* A call that waits for its home to be named: holder_close() ends that. */
struct homeless {
    struct server *server;
    uint64_t call;
    char id[PROCSET_NAME_MAX + 1];
};

static bool is_own(const struct server *server, uint32_t node)
{
    return node < server->boot.nnodes;
}

void steps_go_on(struct server *server)
{
    spread_go_on(server);
    seek_go_on(server);
}

void steps_open(struct server *server)
{
    struct wire_out out = {0};
    if (server->rm_ops->rendezvous != NULL) {
        spread_open(server);
        seek_open(server);
    }
    boot_write_nspace(&server->boot, &out);
    server->nspace->bytes = wire_out_take(&out, &server->nspace->len);
}

bool steps_may_ask(const void *body, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    wire_get_u64(&in);
    uint8_t topic = wire_get_u8(&in);
    return !in.bad && topic != ASK_STATUS;
}

int steps_find(void *arg, uint64_t step, uint32_t index, uint32_t *node)
{
    const struct server *server = arg;
    return foreign_server(server->nspace, step, index, node);
}

/* Processes that were spawned have their parent's name before they have called anything, and
 * libpmix holds a group with it back until it knows the namespace. */
static void tell_of_parent(struct server *server, const char *name)
{
    const struct boot *boot = &server->boot;
    const struct boot_node *here = boot_here(boot);
    char parent[PROCSET_NAME_MAX + 1];
    struct procset set = {0};
    uint32_t rank;
    if (boot->node != 0 || here->ntasks == 0 || server->spreads == NULL ||
        !boot_parent(boot, parent, &rank))
        return;
    if (strcmp(parent, name) != 0) {
        if (!streams_join(server, name))
            return;
        rank = 0; /* the parent is a tool there */
    }
    procset_add(&set, name, rank, rank);
    if (steps_register(server, &set) == 0) {
        procset_add(&set, boot->nspace, here->ranks[0], here->ranks[0]);
        spread_speak(server, &set);
    }
    procset_free(&set);
}

void steps_nspace(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct boot *own = &server->boot;
    const struct nspace *ns = server->nspace;
    if (server->rm_ops->attach == NULL || (ns->len == len && memcmp(ns->bytes, body, len) == 0))
        return; /* of ourselves we know */
    ns = steps_take(server, 0, body, len);
    if (ns == NULL)
        return;
    log_debug("%s of step %s has told of namespace %s", nspace_name(server->nspace, from),
              own->label, ns->foreign->name);
    if (!is_own(server, from)) /* it may have introduced itself to hear our name */
        steps_tell(server, server->nspace, from);
    if (ns->boot != NULL)
        tell_of_parent(server, ns->foreign->name);
}

/* ---- homes ---- */

static void on_home(void *arg, uint32_t node, const char *why)
{
    struct homeless *h = arg;
    if (node == ENGINE_NO_HOME)
        log_error("group \"%s\" bootstrap: there is no server where its leaders could meet: %s",
                  h->id, why != NULL ? why : "the resource manager names one that is not there");
    engine_home(h->server->engine, h->call, node);
    free(h);
}

void steps_home(void *arg, const char *id, uint64_t call)
{
    struct server *server = arg;
    struct homeless *h = calloc(1, sizeof *h);
    h->server = server;
    h->call = call;
    snprintf(h->id, sizeof h->id, "%s", id);
    holder_where(server->holder, on_home, h);
}

void steps_close(struct server *server)
{
    spread_close(server);
    seek_close(server);
}
