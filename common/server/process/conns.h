/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which of a rank's connections is the task's own, and what has become of it.
 *
 * A program that a task starts (system(), a subprocess) inherits PMIX_NAMESPACE and PMIX_RANK. If
 * it uses PMIx, it connects as the same rank. libpmix allows that. But it tells us only the rank
 * that has connected or finalized, and it takes the rank itself for lost when such a connection
 * closes.
 *
 * The *own* connection of a task is the one that comes while the task has none. A connection that
 * comes while the own one is open is *beside* it. With several open it is not known at once which
 * one has finalized: that one closes next. The task has not, if it is gone by then, because a
 * process that finalizes waits for the answer.
 *
 * When a connection beside closes without PMIx_Finalize, libpmix takes the rank out of the
 * operations under way (releases before 7 do so after PMIx_Finalize, too). So libpmix is not told:
 * we see the end before libpmix does, and let it take the connection for open. What libpmix still
 * has to send there is not sent, since it would learn of the end by that. Only so many are kept
 * open. After that libpmix is told.
 *
 * Up to 6.1 libpmix ends an operation of one node once for each participant whose end it sees in
 * one turn of its loop, and uses what it has freed. An end is followed by what libpmix does in the
 * same turn, behind what waited there. So only one end is let through until a mark that we put
 * behind that has come round. The events of the others come again by themselves.
 *
 * We know the connection's descriptor, as libpmix calls event_assign() for it after the upcall
 * client_connected, in the same thread. It calls shutdown() when it closes a connection.
 * @thread PMIx's, unless said
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <event2/event.h>

/** What a connection's end means. */
enum conns_end {
    CONNS_OWN_FINALIZED,    /**< the task has called PMIx_Finalize */
    CONNS_OWN_CUT,          /**< its connection has closed without that */
    CONNS_BESIDE_FINALIZED, /**< another process of the rank has called PMIx_Finalize, and left */
    CONNS_BESIDE_CUT,       /**< it has left without that */
};

/** @param ntasks of this node @param hold of how many ends beside libpmix is not told
 * @param one_by_one libpmix sees no second end before it has done all that the first one begins
 * @param on_end
 * @thread before libpmix listens */
void conns_open(uint32_t ntasks, unsigned hold, bool one_by_one,
                void (*on_end)(uint32_t slot, enum conns_end end));
/** @thread after libpmix ended */
void conns_close(void);

/** The rank of task @p slot has connected. @return whether that is the task's own connection */
bool conns_connected(uint32_t slot);

/** One of the rank's processes has called PMIx_Finalize. @param pid the task's, or 0: not known
 * @return whether it is the task; else its end says which one it is */
bool conns_finalized(uint32_t slot, pid_t pid);

/** libpmix assigns an event, which may be that of a new connection: then another callback may take
 * the place of libpmix's. @thread any */
void conns_assigned(struct event *ev, int fd, short events, event_callback_fn *callback,
                    void **arg);
