/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Namespaces of other steps that every server of the own step has to know.
 *
 * libpmix hands up no operation that names a namespace of which it has not heard. The members of a
 * group over several steps learn the other namespaces with its result. But the processes that they
 * talk to may then make a group over both steps, on nodes that host no member of the first one. So
 * before a construct is answered, one of the servers here that have its result, the *speaker*, says
 * the registrations to all servers of the step (view/view.h). Each makes them known, to libpmix
 * too, when it hears that; and when all have heard it, the construct goes on.
 *
 * When the speaker is lost before that, the next server that has the result speaks. A construct
 * waits for SPREAD_WAIT_MS and no longer, as a server may hang.
 *
 * Where the session has no other step, server::spreads is NULL, and all goes on at once.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"
#include "common/util/timers.h"

#include <sys/queue.h>

enum { SPREAD_WAIT_MS = 10000 };

struct server;

/** Waits until all servers of the step know the namespaces of @p set. */
struct spread_wait {
    LIST_ENTRY(spread_wait) entry;          /**< spread.c's */
    const struct procset *set;              /**< stays put until done() */
    struct timer until;                     /**< spread.c's */
    void (*done)(struct spread_wait *wait); /**< called once; may free it */
};

/** Sets server::spreads. */
void spread_open(struct server *server);

/** Tells all servers of the step what they do not all know of the namespaces of @p set, if it is
 * our turn: an operation begins that has participants there. */
void spread_speak(struct server *server, const struct procset *set);

/** Calls done() once all know, as far as they answer; perhaps before this returns. @param wait set
 * and done are filled in; the caller's, until done() */
void spread_await(struct server *server, struct spread_wait *wait);

/** Takes the body of a FRAME_SPREAD that server @p from of the own step, this one perhaps, has
 * said. */
void spread_hear(struct server *server, uint32_t from, const void *body, size_t len);

/** All servers of the step have heard more words (view_settled()). */
void spread_settled(struct server *server);

/** A server of the own step is lost, or has left. */
void spread_lost(struct server *server);

/** A namespace was forgotten here, and has no registration any more: calls that wait for it go on,
 * and the next group with members in it is told of anew. */
void spread_forget(struct server *server, const char *name);

/** Lets all that waits go on, and what comes later. */
void spread_go_on(struct server *server);

/** The same, and frees server::spreads. */
void spread_close(struct server *server);
