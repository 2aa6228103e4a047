/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What processes have published, and which processes may look it up.
 *
 * Keys are unique within a range: the first one published counts, whichever process publishes the
 * next one. Values are bytes here. What one namespace has, and all together, is bounded, so that a
 * program which publishes without end gets an error and no server dies of it.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"
#include "common/transport/wire.h"

#include <sys/queue.h>

enum {
    STORE_KEY_MAX = 511,        /**< bytes of a key, PMIX_MAX_KEYLEN */
    STORE_HOST_MAX = 255,       /**< of a node's name */
    STORE_IDS_MAX = 256,        /**< uids or gids that may read an entry */
    STORE_KEYS_MAX = 4096,      /**< of one lookup */
    STORE_ENTRY_COST = 512,     /**< bytes that an entry counts beside its key and value */
    STORE_NSPACE_MAX = 4 << 20, /**< bytes that one namespace may have */
    STORE_MAX = 64 << 20,       /**< bytes of all */
};

/** Which processes may see an entry; and which ones' entries a lookup wants to see. */
enum store_range {
    STORE_SESSION, /**< all processes of the session */
    STORE_NSPACE,  /**< those of the publisher's namespace */
    STORE_LOCAL,   /**< those on its node */
    STORE_SELF,    /**< itself */
    STORE_CUSTOM,  /**< processes that are listed */
    STORE_RANGES,
};

/** How long an entry lasts. */
enum store_life {
    STORE_SESSION_LIFE, /**< until it is unpublished, or no step of the session is left */
    STORE_FIRST_READ,   /**< the same, or until it is read */
    STORE_APP,          /**< the same, or until its namespace has ended */
    STORE_PROC,         /**< the same, or until its publisher has ended */
    STORE_LIVES,
};

/** A process that publishes or looks up. */
struct store_who {
    char nspace[PROCSET_NAME_MAX + 1];
    uint32_t rank;
    char host[STORE_HOST_MAX + 1];
    uint32_t uid, gid;
};

struct store_entry {
    TAILQ_ENTRY(store_entry) link; /**< the store's */
    struct store_who who;          /**< its publisher */
    uint64_t number;    /**< with the publisher it names the entry; given by its server */
    const void *keeper; /**< at the holder: the step that says it to the next one; NULL: its own */
    enum store_range range;
    enum store_life life;
    struct procset custom;               /**< of STORE_CUSTOM */
    bool has_uids, has_gids;             /**< only these may read it */
    uint32_t nuids, ngids, *uids, *gids; /**< owned */
    char *key;                           /**< owned */
    void *value;                         /**< owned */
    size_t len;
};
TAILQ_HEAD(store_list, store_entry);

struct store;

enum store_answer { STORE_OK, STORE_DUPLICATE, STORE_FULL };

/** What a process wants to know. */
struct store_lookup {
    struct store_who who;
    enum store_range range;
    struct procset custom; /**< of STORE_CUSTOM: publishers that count */
    uint32_t want;   /**< keys that have to be there before it is answered; 0: it does not wait */
    uint32_t left;   /**< ms that it may wait; 0: for ever */
    uint64_t number; /**< with the process it names the lookup */
    uint32_t nkeys;
    char **keys; /**< owned, and each */
};

/** Sizes, for muster-status. */
struct store_counts {
    uint32_t entries;
    uint64_t bytes;
};

/** @return an empty store */
struct store *store_new(void);
void store_free(struct store *store);

/** Frees an entry that no store has. NULL is fine. */
void store_entry_free(struct store_entry *entry);

/** Takes over an entry, which then is the store's; of one that is there already, it is freed.
 * @return STORE_OK, or why not: then it stays the caller's */
enum store_answer store_add(struct store *store, struct store_entry *entry);

/** The same, of what another store has admitted: only its bounds count. */
enum store_answer store_keep(struct store *store, struct store_entry *entry);

/** Whether all of these could be added one after another: none is when one could not. One that is
 * there already, by store_keep(), must not be in the way of earlier ones. */
enum store_answer store_may_add(struct store *store, const struct store_list *list);

/** @return the entry that @p lookup gets for @p key, or NULL: of several the narrowest */
struct store_entry *store_find(const struct store *store, const struct store_lookup *lookup,
                               const char *key);

/** @return the entry of that name, or NULL */
struct store_entry *store_named(const struct store *store, const char *nspace, uint32_t rank,
                                uint64_t number);

/** Removes and frees @p entry, which is in @p store. */
void store_remove(struct store *store, struct store_entry *entry);

/** Removes what a process has published. @param keys NULL: all keys @param range of STORE_RANGES:
 * all ranges @return how many entries */
uint32_t store_unpublish(struct store *store, const struct store_who *who, char *const *keys,
                         uint32_t nkeys, enum store_range range);

/** A process has ended. @return how many entries ended by that */
uint32_t store_ended(struct store *store, const char *nspace, uint32_t rank);

/** @return whether it is there when all processes of its publisher's step have ended */
bool store_outlives(const struct store_entry *entry);

struct store_counts store_counts(const struct store *store);

/** @return the oldest entry; go on with TAILQ_NEXT */
struct store_entry *store_first(const struct store *store);

/* Bytes; the readers leave nothing behind when in->bad is set. */

void store_put_who(struct wire_out *out, const struct store_who *who);
void store_get_who(struct wire_in *in, struct store_who *who);
void store_put_entry(struct wire_out *out, const struct store_entry *entry);

typedef bool store_which_fn(const void *arg, const struct store_entry *entry);
/** Writes u32 count, and that many entries. @param which NULL: all of the store */
void store_put_entries(struct wire_out *out, const struct store *store, store_which_fn *which,
                       const void *arg);

/** @return NULL: malformed (in->bad) */
struct store_entry *store_get_entry(struct wire_in *in);
void store_put_lookup(struct wire_out *out, const struct store_lookup *lookup);
/** @return 0, or -1: malformed; store_free_lookup() it either way */
int store_get_lookup(struct wire_in *in, struct store_lookup *lookup);
void store_free_lookup(struct store_lookup *lookup);
/** Reads u32 count and that many str. @return NULL: malformed, or none */
char **store_get_keys(struct wire_in *in, uint32_t *n);
void store_free_keys(char **keys, uint32_t n);
