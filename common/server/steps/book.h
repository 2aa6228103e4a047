/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The book of connections: which processes are connected, on each server that hosts one of them.
 *
 * A connection is known by its participants and its id (RFC 0003, PMIX_CONNECT_ID). A second
 * connect of the same is the same connection. It is open from the success of its connect until the
 * success of its disconnect, or until all of another namespace in it has ended.
 *
 * It may have a name, by which calls of PMIx name its processes as those of a namespace. The name
 * follows from the connection, so it is the same on every server. libpmix knows it until a
 * namespace of the connection ends, or BOOK_CLOSED_MAX others were closed later: a call that comes
 * after the disconnect gets an error, where libpmix would not hand up a call that names a namespace
 * unknown to it.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"

#include <sys/queue.h>

/** Directives of the connect, by any of its participants. Contributions carry them to all servers,
 * from ENGINE_WANT_OWN on. */
enum {
    BOOK_EARLY_TERM = 1u << 8, /**< a process may end without disconnecting */
    BOOK_NOTIFY_EACH = 1u << 9,
    BOOK_XCHG_ONLY = 1u << 10, /**< it is no connection */
    BOOK_NAMED = 1u << 11,     /**< it gets a name */
};

enum { BOOK_CLOSED_MAX = 64 /**< connections of one job have no end otherwise */ };

struct book_entry {
    LIST_ENTRY(book_entry) link;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members; /**< canonical */
    uint32_t directives;
    char name[PROCSET_NAME_MAX + 1]; /**< "": none */
};

/** The newest first. */
LIST_HEAD(book_list, book_entry);

struct book {
    struct book_list open;
    struct book_list closed; /**< those that have a name */
    uint32_t nclosed;
};

/** Notes a connection; of one that is open the directives are those of the last connect.
 * @return it */
struct book_entry *book_open(struct book *book, const char *id, const struct procset *members,
                             uint32_t directives);

/** Gives it its name. @return whether it had none before */
bool book_name(struct book_entry *entry);

/** Finds whose name it is. @param is_open whether that is open; may be NULL
 * @return the connection, or NULL */
const struct book_entry *book_named(const struct book *book, const char *name, bool *is_open);

/** @return the connection, or NULL: none is open */
struct book_entry *book_find(const struct book *book, const char *id,
                             const struct procset *members);

/** Adds what a process that is named by a connection means: a member by its rank, or all of them.
 * @param all whether it is a wildcard
 * @return whether it is one; *rc is -1 when there is no such rank */
bool book_expand(const struct book *book, struct procset *set, const char *name, uint32_t rank,
                 bool all, int *rc);

/** Ends it; one with a name is kept. @return whether it was open */
bool book_close(struct book *book, const char *id, const struct procset *members);

/** @return the next connection after @p after that has the process, the first one after NULL; or
 * NULL */
const struct book_entry *book_next(const struct book *book, const struct book_entry *after,
                                   const char *nspace, uint32_t rank);

/** Takes out the oldest of the closed connections when there are more than BOOK_CLOSED_MAX.
 * @return it, or NULL; book_drop() frees it */
struct book_entry *book_take_oldest(struct book *book);

/** Takes out a connection that has processes of @p nspace, which has ended; the open ones first.
 * @param was_open whether it was
 * @return it, for the caller to book_drop(); NULL: there is none left */
struct book_entry *book_take(struct book *book, const char *nspace, bool *was_open);

void book_drop(struct book_entry *entry);
void book_free(struct book *book);
