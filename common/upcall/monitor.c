/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Process_monitor of what processes, nodes, disks and networks use, on other nodes. libpmix 6
 * and newer reads that on the caller's node itself, hands the call up when it names others, too,
 * and joins what the host answers to its own. Here all servers are asked (ASK_USAGE), and each that
 * is meant asks its own libpmix:
 *
 *     u32 asker, block: monitor and directives, packed by libpmix (nspace/infos.h)
 *     answer: what it uses, packed the same way; nothing: it is not meant
 */
#include "common/notify/refuse.h"
#include "common/nspace/infos.h"
#include "common/server/peers/ask_all.h"
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
    struct infos found;
    uint32_t open; /* servers that have not answered */
    pmix_status_t status;
};

static void usage_free(struct usage *usage)
{
    infos_free(&usage->found);
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

/* @return whether it is this node's; UINT32_MAX and NULL: not said */
static bool is_here(const struct server *server, uint32_t id, const char *host)
{
    return id == server->boot.node ||
           (host != NULL && strcmp(host, boot_here(&server->boot)->name) == 0);
}

static bool has_here(struct server *server, const pmix_proc_t *proc)
{
    return strcmp(proc->nspace, server->boot.nspace) == 0 &&
           (proc->rank == PMIX_RANK_WILDCARD ? boot_here(&server->boot)->ntasks > 0
                                             : upcall_task(proc) != NULL);
}

/* Whether a directive means this node: an array of none means all. */
static bool means(struct server *server, const pmix_info_t *info)
{
    const pmix_data_array_t *array =
        info->value.type == PMIX_DATA_ARRAY ? info->value.data.darray : NULL;
    size_t n = array != NULL && array->array != NULL ? array->size : 0;
    bool is = n == 0;
    for (size_t i = 0; i < n && !is; i++)
        if (PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PROCS) && array->type == PMIX_PROC)
            is = has_here(server, (pmix_proc_t *)array->array + i);
        else if (PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODES) && array->type == PMIX_STRING)
            is = is_here(server, UINT32_MAX, ((char **)array->array)[i]);
        else if (PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODEIDS) && array->type == PMIX_UINT32)
            is = is_here(server, ((uint32_t *)array->array)[i], NULL);
        else if (PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PIDS) && array->type == PMIX_NODE_PID)
            is = is_here(server, ((pmix_node_pid_t *)array->array)[i].nodeid,
                         ((pmix_node_pid_t *)array->array)[i].hostname);
    return is;
}

static bool is_target(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PROCS) ||
           PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODES) ||
           PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_NODEIDS) ||
           PMIX_CHECK_KEY(info, PMIX_MONITOR_TARGET_PIDS);
}

static bool is_meant(struct server *server, const struct infos *asked)
{
    for (size_t i = 1; i < asked->n; i++)
        if (is_target(&asked->info[i]) && means(server, &asked->info[i]))
            return true;
    return false;
}

int32_t upcall_answer_usage(struct server *server, const void *body, size_t len,
                            struct wire_out *out)
{
    struct infos asked = {0};
    pmix_byte_object_t bytes = {0};
    pmix_info_t *found = NULL;
    size_t size, nfound = 0;
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t asker = wire_get_u32(&in);
    const void *packed = wire_get_block(&in, &size);
    pmix_status_t rc = wire_end(&in) ? infos_unpack(&asked, packed, size) : PMIX_ERR_UNPACK_FAILURE;
    if (rc == PMIX_SUCCESS && asked.n > 0 && is_usage(&asked.info[0]) &&
        asker != server->boot.node && is_meant(server, &asked)) {
        infos_bool(&asked, PMIX_MONITOR_LOCAL_ONLY, true); /* the last one counts */
        rc = PMIx_Process_monitor(&asked.info[0], PMIX_SUCCESS, &asked.info[1], asked.n - 1, &found,
                                  &nfound);
        if (rc == PMIX_SUCCESS)
            rc = infos_pack(found, nfound, &bytes);
    }
    wire_put_raw(out, bytes.bytes, rc == PMIX_SUCCESS ? bytes.size : 0);
    if (found != NULL)
        PMIX_INFO_FREE(found, nfound);
    free(bytes.bytes);
    infos_free(&asked);
    return rc;
}

/* ---- the caller's server ---- */

/* ask_all_answer_fn */
static void on_server(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct usage *usage = arg;
    if (status == PMIX_SUCCESS)
        status = infos_unpack(&usage->found, data, len);
    if (status != PMIX_SUCCESS) {
        log_info("PMIx_Process_monitor: %s does not say what it uses: %s",
                 nspace_name(upcall_server()->nspace, node), PMIx_Error_string(status));
        usage->status = PMIX_ERR_PARTIAL_SUCCESS;
    }
    if (--usage->open > 0)
        return;
    answer_infos(&usage->request.answer, usage->status, usage->found.info, usage->found.n);
    usage->found = (struct infos){0}; /* the answer has it */
    usage_free(usage);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct usage *usage = (struct usage *)item;
    struct server *server = upcall_server();
    struct wire_out body = {0};
    wire_put_u32(&body, server->boot.node);
    wire_put_block(&body, usage->asked.bytes, usage->asked.size);
    usage->open = server->boot.nnodes;
    ask_all(server, ASK_USAGE, body.data, body.len, (uint32_t)server->conf.timeouts.query,
            on_server, usage);
    wire_out_free(&body);
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
    usage->request.answer = answer_info(cbfunc, cbdata);
    return upcall_post(&usage->request.item, run);
}

#else

int32_t upcall_answer_usage(struct server *server, const void *body, size_t len,
                            struct wire_out *out)
{
    (void)server, (void)body, (void)len, (void)out;
    return PMIX_ERR_NOT_SUPPORTED; /* told */
}

pmix_status_t upcall_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                             pmix_status_t error, const pmix_info_t info[], size_t ninfo,
                             pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    return refused_monitor(requestor, monitor, error, info, ninfo, cbfunc, cbdata);
}

#endif
