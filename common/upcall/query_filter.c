/* SPDX-License-Identifier: BSD-3-Clause */
/* The qualifiers of a query. muster ignores qualifiers that it does not know, as the standard asks.
 */
#include "common/upcall/query.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* @return whether it is this key, and of this type */
static bool is(struct query_filter *f, const pmix_info_t *info, const char *key,
               pmix_data_type_t type)
{
    if (!PMIX_CHECK_KEY(info, key))
        return false;
    if (info->value.type != type)
        f->bad = true;
    return info->value.type == type;
}

static void copy(struct query_filter *f, char **to, const pmix_info_t *info)
{
    const char *text = info->value.data.string;
    if (text == NULL)
        return;
    free(*to);
    *to = strdup(text);
    f->bad = f->bad || *to == NULL;
}

static void read_proc(struct query_filter *f, const pmix_info_t *info)
{
    if (is(f, info, PMIX_PROCID, PMIX_PROC) && info->value.data.proc != NULL) {
        PMIX_LOAD_NSPACE(f->nspace, info->value.data.proc->nspace);
        f->rank = info->value.data.proc->rank;
        f->by_proc = true;
    } else if (is(f, info, PMIX_NSPACE, PMIX_STRING) && info->value.data.string != NULL) {
        PMIX_LOAD_NSPACE(f->nspace, info->value.data.string);
        f->by_name = true;
    } else if (is(f, info, PMIX_RANK, PMIX_PROC_RANK)) {
        f->rank = info->value.data.rank;
        f->by_name = true;
    }
}

void query_filter_read(struct query_filter *f, const pmix_query_t *query)
{
    f->rank = PMIX_RANK_UNDEF;
    f->node = UINT32_MAX;
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        read_proc(f, info);
        if (is(f, info, PMIX_GROUP_ID, PMIX_STRING))
            copy(f, &f->group, info);
        else if (is(f, info, PMIX_PSET_NAME, PMIX_STRING))
            copy(f, &f->set, info);
        else if (is(f, info, PMIX_HOSTNAME, PMIX_STRING))
            copy(f, &f->host, info);
        else if (is(f, info, PMIX_ALLOC_ID, PMIX_STRING))
            copy(f, &f->allocation, info);
        else if (is(f, info, PMIX_CONNECT_ID, PMIX_STRING))
            copy(f, &f->connect, info);
        else if (is(f, info, PMIX_NODEID, PMIX_UINT32))
            f->node = info->value.data.uint32;
        else if (PMIX_CHECK_KEY(info, PMIX_QUERY_LOCAL_ONLY))
            f->local = PMIX_INFO_TRUE(info);
        else if (PMIX_CHECK_KEY(info, PMIX_QUERY_SUPPORTED_QUALIFIERS))
            f->help = PMIX_INFO_TRUE(info);
    }
}

void query_filter_free(struct query_filter *f)
{
    free(f->group);
    free(f->set);
    free(f->host);
    free(f->allocation);
    free(f->connect);
}
