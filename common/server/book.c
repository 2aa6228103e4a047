/* SPDX-License-Identifier: BSD-3-Clause */
/* A list: a process is in few connections at a time. */
#include "common/server/book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct book_entry *book_find(const struct book *book, const char *id, const struct procset *members)
{
    struct book_entry *c = book->open;
    while (c != NULL && (strcmp(c->id, id) != 0 || !procset_equal(&c->members, members)))
        c = c->next;
    return c;
}

int book_open(struct book *book, const char *id, const struct procset *members, uint32_t directives)
{
    struct book_entry *c = book_find(book, id, members);
    if (c == NULL) {
        c = calloc(1, sizeof *c);
        if (c == NULL || procset_unite(&c->members, members) != 0) {
            free(c);
            return -1;
        }
        snprintf(c->id, sizeof c->id, "%s", id);
        c->next = book->open;
        book->open = c;
        book->n++;
    }
    c->directives = directives;
    return 0;
}

static void take(struct book *book, struct book_entry *entry)
{
    struct book_entry **at = &book->open;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    book->n--;
}

bool book_close(struct book *book, const char *id, const struct procset *members)
{
    struct book_entry *c = book_find(book, id, members);
    if (c == NULL)
        return false;
    take(book, c);
    book_drop(c);
    return true;
}

const struct book_entry *book_next(const struct book *book, const struct book_entry *after,
                                   const char *nspace, uint32_t rank)
{
    const struct book_entry *c = after == NULL ? book->open : after->next;
    while (c != NULL && !procset_has(&c->members, nspace, rank))
        c = c->next;
    return c;
}

static bool names(const struct procset *set, const char *nspace)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        if (strcmp(set->parts[i].nspace, nspace) == 0)
            return true;
    return false;
}

struct book_entry *book_take(struct book *book, const char *nspace)
{
    struct book_entry *c = book->open;
    while (c != NULL && !names(&c->members, nspace))
        c = c->next;
    if (c != NULL)
        take(book, c);
    return c;
}

void book_drop(struct book_entry *entry)
{
    procset_free(&entry->members);
    free(entry);
}

void book_free(struct book *book)
{
    while (book->open != NULL) {
        struct book_entry *c = book->open;
        take(book, c);
        book_drop(c);
    }
}
