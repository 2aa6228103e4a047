/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The way from libpmix's thread to the loop. libpmix gives an upcall no pointer of ours, hence the
 * one static pointer that upcall_serve() sets.
 * @thread any, unless said
 */
#pragma once

#include "common/handoff/handoff.h"
#include "common/notify/answer.h"

struct server;
struct task;

/** A request on its way from an upcall to the loop. Stands first in every kind of request. */
struct request {
    struct handoff_item item;
    struct answer answer;
};

/** Names the server that upcalls post to. @thread the loop's, before libpmix starts */
void upcall_serve(struct server *server);

/** The server that upcalls post to. @thread PMIx's */
struct server *upcall_server(void);

/** Posts an item to the loop. @return PMIX_SUCCESS, which an upcall returns. */
pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run);

/** Has libpmix's own thread call @p then: for callbacks of libpmix that send to a client, which no
 * other thread may do. @thread the loop's */
void upcall_call_there(pmix_op_cbfunc_t then, void *arg);

/** @return the task that @p proc is, or NULL: it is of another node or step, or a tool. */
struct task *upcall_task(const pmix_proc_t *proc);
