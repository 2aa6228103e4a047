/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers tell each other of published data, as bytes: docs/wire.md has it. */
#include "common/holder/store.h"

#include <stdlib.h>
#include <string.h>

enum { FLAG_UIDS = 1, FLAG_GIDS = 2 };

void store_put_who(struct wire_out *out, const struct store_who *who)
{
    wire_put_str(out, who->nspace);
    wire_put_u32(out, who->rank);
    wire_put_str(out, who->host);
    wire_put_u32(out, who->uid);
    wire_put_u32(out, who->gid);
}

void store_get_who(struct wire_in *in, struct store_who *who)
{
    wire_get_str(in, who->nspace, sizeof who->nspace);
    who->rank = wire_get_u32(in);
    wire_get_str(in, who->host, sizeof who->host);
    who->uid = wire_get_u32(in);
    who->gid = wire_get_u32(in);
}

static void put_ids(struct wire_out *out, const uint32_t *ids, uint32_t n)
{
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u32(out, ids[i]);
}

static uint32_t *get_ids(struct wire_in *in, uint32_t *n)
{
    *n = wire_get_count(in, 4);
    if (*n > STORE_IDS_MAX)
        in->bad = true;
    uint32_t *ids = in->bad ? NULL : calloc(*n + 1ul, sizeof *ids);
    for (uint32_t i = 0; i < *n && !in->bad; i++)
        ids[i] = wire_get_u32(in);
    return ids;
}

void store_put_entry(struct wire_out *out, const struct store_entry *entry)
{
    store_put_who(out, &entry->who);
    wire_put_u64(out, entry->number);
    wire_put_u8(out, (uint8_t)entry->range);
    wire_put_u8(out, (uint8_t)entry->life);
    wire_put_u8(out, (entry->has_uids ? FLAG_UIDS : 0) | (entry->has_gids ? FLAG_GIDS : 0));
    procset_write(&entry->custom, out);
    put_ids(out, entry->uids, entry->nuids);
    put_ids(out, entry->gids, entry->ngids);
    wire_put_str(out, entry->key);
    wire_put_block(out, entry->value, entry->len);
}

struct store_entry *store_get_entry(struct wire_in *in)
{
    struct store_entry *e = calloc(1, sizeof *e);
    store_get_who(in, &e->who);
    e->number = wire_get_u64(in);
    e->range = wire_get_u8(in);
    e->life = wire_get_u8(in);
    uint8_t flags = wire_get_u8(in);
    e->has_uids = (flags & FLAG_UIDS) != 0;
    e->has_gids = (flags & FLAG_GIDS) != 0;
    procset_read(&e->custom, in);
    e->uids = get_ids(in, &e->nuids);
    e->gids = get_ids(in, &e->ngids);
    e->key = wire_get_strdup(in, STORE_KEY_MAX);
    const void *value = wire_get_block(in, &e->len);
    if (!in->bad && (e->value = malloc(e->len + 1)) != NULL && e->key != NULL &&
        e->range < STORE_RANGES && e->life < STORE_LIVES) {
        if (e->len > 0)
            memcpy(e->value, value, e->len);
        return e;
    }
    in->bad = true;
    store_entry_free(e);
    return NULL;
}

void store_put_entries(struct wire_out *out, const struct store *store, store_which_fn *which,
                       const void *arg)
{
    uint32_t n = 0;
    size_t at = out->len;
    wire_put_u32(out, 0);
    for (const struct store_entry *e = store_first(store); e != NULL; e = TAILQ_NEXT(e, link))
        if (which == NULL || which(arg, e)) {
            store_put_entry(out, e);
            n++;
        }
    wire_set_u32(out, at, n);
}

void store_put_lookup(struct wire_out *out, const struct store_lookup *lookup)
{
    store_put_who(out, &lookup->who);
    wire_put_u8(out, (uint8_t)lookup->range);
    procset_write(&lookup->custom, out);
    wire_put_u32(out, lookup->want);
    wire_put_u32(out, lookup->left);
    wire_put_u64(out, lookup->number);
    wire_put_u32(out, lookup->nkeys);
    for (uint32_t i = 0; i < lookup->nkeys; i++)
        wire_put_str(out, lookup->keys[i]);
}

char **store_get_keys(struct wire_in *in, uint32_t *n)
{
    *n = wire_get_count(in, 4);
    if (*n > STORE_KEYS_MAX)
        in->bad = true;
    char **keys = in->bad || *n == 0 ? NULL : calloc(*n, sizeof *keys);
    for (uint32_t i = 0; keys != NULL && i < *n && !in->bad; i++)
        if ((keys[i] = wire_get_strdup(in, STORE_KEY_MAX)) == NULL)
            in->bad = true;
    if (!in->bad && (keys != NULL || *n == 0))
        return keys;
    in->bad = true;
    store_free_keys(keys, *n);
    *n = 0;
    return NULL;
}

void store_free_keys(char **keys, uint32_t n)
{
    for (uint32_t i = 0; keys != NULL && i < n; i++)
        free(keys[i]);
    free(keys);
}

int store_get_lookup(struct wire_in *in, struct store_lookup *lookup)
{
    *lookup = (struct store_lookup){0};
    store_get_who(in, &lookup->who);
    lookup->range = wire_get_u8(in);
    procset_read(&lookup->custom, in);
    lookup->want = wire_get_u32(in);
    lookup->left = wire_get_u32(in);
    lookup->number = wire_get_u64(in);
    lookup->keys = store_get_keys(in, &lookup->nkeys);
    return in->bad || lookup->keys == NULL || lookup->range >= STORE_RANGES ? -1 : 0;
}

void store_free_lookup(struct store_lookup *lookup)
{
    procset_free(&lookup->custom);
    store_free_keys(lookup->keys, lookup->nkeys);
    *lookup = (struct store_lookup){0};
}
