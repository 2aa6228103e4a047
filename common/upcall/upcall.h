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

/* The upcalls that do something; the rest of the module is in module.c. @thread PMIx's */

pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                           void *cbdata);
pmix_status_t upcall_group(pmix_group_operation_t op, char *group, const pmix_proc_t procs[],
                           size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                           pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                           pmix_info_cbfunc_t cbfunc, void *cbdata);
void upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                void *cbdata);
/** From libpmix 6 on. */
pmix_status_t upcall_log2(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                          const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                          void *cbdata);

/* What other servers ask; @thread the loop's */

/** Serves ASK_MODEX: see ask.h. */
void upcall_serve_modex(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);
/** What an ASK_MODEX asks for: "direct modex of 4711.0 rank 5: no answer of c07". @param node
 * the name of the one asked */
void upcall_describe_modex(const char *node, const void *body, size_t len, char *buf, size_t cap);
/** Serves ASK_QUERY. */
void upcall_serve_query(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

#endif
