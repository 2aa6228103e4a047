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
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"
#include "common/transport/wire.h"
#include "common/util/timers.h"

#include <sys/queue.h>

enum { SPREAD_WAIT_MS = 10000 };

struct spread_env {
    void *arg;             /**< handed to every function below */
    uint32_t self;         /**< of the own step */
    struct timers *timers; /**< borrowed */
    /** Says a FRAME_SPREAD to all servers of the step, this one too; takes the bytes out of @p
     * word. */
    void (*say)(void *arg, struct wire_out *word);
    /** @return the registration of another step's namespace, borrowed; NULL: it is none, or not
     * known here */
    const void *(*registration)(void *arg, const char *name, size_t *len);
    /** Makes the registration of namespace @p name known here, to libpmix too. It logs why it
     * cannot. */
    void (*learn)(void *arg, const char *name, const void *bytes, size_t len);
    /** @return the first server of the own step that hosts one of @p set and is not lost */
    uint32_t (*speaker)(void *arg, const struct procset *set);
};

/** Waits until all servers of the step know the namespaces of @p set. */
struct spread_wait {
    LIST_ENTRY(spread_wait) entry;          /**< spread.c's */
    const struct procset *set;              /**< stays put until done() */
    struct timer until;                     /**< spread.c's */
    void (*done)(struct spread_wait *wait); /**< called once; may free it */
};

struct spreads;

/** @param env copied */
struct spreads *spread_new(const struct spread_env *env);

/** Tells all servers of the step what they do not all know of the namespaces of @p set, if it is
 * our turn. */
void spread_speak(struct spreads *spreads, const struct procset *set);

/** Calls done() once all know; perhaps before this returns. @param wait set and done are filled in;
 * the caller's, until done() */
void spread_await(struct spreads *spreads, struct spread_wait *wait);

/** Takes the body of a FRAME_SPREAD that server @p from of the own step, this one perhaps, has
 * said.
 * @param word how many words have been heard here with this one */
void spread_hear(struct spreads *spreads, uint32_t from, uint64_t word, const void *body,
                 size_t len);

/** All servers of the step have heard the first @p words words. */
void spread_settled(struct spreads *spreads, uint64_t words);

/** A server of the own step is lost, or has left. */
void spread_lost(struct spreads *spreads);

/** A namespace was forgotten here, and has no registration any more: calls that wait for it go on,
 * and the next group with members in it is told of anew. NULL is fine. */
void spread_forget(struct spreads *spreads, const char *name);

/** Lets all that waits go on. NULL is fine. */
void spread_close(struct spreads *spreads);

/** Frees all; closed before. NULL is fine. */
void spread_free(struct spreads *spreads);
