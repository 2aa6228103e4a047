/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Messages between brokers, and between a broker, its module and its clients. Faults are made here.
 *
 * A request leaves at each broker that it passes where it came from, so that the answer takes the
 * same way back. An answer for a sender that is gone is dropped.
 */
#include "shims/flux/standin/broker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct port *find_port(struct broker *broker, uint64_t id)
{
    struct port *port = broker->ports;
    while (port && port->id != id)
        port = port->next;
    return port;
}

/* The neighbour by which a broker is reached. @return NULL: it is lost */
static struct port *next_hop(struct broker *broker, uint32_t rank)
{
    bool below = tree_below(rank, broker->rank);
    for (struct port *port = broker->ports; port; port = port->next)
        if ((below && port->kind == PORT_CHILD && tree_below(rank, port->rank)) ||
            (!below && port->kind == PORT_PARENT))
            return port;
    return NULL;
}

static void put(struct port *port, const flux_msg_t *msg)
{
    if (standin_msg_put(bufferevent_get_output(port->stream), msg) < 0)
        say_error("out of memory for a message");
}

void overlay_answer(struct broker *broker, const flux_msg_t *request, int errnum, const char *text)
{
    if ((request->head.flags & MSG_NORESPONSE) == 0)
        overlay_route(broker,
                      standin_msg_answer(request, errnum, text, text ? strlen(text) + 1 : 0));
}

static void route_request(struct broker *broker, const flux_msg_t *msg)
{
    uint32_t to = msg->head.nodeid;
    bool any = to == (uint32_t)FLUX_NODEID_ANY;
    struct port *port = NULL;
    if (any || to == broker->rank) {
        if (standin_serves(broker->module, msg)) {
            standin_deliver(broker->module, msg);
            return;
        }
        if (broker->rank == 0) {
            broker->serve(broker, msg);
            return;
        }
        if (!any) {
            overlay_answer(broker, msg, ENOSYS, NULL);
            return;
        }
        to = 0;
    }
    if (to < broker->run->step.nnodes)
        port = next_hop(broker, to);
    if (port)
        put(port, msg);
    else
        overlay_answer(broker, msg, EHOSTUNREACH, NULL);
}

static void route_response(struct broker *broker, flux_msg_t *msg)
{
    struct port *port;
    if (msg->head.nroutes == 0)
        return;
    uint64_t id = msg->head.routes[--msg->head.nroutes];
    if (id == broker->module_id) {
        standin_deliver(broker->module, msg);
    } else {
        port = find_port(broker, id);
        if (port)
            put(port, msg);
    }
}

static void route_event(struct broker *broker, const flux_msg_t *msg)
{
    for (struct port *port = broker->ports; port; port = port->next)
        if (port->kind == PORT_CHILD)
            put(port, msg);
    standin_deliver(broker->module, msg);
}

void overlay_route(struct broker *broker, flux_msg_t *msg)
{
    if (!msg)
        say_error("out of memory for a message");
    else if (msg->head.type == FLUX_MSGTYPE_REQUEST)
        route_request(broker, msg);
    else if (msg->head.type == FLUX_MSGTYPE_RESPONSE)
        route_response(broker, msg);
    else
        route_event(broker, msg);
    flux_msg_destroy(msg);
}

/* ---- what the module sends ---- */

int overlay_send(void *arg, const flux_msg_t *msg)
{
    struct broker *broker = arg;
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    if (waiting)
        waiting->msg = standin_msg_copy(msg);
    if (!waiting || !waiting->msg) {
        free(waiting);
        errno = ENOMEM;
        return -1;
    }
    if (msg->head.type == FLUX_MSGTYPE_REQUEST) {
        waiting->msg->head.nroutes = 1;
        waiting->msg->head.routes[0] = broker->module_id;
    }
    *broker->sent_tail = waiting;
    broker->sent_tail = &waiting->next;
    event_active(broker->drain, EV_TIMEOUT, 0);
    return 0;
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct waiting *waiting = arg;
    (void)fd;
    (void)what;
    overlay_route(waiting->broker, waiting->msg);
    free(waiting);
}

/* @param msg taken over */
static void route_later(struct broker *broker, flux_msg_t *msg, unsigned ms)
{
    struct timeval after = {.tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000};
    struct waiting *waiting = msg ? calloc(1, sizeof(*waiting)) : NULL;
    if (waiting) {
        *waiting = (struct waiting){.broker = broker, .msg = msg};
        if (event_base_once(broker->handle.base, -1, EV_TIMEOUT, on_late, waiting, &after) == 0)
            return;
    }
    free(waiting);
    say_error("a message cannot be made late");
    overlay_route(broker, msg);
}

/* A message as from a user that is not the instance's owner: the module there has to refuse it. */
static void forge(struct broker *broker, const flux_msg_t *msg)
{
    flux_msg_t *copy = standin_msg_copy(msg);
    if (copy) {
        copy->head.userid++;
        copy->head.rolemask = FLUX_ROLE_USER;
        flux_msg_set_noresponse(copy); /* of the two answers the true one counts */
    }
    overlay_route(broker, copy);
}

/* What one sender sends comes once and in its order under Flux, and the module answers a message
 * for all before it. So what comes again or late is as from another sender, and its answer takes
 * the same way. */
static flux_msg_t *of_another(struct broker *broker, flux_msg_t *msg)
{
    if (msg && msg->head.nroutes < ROUTES_MAX) {
        memmove(msg->head.routes + 1, msg->head.routes,
                msg->head.nroutes * sizeof(msg->head.routes[0]));
        msg->head.routes[0] = ++broker->last_id;
        msg->head.nroutes++;
    }
    return msg;
}

/* @param msg of a server for another node's; taken over */
static void route_with_faults(struct broker *broker, flux_msg_t *msg)
{
    struct faults *faults = broker->run->faults;
    uint32_t to = msg->head.nodeid;
    struct verdict verdict = faults_judge(faults, broker->rank, to, ++broker->counts[to]);
    int dies = faults_count(faults);
    struct run_event event = {.what = EVENT_DIE, .value = dies};
    if (dies >= 0 &&
        write(((struct flux_run *)broker->run->state)->events, &event, sizeof(event)) < 0)
        say_error("cannot tell musterrun: %s", strerror(errno));
    if (verdict.refused) {
        overlay_answer(broker, msg, EHOSTUNREACH, NULL);
        flux_msg_destroy(msg);
        return;
    }
    /* Later answers to the same request find no process that waits for them. */
    if (verdict.lost)
        overlay_answer(broker, msg, EHOSTUNREACH, NULL);
    if (verdict.duplicate)
        route_later(broker, of_another(broker, standin_msg_copy(msg)),
                    verdict.late + verdict.duplicate);
    if (verdict.forged)
        forge(broker, msg);
    if (verdict.late)
        route_later(broker, of_another(broker, msg), verdict.late);
    else
        overlay_route(broker, msg);
}

void overlay_drain(evutil_socket_t fd, short what, void *arg)
{
    struct broker *broker = arg;
    (void)fd;
    (void)what;
    while (broker->sent) {
        struct waiting *waiting = broker->sent;
        flux_msg_t *msg = waiting->msg;
        broker->sent = waiting->next;
        if (!broker->sent)
            broker->sent_tail = &broker->sent;
        free(waiting);
        overlay_route(broker, msg);
    }
}

/* ---- neighbours and clients ---- */

static void leave(struct port *port)
{
    struct port **at = &port->broker->ports;
    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    bufferevent_free(port->stream);
    free(port);
}

/* Whatever a client writes, the socket says which user it is. */
static void stamp(const struct port *port, flux_msg_t *msg)
{
    msg->head.flags &= MSG_STREAMING | MSG_NORESPONSE;
    msg->head.nroutes = 0;
    msg->head.userid = port->uid;
    msg->head.rolemask = port->uid == geteuid() ? FLUX_ROLE_OWNER : FLUX_ROLE_USER;
}

/* @param msg taken over */
static void take(struct port *port, flux_msg_t *msg)
{
    if (port->kind == PORT_CLIENT) {
        stamp(port, msg);
        port->asked |= standin_serves(port->broker->module, msg);
    } else {
        msg->head.flags |= MSG_DISTANT;
    }
    if ((port->kind == PORT_CLIENT && msg->head.type != FLUX_MSGTYPE_REQUEST) ||
        (msg->head.type == FLUX_MSGTYPE_REQUEST && msg->head.nroutes == ROUTES_MAX)) {
        flux_msg_destroy(msg);
        return;
    }
    if (msg->head.type == FLUX_MSGTYPE_REQUEST)
        msg->head.routes[msg->head.nroutes++] = port->id;
    if (port->kind == PORT_CLIENT && strcmp(msg->topic, "muster.send") == 0 &&
        msg->head.nodeid < port->broker->run->step.nnodes)
        route_with_faults(port->broker, msg);
    else
        overlay_route(port->broker, msg);
}

/* At the end of a run, though the loop has not come to that yet, parents end as well. */
static void lose_parent(struct broker *broker)
{
    struct pollfd life = {broker->life, POLLIN, 0};
    if (broker->ending || poll(&life, 1, 0) > 0)
        return;
    say_error("the broker has lost its parent in the tree");
    broker->orphaned = true;
    event_base_loopbreak(broker->handle.base);
}

static void on_gone(struct bufferevent *stream, short what, void *arg)
{
    struct port *port = arg;
    struct broker *broker = port->broker;
    flux_msg_t *msg = NULL;
    (void)stream;
    (void)what;
    if (port->kind == PORT_PARENT) {
        lose_parent(broker);
    } else if (port->kind == PORT_CHILD) {
        msg =
            standin_msg_new(FLUX_MSGTYPE_REQUEST, "overlay.lost", &port->rank, sizeof(port->rank));
    } else if (port->asked) {
        msg = flux_request_encode("muster.disconnect", NULL);
        if (msg) {
            stamp(port, msg);
            msg->head.routes[msg->head.nroutes++] = port->id;
        }
    }
    leave(port);
    if (!msg)
        return;
    flux_msg_set_noresponse(msg);
    overlay_route(broker, msg);
}

static void on_bytes(struct bufferevent *stream, void *arg)
{
    struct port *port = arg;
    flux_msg_t *msg;
    while ((msg = standin_msg_take(bufferevent_get_input(stream))))
        take(port, msg);
    if (errno != EAGAIN)
        on_gone(stream, 0, port);
}

struct port *overlay_join(struct broker *broker, int kind, int fd, uint32_t rank)
{
    struct port *port = calloc(1, sizeof(*port));
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (port && evutil_make_socket_nonblocking(fd) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
        port->stream = bufferevent_socket_new(broker->handle.base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!port || !port->stream) {
        free(port);
        close(fd);
        return NULL;
    }
    port->broker = broker;
    port->kind = kind;
    port->id = ++broker->last_id;
    port->rank = rank;
    port->uid = cred.uid;
    port->next = broker->ports;
    broker->ports = port;
    bufferevent_setcb(port->stream, on_bytes, NULL, on_gone, port);
    bufferevent_enable(port->stream, EV_READ | EV_WRITE);
    return port;
}
