/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Fails what waits for servers that are gone, and tells of it.
 */
#include "common/server/peers/departed.h"

#include "common/server/steps/steps.h"
#include "common/server/tasks/tasks.h"
#include "common/util/log.h"

#include <stdio.h>
#include <string.h>

enum how {
    DIED,
    TOLD, /* the same, and other servers alone have noticed it */
    LEFT,
    ABSENT, /* left, and a task had failed before PMIx_Init */
};

struct wait {
    uint32_t node;
    bool found;
};

/* Whether a get waits for that server. Queries go on without servers that have left, and
 * muster-status names these. */
static void find_wait(void *arg, const struct ask_view *view)
{
    struct wait *wait = arg;
    wait->found |= view->node == wait->node && view->topic == ASK_MODEX;
}

static void find_missing(void *arg, const struct engine_view *view)
{
    struct wait *wait = arg;
    wait->found |= view->root == wait->node;
    for (uint32_t i = 0; i < view->nmissing; i++)
        wait->found |= view->missing[i] == wait->node;
}

static void gone(struct server *server, uint32_t node, enum how how, const char *why)
{
    bool own = node < server->boot.nnodes;
    struct wait wait = {.node = node};
    engine_walk(server->engine, find_missing, &wait);
    asks_walk(server->asks, find_wait, &wait);
    bool news = steps_lost(server, node);
    char text[sizeof server->lost];
    snprintf(text, sizeof text, "muster-server on %s is lost: %s",
             nspace_name(server->nspace, node), why);
    /* Where only an event was for that node, no task misses anything. */
    if (news && !server->ending)
        log_write((how == DIED && own) || wait.found ? LOG_LEVEL_CAUSE
                  : how == LEFT                      ? LOG_LEVEL_DEBUG
                                                     : LOG_LEVEL_INFO,
                  "%s", text);
    /* The word of its tasks may have come first. */
    if (own && how != LEFT && (server->loss == LOSS_NONE || server->lost_on == node)) {
        server->lost_on = node;
        server->loss = how == ABSENT && !wait.found ? LOSS_UNSAID : LOSS_SERVER;
        memcpy(server->lost, text, sizeof text);
    }
    bool died = how == DIED || how == TOLD;
    if (died)
        engine_lost(server->engine, node);
    else
        engine_left(server->engine, node);
    if (own && !died)
        server_learn(server, node, RM_LEFT); /* what was to let it go is there by now */
    asks_lost(server->asks, node);
    /* Of one that ended in order, the tasks that were lost have been told. */
    if (!server->ending && news && died)
        server->hooks->server_lost(server, node, why);
    steps_tidy(server, node);
}

/* All that it has sent has been taken: see server_leave(). */
static void leave(struct server *server, uint32_t node, enum how how, const char *why)
{
    ranges_put(&server->in_order, node);
    if (!engine_is_lost(server->engine, node)) /* it may be told of by several ways */
        gone(server, node, how, why);
}

void departed_lost(struct server *server, uint32_t node, const char *why)
{
    bool own = node < server->boot.nnodes;
    if (own && engine_is_lost(server->engine, node))
        return; /* it has said so itself */
    struct rm_peer peer = {0};
    if (own)
        peer = server->rm_ops->peer(server->rm, node);
    if (peer.state == RM_PEER_LEFT)
        leave(server, node, LEFT, why != NULL ? why : "it has left, for its tasks have ended");
    else
        gone(server, node, why != NULL ? DIED : TOLD,
             why != NULL ? why : "another server cannot reach it");
    if (peer.state == RM_PEER_DIED)
        tasks_host_died(server);
}

void departed_left(struct server *server, uint32_t node, bool early, const char *why)
{
    leave(server, node, early ? ABSENT : LEFT, why);
}
