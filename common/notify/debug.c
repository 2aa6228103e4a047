/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells tools and the spawner that processes wait for a debugger. */
#include "common/notify/debug.h"

#include "common/notify/event.h"
#include "common/nspace/infos.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct debug_tool {
    LIST_ENTRY(debug_tool) entry;
    pmix_proc_t proc;
};

/* No PMIX_EVENT_DO_NOT_CACHE: the process may register later. */
static void give(const pmix_proc_t *target, const char *nspace, const char *where)
{
    struct infos list = {0};
    pmix_proc_t source;
    PMIX_LOAD_PROCID(&source, nspace, 0);
    infos_bool(&list, PMIX_EVENT_NON_DEFAULT, true);
    infos_put(&list, PMIX_EVENT_CUSTOM_RANGE, target, PMIX_PROC);
    infos_str(&list, PMIX_NSPACE, nspace);
    infos_str(&list, PMIX_BREAKPOINT, where);
    notification_give(PMIX_READY_FOR_DEBUG, &source, PMIX_RANGE_CUSTOM, list.info, list.n);
}

void debug_ready(struct server *server)
{
    struct debug_tool *tool;
    LIST_FOREACH (tool, &server->tools, entry)
        give(&tool->proc, server->boot.nspace, server->stopped.where);
}

void debug_tool_came(struct server *server, const pmix_proc_t *proc)
{
    struct debug_tool *tool = calloc(1, sizeof *tool);
    tool->proc = *proc;
    LIST_INSERT_HEAD(&server->tools, tool, entry);
    if (server->stopped.ready)
        give(proc, server->boot.nspace, server->stopped.where);
}

void debug_tool_gone(struct server *server, const char *nspace, uint32_t rank)
{
    struct debug_tool *tool, *next;
    for (tool = LIST_FIRST(&server->tools); tool != NULL; tool = next) {
        next = LIST_NEXT(tool, entry);
        if (tool->proc.rank != rank || strcmp(tool->proc.nspace, nspace) != 0)
            continue;
        LIST_REMOVE(tool, entry);
        free(tool);
    }
}

/* ---- the spawner ---- */

struct wait {
    struct server *server;
    pmix_proc_t spawner;
    pmix_nspace_t child;
    uint32_t node; /* of the child's, the next one to be asked */
};

static void ask_next(struct wait *wait);

static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct wait *wait = arg;
    struct wire_in in;
    char where[STOPPED_WHERE_SIZE];
    if (status == PMIX_ERR_LOST_CONNECTION) {
        ask_next(wait);
        return;
    }
    if (status == 0) {
        wire_in_init(&in, data, len);
        uint32_t n = wire_get_u32(&in);
        wire_get_str(&in, where, sizeof where);
        log_mask(where);
        if (!in.bad) {
            log_info("%u processes of %s wait for a debugger, at %s", n, wait->child, where);
            give(&wait->spawner, wait->child, where);
        }
    }
    free(wait);
}

/* Each server of the child knows it. One that is lost has taken the question with it. */
static void ask_next(struct wait *wait)
{
    struct asks *asks = wait->server->asks;
    const struct nspace *child = nspace_find(wait->server->nspace, wait->child);
    while (child != NULL && wait->node < child->nnodes &&
           asks_are_lost(asks, child->base + wait->node))
        wait->node++;
    if (child == NULL || wait->node >= child->nnodes) {
        free(wait);
        return;
    }
    asks_send(asks, child->base + wait->node++, ASK_READY, NULL, 0, 0, on_answer, wait);
}

void debug_await(struct server *server, const pmix_proc_t *spawner, const char *child)
{
    struct wait *wait = calloc(1, sizeof *wait);
    wait->server = server;
    wait->spawner = *spawner;
    PMIX_LOAD_NSPACE(wait->child, child);
    ask_next(wait);
}

void debug_nspace_ended(struct server *server, const char *nspace)
{
    char target[STOP_NSPACE_SIZE];
    struct infos list = {0};
    pmix_proc_t source, all;
    if (!stop_target(&server->boot, target, &(uint32_t){0}) || strcmp(target, nspace) != 0)
        return;
    PMIX_LOAD_PROCID(&source, nspace, 0);
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    infos_put(&list, PMIX_EVENT_AFFECTED_PROC, &all, PMIX_PROC);
    infos_bool(&list, PMIX_EVENT_NON_DEFAULT, true);
    notification_give(PMIX_EVENT_JOB_END, &source, PMIX_RANGE_LOCAL, list.info, list.n);
}

void debug_close(struct server *server)
{
    struct debug_tool *tool;
    while ((tool = LIST_FIRST(&server->tools)) != NULL) {
        LIST_REMOVE(tool, entry);
        free(tool);
    }
}
