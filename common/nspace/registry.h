/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The groups and process sets that have members on this node, for queries.
 *
 * A query asks every server of the session, because a server knows only of what it takes part in
 * (PMIX_QUERY_NUM_GROUPS, …_GROUP_NAMES, …_GROUP_MEMBERSHIP, …_NUM_PSETS, …_PSET_NAMES,
 * …_PSET_MEMBERSHIP).
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/proclist.h"

/** What an entry is. */
enum registry_kind { REGISTRY_GROUP = 1, REGISTRY_PSET };

/** One group or set. */
struct registry_entry {
    enum registry_kind kind;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members; /**< canonical */
    struct proclist order;  /**< a group's: by rank, and maybe some that have left; empty: that of
                               the set */
    bool notify;            /**< a group's: members are told of others that go without leaving */
    bool ends; /**< a group's: libpmix tells those here of the lost when a destruct succeeds */
};

/** Members that have gone, as far as members here were told; of all groups of one id. It is kept
 * when these groups have ended. */
struct registry_told {
    char id[PROCSET_NAME_MAX + 1];
    struct procset gone;
};

struct registry {
    uint32_t n, cap;
    struct registry_entry *entries;
    uint32_t ntold;
    struct registry_told *told;
};

/** @return an empty registry, or NULL */
struct registry *registry_new(void);

/** Adds an entry unless it is there; groups of one id may stand beside each other when their
 * members differ. Copies everything. */
void registry_add(struct registry *registry, enum registry_kind kind, const char *id,
                  const struct procset *members);

/** Notes that members here are told that a process has gone. It ends once, and is in one group of
 * an id at that time. @return whether they did not know */
bool registry_tell(struct registry *registry, const char *id, const char *nspace, uint32_t rank);

/** A namespace has ended: processes of that name are others from now on, which may go, too. */
void registry_forget(struct registry *registry, const char *nspace);

/** @return the group, or NULL; until entries are added or removed */
struct registry_entry *registry_group(struct registry *registry, const char *id,
                                      const struct procset *members);

/** Sets the order of a group's members, which is that of group ranks. Copies it. @param order all
 * members, each once; empty: the set's own */
void registry_order(struct registry *registry, const char *id, const struct procset *members,
                    const struct proclist *order);

/** Appends the members in their order to @p list. */
void registry_list(const struct registry_entry *entry, struct proclist *list);

/** Adds what a process that is named by a group's id means: the member of that group rank, or all.
 * @param all whether it is a wildcard
 * @return whether a group with members here has that id; *rc is -1 when there is no such rank */
bool registry_expand(const struct registry *registry, struct procset *set, const char *id,
                     uint32_t rank, bool all, int *rc);

/** Has the members of a group told when one goes (PMIX_GROUP_NOTIFY_TERMINATION). */
void registry_notify(struct registry *registry, const char *id, const struct procset *members);

/** Removes an entry, if there is one. */
void registry_remove(struct registry *registry, enum registry_kind kind, const char *id,
                     const struct procset *members);

/** Appends all entries: u32 count, { u8 kind, str id, procset, proclist }…; the body of an answer.
 * The list is empty where the order is the set's own. */
void registry_write(const struct registry *registry, struct wire_out *out);

/** Adds what another registry wrote. @return 0, or -1 when the bytes are malformed */
int registry_merge(struct registry *registry, const void *data, size_t len);

void registry_free(struct registry *registry);
