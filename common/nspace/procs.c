/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Turns a set of processes into an array of pmix_proc_t.
 */
#include "common/nspace/procs.h"

#include <pmix.h>
#include <stdlib.h>

void procs_load(pmix_info_t *info, const char *key, const struct procset *set)
{
    struct proclist list = {0};
    proclist_add_set(&list, set);
    procs_load_list(info, key, &list);
    proclist_free(&list);
}

void procs_load_list(pmix_info_t *info, const char *key, const struct proclist *list)
{
    pmix_data_array_t *array = NULL;
    PMIX_DATA_ARRAY_CREATE(array, proclist_size(list), PMIX_PROC);
    pmix_proc_t *proc = array->array;
    for (struct proclist_at at = {0}; proclist_next(list, &at); proc++)
        PMIX_LOAD_PROCID(proc, at.nspace, at.rank);
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
}

void procs_load_range(pmix_info_t *info, const struct nspace *own, const struct procset *set)
{
    struct procset brief = {0};
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct procset part = {.nparts = 1, .parts = &set->parts[i]};
        const struct nspace *ns = nspace_find(own, part.parts->nspace);
        if (ns != NULL && nspace_is_whole(ns, part.parts))
            procset_add(&brief, part.parts->nspace, PMIX_RANK_WILDCARD, PMIX_RANK_WILDCARD);
        else
            procset_unite(&brief, &part);
    }
    procset_canonical(&brief);
    procs_load(info, PMIX_EVENT_CUSTOM_RANGE, &brief);
    procset_free(&brief);
}
