/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of a broker's process. Private to broker.c, which starts and ends it, overlay.c, which
 * moves messages, and services.c, what rank 0 serves. @thread its only one
 */
#pragma once

#include "shims/flux/standin/flux.h"
#include "shims/flux/standin/play.h"

#include <event2/bufferevent.h>

/** A neighbour in the tree, or a client. */
struct port {
    struct port *next;
    struct broker *broker;
    enum { PORT_PARENT, PORT_CHILD, PORT_CLIENT } kind;
    uint64_t id;   /**< as routes name it */
    uint32_t rank; /**< CHILD */
    uint32_t uid;  /**< CLIENT */
    bool asked;    /**< CLIENT: something of the module, which is told when it is gone */
    struct bufferevent *stream;
};

/** A message that waits. */
struct waiting {
    struct waiting *next;
    struct broker *broker;
    flux_msg_t *msg;
};

struct broker {
    struct run *run;
    uint32_t rank;
    struct standin_broker handle;
    flux_t *module;
    uint64_t module_id, last_id; /**< of routes: each is given out by one broker once */
    struct port *ports;
    struct waiting *sent, **sent_tail; /**< by the module, to be routed from the loop */
    struct event *drain;
    uint64_t *counts; /**< messages of the module to each rank */
    int listener, life, children;
    pid_t shell;           /**< 0: it has ended */
    bool ending, orphaned; /**< we are to end; our parent is gone */

    /** A request for a service of rank 0: services.c's. */
    void (*serve)(struct broker *broker, const flux_msg_t *msg);

    /* rank 0 */
    struct waiting *watchers; /**< requests groups.get */
    bool *offline;            /**< by rank */
    bool raised;              /**< the job has a fatal exception */
};

/** Sends a message where it belongs. @param msg taken over; NULL: there was no memory for it */
void overlay_route(struct broker *broker, flux_msg_t *msg);

/** Answers a request, unless it wants none. @param text NULL: none */
void overlay_answer(struct broker *broker, const flux_msg_t *request, int errnum, const char *text);

/** What the module sends. @return 0, or -1 with errno */
int overlay_send(void *arg, const flux_msg_t *msg);

/** Routes what the module has sent; an event's callback. */
void overlay_drain(evutil_socket_t fd, short what, void *arg);

/** @param fd taken over @return NULL: out of memory */
struct port *overlay_join(struct broker *broker, int kind, int fd, uint32_t rank);

/** A request for a service of rank 0. */
void services_request(struct broker *broker, const flux_msg_t *msg);
