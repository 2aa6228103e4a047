/* SPDX-License-Identifier: BSD-3-Clause */
/* What the values of all keys are made of: what is asked about, what servers have said, arrays and
 * texts. */
#include "common/nspace/foreign.h"
#include "common/upcall/query.h"

#include <pmix.h>
#include <string.h>

/* ---- what is asked about ---- */

const struct census *query_census(const struct query *q, uint32_t node)
{
    return node < q->nreplies && q->replies[node].known ? &q->replies[node].census : NULL;
}

const struct nspace *query_nspace(const struct query_filter *filter)
{
    const struct nspace *own = upcall_server()->nspace;
    return filter->nspace[0] != '\0' ? nspace_find(own, filter->nspace) : own;
}

uint32_t query_node(const struct nspace *ns, const struct query_filter *filter)
{
    const struct boot *own = &upcall_server()->boot;
    const char *name = filter->host != NULL ? filter->host : own->nodes[own->node].name;
    if (filter->host == NULL && filter->node != UINT32_MAX)
        return filter->node < ns->boot->nnodes ? filter->node : UINT32_MAX;
    for (uint32_t i = 0; i < ns->boot->nnodes; i++)
        if (strcmp(ns->boot->nodes[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

bool query_is_active(const struct nspace *ns)
{
    bool active = ns->boot != NULL && ns->foreign == NULL;
    for (uint32_t i = 0; ns->boot != NULL && ns->foreign != NULL && i < ns->nnodes; i++)
        active |= !foreign_gone(ns, ns->base + i);
    return active;
}

/* ---- giving values ---- */

pmix_status_t query_give_array(pmix_value_t *value, pmix_data_array_t *array)
{
    value->type = PMIX_DATA_ARRAY;
    value->data.darray = array;
    return PMIX_SUCCESS;
}

pmix_status_t query_give_infos(pmix_value_t *value, struct infos *list)
{
    struct infos one = {0};
    if (list->n == 0)
        return PMIX_ERR_NOT_FOUND;
    infos_array(&one, "", list);
    *value = one.info[0].value;
    one.n = 0;
    infos_free(&one);
    return PMIX_SUCCESS;
}

pmix_status_t query_give_text(pmix_value_t *value, char *text)
{
    value->type = PMIX_STRING;
    value->data.string = text;
    return PMIX_SUCCESS;
}
