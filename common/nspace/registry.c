/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A list of entries, each a name and its members. Queries write it as bytes, and merge the bytes
 * of other servers into one list.
 */
#include "common/nspace/registry.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

struct registry *registry_new(void)
{
    return calloc(1, sizeof(struct registry));
}

static struct registry_entry *find(struct registry *registry, enum registry_kind kind,
                                   const char *id, const struct procset *members)
{
    for (uint32_t i = 0; i < registry->n; i++) {
        struct registry_entry *e = &registry->entries[i];
        if (e->kind == kind && strcmp(e->id, id) == 0 && procset_equal(&e->members, members))
            return e;
    }
    return NULL;
}

void registry_add(struct registry *registry, enum registry_kind kind, const char *id,
                  const struct procset *members)
{
    if (strlen(id) > PROCSET_NAME_MAX || find(registry, kind, id, members) != NULL)
        return;
    if (registry->n == registry->cap) {
        registry->cap = registry->cap > 0 ? 2 * registry->cap : 8;
        registry->entries = realloc(registry->entries, registry->cap * sizeof *registry->entries);
    }
    struct registry_entry *e = &registry->entries[registry->n++];
    *e = (struct registry_entry){.kind = kind};
    strcpy(e->id, id);
    procset_unite(&e->members, members);
}

void registry_order(struct registry *registry, const char *id, const struct procset *members,
                    const struct proclist *order)
{
    struct registry_entry *e = registry_group(registry, id, members);
    struct proclist copy = {0};
    if (e == NULL)
        return;
    proclist_add_list(&copy, order);
    proclist_free(&e->order);
    e->order = copy;
}

void registry_list(const struct registry_entry *entry, struct proclist *list)
{
    if (entry->order.n == 0) {
        proclist_add_set(list, &entry->members);
    } else if (proclist_is_of(&entry->order, &entry->members)) {
        proclist_add_list(list, &entry->order);
    } else { /* not all of the order are members */
        for (struct proclist_at at = {0}; proclist_next(&entry->order, &at);)
            if (procset_has(&entry->members, at.nspace, at.rank))
                proclist_add(list, at.nspace, at.rank, at.rank);
    }
}

bool registry_expand(const struct registry *registry, struct procset *set, const char *id,
                     uint32_t rank, bool all, int *rc)
{
    const struct registry_entry *e = NULL;
    struct proclist list = {0};
    const char *nspace;
    for (uint32_t i = 0; i < registry->n && e == NULL; i++)
        if (registry->entries[i].kind == REGISTRY_GROUP && strcmp(registry->entries[i].id, id) == 0)
            e = &registry->entries[i];
    *rc = -1;
    if (e == NULL)
        return false;
    registry_list(e, &list);
    if (all)
        *rc = procset_unite(set, &e->members);
    else if (proclist_at(&list, rank, &nspace, &rank))
        *rc = procset_add(set, nspace, rank, rank);
    proclist_free(&list);
    return true;
}

struct registry_entry *registry_group(struct registry *registry, const char *id,
                                      const struct procset *members)
{
    return find(registry, REGISTRY_GROUP, id, members);
}

static struct procset *told_of(struct registry *registry, const char *id)
{
    for (uint32_t i = 0; i < registry->ntold; i++)
        if (strcmp(registry->told[i].id, id) == 0)
            return &registry->told[i].gone;
    if (strlen(id) > PROCSET_NAME_MAX)
        return NULL;
    registry->told = realloc(registry->told, (registry->ntold + 1) * sizeof *registry->told);
    struct registry_told *more = &registry->told[registry->ntold++];
    *more = (struct registry_told){0};
    strcpy(more->id, id);
    return &more->gone;
}

bool registry_tell(struct registry *registry, const char *id, const char *nspace, uint32_t rank)
{
    struct procset *gone = told_of(registry, id);
    if (gone == NULL)
        return true; /* rather twice than never */
    bool first = !procset_has(gone, nspace, rank);
    if (first && procset_add(gone, nspace, rank, rank) == 0)
        procset_canonical(gone);
    return first;
}

void registry_forget(struct registry *registry, const char *nspace)
{
    for (uint32_t i = 0; i < registry->ntold; i++)
        procset_drop(&registry->told[i].gone, nspace);
}

void registry_notify(struct registry *registry, const char *id, const struct procset *members)
{
    struct registry_entry *e = registry_group(registry, id, members);
    if (e != NULL)
        e->notify = true;
}

void registry_remove(struct registry *registry, enum registry_kind kind, const char *id,
                     const struct procset *members)
{
    struct registry_entry *e = find(registry, kind, id, members);
    if (e == NULL)
        return;
    procset_free(&e->members);
    proclist_free(&e->order);
    *e = registry->entries[--registry->n];
}

void registry_write(const struct registry *registry, struct wire_out *out)
{
    wire_put_u32(out, registry->n);
    for (uint32_t i = 0; i < registry->n; i++) {
        wire_put_u8(out, (uint8_t)registry->entries[i].kind);
        wire_put_str(out, registry->entries[i].id);
        procset_write(&registry->entries[i].members, out);
        struct proclist order = {0};
        if (registry->entries[i].order.n > 0)
            registry_list(&registry->entries[i], &order);
        proclist_write(&order, out);
        proclist_free(&order);
    }
}

int registry_merge(struct registry *registry, const void *data, size_t len)
{
    struct wire_in in;
    char id[PROCSET_NAME_MAX + 1];
    wire_in_init(&in, data, len);
    uint32_t n = wire_get_count(&in, 1 + 4 + 4 + 4 + 4);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct procset members = {0};
        struct proclist order = {0};
        uint8_t kind = wire_get_u8(&in);
        wire_get_str(&in, id, sizeof id);
        procset_read(&members, &in);
        proclist_read(&order, &in);
        if (!in.bad && order.n > 0 && !proclist_is_of(&order, &members))
            in.bad = true;
        if (!in.bad && (kind == REGISTRY_GROUP || kind == REGISTRY_PSET))
            registry_add(registry, (enum registry_kind)kind, id, &members);
        if (!in.bad && kind == REGISTRY_GROUP && order.n > 0)
            registry_order(registry, id, &members, &order);
        procset_free(&members);
        proclist_free(&order);
    }
    return wire_end(&in) ? 0 : -1;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    for (uint32_t i = 0; i < registry->n; i++) {
        procset_free(&registry->entries[i].members);
        proclist_free(&registry->entries[i].order);
    }
    for (uint32_t i = 0; i < registry->ntold; i++)
        procset_free(&registry->told[i].gone);
    free(registry->entries);
    free(registry->told);
    free(registry);
}
