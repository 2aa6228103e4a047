/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Process_monitor of what processes, nodes, disks and networks use, on other nodes. libpmix 6
 * and newer reads that on the caller's node itself, hands the call up when it names others, too,
 * and joins what the host answers to its own. Here the servers that are meant are asked
 * (ASK_USAGE), and each asks its own libpmix:
 *
 *     block: monitor and directives, packed by libpmix (nspace/infos.h)
 *     answer: what it uses, packed the same way
 *
 * libpmix reads that in /proc, and of each process all of its memory map, which takes seconds where
 * that is large. So a server does not wait for it: libpmix calls back.
 */
#include "common/notify/refuse.h"
#include "common/nspace/infos.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#ifdef PMIX_MONITOR_PROC_RESOURCE_USAGE

struct usage {
    struct request request;
    pmix_byte_object_t asked; /* owned */
    struct ranges nodes;      /* that are meant */
    struct infos found;
    uint32_t open; /* servers that have not answered, and 1 until all are asked */
    pmix_status_t status;
};

/* A server that is asked. */
struct of_server {
    struct usage *usage;
    uint32_t node;
};

static void usage_free(struct usage *usage)
{
    infos_free(&usage->found);
    ranges_free(&usage->nodes);
    free(usage->asked.bytes);
    free(usage);
}

static bool is_usage(const pmix_info_t *monitor)
{
    return PMIX_CHECK_KEY(monitor, PMIX_MONITOR_PROC_RESOURCE_USAGE) ||
           PMIX_CHECK_KEY(monitor, PMIX_MONITOR_NODE_RESOURCE_USAGE) ||
           PMIX_CHECK_KEY(monitor, PMIX_MONITOR_DISK_RESOURCE_USAGE) ||
           PMIX_CHECK_KEY(monitor, PMIX_MONITOR_NET_RESOURCE_USAGE);
}

/* ---- a server that is asked ---- */

struct reading {
    struct handoff_item item;
    uint32_t from;
    uint64_t id; /* of the question */
    struct infos asked;
    pmix_status_t status;
    pmix_byte_object_t found; /* owned */
};

/* @thread the loop's */
static void answer(struct handoff_item *item)
{
    struct reading *r = (struct reading *)item;
    asks_reply(upcall_server()->asks, r->from, r->id, r->status, r->found.bytes, r->found.size);
    infos_free(&r->asked);
    free(r->found.bytes);
    free(r);
}

/* @thread PMIx's */
static void on_read(pmix_status_t status, pmix_info_t *info, size_t n, void *arg,
                    pmix_release_cbfunc_t release, void *release_arg)
{
    struct reading *r = arg;
    r->status = status == PMIX_SUCCESS ? infos_pack(info, n, &r->found) : status;
    if (release != NULL)
        release(release_arg);
    upcall_post(&r->item, answer);
}

void upcall_serve_usage(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct reading *r = calloc(1, sizeof *r);
    struct wire_in in;
    size_t size;
    (void)arg;
    r->from = from;
    r->id = id;
    wire_in_init(&in, body, len);
    const void *packed = wire_get_block(&in, &size);
    r->status = wire_end(&in) ? infos_unpack(&r->asked, packed, size) : PMIX_ERR_UNPACK_FAILURE;
    if (r->status == PMIX_SUCCESS && (r->asked.n == 0 || !is_usage(&r->asked.info[0])))
        r->status = refused(PMIX_ERR_BAD_PARAM, "what a node uses is asked for by something else");
    if (r->status == PMIX_SUCCESS) {
        infos_bool(&r->asked, PMIX_MONITOR_LOCAL_ONLY, true); /* the last one counts */
        r->status = PMIx_Process_monitor_nb(&r->asked.info[0], PMIX_SUCCESS, &r->asked.info[1],
                                            r->asked.n - 1, on_read, r);
        if (r->status == PMIX_SUCCESS)
            return;
    }
    answer(&r->item);
}

/* ---- the caller's server ---- */

/* All three: @thread PMIx's; what they look at does not change. */
static void mean_proc(struct ranges *nodes, const struct server *server, const pmix_proc_t *proc)
{
    const struct boot *boot = &server->boot;
    if (strcmp(proc->nspace, boot->nspace) != 0)
        return;
    if (proc->rank < boot->ntasks)
        ranges_put(nodes, server->nspace->node_of[proc->rank]);
    for (uint32_t node = 0; proc->rank == PMIX_RANK_WILDCARD && node < boot->nnodes; node++)
        if (boot->nodes[node].ntasks > 0)
            ranges_put(nodes, node);
}

/* @param host or NULL @param id or UINT32_MAX */
static void mean_node(struct ranges *nodes, const struct server *server, const char *host,
                      uint32_t id)
{
    if (id < server->boot.nnodes)
        ranges_put(nodes, id);
    for (uint32_t node = 0; host != NULL && node < server->boot.nnodes; node++)
        if (strcmp(server->boot.nodes[node].name, host) == 0)
            ranges_put(nodes, node);
}

/* Adds the nodes that a directive means: an array of none means all. */
static void mean(struct ranges *nodes, const struct server *server, const pmix_info_t *info)
{
    const pmix_data_array_t *array =
        info->value.type == PMIX_DATA_ARRAY ? info->value.data.darray : NULL;
    size_t n = array != NULL && array->array != NULL ? array->size : 0;
    bool procs = PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PROCS),
         names = PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODES),
         ids = PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODEIDS),
         pids = PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PIDS);
    if (n == 0 && (procs || names || ids || pids))
        ranges_add(nodes, 0, server->boot.nnodes - 1);
    for (size_t i = 0; i < n; i++) {
        if (procs && array->type == PMIX_PROC)
            mean_proc(nodes, server, (pmix_proc_t *)array->array + i);
        else if (names && array->type == PMIX_STRING)
            mean_node(nodes, server, ((char **)array->array)[i], UINT32_MAX);
        else if (ids && array->type == PMIX_UINT32)
            mean_node(nodes, server, NULL, ((uint32_t *)array->array)[i]);
        else if (pids && array->type == PMIX_NODE_PID)
            mean_node(nodes, server, ((pmix_node_pid_t *)array->array)[i].hostname,
                      ((pmix_node_pid_t *)array->array)[i].nodeid);
    }
}

static void let_go(struct usage *usage)
{
    if (--usage->open > 0)
        return;
    answer_infos(&usage->request.answer, usage->status, usage->found.info, usage->found.n);
    usage->found = (struct infos){0}; /* the answer has it */
    usage_free(usage);
}

/* ask_done_fn */
static void on_server(void *arg, int32_t status, const void *data, size_t len)
{
    struct of_server *of = arg;
    struct usage *usage = of->usage;
    if (status == PMIX_SUCCESS)
        status = infos_unpack(&usage->found, data, len);
    if (status != PMIX_SUCCESS) {
        log_info("PMIx_Process_monitor: %s does not say what it uses: %s",
                 nspace_name(upcall_server()->nspace, of->node), PMIx_Error_string(status));
        usage->status = PMIX_ERR_PARTIAL_SUCCESS;
    }
    free(of);
    let_go(usage);
}

/* libpmix has read by itself what this node uses. @thread the loop's */
static void run(struct handoff_item *item)
{
    struct usage *usage = (struct usage *)item;
    struct server *server = upcall_server();
    struct wire_out body = {0};
    wire_put_block(&body, usage->asked.bytes, usage->asked.size);
    usage->open = 1;
    for (struct ranges_at at = {0}; ranges_next(&usage->nodes, &at);) {
        if (at.number == server->boot.node)
            continue;
        struct of_server *of = calloc(1, sizeof *of);
        *of = (struct of_server){usage, at.number};
        usage->open++;
        asks_send(server->asks, at.number, ASK_USAGE, body.data, body.len,
                  (uint32_t)server->conf.timeouts.query, on_server, of);
    }
    wire_out_free(&body);
    let_go(usage);
}

pmix_status_t upcall_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                             pmix_status_t error, const pmix_info_t info[], size_t ninfo,
                             pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    if (!is_usage(monitor))
        return refused_monitor(requestor, monitor, error, info, ninfo, cbfunc, cbdata);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_MONITOR_RESOURCE_RATE))
            return refused(PMIX_ERR_NOT_SUPPORTED,
                           "PMIx_Process_monitor: PMIX_MONITOR_RESOURCE_RATE is served for the "
                           "caller's node alone; ask each time");
    struct usage *usage = calloc(1, sizeof *usage);
    pmix_info_t *all = malloc((ninfo + 1) * sizeof *all); /* their values are the call's */
    all[0] = *monitor;
    if (ninfo > 0)
        memcpy(all + 1, info, ninfo * sizeof *all);
    pmix_status_t rc = infos_pack(all, ninfo + 1, &usage->asked);
    free(all);
    if (rc != PMIX_SUCCESS) {
        usage_free(usage);
        return rc;
    }
    for (size_t i = 0; i < ninfo; i++)
        mean(&usage->nodes, upcall_server(), &info[i]);
    usage->request.answer = answer_info(cbfunc, cbdata);
    return upcall_post(&usage->request.item, run);
}

#else

void upcall_serve_usage(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    const struct server *server = arg;
    (void)body, (void)len;
    asks_reply(server->asks, from, id, PMIX_ERR_NOT_SUPPORTED, NULL, 0); /* told */
}

pmix_status_t upcall_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                             pmix_status_t error, const pmix_info_t info[], size_t ninfo,
                             pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    return refused_monitor(requestor, monitor, error, info, ninfo, cbfunc, cbdata);
}

#endif
