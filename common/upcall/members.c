/* SPDX-License-Identifier: BSD-3-Clause */
/* This file reads who takes part in an operation: in a construct with added members, in a
 * bootstrap. And it writes the signature by which the engine knows the operation. */
#include "common/notify/refuse.h"
#include "common/nspace/nspace.h"
#include "common/upcall/collective.h"
#include "common/upcall/directives.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static void set_fault(struct collective *c, pmix_status_t status)
{
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = status;
}

static void read_added(struct collective *c, const pmix_info_t *info)
{
    size_t n;
    const pmix_proc_t *procs = directive_procs(&info->value, &n);
    c->added = realloc(c->added, (c->nadded + n) * sizeof *procs + 1);
    if (n > 0)
        memcpy(c->added + c->nadded, procs, n * sizeof *procs);
    c->nadded += n;
}

static void read_leaders(struct collective *c, const pmix_info_t *info)
{
    c->role = COLLECTIVE_LEADER;
    if (!directive_number(&info->value, &c->call.leaders) || c->call.leaders == 0) {
        c->call.leaders = 1;
        set_fault(
            c, refused_aloud(PMIX_ERR_BAD_PARAM,
                             "group \"%s\": PMIX_GROUP_BOOTSTRAP is no number of leaders; give how "
                             "many processes construct with it",
                             c->id));
    }
}

/* libpmix does not say which process an added member is; what it contributes may. */
static void read_caller(struct collective *c, const pmix_info_t *info)
{
    const pmix_data_array_t *array =
        info->value.type == PMIX_DATA_ARRAY ? info->value.data.darray : NULL;
    const pmix_info_t *first =
        array != NULL && array->type == PMIX_INFO && array->size > 0 ? array->array : NULL;
    if (first == NULL || !PMIX_CHECK_KEY(first, PMIX_PROCID) || first->value.type != PMIX_PROC ||
        first->value.data.proc == NULL)
        return;
    c->caller = *first->value.data.proc;
    c->has_caller = true;
}

void members_read(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    char release[LIBRARY_TEXT_SIZE];
    const char *what = NULL;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_BOOTSTRAP))
            what = "PMIX_GROUP_BOOTSTRAP";
        else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ADD_MEMBERS))
            what = "PMIX_GROUP_ADD_MEMBERS";
    if (c->nprocs == 0)
        what = "joining as an added member (a construct without processes)";
    if (what != NULL && !library_has(c->server->library, LIBRARY_GROUP_ADDS)) {
        c->call.status = refused_aloud(
            PMIX_ERR_NOT_SUPPORTED, "group \"%s\": %s %s; this one has %s", c->id, what,
            library_advice(LIBRARY_GROUP_ADDS), library_text(c->server->library, release));
        return;
    }
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_BOOTSTRAP))
            read_leaders(c, &info[i]);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ADD_MEMBERS))
            read_added(c, &info[i]);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_PROC_DATA) ||
                 PMIX_CHECK_KEY(&info[i], PMIX_GROUP_INFO))
            read_caller(c, &info[i]);
    if (c->nprocs == 0 && c->role == COLLECTIVE_PARTICIPANTS)
        c->role = COLLECTIVE_MEMBER;
}

static bool is_here(const struct server *server, const char *nspace, uint32_t rank)
{
    uint32_t node;
    return nspace_node(server->nspace, nspace, rank, &node) == 0 && node == server->boot.node;
}

bool members_leads_alone(const struct collective *c)
{
    return c->nprocs == 1 && is_here(c->server, c->procs[0].nspace, c->procs[0].rank);
}

int members_expand(struct collective *c)
{
    int rc = 0;
    for (size_t i = 0; i < c->nadded && rc == 0; i++)
        rc = collective_add_proc(c->server, &c->expanded, &c->added[i]);
    procset_canonical(&c->expanded);
    const pmix_proc_t *caller = c->role == COLLECTIVE_MEMBER && c->has_caller    ? &c->caller
                                : c->role == COLLECTIVE_LEADER && c->nprocs == 1 ? c->procs
                                                                                 : NULL;
    if (rc == 0 && caller != NULL && is_here(c->server, caller->nspace, caller->rank))
        rc = procset_add(&c->procs_of_caller, caller->nspace, caller->rank, caller->rank);
    return rc;
}

int collective_prepare(struct collective *c)
{
    struct wire_out sig = {0}, added = {0};
    free(c->call.sig);
    free((void *)c->call.added);
    c->call.sig = NULL;
    c->call.added = NULL;
    c->call.addedlen = 0;
    if (c->expanded.nparts > 0)
        procset_write(&c->expanded, &added);
    signature_write(&sig, c->kind, c->id, &c->members);
    bool good = order_say(c) == 0;
    c->call.data = c->payload;
    c->call.len = c->len;
    if (good && c->role == COLLECTIVE_PARTICIPANTS)
        c->call.sig = wire_out_take(&sig, &c->call.siglen);
    if (good && c->expanded.nparts > 0)
        c->call.added = wire_out_take(&added, &c->call.addedlen);
    wire_out_free(&sig);
    wire_out_free(&added);
    return good ? 0 : -1;
}
