/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Keeps entries in one list, in the order in which they came. A user's jobs publish few things, and
 * the bounds keep the list short enough to be walked for a request.
 */
#include "common/holder/store.h"

#include <stdlib.h>
#include <string.h>

struct store {
    struct store_list list;
    struct store_counts counts;
};

struct store *store_new(void)
{
    struct store *store = calloc(1, sizeof *store);
    TAILQ_INIT(&store->list);
    return store;
}

void store_entry_free(struct store_entry *entry)
{
    if (entry == NULL)
        return;
    procset_free(&entry->custom);
    free(entry->uids);
    free(entry->gids);
    free(entry->key);
    free(entry->value);
    free(entry);
}

void store_free(struct store *store)
{
    while (store != NULL && !TAILQ_EMPTY(&store->list))
        store_remove(store, TAILQ_FIRST(&store->list));
    free(store);
}

static uint64_t cost(const struct store_entry *entry)
{
    return STORE_ENTRY_COST + strlen(entry->key) + entry->len +
           sizeof *entry->uids * ((uint64_t)entry->nuids + entry->ngids);
}

static bool is_of(const struct store_entry *entry, const char *nspace, uint32_t rank)
{
    return entry->who.rank == rank && strcmp(entry->who.nspace, nspace) == 0;
}

/* Whether there is a process that sees both: then their keys must differ. */
static bool meet(const struct store_entry *a, const struct store_entry *b)
{
    if (a->range != b->range)
        return false; /* the narrower one is found */
    switch (a->range) {
    case STORE_SESSION:
        return true;
    case STORE_NSPACE:
        return strcmp(a->who.nspace, b->who.nspace) == 0;
    case STORE_LOCAL:
        return strcmp(a->who.host, b->who.host) == 0;
    case STORE_CUSTOM:
        return procset_equal(&a->custom, &b->custom);
    default:
        return is_of(a, b->who.nspace, b->who.rank);
    }
}

static bool is_same(const struct store_entry *a, const struct store_entry *b)
{
    return a->number == b->number && is_of(a, b->who.nspace, b->who.rank);
}

static uint64_t bytes_of(const struct store *store, const char *nspace)
{
    const struct store_entry *e;
    uint64_t bytes = 0;
    TAILQ_FOREACH (e, &store->list, link)
        if (strcmp(e->who.nspace, nspace) == 0)
            bytes += cost(e);
    return bytes;
}

/* @param end where to stop; NULL: all are looked at */
static enum store_answer clashes(const struct store_list *list, const struct store_entry *entry,
                                 const struct store_entry *end)
{
    const struct store_entry *e;
    for (e = TAILQ_FIRST(list); e != end; e = TAILQ_NEXT(e, link))
        if (e != entry && strcmp(e->key, entry->key) == 0 && meet(e, entry) && !is_same(e, entry))
            return STORE_DUPLICATE;
    return STORE_OK;
}

static enum store_answer has_room(const struct store *store, const char *nspace, uint64_t more)
{
    return store->counts.bytes + more > STORE_MAX ||
                   bytes_of(store, nspace) + more > STORE_NSPACE_MAX
               ? STORE_FULL
               : STORE_OK;
}

enum store_answer store_may_add(struct store *store, const struct store_list *list)
{
    const struct store_entry *e;
    uint64_t more = 0;
    TAILQ_FOREACH (e, list, link) {
        const struct store_entry *there = store_named(store, e->who.nspace, e->who.rank, e->number);
        if (clashes(&store->list, e, there) != STORE_OK || clashes(list, e, NULL) != STORE_OK)
            return STORE_DUPLICATE;
        more += there == NULL ? cost(e) : 0;
    }
    e = TAILQ_FIRST(list);
    return e == NULL || more == 0 ? STORE_OK : has_room(store, e->who.nspace, more);
}

static enum store_answer add(struct store *store, struct store_entry *entry, bool keeps)
{
    if (store_named(store, entry->who.nspace, entry->who.rank, entry->number) != NULL) {
        store_entry_free(entry);
        return STORE_OK;
    }
    enum store_answer answer = keeps ? STORE_OK : clashes(&store->list, entry, NULL);
    if (answer == STORE_OK)
        answer = has_room(store, entry->who.nspace, cost(entry));
    if (answer != STORE_OK)
        return answer;
    TAILQ_INSERT_TAIL(&store->list, entry, link);
    store->counts.entries++;
    store->counts.bytes += cost(entry);
    return STORE_OK;
}

enum store_answer store_add(struct store *store, struct store_entry *entry)
{
    return add(store, entry, false);
}

enum store_answer store_keep(struct store *store, struct store_entry *entry)
{
    return add(store, entry, true);
}

void store_remove(struct store *store, struct store_entry *entry)
{
    TAILQ_REMOVE(&store->list, entry, link);
    store->counts.entries--;
    store->counts.bytes -= cost(entry);
    store_entry_free(entry);
}

/* ---- which process may see which entry ---- */

/* Whether @p other is within a range of @p of. */
static bool reaches(enum store_range range, const struct procset *custom,
                    const struct store_who *of, const struct store_who *other)
{
    switch (range) {
    case STORE_SESSION:
        return true;
    case STORE_NSPACE:
        return strcmp(of->nspace, other->nspace) == 0;
    case STORE_LOCAL:
        return strcmp(of->host, other->host) == 0;
    case STORE_CUSTOM:
        return procset_has(custom, other->nspace, other->rank);
    default:
        return strcmp(of->nspace, other->nspace) == 0 && of->rank == other->rank;
    }
}

static bool is_listed(const uint32_t *ids, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* By uid or by gid; a list that is there and empty admits the publisher alone. */
static bool may_read(const struct store_entry *entry, const struct store_who *who)
{
    if ((!entry->has_uids && !entry->has_gids) || reaches(STORE_SELF, NULL, &entry->who, who))
        return true;
    return (entry->has_uids && is_listed(entry->uids, entry->nuids, who->uid)) ||
           (entry->has_gids && is_listed(entry->gids, entry->ngids, who->gid));
}

struct store_entry *store_find(const struct store *store, const struct store_lookup *lookup,
                               const char *key)
{
    /* a range further down is narrower, but a list may be anything: it comes before the session */
    static const int width[STORE_RANGES] = {
        [STORE_SESSION] = 4, [STORE_CUSTOM] = 3, [STORE_NSPACE] = 2, [STORE_LOCAL] = 1};
    struct store_entry *e, *found = NULL;
    TAILQ_FOREACH (e, &store->list, link)
        if (strcmp(e->key, key) == 0 && reaches(e->range, &e->custom, &e->who, &lookup->who) &&
            reaches(lookup->range, &lookup->custom, &lookup->who, &e->who) &&
            may_read(e, &lookup->who) && (found == NULL || width[e->range] < width[found->range]))
            found = e;
    return found;
}

struct store_entry *store_named(const struct store *store, const char *nspace, uint32_t rank,
                                uint64_t number)
{
    struct store_entry *e;
    TAILQ_FOREACH (e, &store->list, link)
        if (e->number == number && is_of(e, nspace, rank))
            return e;
    return NULL;
}

uint32_t store_unpublish(struct store *store, const struct store_who *who, char *const *keys,
                         uint32_t nkeys, enum store_range range)
{
    struct store_entry *e, *next;
    uint32_t n = 0;
    for (e = TAILQ_FIRST(&store->list); e != NULL; e = next) {
        bool wanted = keys == NULL;
        next = TAILQ_NEXT(e, link);
        for (uint32_t i = 0; i < nkeys && !wanted; i++)
            wanted = strcmp(e->key, keys[i]) == 0;
        if (!wanted || !is_of(e, who->nspace, who->rank) ||
            (range != STORE_RANGES && e->range != range))
            continue;
        store_remove(store, e);
        n++;
    }
    return n;
}

uint32_t store_ended(struct store *store, const char *nspace, uint32_t rank)
{
    struct store_entry *e, *next;
    uint32_t n = 0;
    for (e = TAILQ_FIRST(&store->list); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (!is_of(e, nspace, rank) || e->life != STORE_PROC)
            continue;
        store_remove(store, e);
        n++;
    }
    return n;
}

bool store_outlives(const struct store_entry *entry)
{
    return entry->life == STORE_SESSION_LIFE || entry->life == STORE_FIRST_READ;
}

struct store_counts store_counts(const struct store *store)
{
    return store->counts;
}

struct store_entry *store_first(const struct store *store)
{
    return TAILQ_FIRST(&store->list);
}
