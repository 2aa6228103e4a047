/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a collective, back into libpmix. */
#include "common/notify/loss.h"
#include "common/notify/refuse.h"
#include "common/nspace/infos.h"
#include "common/nspace/procs.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/tasks.h"
#include "common/upcall/collective.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* What a completed construct returns and what libpmix has to store before. */
struct outcome {
    struct handoff_item item; /* posted when libpmix has stored it */
    struct spread_wait wait;  /* until all servers of the step know the members' namespaces */
    struct collective *collective;
    pmix_status_t status;
    struct infos info;            /* for the callback */
    struct infos store;           /* for PMIx_server_register_resources */
    struct order order;           /* of the members, as the contributions have it */
    pmix_byte_object_t endpoints; /* all servers' blobs, joined; without HOST_STORES */
};

static void complete_fence(struct collective *c, const struct engine_result *result)
{
    struct shared_bytes *data = result->nentries > 0 ? engine_result_data(result) : NULL;
    answer_data(&c->request.answer, result->status, data);
    collective_free(c);
}

static void add_endpoints(struct outcome *o, const pmix_byte_object_t *blob)
{
    o->endpoints.bytes = realloc(o->endpoints.bytes, o->endpoints.size + blob->size);
    memcpy(o->endpoints.bytes + o->endpoints.size, blob->bytes, blob->size);
    o->endpoints.size += blob->size;
}

static pmix_info_t *copy(struct infos *list, const pmix_info_t *info)
{
    pmix_info_t *to = infos_next(list);
    PMIX_INFO_XFER(to, info);
    return to;
}

/* One pmix_info_t of one server's contribution. */
static void add_contribution(struct outcome *o, pmix_info_t *info, bool has_context_id)
{
    if (order_take(&o->order, info))
        return;
    if (PMIX_CHECK_KEY(info, PMIX_GROUP_ENDPT_DATA) && info->value.type == PMIX_BYTE_OBJECT) {
        if (info->value.data.bo.size > 0)
            add_endpoints(o, &info->value.data.bo);
    } else if (PMIX_CHECK_KEY(info, PMIX_PROC_DATA)) {
        PMIX_LOAD_KEY(copy(&o->store, info)->key, PMIX_GROUP_ENDPT_DATA);
    } else if (PMIX_CHECK_KEY(info, PMIX_GROUP_INFO) && has_context_id) {
        /* libpmix stores group info by context id only, and refuses it without one. */
        copy(&o->store, info);
        copy(&o->info, info);
    }
}

static void add_entry(struct outcome *o, const struct engine_entry *entry, bool has_context_id)
{
    struct infos list = {0};
    pmix_status_t rc = infos_unpack(&list, entry->data, entry->len);
    for (size_t i = 0; i < list.n; i++)
        add_contribution(o, &list.info[i], has_context_id);
    infos_free(&list);
    if (rc != PMIX_SUCCESS) {
        log_error("group \"%s\": a contribution cannot be read: %s", o->collective->id,
                  PMIx_Error_string(rc));
        o->status = rc;
    }
}

/* PMIX_GROUP_MEMBERSHIP: by group rank, without wildcards, the same on every server. */
static void add_membership(struct outcome *o)
{
    struct collective *c = o->collective;
    pmix_info_t *info = infos_next(&o->info);
    if (order_make(&o->order, &c->members, &c->order) != 0) {
        log_error("group \"%s\": its order cannot be read", c->id);
        o->status = PMIX_ERR_UNPACK_FAILURE;
    } else if (c->order.n > 0) {
        procs_load_list(info, PMIX_GROUP_MEMBERSHIP, &c->order);
    } else {
        procs_load(info, PMIX_GROUP_MEMBERSHIP, &c->members);
    }
}

/* @thread the loop's */
static void finish(struct handoff_item *item)
{
    struct outcome *o = (struct outcome *)item;
    struct collective *c = o->collective;
    if (o->status == PMIX_SUCCESS && c->kind == COLL_CONSTRUCT) {
        registry_add(c->server->registry, REGISTRY_GROUP, c->id, &c->members);
        registry_order(c->server->registry, c->id, &c->members, &c->order);
        if (c->notify) {
            registry_notify(c->server->registry, c->id, &c->members);
            loss_group_formed(c->server, c->id, &c->members);
        }
        survive_tell(c);
    }
    infos_free(&o->store);
    order_free(&o->order);
    free(o->endpoints.bytes);
    pending_answer(c, o->status, o->info.info, o->info.n);
    free(o);
}

#if BUILT_WITH(REGISTER_RESOURCES)
/* @thread PMIx's */
static void on_stored(pmix_status_t status, void *arg)
{
    struct outcome *o = arg;
    if (status != PMIX_SUCCESS) {
        log_error("group \"%s\": libpmix does not store the members' data: %s", o->collective->id,
                  PMIx_Error_string(status));
        o->status = status;
    }
    upcall_post(&o->item, finish);
}

/* The host stores the members' data before it answers: LIBRARY_HOST_STORES. */
static void store(struct outcome *o)
{
    pmix_status_t rc = PMIX_OPERATION_SUCCEEDED;
    if (o->store.n > 0 && o->status == PMIX_SUCCESS)
        rc = PMIx_server_register_resources(o->store.info, o->store.n, on_stored, o);
    if (rc == PMIX_SUCCESS)
        return;
    if (rc != PMIX_OPERATION_SUCCEEDED)
        o->status = rc;
    finish(&o->item);
}
#else
/* The members' data travel in one blob that libpmix itself stores. */
static void store(struct outcome *o)
{
    if (o->endpoints.size > 0)
        infos_put(&o->info, PMIX_GROUP_ENDPT_DATA, &o->endpoints, PMIX_BYTE_OBJECT);
    finish(&o->item);
}
#endif

static void on_known(struct spread_wait *wait)
{
    store((struct outcome *)((char *)wait - offsetof(struct outcome, wait)));
}

static void complete_construct(struct collective *c, const struct engine_result *result)
{
    struct outcome *o = calloc(1, sizeof *o);
    size_t id = (size_t)result->context_id;
    o->collective = c;
    if (result->members != NULL)
        procset_unite(&c->members, result->members);
    /* An added member may have been claimed for the try that succeeded alone. */
    if (c->role == COLLECTIVE_MEMBER && result->gone != NULL)
        procset_unite(&c->gone, result->gone);
    if (steps_register(c->server, &c->members) != 0)
        o->status = refused(PMIX_ERR_NOT_FOUND,
                            "group \"%s\": a job that takes part has ended, and is not known here "
                            "any more",
                            c->id);
    if (id != 0)
        infos_put(&o->info, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    c->notify = c->notify || (result->flags & ENGINE_WANT_NOTIFY);
    for (uint32_t i = 0; i < result->nentries; i++)
        add_entry(o, &result->entries[i], id != 0);
    add_membership(o);
    if (id != 0 && o->store.n > 0)
        infos_put(&o->store, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    o->wait = (struct spread_wait){.set = &c->members, .done = on_known};
    if (o->status == PMIX_SUCCESS)
        spread_await(c->server, &o->wait);
    else
        store(o);
}

/* Says which participant is not known. */
static void tell_unknown(const struct collective *c)
{
    const char *name = coll_traits(c->kind)->name;
    for (size_t i = 0; i < c->nprocs; i++) {
        const pmix_proc_t *p = &c->procs[i];
        const struct nspace *ns = nspace_find(c->server->nspace, p->nspace);
        bool known = book_named(&c->server->book, p->nspace, NULL) != NULL;
        if (ns == NULL && !known)
            refused(PMIX_ERR_NOT_FOUND, "%s: the namespace %s is not known here", name, p->nspace);
        else if (ns != NULL && p->rank <= PMIX_RANK_VALID && p->rank >= ns->boot->ntasks)
            refused(PMIX_ERR_NOT_FOUND, "%s: %s has no rank %u; its ranks are 0 to %u", name,
                    p->nspace, p->rank, ns->boot->ntasks - 1);
    }
}

void collective_complete(struct collective *c, const struct engine_result *result)
{
    struct server *server = c->server;
    if (result->status == PMIX_ERR_NOT_FOUND)
        tell_unknown(c);
    if (result->status != 0 && result->gone != NULL)
        tasks_bereft(c->server, result->status, result->gone);
    if (c->kind == COLL_FENCE) {
        complete_fence(c, result);
        return;
    }
    if (survive_again(c, result))
        return;
    if (!coll_traits(c->kind)->is_group) {
        connect_complete(c, result);
        return;
    }
    if (!pending_answers(c)) {
        collective_free(c);
        return;
    }
    if (c->kind == COLL_CONSTRUCT && result->status == 0) {
        complete_construct(c, result);
        return;
    }
    if (c->kind == COLL_DESTRUCT && result->status == 0) {
        struct outcome *o = calloc(1, sizeof *o);
        if (c->notify) {
            loss_group_ended(c->server, c->id, &c->all, c->apart ? 0 : c->lacking, c->handed_up);
            survive_tell(c);
        }
        registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &c->all);
        o->collective = c;
        add_membership(o); /* some libpmix fail a destruct without it */
        finish(&o->item);
        steps_group_ended(server);
        return;
    }
    if (c->kind == COLL_CONSTRUCT && c->notify && result->gone != NULL)
        survive_failed(c, result->gone);
    if (c->kind == COLL_DESTRUCT) { /* libpmix's clients have dropped it all the same */
        loss_group_stays(c->server, c->id, &c->all);
        registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &c->all);
    }
    pending_answer(c, result->status, NULL, 0);
    steps_group_ended(server);
}

void collective_refuse(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    if (pending_add(c) && pending_answers(c))
        pending_answer(c, c->call.status, NULL, 0);
    else
        collective_free(c);
}
