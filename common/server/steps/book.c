/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists: a process is in few connections at a time. */
#include "common/server/steps/book.h"

#include "common/tracker/values/signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct book_entry *find(const struct book_list *list, const char *id,
                               const struct procset *members)
{
    struct book_entry *c;
    LIST_FOREACH (c, list, link)
        if (strcmp(c->id, id) == 0 && procset_equal(&c->members, members))
            break;
    return c;
}

struct book_entry *book_find(const struct book *book, const char *id, const struct procset *members)
{
    return find(&book->open, id, members);
}

static void take_closed(struct book *book, struct book_entry *entry)
{
    LIST_REMOVE(entry, link);
    book->nclosed--;
}

static struct book_entry *entry_new(const char *id, const struct procset *members)
{
    struct book_entry *c = calloc(1, sizeof *c);
    procset_unite(&c->members, members);
    snprintf(c->id, sizeof c->id, "%s", id);
    return c;
}

struct book_entry *book_open(struct book *book, const char *id, const struct procset *members,
                             uint32_t directives)
{
    struct book_entry *c = book_find(book, id, members);
    if (c == NULL) {
        c = find(&book->closed, id, members);
        if (c == NULL)
            c = entry_new(id, members);
        if (c->name[0] != '\0')
            take_closed(book, c);
        LIST_INSERT_HEAD(&book->open, c, link);
    }
    c->directives = directives;
    return c;
}

bool book_name(struct book_entry *entry)
{
    struct wire_out out = {0};
    if (entry->name[0] != '\0')
        return false;
    signature_write(&out, COLL_CONNECT, entry->id, &entry->members);
    snprintf(entry->name, sizeof entry->name, "%.200s.connect.%016" PRIx64,
             entry->members.parts[0].nspace, signature_hash(out.data, out.len));
    wire_out_free(&out);
    return true;
}

static const struct book_entry *named(const struct book_list *list, const char *name)
{
    const struct book_entry *c;
    LIST_FOREACH (c, list, link)
        if (c->name[0] != '\0' && strcmp(c->name, name) == 0)
            break;
    return c;
}

const struct book_entry *book_named(const struct book *book, const char *name, bool *is_open)
{
    const struct book_entry *c = named(&book->open, name);
    if (is_open != NULL)
        *is_open = c != NULL;
    return c != NULL ? c : named(&book->closed, name);
}

bool book_expand(const struct book *book, struct procset *set, const char *name, uint32_t rank,
                 bool all, int *rc)
{
    const struct book_entry *c = book_named(book, name, NULL);
    const struct procset_part *part;
    *rc = -1;
    if (c == NULL)
        return false;
    if (all)
        *rc = procset_unite(set, &c->members);
    else if (procset_at_place(&c->members, rank, &part, &rank))
        *rc = procset_add(set, part->nspace, rank, rank);
    return true;
}

bool book_close(struct book *book, const char *id, const struct procset *members)
{
    struct book_entry *c = book_find(book, id, members);
    if (c == NULL)
        return false;
    LIST_REMOVE(c, link);
    if (c->name[0] == '\0') {
        book_drop(c);
        return true;
    }
    LIST_INSERT_HEAD(&book->closed, c, link);
    book->nclosed++;
    return true;
}

struct book_entry *book_take_oldest(struct book *book)
{
    struct book_entry *c = LIST_FIRST(&book->closed);
    if (book->nclosed <= BOOK_CLOSED_MAX)
        return NULL;
    while (LIST_NEXT(c, link) != NULL)
        c = LIST_NEXT(c, link);
    take_closed(book, c);
    return c;
}

const struct book_entry *book_next(const struct book *book, const struct book_entry *after,
                                   const char *nspace, uint32_t rank)
{
    const struct book_entry *c = after == NULL ? LIST_FIRST(&book->open) : LIST_NEXT(after, link);
    while (c != NULL && !procset_has(&c->members, nspace, rank))
        c = LIST_NEXT(c, link);
    return c;
}

static struct book_entry *find_of(const struct book_list *list, const char *nspace)
{
    struct book_entry *c;
    LIST_FOREACH (c, list, link)
        if (procset_has_of(&c->members, nspace))
            break;
    return c;
}

struct book_entry *book_take(struct book *book, const char *nspace, bool *was_open)
{
    struct book_entry *c = find_of(&book->open, nspace);
    *was_open = c != NULL;
    if (c != NULL)
        LIST_REMOVE(c, link);
    else if ((c = find_of(&book->closed, nspace)) != NULL)
        take_closed(book, c);
    return c;
}

void book_drop(struct book_entry *entry)
{
    procset_free(&entry->members);
    free(entry);
}

void book_free(struct book *book)
{
    struct book_list *const lists[] = {&book->open, &book->closed};
    for (int i = 0; i < 2; i++)
        while (!LIST_EMPTY(lists[i])) {
            struct book_entry *c = LIST_FIRST(lists[i]);
            LIST_REMOVE(c, link);
            book_drop(c);
        }
    book->nclosed = 0;
}
