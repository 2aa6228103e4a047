/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Turns a set of processes into an array of pmix_proc_t, one for each rank.
 */
#include "common/nspace/procs.h"

#include <pmix.h>
#include <stdlib.h>

bool procs_load(pmix_info_t *info, const char *key, const struct procset *set)
{
    pmix_data_array_t *array = NULL;
    PMIX_DATA_ARRAY_CREATE(array, procset_size(set), PMIX_PROC);
    if (array == NULL || array->array == NULL) {
        free(array);
        return false;
    }
    pmix_proc_t *proc = array->array;
    for (struct procset_at at = {0}; procset_next(set, &at); proc++)
        PMIX_LOAD_PROCID(proc, at.nspace, at.rank);
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
    return true;
}
