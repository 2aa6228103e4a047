/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups and process sets that any server of the session takes part in: number, names, members. */
#include "common/nspace/procs.h"
#include "common/upcall/query.h"
#include "common/util/text.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static enum registry_kind kind_of(const struct query_item *item)
{
    const char *key = item->key->key;
    bool group = strcmp(key, PMIX_QUERY_NUM_GROUPS) == 0 ||
                 strcmp(key, PMIX_QUERY_GROUP_NAMES) == 0 ||
                 strcmp(key, PMIX_QUERY_GROUP_MEMBERSHIP) == 0;
    return group ? REGISTRY_GROUP : REGISTRY_PSET;
}

/* Whether an entry is the first of its name: groups of one id may stand beside each other. */
static bool counts(const struct registry *r, uint32_t i, enum registry_kind kind)
{
    for (uint32_t j = 0; j < i; j++)
        if (r->entries[j].kind == kind && strcmp(r->entries[j].id, r->entries[i].id) == 0)
            return false;
    return r->entries[i].kind == kind;
}

static size_t count(const struct registry *r, enum registry_kind kind)
{
    size_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
        n += counts(r, i, kind);
    return n;
}

pmix_status_t query_number(const struct query_item *item, pmix_value_t *value)
{
    value->type = PMIX_SIZE;
    value->data.size = count(item->query->groups, kind_of(item));
    return PMIX_SUCCESS;
}

/* Names of process sets: one string, with commas. */
static pmix_status_t give_list(const struct registry *r, pmix_value_t *value)
{
    char *list = strdup("");
    for (uint32_t i = 0; i < r->n; i++)
        if (counts(r, i, REGISTRY_PSET))
            list = text_append(list, ",", r->entries[i].id);
    return query_give_text(value, list);
}

static pmix_status_t give_names(const struct registry *r, pmix_value_t *value)
{
    /* By hand: libpmix 5 makes no array of nothing. */
    size_t n = count(r, REGISTRY_GROUP);
    pmix_data_array_t *array = calloc(1, sizeof *array);
    char **names = calloc(n + 1, sizeof *names);
    for (uint32_t i = 0, k = 0; i < r->n; i++)
        if (counts(r, i, REGISTRY_GROUP))
            names[k++] = strdup(r->entries[i].id);
    *array = (pmix_data_array_t){.type = PMIX_STRING, .size = n, .array = names};
    return query_give_array(value, array);
}

/* The standard has an array for both. Of the sets libpmix's own header has a list, which is what
 * Open MPI takes an answer for without looking at its type. */
pmix_status_t query_names(const struct query_item *item, pmix_value_t *value)
{
    return kind_of(item) == REGISTRY_GROUP ? give_names(item->query->groups, value)
                                           : give_list(item->query->groups, value);
}

pmix_status_t query_members(const struct query_item *item, pmix_value_t *value)
{
    enum registry_kind kind = kind_of(item);
    const char *id = kind == REGISTRY_GROUP ? item->filter->group : item->filter->set;
    pmix_info_t info;
    for (uint32_t i = 0; i < item->query->groups->n && id != NULL; i++) {
        const struct registry_entry *e = &item->query->groups->entries[i];
        if (e->kind != kind || strcmp(e->id, id) != 0)
            continue;
        struct proclist list = {0};
        PMIX_INFO_CONSTRUCT(&info);
        registry_list(e, &list);
        procs_load_list(&info, item->key->key, &list);
        proclist_free(&list);
        *value = info.value;
        return PMIX_SUCCESS;
    }
    return PMIX_ERR_NOT_FOUND;
}
