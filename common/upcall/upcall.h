/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The host's side of libpmix's server: the pmix_server_module_t.
 *
 * An upcall runs on libpmix's thread. It validates, copies and posts (post.h); the posted request
 * does the rest on the loop.
 * @thread PMIx's, unless said
 */
#pragma once

#include "common/server/process/conns.h"
#include "common/server/server.h"
#include "common/upcall/post.h"

#include <pmix_server.h>

/** Starts libpmix's server with our module. @return 0, or -1 with the reason in @p err.
 * @thread the loop's, before it runs; blocks until libpmix is up */
int upcall_open(struct server *server, struct err *err);

/** Ends libpmix's server; no upcall runs any more once this returns.
 * @thread the loop's, after it ran */
void upcall_close(void);

/** A connection of task @p slot has ended. */
void upcall_connection_ended(uint32_t slot, enum conns_end end);

/* Clients that are lost: forget.c. */

/** Has libpmix tell of closed connections at once, not after a second.
 * @thread the loop's, before libpmix is started */
void upcall_watch_soon(const struct server *server);
/** Registers with libpmix for clients that are lost, and tools that are gone. @return 0, or -1 with
 * the reason in @p err. @thread the loop's; blocks until libpmix has registered it */
int upcall_watch_clients(struct err *err);
/** Registers with libpmix for the alerts of its monitors, which go to the other nodes. @return 0,
 * or -1 with the reason in @p err. @thread the loop's; blocks until libpmix has registered it */
int upcall_watch_alerts(struct err *err);
/** Notes that a client has connected or finalized. */
void upcall_count_client(const pmix_proc_t *proc, bool connected);
/** @return whether @p key of @p proc was not told to libpmix (keys_are_brief()). */
bool upcall_withheld(const pmix_proc_t *proc, const char *key);
/** Has libpmix keep a little less of each process of a wide step.
 * @thread the loop's, before libpmix is started */
void upcall_save_memory(const struct server *server);
/** Has libpmix store all such keys of @p proc, and answers a direct modex. */
pmix_status_t upcall_give(const pmix_proc_t *proc, pmix_modex_cbfunc_t cbfunc, void *cbdata);

/** A client has come: what libpmix frees once clients have what they ask for goes back to the
 * system. @thread the loop's */
void upcall_settle(struct server *server);
/** Takes the launcher's word that a task has ended. @thread the loop's */
void upcall_client_ended(struct server *server, uint32_t slot);
/** An operation waits for @p members, of which some tasks of this node have ended in order. Has
 * libpmix 7 and newer forget those, or it would not hand up calls of other tasks here that come
 * later. @thread the loop's */
void upcall_forget_ended(struct server *server, const struct procset *members);
/** Frees what is remembered of clients. @thread the loop's, after libpmix ended */
void upcall_free_kept(struct server *server);

/** Declares an upcall; its type, and what it takes and returns, are pmix_server.h's. */
#define UPCALL(name, type) __typeof__(*(pmix_server_##type##_fn_t)0) name

/* The upcalls that do something; refused.h has the others. @thread PMIx's */

/** Up to libpmix 3, and where a library still calls the old form. */
UPCALL(upcall_client_connected, client_connected);
UPCALL(upcall_client_connected2, client_connected2);
UPCALL(upcall_client_finalized, client_finalized);
/** Ends the step; PMIX_ERR_PARAM_VALUE_NOT_SUPPORTED for a part of it. */
UPCALL(upcall_abort, abort);
UPCALL(upcall_fence, fencenb);
UPCALL(upcall_group, grp);
UPCALL(upcall_connect, connect);
UPCALL(upcall_disconnect, disconnect);
UPCALL(upcall_direct_modex, dmodex_req);
UPCALL(upcall_publish, publish);
UPCALL(upcall_lookup, lookup);
UPCALL(upcall_unpublish, unpublish);
UPCALL(upcall_query, query);
UPCALL(upcall_log, log);
/** Where BUILT_WITH(LOG2). */
pmix_status_t upcall_log2(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                          const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                          void *cbdata);
/** To the other nodes: common/notify/event.h. */
UPCALL(upcall_notify_event, notify_event);
UPCALL(upcall_register_events, register_events);
UPCALL(upcall_deregister_events, deregister_events);
/** PMIx_Spawn: see spawn.h. */
UPCALL(upcall_spawn, spawn);
/** PMIx_IOF_pull and PMIx_IOF_deregister, answered at once: see forward.h. */
UPCALL(upcall_iof_pull, iof);
/** PMIx_IOF_push: see push.h. */
UPCALL(upcall_push_stdin, stdin);
/** Lets a tool of the job's user in, and names it. Where BUILT_WITH(LOG2). */
pmix_status_t upcall_tool_connected2(pmix_info_t *info, size_t ninfo,
                                     pmix_tool_connection_cbfunc_t cbfunc, void *cbdata);
/** The old form. */
UPCALL(upcall_tool_connected, tool_connection);
/** PMIx_Allocation_request. */
UPCALL(upcall_allocate, alloc);
/** By munge. */
UPCALL(upcall_get_credential, get_cred);
UPCALL(upcall_validate_credential, validate_cred);
/** Calls that wait for munged are dropped. @thread the loop's, after libpmix ended */
void upcall_close_credentials(struct server *server);
/** Signals, checkpoints and sets of processes of the step, and a context id for PMIx_Group_invite.
 */
UPCALL(upcall_job_control, job_control);
/** What other nodes use: see monitor.c. libpmix has the other monitors. */
UPCALL(upcall_monitor, monitor);

/* What other servers ask; @thread the loop's */

/** Serves ASK_MODEX: see ask.h. */
void upcall_serve_modex(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);
/** Serves the same question of our own. */
void upcall_serve_own(struct server *server, const void *body, size_t len, ask_done_fn *done,
                      void *arg);
/** A process of this node will put nothing any more: servers that ask for its data get it,
 * or PMIX_ERR_NOT_FOUND. @thread the loop's */
void upcall_task_gone(struct server *server, uint32_t rank);
/** Frees the questions that libpmix has never answered. @thread the loop's, after libpmix ended */
void upcall_free_served(struct server *server);
/** What an ASK_MODEX asks for: "direct modex of 4711.0 rank 5, key "grid": no answer of c07".
 * @param node the name of the one asked */
void upcall_describe_modex(const char *node, const void *body, size_t len, char *buf, size_t cap);
/** Answers calls of PMIx_Spawn that wait. @thread the loop's, when the server leaves */
void upcall_answer_spawns(struct server *server);
/** Frees what is left of them. @thread the loop's, after libpmix ended */
void upcall_free_spawns(struct server *server);
/** The same two of calls of PMIx_Allocation_request. */
void upcall_answer_allocations(struct server *server);
void upcall_free_allocations(struct server *server);
/** Answers ASK_QUERY: u8 parts, then, of a question to all, ranges of the servers that are meant:
 * see server_hooks. */
int32_t upcall_answer_query(struct server *server, const void *body, size_t len,
                            struct wire_out *out);
/** Serves ASK_USAGE: see monitor.c; @p arg is the server. */
void upcall_serve_usage(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);
/** Answers ASK_CONTROL: see control.c. A question that comes again gets the same answer, and
 * nothing is done again. @return PMIX_SUCCESS; PMIX_ERR_NOT_FOUND: no such request waits here; or
 * why it cannot be */
int32_t upcall_answer_control(struct server *server, const void *body, size_t len);
/** Frees what is remembered of these. @thread the loop's */
void upcall_free_control(struct server *server);
