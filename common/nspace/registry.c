/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A list of entries, each a name and its members. Queries write it as bytes, and merge the bytes
 * of other servers into one list.
 */
#include "common/nspace/registry.h"

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
        uint32_t cap = registry->cap > 0 ? 2 * registry->cap : 8;
        struct registry_entry *entries = realloc(registry->entries, cap * sizeof *entries);
        if (entries == NULL)
            return;
        registry->entries = entries;
        registry->cap = cap;
    }
    struct registry_entry *e = &registry->entries[registry->n];
    *e = (struct registry_entry){.kind = kind};
    strcpy(e->id, id);
    if (procset_unite(&e->members, members) == 0)
        registry->n++;
    else
        procset_free(&e->members);
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
    struct registry_told *more =
        strlen(id) > PROCSET_NAME_MAX
            ? NULL
            : realloc(registry->told, (registry->ntold + 1) * sizeof *registry->told);
    if (more == NULL)
        return NULL;
    registry->told = more;
    more += registry->ntold++;
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
    *e = registry->entries[--registry->n];
}

void registry_write(const struct registry *registry, struct wire_out *out)
{
    wire_put_u32(out, registry->n);
    for (uint32_t i = 0; i < registry->n; i++) {
        wire_put_u8(out, (uint8_t)registry->entries[i].kind);
        wire_put_str(out, registry->entries[i].id);
        procset_write(&registry->entries[i].members, out);
    }
}

int registry_merge(struct registry *registry, const void *data, size_t len)
{
    struct wire_in in;
    char id[PROCSET_NAME_MAX + 1];
    wire_in_init(&in, data, len);
    uint32_t n = wire_get_count(&in, 1 + 4 + 4);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct procset members = {0};
        uint8_t kind = wire_get_u8(&in);
        wire_get_str(&in, id, sizeof id);
        procset_read(&members, &in);
        if (!in.bad && (kind == REGISTRY_GROUP || kind == REGISTRY_PSET))
            registry_add(registry, (enum registry_kind)kind, id, &members);
        procset_free(&members);
    }
    return wire_end(&in) ? 0 : -1;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    for (uint32_t i = 0; i < registry->n; i++)
        procset_free(&registry->entries[i].members);
    for (uint32_t i = 0; i < registry->ntold; i++)
        procset_free(&registry->told[i].gone);
    free(registry->entries);
    free(registry->told);
    free(registry);
}
