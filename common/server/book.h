/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The book of connections: which processes are connected, on each server that hosts one of them.
 *
 * A connection is known by its participants and its id (RFC 0003, PMIX_CONNECT_ID). A second
 * connect of the same is the same connection. It is open from the success of its connect until the
 * success of its disconnect, or until all of another namespace in it has ended.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_BOOK_H
#define MUSTER_SERVER_BOOK_H

#include "common/tracker/values/procset.h"

/** Directives of the connect, by any of its participants. Contributions carry them to all servers,
 * from ENGINE_WANT_OWN on. */
enum {
    BOOK_EARLY_TERM = 1u << 8, /**< a process may end without disconnecting */
    BOOK_NOTIFY_EACH = 1u << 9,
    BOOK_XCHG_ONLY = 1u << 10, /**< it is no connection */
};

struct book_entry {
    struct book_entry *next;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members; /**< canonical */
    uint32_t directives;
};

struct book {
    struct book_entry *open; /**< the newest first */
    uint32_t n;
};

/** Notes a connection; of one that is open the directives are those of the last connect.
 * @return 0, or -1: out of memory */
int book_open(struct book *book, const char *id, const struct procset *members,
              uint32_t directives);

/** @return the connection, or NULL: none is open */
struct book_entry *book_find(const struct book *book, const char *id,
                             const struct procset *members);

/** Ends it. @return whether it was open */
bool book_close(struct book *book, const char *id, const struct procset *members);

/** @return the next connection after @p after that has the process, the first one after NULL; or
 * NULL */
const struct book_entry *book_next(const struct book *book, const struct book_entry *after,
                                   const char *nspace, uint32_t rank);

/** Takes out a connection that has processes of @p nspace, which has ended.
 * @return it, for the caller to book_drop(); NULL: there is none left */
struct book_entry *book_take(struct book *book, const char *nspace);

void book_drop(struct book_entry *entry);
void book_free(struct book *book);

#endif
