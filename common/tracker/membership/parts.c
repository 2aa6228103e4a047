/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions of leaders and members, by server. */
#include "common/tracker/membership/private.h"

#include <stdlib.h>
#include <string.h>

static void part_free(struct assembly_part *part)
{
    procset_free(&part->procs);
    procset_free(&part->added);
    free(part->entries);
    free(part->bytes);
}

void parts_free(struct assembly_parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++)
        part_free(&parts->v[i]);
    free(parts->v);
}

void parts_remove(struct assembly_parts *parts, uint32_t i)
{
    part_free(&parts->v[i]);
    parts->n--;
    memmove(&parts->v[i], &parts->v[i + 1], (parts->n - i) * sizeof *parts->v);
}

struct assembly_part *parts_add(struct assembly_parts *parts, uint32_t node)
{
    struct assembly_part *v = realloc(parts->v, (parts->n + 1ul) * sizeof *v);
    if (v == NULL)
        return NULL;
    parts->v = v;
    v[parts->n] = (struct assembly_part){.node = node};
    return &v[parts->n++];
}

bool part_fill(struct assembly_part *part, uint32_t flags, const struct engine_entry *entries,
               uint32_t n)
{
    size_t len = 0, at = 0;
    for (uint32_t i = 0; i < n; i++)
        len += entries[i].len;
    unsigned char *bytes = malloc(len + 1);
    part->bytes = bytes;
    part->entries = calloc(n + 1ul, sizeof *part->entries);
    if (bytes == NULL || part->entries == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct engine_entry *e = &entries[i];
        if (e->len == 0)
            continue;
        memcpy(bytes + at, e->data, e->len);
        part->entries[part->nentries++] = (struct engine_entry){.data = bytes + at, .len = e->len};
        at += e->len;
    }
    part->flags = flags;
    part->have = true;
    return true;
}

int parts_split(const struct engine *engine, const struct procset *set,
                struct assembly_parts *parts)
{
    for (struct procset_at proc = {0}; procset_next(set, &proc);) {
        uint32_t node, at = 0;
        if (engine->env.node_of(engine->env.arg, proc.nspace, proc.rank, &node) != 0)
            return -1;
        while (at < parts->n && parts->v[at].node != node)
            at++;
        if ((at == parts->n && parts_add(parts, node) == NULL) ||
            procset_add(&parts->v[at].procs, proc.nspace, proc.rank, proc.rank) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < parts->n; i++)
        procset_canonical(&parts->v[i].procs);
    return 0;
}

bool nodes_have(const uint32_t *nodes, uint32_t n, uint32_t node)
{
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}
