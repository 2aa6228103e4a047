/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A list of pmix_info_t that grows while a namespace is described.
 * @thread any, one at a time
 */
#pragma once

#include <pmix_common.h>
#include <stdbool.h>
#include <stdint.h>

struct infos {
    pmix_info_t *info; /**< owned */
    size_t n, cap;
};

/** Appends an empty entry, for the caller to fill in. */
pmix_info_t *infos_next(struct infos *list);

/** Appends a key; the value is copied. */
void infos_put(struct infos *list, const char *key, const void *value, pmix_data_type_t type);
void infos_u32(struct infos *list, const char *key, uint32_t value);
void infos_u16(struct infos *list, const char *key, uint32_t value);
void infos_u64(struct infos *list, const char *key, uint64_t value);
void infos_bool(struct infos *list, const char *key, bool value);
void infos_rank(struct infos *list, const char *key, pmix_rank_t value);

void infos_str(struct infos *list, const char *key, const char *value);

/** The same; frees @p value. */
void infos_str_new(struct infos *list, const char *key, char *value);

/** An array of @p n processes of @p nspace. */
void infos_procs(struct infos *list, const char *key, const char *nspace, const uint32_t *ranks,
                 uint32_t n);

/** Moves a finished list into one entry of another. @param array not empty; empty afterwards */
void infos_array(struct infos *list, const char *key, struct infos *array);

void infos_free(struct infos *list);

/** Packs infos by libpmix, one after another. @param bytes all zero; its bytes are the caller's to
 * free, also after a failure */
pmix_status_t infos_pack(const pmix_info_t info[], size_t n, pmix_byte_object_t *bytes);

/** Appends what is packed so. @param list the caller frees it, also after a failure */
pmix_status_t infos_unpack(struct infos *list, const void *data, size_t len);
