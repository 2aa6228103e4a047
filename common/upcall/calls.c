/* SPDX-License-Identifier: BSD-3-Clause */
/* fence_nb, group, connect and disconnect, as libpmix hands them up. @thread PMIx's, unless said */
#include "common/notify/refuse.h"
#include "common/nspace/infos.h"
#include "common/server/process/expiry.h"
#include "common/server/steps/steps.h"
#include "common/upcall/collective.h"
#include "common/upcall/directives.h"
#include "common/util/log.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* Whether the data that libpmix collects of several jobs would be stored as that of other
 * processes. */
static bool mixes_jobs(const struct collective *c)
{
    bool foreign = false;
    for (size_t i = 0; i < c->nprocs; i++)
        foreign |= strcmp(c->procs[i].nspace, c->server->boot.nspace) != 0;
    return foreign && library_has(c->server->library, LIBRARY_FENCE_MIXES_JOBS);
}

pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                           void *cbdata)
{
    if (procs == NULL || nprocs == 0)
        return refused(PMIX_ERR_BAD_PARAM, "PMIx_Fence: it names no process");
    struct collective *c = collective_new(COLL_FENCE, "", procs, nprocs);
    if (mixes_jobs(c)) {
        free(data);
        data = NULL;
    }
    c->payload = data; /* libpmix hands the buffer over to the host */
    c->own_len = data != NULL ? ndata : 0;
    c->request.answer = answer_modex(cbfunc, cbdata);
    collective_directives(c, info, ninfo);
    return upcall_post(&c->request.item, collective_run);
}

/* What the other servers need of a contribution to a group: endpoint data, group info.
 * @thread PMIx's */
static int pack_group(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    pmix_byte_object_t bytes = {0};
    pmix_info_t *some = malloc((ninfo + 1) * sizeof *some); /* their values are the call's */
    bool endpoints = !mixes_jobs(c);
    size_t n = 0;
    for (size_t i = 0; i < ninfo; i++)
        if ((PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ENDPT_DATA) && endpoints) ||
            PMIX_CHECK_KEY(&info[i], PMIX_GROUP_INFO) || PMIX_CHECK_KEY(&info[i], PMIX_PROC_DATA))
            some[n++] = info[i];
    pmix_status_t rc = infos_pack(some, n, &bytes);
    free(some);
    c->payload = bytes.bytes;
    c->own_len = bytes.size;
    return rc == PMIX_SUCCESS ? 0 : -1;
}

/* @thread the loop's */
static void run_forget(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    if (collective_expand(c) == 0)
        registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &c->all);
    steps_group_ended(c->server);
    collective_free(c);
}

/* A destruct that libpmix has done by itself: LIBRARY_LOCAL_DESTRUCT_TOLD. Of two with the same
 * cbdata only one may be answered, hence the synchronous answer. */
static pmix_status_t forget_local(const char *group, const pmix_proc_t procs[], size_t nprocs)
{
    struct collective *c = collective_new(COLL_DESTRUCT, group, procs, nprocs);
    upcall_post(&c->request.item, run_forget);
    return PMIX_OPERATION_SUCCEEDED;
}

/* A group operation always returns PMIX_SUCCESS: a synchronous error hangs the other local
 * participants, on 4.2.2 the whole server. */
pmix_status_t upcall_group(pmix_group_operation_t op, char *group, const pmix_proc_t procs[],
                           size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                           pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    if (cbfunc == NULL)
        return PMIX_SUCCESS;
    if (op == PMIX_GROUP_DESTRUCT &&
        library_has(upcall_server()->library, LIBRARY_LOCAL_DESTRUCT_TOLD))
        for (size_t i = 0; i < ndirs; i++)
            if (directive_is_on(&directives[i], PMIX_GROUP_LOCAL_ONLY))
                return forget_local(group, procs, nprocs);
    enum coll_kind kind = op == PMIX_GROUP_CONSTRUCT ? COLL_CONSTRUCT : COLL_DESTRUCT;
    struct collective *c = collective_new(kind, group, procs, nprocs);
    c->request.answer = answer_info(cbfunc, cbdata);
    if (op != PMIX_GROUP_CONSTRUCT && op != PMIX_GROUP_DESTRUCT) {
        /* PMIX_GROUP_CANCEL: a construct that never was handed up has ended here, for
         * a participant is lost, or late. */
        log_debug("upcall: group \"%s\": libpmix has cancelled the construct here", group);
        return upcall_post(&c->request.item, pending_cancelled);
    }
    if (library_has(c->server->library, LIBRARY_GROUP_TIMER_CRASHES))
        expiry_handed_up(cbdata);
    if (strlen(group) > PROCSET_NAME_MAX) {
        c->call.status = refused_aloud(PMIX_ERR_BAD_PARAM,
                                       "group \"%.64s…\": its id has %zu bytes, and may have %d",
                                       group, strlen(group), PROCSET_NAME_MAX);
        return upcall_post(&c->request.item, collective_refuse);
    }
    collective_directives(c, directives, ndirs);
    survive_check(c);
    if (kind == COLL_CONSTRUCT)
        members_read(c, directives, ndirs);
    if (nprocs == 0 && !library_has(c->server->library, LIBRARY_GROUP_ADDS))
        return upcall_post(&c->request.item, collective_refuse);
    if (kind == COLL_CONSTRUCT && pack_group(c, directives, ndirs) != 0 && c->call.status == 0)
        c->call.status = PMIX_ERR_PACK_FAILURE;
    return upcall_post(&c->request.item, collective_run);
}

/* @thread the loop's */
static void refuse_connect(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    answer_status(&c->request.answer, c->call.status);
    collective_free(c);
}

/* @return the id, borrowed, or "". */
static const char *find_id(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_CONNECT_ID) && directive_text(&info[i]) != NULL)
            return directive_text(&info[i]);
    return "";
}

static void read_own_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        c->survives = c->survives || directive_is_on(&info[i], PMIX_CONNECT_OPTIONAL);
        c->notify_req = c->notify_req || directive_is_on(&info[i], PMIX_CONNECT_NOTIFY_REQ);
        if (directive_is_on(&info[i], PMIX_CONNECT_EARLY_TERM_ALLOWED))
            c->call.flags |= BOOK_EARLY_TERM;
        if (directive_is_on(&info[i], PMIX_CONNECT_NOTIFY_EACH))
            c->call.flags |= BOOK_NOTIFY_EACH;
        if (directive_is_on(&info[i], PMIX_CONNECT_XCHG_ONLY))
            c->call.flags |= BOOK_XCHG_ONLY;
        if (directive_is_on(&info[i], MUSTER_CONNECT_NSPACE))
            c->call.flags |= BOOK_NAMED;
    }
}

/* Takes the own cluster's name, and a colon, from the front of namespaces (RFC 0003,
 * PMIX_MULTICLUSTER_NSPACE_CONSTRUCT). @return whether no other cluster is named. */
static bool take_clusters(struct collective *c)
{
    const char *cluster = c->server->boot.allocation.cluster;
    for (size_t i = 0; i < c->nprocs; i++) {
        char *nspace = c->procs[i].nspace, *colon = strchr(nspace, ':');
        if (colon == NULL)
            continue;
        if (cluster == NULL || strlen(cluster) != (size_t)(colon - nspace) ||
            memcmp(cluster, nspace, strlen(cluster)) != 0) {
            c->call.status =
                refused_aloud(PMIX_ERR_NOT_SUPPORTED,
                              "%s: namespace %s is of another cluster than \"%s\", and "
                              "clusters are not connected; name processes of this one",
                              coll_traits(c->kind)->name, nspace, cluster != NULL ? cluster : "");
            return false;
        }
        memmove(nspace, colon + 1, strlen(colon + 1) + 1);
    }
    return true;
}

static pmix_status_t post_connect(enum coll_kind kind, const pmix_proc_t procs[], size_t nprocs,
                                  const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                  void *cbdata)
{
    if (procs == NULL || nprocs == 0)
        return refused(PMIX_ERR_BAD_PARAM, "%s: it names no process", coll_traits(kind)->name);
    const char *id = find_id(info, ninfo);
    if (strlen(id) > PROCSET_NAME_MAX)
        return refused_aloud(PMIX_ERR_BAD_PARAM,
                             "%s: its PMIX_CONNECT_ID has %zu bytes, and may have %d",
                             coll_traits(kind)->name, strlen(id), PROCSET_NAME_MAX);
    struct collective *c = collective_new(kind, id, procs, nprocs);
    c->request.answer = answer_op(cbfunc, cbdata);
    collective_directives(c, info, ninfo);
    read_own_directives(c, info, ninfo);
    if (library_has(c->server->library, LIBRARY_CONNECT_TIMER_STAYS))
        expiry_handed_up(cbdata);
    if (!take_clusters(c))
        return upcall_post(&c->request.item, refuse_connect);
    return upcall_post(&c->request.item, collective_run);
}

pmix_status_t upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post_connect(COLL_CONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}

pmix_status_t upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post_connect(COLL_DISCONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}
