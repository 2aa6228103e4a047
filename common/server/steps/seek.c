/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of calls that wait, each with two deadlines, and one of names that the RM looks for. */
#include "common/server/steps/seek.h"

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

struct seeks {
    LIST_HEAD(, seek_wait) waits;
    LIST_HEAD(, sought) sought;
    bool closing;
};

void seek_open(struct server *server)
{
    server->seeks = calloc(1, sizeof *server->seeks);
}

static bool knows_all(const struct server *server, const struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        if (nspace_find(server->nspace, set->parts[i].nspace) == NULL)
            return false;
    return true;
}

static bool is_waiting(const struct server *server, const struct seek_wait *wait)
{
    const struct seek_wait *w;
    LIST_FOREACH (w, &server->seeks->waits, entry)
        if (w == wait)
            return true;
    return false;
}

/* ---- calls go on ---- */

static void finish(struct seek_wait *wait)
{
    LIST_REMOVE(wait, entry);
    timer_stop(&wait->until);
    timer_stop(&wait->ask);
    wait->done(wait);
}

/* The first one that waits for nothing more is finished, and again, as done() may do anything.
 * @param failed a namespace that is not to be had, or NULL */
static void finish_all(struct server *server, const char *failed)
{
    struct seek_wait *wait = server->seeks != NULL ? LIST_FIRST(&server->seeks->waits) : NULL;
    while (wait != NULL) {
        bool over =
            failed != NULL ? procset_has_of(wait->set, failed) : knows_all(server, wait->set);
        struct seek_wait *next = LIST_NEXT(wait, entry);
        if (over)
            finish(wait);
        wait = over ? LIST_FIRST(&server->seeks->waits) : next;
    }
}

void seek_learnt(struct server *server)
{
    finish_all(server, NULL);
}

void seek_server_lost(struct server *server, uint32_t node)
{
    const struct nspace *ns = nspace_of(server->nspace, node);
    if (ns != NULL && ns->foreign != NULL && ns->boot == NULL)
        finish_all(server, ns->foreign->name);
}

/* ---- the RM looks ---- */

/* The server that was found gets our registration. It sends its own in return, of which steps.c
 * hears. */
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
    finish_all(server, name);
}

static void find(struct server *server, const char *name)
{
    struct sought *s;
    LIST_FOREACH (s, &server->seeks->sought, entry)
        if (strcmp(s->name, name) == 0)
            return;
    s = calloc(1, sizeof *s);
    s->server = server;
    snprintf(s->name, sizeof s->name, "%s", name);
    LIST_INSERT_HEAD(&server->seeks->sought, s, entry);
    server->rm_ops->resolve(server->rm, s->name, on_found, s);
}

/* find() may end the wait, and with it the set. */
static void ask(struct server *server, struct seek_wait *wait)
{
    timer_stop(&wait->ask);
    for (uint32_t i = 0; is_waiting(server, wait) && i < wait->set->nparts; i++)
        if (nspace_find(server->nspace, wait->set->parts[i].nspace) == NULL)
            find(server, wait->set->parts[i].nspace);
}

static void on_ask(void *arg, struct timer *timer)
{
    ask(arg, TIMER_OF(timer, struct seek_wait, ask));
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    finish(arg);
}

void seek_begin(struct server *server, struct seek_wait *wait, int64_t ms)
{
    struct seeks *seeks = server->seeks;
    if (seeks == NULL || seeks->closing || knows_all(server, wait->set)) {
        wait->done(wait);
        return;
    }
    timer_init(&wait->until, &server->timers, on_late, wait);
    timer_after(&wait->until, ms < SEEK_WAIT_MS ? ms : SEEK_WAIT_MS);
    timer_init(&wait->ask, &server->timers, on_ask, server);
    timer_after(&wait->ask, SEEK_SELF_MS);
    LIST_INSERT_HEAD(&seeks->waits, wait, entry);
    if (steps_speaker(server, wait->set) == server->boot.node)
        ask(server, wait);
}

/* ---- the end ---- */

void seek_go_on(struct server *server)
{
    struct seeks *seeks = server->seeks;
    if (seeks == NULL)
        return;
    seeks->closing = true;
    while (!LIST_EMPTY(&seeks->waits))
        finish(LIST_FIRST(&seeks->waits));
}

void seek_close(struct server *server)
{
    struct sought *s;
    seek_go_on(server);
    while (server->seeks != NULL && (s = LIST_FIRST(&server->seeks->sought)) != NULL) {
        LIST_REMOVE(s, entry);
        free(s);
    }
    free(server->seeks);
    server->seeks = NULL;
}
