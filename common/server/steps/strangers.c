/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins seek.c, the resource manager that looks for a step, and introductions. */
#include "common/server/steps/strangers.h"

#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name that the RM looks for. */
struct sought {
    LIST_ENTRY(sought) entry;
    struct server *server;
    char name[PROCSET_NAME_MAX + 1];
};

static bool knows(void *arg, const char *name)
{
    const struct server *server = arg;
    return nspace_find(server->nspace, name) != NULL;
}

static bool is_speaker(void *arg, const struct procset *set)
{
    const struct server *server = arg;
    return steps_speaker(arg, set) == server->boot.node;
}

/* The server that was found gets our registration. It sends its own in return, of which learn.c
 * steps.c hears. */
static void on_found(void *arg, const struct rm_server *found, const char *why)
{
    struct sought *s = arg;
    struct server *server = s->server;
    struct nspace *ns = NULL;
    struct err err = {0};
    char name[PROCSET_NAME_MAX + 1];
    snprintf(name, sizeof name, "%s", s->name);
    LIST_REMOVE(s, entry);
    free(s);
    if (found != NULL) {
        ns = steps_attach(server, found, &err);
        why = err.text;
    }
    if (ns != NULL && found->node < ns->nnodes && !foreign_gone(ns, ns->base + found->node)) {
        steps_tell(server, server->nspace, ns->base + found->node);
        return;
    }
    log_info("namespace %s is not to be had: %s", name,
             why != NULL ? why : "the server that the resource manager names has left");
    seek_failed(server->seeks, name);
}

static void find(void *arg, const char *name)
{
    struct server *server = arg;
    struct sought *s;
    LIST_FOREACH (s, &server->sought, entry)
        if (strcmp(s->name, name) == 0)
            return;
    s = calloc(1, sizeof *s);
    s->server = server;
    snprintf(s->name, sizeof s->name, "%s", name);
    LIST_INSERT_HEAD(&server->sought, s, entry);
    server->rm_ops->resolve(server->rm, s->name, on_found, s);
}

void strangers_open(struct server *server)
{
    const struct seek_env env = {.arg = server,
                                 .timers = &server->timers,
                                 .knows = knows,
                                 .is_speaker = is_speaker,
                                 .find = find};
    server->seeks = seeks_new(&env);
}

void strangers_lost(struct server *server, uint32_t node)
{
    const struct nspace *ns = nspace_of(server->nspace, node);
    if (ns != NULL && ns->foreign != NULL && ns->boot == NULL)
        seek_failed(server->seeks, ns->foreign->name);
}

void strangers_close(struct server *server)
{
    seeks_free(server->seeks);
    struct sought *s;
    while ((s = LIST_FIRST(&server->sought)) != NULL) {
        LIST_REMOVE(s, entry);
        free(s);
    }
}
