/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The host's side of libpmix's server: the pmix_server_module_t.
 *
 * An upcall runs on libpmix's thread. It validates, copies and posts; the posted request does the
 * rest on the loop. libpmix gives an upcall no pointer of ours, hence the one static pointer that
 * upcall_open() sets.
 */
#ifndef MUSTER_UPCALL_UPCALL_H
#define MUSTER_UPCALL_UPCALL_H

#include "common/notify/answer.h"
#include "common/server/server.h"

/** A request on its way from an upcall to the loop. Stands first in every kind of request. */
struct request {
    struct handoff_item item;
    struct answer answer;
};

/** Starts libpmix's server with our module. @return 0, or -1 with the reason in @p err.
 * @thread the loop's, before it runs; blocks until libpmix is up */
int upcall_open(struct server *server, struct err *err);

/** Ends libpmix's server; no upcall runs any more once this returns.
 * @thread the loop's, after it ran */
void upcall_close(void);

/** The server that upcalls post to. @thread PMIx's */
struct server *upcall_server(void);

/** Posts a request. @return PMIX_SUCCESS, which the upcall returns. @thread PMIx's */
pmix_status_t upcall_post(struct request *request, void (*run)(struct handoff_item *item));

/** @return the task of this node that a process is, or NULL: of another node or step, or a tool.
 * @thread any */
struct task *upcall_task(const pmix_proc_t *proc);

/* Clients that are lost: forget.c. */

/** Before libpmix is started: it is to tell of closed connections at once, not after a second. */
void upcall_watch_soon(const struct server *server);
/** Has libpmix tell of them, and of tools that are gone. @return 0, or -1 with the reason in @p
 * err. @thread the loop's; blocks until libpmix has it */
int upcall_watch_clients(struct err *err);
/** A client has connected or finalized. @thread PMIx's */
void upcall_count_client(const pmix_proc_t *proc, bool connected);
/** The launcher has told that a task has ended. @thread the loop's */
void upcall_client_ended(struct server *server, uint32_t slot);
/** An operation waits for @p members, of which some tasks of this node have ended in order. Has
 * libpmix 7 and newer forget those, or it would not hand up calls of other tasks here that come
 * later. @thread the loop's */
void upcall_forget_ended(struct server *server, const struct procset *members);
/** @thread the loop's, after libpmix ended */
void upcall_free_kept(struct server *server);

/* The upcalls that do something; the rest of the module is in module.c. @thread PMIx's */

pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                           void *cbdata);
pmix_status_t upcall_group(pmix_group_operation_t op, char *group, const pmix_proc_t procs[],
                           size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                           pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                             pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                            size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                           pmix_info_cbfunc_t cbfunc, void *cbdata);
void upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                void *cbdata);
/** Where BUILT_WITH(LOG2). */
pmix_status_t upcall_log2(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                          const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                          void *cbdata);

/** To the other nodes: common/notify/event.h. */
pmix_status_t upcall_notify_event(pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                     size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t cbfunc,
                                       void *cbdata);
/** PMIx_Spawn: see spawn.h. */
pmix_status_t upcall_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[], size_t ninfo,
                           const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc,
                           void *cbdata);
/** PMIx_IOF_pull and PMIx_IOF_deregister, answered at once: see forward.h. */
pmix_status_t upcall_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc,
                              void *cbdata);
/** Lets a tool of the job's user in, and names it. */
pmix_status_t upcall_tool_connected2(pmix_info_t *info, size_t ninfo,
                                     pmix_tool_connection_cbfunc_t cbfunc, void *cbdata);
/** The old form. */
void upcall_tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t cbfunc,
                           void *cbdata);
/** Gives a context id to PMIx_Group_invite; refuses the rest. */
pmix_status_t upcall_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                                 size_t ntargets, const pmix_info_t info[], size_t ninfo,
                                 pmix_info_cbfunc_t cbfunc, void *cbdata);

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
/** Serves ASK_QUERY. */
void upcall_serve_query(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

#endif
