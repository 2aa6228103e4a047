/** @file
 * The groups and process sets that have members on this node, for queries.
 *
 * A query asks every server of the session, because a server knows only of what it takes part in
 * (PMIX_QUERY_NUM_GROUPS, …_GROUP_NAMES, …_GROUP_MEMBERSHIP, …_NUM_PSETS, …_PSET_NAMES,
 * …_PSET_MEMBERSHIP).
 * @thread all of it: the loop's
 */
#ifndef MUSTER_NSPACE_REGISTRY_H
#define MUSTER_NSPACE_REGISTRY_H

#include "common/tracker/procset.h"

/** What an entry is. */
enum registry_kind { REGISTRY_GROUP = 1, REGISTRY_PSET };

/** One group or set. */
struct registry_entry {
    enum registry_kind kind;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members; /**< canonical */
};

struct registry {
    uint32_t n, cap;
    struct registry_entry *entries;
};

/** @return an empty registry, or NULL */
struct registry *registry_new(void);

/** Adds an entry unless it is there; groups of one id may stand beside each other when their
 * members differ. Copies everything. */
void registry_add(struct registry *registry, enum registry_kind kind, const char *id,
                  const struct procset *members);

/** Removes an entry, if there is one. */
void registry_remove(struct registry *registry, enum registry_kind kind, const char *id,
                     const struct procset *members);

/** Appends all entries: u32 count, { u8 kind, str id, procset }…; the body of an answer. */
void registry_write(const struct registry *registry, struct wire_out *out);

/** Adds what another registry wrote. @return 0, or -1 when the bytes are malformed */
int registry_merge(struct registry *registry, const void *data, size_t len);

void registry_free(struct registry *registry);

#endif
