/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A function for each type of value appends one pmix_info_t to the list. The list doubles when it
 * is full.
 */
#include "common/nspace/infos.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

pmix_info_t *infos_next(struct infos *list)
{
    if (list->n == list->cap) {
        size_t cap = list->cap > 0 ? 2 * list->cap : 16;
        list->info = realloc(list->info, cap * sizeof *list->info);
        list->cap = cap;
    }
    PMIX_INFO_CONSTRUCT(&list->info[list->n]);
    return &list->info[list->n++];
}

void infos_put(struct infos *list, const char *key, const void *value, pmix_data_type_t type)
{
    pmix_info_t *info = infos_next(list);
    PMIX_INFO_LOAD(info, key, value, type);
}

void infos_u32(struct infos *list, const char *key, uint32_t value)
{
    infos_put(list, key, &value, PMIX_UINT32);
}

void infos_u16(struct infos *list, const char *key, uint32_t value)
{
    uint16_t v = (uint16_t)value;
    infos_put(list, key, &v, PMIX_UINT16);
}

void infos_u64(struct infos *list, const char *key, uint64_t value)
{
    infos_put(list, key, &value, PMIX_UINT64);
}

void infos_bool(struct infos *list, const char *key, bool value)
{
    infos_put(list, key, &value, PMIX_BOOL);
}

void infos_rank(struct infos *list, const char *key, pmix_rank_t value)
{
    infos_put(list, key, &value, PMIX_PROC_RANK);
}

void infos_str(struct infos *list, const char *key, const char *value)
{
    infos_put(list, key, value, PMIX_STRING);
}

void infos_str_new(struct infos *list, const char *key, char *value)
{
    infos_str(list, key, value);
    free(value);
}

/* Gives an entry an array that libpmix will free. */
static void own_array(struct infos *list, const char *key, pmix_data_array_t *darray)
{
    pmix_info_t *info = infos_next(list);
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = darray;
}

void infos_procs(struct infos *list, const char *key, const char *nspace, const uint32_t *ranks,
                 uint32_t n)
{
    pmix_data_array_t *darray = NULL;
    if (n == 0)
        return; /* libpmix 5 makes no array of nothing */
    PMIX_DATA_ARRAY_CREATE(darray, n, PMIX_PROC);
    pmix_proc_t *proc = darray->array;
    for (uint32_t i = 0; i < n; i++)
        PMIX_LOAD_PROCID(&proc[i], nspace, ranks[i]);
    own_array(list, key, darray);
}

void infos_array(struct infos *list, const char *key, struct infos *array)
{
    pmix_data_array_t *darray = NULL;
    PMIX_DATA_ARRAY_CREATE(darray, array->n, PMIX_INFO);
    memcpy(darray->array, array->info, array->n * sizeof *array->info);
    free(array->info);
    *array = (struct infos){0};
    own_array(list, key, darray);
}

void infos_free(struct infos *list)
{
    for (size_t i = 0; i < list->n; i++)
        PMIX_INFO_DESTRUCT(&list->info[i]);
    free(list->info);
    *list = (struct infos){0};
}

pmix_status_t infos_pack(const pmix_info_t info[], size_t n, pmix_byte_object_t *bytes)
{
    pmix_data_buffer_t buffer;
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    for (size_t i = 0; i < n && rc == PMIX_SUCCESS; i++)
        rc = PMIx_Data_pack(NULL, &buffer, (void *)&info[i], 1, PMIX_INFO);
    if (rc == PMIX_SUCCESS && n > 0)
        rc = PMIx_Data_unload(&buffer, bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return rc;
}

pmix_status_t infos_unpack(struct infos *list, const void *data, size_t len)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {.bytes = malloc(len + 1), .size = len};
    pmix_info_t *next = NULL;
    if (len == 0) {
        free(bytes.bytes);
        return PMIX_SUCCESS;
    }
    memcpy(bytes.bytes, data, len);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t rc = PMIx_Data_load(&buffer, &bytes);
    while (rc == PMIX_SUCCESS) {
        int32_t one = 1;
        next = infos_next(list);
        rc = PMIx_Data_unpack(NULL, &buffer, next, &one, PMIX_INFO);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    if (next != NULL) { /* the last one is none */
        PMIX_INFO_DESTRUCT(next);
        list->n--;
    }
    return rc == PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER ? PMIX_SUCCESS : rc;
}
