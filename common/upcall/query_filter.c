/* SPDX-License-Identifier: BSD-3-Clause */
/* The qualifiers of a query. muster ignores qualifiers that it does not know, as the standard asks,
 * but not those that are required. */
#include "common/notify/refuse.h"
#include "common/upcall/directives.h"
#include "common/upcall/query.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static void copy(char **to, const pmix_info_t *info)
{
    free(*to);
    *to = strdup(directive_text(info));
}

static void read_proc(struct query_filter *f, const pmix_info_t *info)
{
    if (PMIX_CHECK_KEY(info, PMIX_PROCID)) {
        PMIX_LOAD_NSPACE(f->nspace, info->value.data.proc->nspace);
        f->rank = info->value.data.proc->rank;
        f->by_proc = true;
    } else if (PMIX_CHECK_KEY(info, PMIX_NSPACE)) {
        PMIX_LOAD_NSPACE(f->nspace, directive_text(info));
        f->by_name = true;
    } else if (PMIX_CHECK_KEY(info, PMIX_RANK)) {
        directive_rank(&info->value, &f->rank);
        f->by_name = true;
    }
}

/* The servers of a step know the groups and sets of its session that it takes part in. */
static void read_range(struct query_filter *f, const pmix_info_t *info)
{
    pmix_data_range_t range = info->value.data.range;
    f->local |= range == PMIX_RANGE_LOCAL;
    if (range != PMIX_RANGE_UNDEF && range != PMIX_RANGE_LOCAL && range != PMIX_RANGE_NAMESPACE &&
        range != PMIX_RANGE_SESSION)
        f->status = refused(PMIX_ERR_NOT_SUPPORTED,
                            "PMIx_Query_info: PMIX_RANGE is %s; give PMIX_RANGE_SESSION, "
                            "PMIX_RANGE_NAMESPACE or PMIX_RANGE_LOCAL",
                            PMIx_Data_range_string(range));
}

void query_filter_read(struct query_filter *f, const pmix_query_t *query)
{
    f->rank = PMIX_RANK_UNDEF;
    f->node = UINT32_MAX;
    f->status = directives_check(CALL_QUERY, "", query->qualifiers, query->nqual);
    for (size_t i = 0; i < query->nqual && f->status == PMIX_SUCCESS; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        read_proc(f, info);
        if (PMIX_CHECK_KEY(info, PMIX_GROUP_ID))
            copy(&f->group, info);
        else if (PMIX_CHECK_KEY(info, PMIX_PSET_NAME))
            copy(&f->set, info);
        else if (PMIX_CHECK_KEY(info, PMIX_HOSTNAME))
            copy(&f->host, info);
        else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_ID))
            copy(&f->allocation, info);
        else if (PMIX_CHECK_KEY(info, PMIX_CONNECT_ID))
            copy(&f->connect, info);
        else if (PMIX_CHECK_KEY(info, PMIX_NODEID))
            directive_number(&info->value, &f->node);
        else if (PMIX_CHECK_KEY(info, PMIX_RANGE))
            read_range(f, info);
        else if (PMIX_CHECK_KEY(info, PMIX_QUERY_LOCAL_ONLY))
            f->local = PMIX_INFO_TRUE(info);
        else if (PMIX_CHECK_KEY(info, PMIX_QUERY_SUPPORTED_QUALIFIERS))
            f->help = PMIX_INFO_TRUE(info);
    }
    if (f->by_proc && f->by_name && f->status == PMIX_SUCCESS)
        f->status =
            refused(PMIX_ERR_BAD_PARAM, "PMIx_Query_info: PMIX_PROCID is beside PMIX_NSPACE or "
                                        "PMIX_RANK; give one or the other");
}

void query_filter_free(struct query_filter *f)
{
    free(f->group);
    free(f->set);
    free(f->host);
    free(f->allocation);
    free(f->connect);
}
