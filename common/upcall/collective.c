/* fence_nb and group: from libpmix's thread to the engine, and its result back. */
#include "common/upcall/collective.h"

#include "common/server/tasks.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static struct collective *new_collective(enum coll_kind kind, const char *id,
                                         const pmix_proc_t procs[], size_t nprocs)
{
    struct collective *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->kind = kind;
    c->nprocs = nprocs;
    c->procs = malloc(nprocs * sizeof *procs + 1);
    c->id = strdup(id);
    if (c->procs == NULL || c->id == NULL) {
        collective_free(c);
        return NULL;
    }
    if (nprocs > 0)
        memcpy(c->procs, procs, nprocs * sizeof *procs);
    return c;
}

void collective_free(struct collective *c)
{
    pending_remove(c);
    procset_free(&c->members);
    procset_free(&c->procs_of_caller);
    free((void *)c->call.added);
    free(c->added);
    free(c->call.sig);
    free(c->payload);
    free(c->procs);
    free(c->id);
    free(c);
}

static bool is_true(const pmix_info_t *info)
{
    return info->value.type == PMIX_UNDEF ||
           (info->value.type == PMIX_BOOL && info->value.data.flag);
}

/* The directives that every collective has. Each of several local copies counts: the shortest
 * timeout, and the first status that is a failure. @thread PMIx's */
static void read_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        uint32_t seconds = 0;
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS)) {
            if (info[i].value.type == PMIX_STATUS && c->call.status == PMIX_SUCCESS)
                c->call.status = info[i].value.data.status;
            c->lost = c->call.status != PMIX_SUCCESS;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            pmix_status_t rc;
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, seconds, uint32_t);
            if (rc == PMIX_SUCCESS && seconds > 0 &&
                (c->call.timeout == 0 || seconds < c->call.timeout))
                c->call.timeout = seconds;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ASSIGN_CONTEXT_ID) && is_true(&info[i])) {
            c->call.flags |= ENGINE_WANT_CONTEXT_ID;
        }
    }
}

int collective_add_proc(struct server *server, struct procset *set, const pmix_proc_t *proc)
{
    const struct boot *boot = &server->boot;
    const struct boot_node *here = &boot->nodes[boot->node];
    int rc = 0;
    if (proc->rank == PMIX_RANK_WILDCARD && strcmp(proc->nspace, boot->nspace) == 0)
        return procset_add(set, proc->nspace, 0, boot->ntasks - 1);
    if (proc->rank != PMIX_RANK_LOCAL_PEERS && proc->rank != PMIX_RANK_LOCAL_NODE)
        return procset_add(set, proc->nspace, proc->rank, proc->rank);
    for (uint32_t k = 0; k < here->ntasks && rc == 0; k++)
        rc = procset_add(set, boot->nspace, here->ranks[k], here->ranks[k]);
    return rc;
}

/* Sorted, with wildcards expanded: the canonical participants. */
static int expand(struct server *server, struct collective *c)
{
    int rc = 0;
    for (size_t i = 0; i < c->nprocs && rc == 0; i++)
        rc = collective_add_proc(server, &c->members, &c->procs[i]);
    procset_canonical(&c->members);
    return rc;
}

static uint32_t default_timeout(const struct server *server, enum coll_kind kind)
{
    const struct conf_timeouts *t = &server->conf.timeouts;
    return (uint32_t)(kind == COLL_FENCE       ? t->fence
                      : kind == COLL_CONSTRUCT ? t->construct
                                               : t->destruct);
}

/* @thread the loop's */
static void on_done(struct engine_call *call, const struct engine_result *result)
{
    struct collective *c = (struct collective *)((char *)call - offsetof(struct collective, call));
    collective_complete(c, result);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    struct engine_result failed = {.status = PMIX_ERR_NOMEM};
    struct wire_out sig = {0};
    if (!pending_add(c)) {
        collective_free(c);
        return;
    }
    if (c->call.status != PMIX_SUCCESS && c->lost && !tasks_loss_is_told(c->server)) {
        c->lost = false; /* once */
        server_hold(c->server, item);
        return;
    }
    if (expand(c->server, c) != 0 || members_expand(c) != 0) {
        collective_complete(c, &failed);
        return;
    }
    signature_write(&sig, c->kind, c->id, &c->members);
    if (sig.failed) {
        wire_out_free(&sig);
        collective_complete(c, &failed);
        return;
    }
    c->call.sig = wire_out_take(&sig, &c->call.siglen);
    c->call.data = c->payload;
    c->call.len = c->len;
    if (c->call.timeout == 0)
        c->call.timeout = default_timeout(c->server, c->kind);
    c->call.done = on_done;
    log_debug("handoff: %s of %zu processes", c->kind == COLL_FENCE ? "fence" : c->id, c->nprocs);
    if (c->role == COLLECTIVE_PARTICIPANTS)
        engine_call(c->server->engine, &c->call);
    else
        members_call(c);
}

pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                           void *cbdata)
{
    struct collective *c =
        procs == NULL || nprocs == 0 ? NULL : new_collective(COLL_FENCE, "", procs, nprocs);
    if (c == NULL)
        return PMIX_ERR_BAD_PARAM;
    c->server = upcall_server();
    c->payload = data; /* libpmix hands the buffer over to the host */
    c->len = data != NULL ? ndata : 0;
    c->request.answer = answer_modex(cbfunc, cbdata);
    read_directives(c, info, ninfo);
    return upcall_post(&c->request, run);
}

/* What the other servers need of a contribution to a group: endpoint data, group info.
 * @thread PMIx's */
static int pack_group(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {0};
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    for (size_t i = 0; i < ninfo && rc == PMIX_SUCCESS; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ENDPT_DATA) ||
            PMIX_CHECK_KEY(&info[i], PMIX_GROUP_INFO) || PMIX_CHECK_KEY(&info[i], PMIX_PROC_DATA))
            rc = PMIx_Data_pack(NULL, &buffer, (void *)&info[i], 1, PMIX_INFO);
    if (rc == PMIX_SUCCESS && buffer.bytes_used > 0)
        rc = PMIx_Data_unload(&buffer, &bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    c->payload = bytes.bytes;
    c->len = bytes.size;
    return rc == PMIX_SUCCESS ? 0 : -1;
}

/* @thread the loop's */
static void run_forget(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    if (expand(c->server, c) == 0)
        registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &c->members);
    collective_free(c);
}

/* A destruct that libpmix has done by itself; 5.0 tells us twice with the same cbdata, of which
 * only one may be answered, hence the synchronous answer. */
static pmix_status_t forget_local(const char *group, const pmix_proc_t procs[], size_t nprocs)
{
    struct collective *c = new_collective(COLL_DESTRUCT, group, procs, nprocs);
    if (c != NULL) {
        c->server = upcall_server();
        upcall_post(&c->request, run_forget);
    }
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
    if (op == PMIX_GROUP_DESTRUCT)
        for (size_t i = 0; i < ndirs; i++)
            if (PMIX_CHECK_KEY(&directives[i], PMIX_GROUP_LOCAL_ONLY) && is_true(&directives[i]))
                return forget_local(group, procs, nprocs);
    enum coll_kind kind = op == PMIX_GROUP_CONSTRUCT ? COLL_CONSTRUCT : COLL_DESTRUCT;
    struct collective *c = new_collective(kind, group, procs, nprocs);
    if (c == NULL)
        return PMIX_ERR_NOMEM;
    if (op != PMIX_GROUP_CONSTRUCT && op != PMIX_GROUP_DESTRUCT) {
        /* From 7 on, PMIX_GROUP_CANCEL: a construct that never was handed up has ended here, for
         * a member is lost. The loss itself fails it everywhere (tasks.h). */
        log_debug("upcall: group \"%s\": libpmix has cancelled the construct here", group);
        c->server = upcall_server();
        c->request.answer = answer_info(cbfunc, cbdata);
        return upcall_post(&c->request, pending_cancelled);
    }
    c->server = upcall_server();
    c->request.answer = answer_info(cbfunc, cbdata);
    read_directives(c, directives, ndirs);
    if (kind == COLL_CONSTRUCT)
        members_read(c, directives, ndirs);
    if (nprocs == 0 && c->server->library < COLLECTIVE_ADDS_FROM)
        return upcall_post(&c->request, collective_refuse);
    if (kind == COLL_CONSTRUCT && pack_group(c, directives, ndirs) != 0 && c->call.status == 0)
        c->call.status = PMIX_ERR_PACK_FAILURE;
    return upcall_post(&c->request, run);
}
