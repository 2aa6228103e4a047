/* SPDX-License-Identifier: BSD-3-Clause */
/* What all parts of a server ask of it: how it gets on with another one, a word to the launcher,
 * the step's end, and requests that are held back. */
#include "common/server/server.h"

#include "common/server/ending.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <event2/event.h>
#include <sys/socket.h>

bool server_turn(struct server *server, int64_t ms)
{
    ms = shorter(ms, timers_wait(&server->timers));
    const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (ms >= 0)
        event_add(server->timer, &tv);
    else
        event_del(server->timer);
    return event_base_loop(server->base, EVLOOP_ONCE) == 0;
}

bool server_tell_launcher(unsigned char what)
{
    return send(BOOT_FD_CONTROL, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void server_is_to_end(struct server *server)
{
    server->ending = true;
    if (!timer_runs(&server->kill_rest))
        timer_after(&server->kill_rest, SERVER_KILL_MS);
}

void server_say(struct server *server, struct wire_out *message)
{
    view_say(server->view, message->data, message->len);
    wire_out_free(message);
}

void server_end_step(struct server *server, const struct rm_ending *ending, uint32_t teller)
{
    struct rm_ending end = *ending;
    struct wire_out frame = {0};
    uint32_t here = server->boot.node;
    if (server->ending)
        return; /* it is under way: when all ranks abort, say */
    end.told |= teller == ENDING_NOBODY_TELLS || teller == ENDING_RM_TELLS || server->rm == NULL ||
                !server->rm_ops->shows_why;
    if (!end.told)
        teller = here; /* so that no other server does */
    /* a warning is for the admin, and an error for the user, too */
    log_write(!end.told        ? LOG_LEVEL_WARNING
              : teller == here ? LOG_LEVEL_ERROR
                               : LOG_LEVEL_INFO,
              "%s", end.why);
    if (teller == ENDING_RM_TELLS)
        server->ending = true;
    else
        server_is_to_end(server);
    wire_put_u8(&frame, FRAME_ENDING);
    wire_put_u32(&frame, teller);
    wire_put_str(&frame, teller == here ? NULL : end.why);
    server_say(server, &frame);
    if (server->rm != NULL)
        server->rm_ops->abort(server->rm, &end);
}

void server_stand_still(struct server *server)
{
    bool still = server->stopped.n > 0 || server->paused.nparts > 0;
    if (timers_stand(&server->timers, still))
        log_info("deadlines of operations %s", still ? "stand still" : "go on");
}

bool server_has_left(const struct server *server, uint32_t node)
{
    struct rm_peer peer = {0};
    if (server->rm != NULL)
        peer = server->rm_ops->peer(server->rm, node);
    return rm_peer_is_lost(peer.state) || engine_is_lost(server->engine, node);
}

void server_learn(struct server *server, uint32_t node, enum rm_fact fact)
{
    if (server->rm_ops->learn != NULL && server->rm != NULL)
        server->rm_ops->learn(server->rm, node, fact);
    if (fact == RM_LEFT)
        link_forget(server->link, node);
}

uint32_t server_members_here(const struct server *server, const struct procset *set)
{
    const struct boot_node *here = boot_here(&server->boot);
    uint32_t n = 0;
    for (uint32_t k = 0; k < here->ntasks; k++)
        n += procset_has(set, server->boot.nspace, here->ranks[k]);
    return n;
}

int server_node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    const struct server *server = arg;
    return nspace_node(server->nspace, nspace, rank, node);
}

void server_hold(struct server *server, struct handoff_item *item)
{
    struct handoff_item **end = &server->held;
    while (*end != NULL)
        end = &(*end)->next;
    item->next = NULL;
    *end = item;
}

void server_resume(struct server *server)
{
    struct handoff_item *item = server->held;
    server->held = NULL;
    while (item != NULL) {
        struct handoff_item *next = item->next;
        item->run(item);
        item = next;
    }
}
