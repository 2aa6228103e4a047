/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A list of processes in an order that a program has given: the members of a group by group rank.
 *
 * Runs of ranks, so that a list in ascending or descending order takes a few bytes, whatever its
 * length; 12 bytes a process at worst. Knows no PMIx.
 */
#pragma once

#include "common/tracker/values/procset.h"

enum { PROCLIST_MAX = 1 << 24 /**< processes that are read: each may be looked at */ };

/** The ranks first…last of one namespace, one by one, up or down. */
struct proclist_run {
    uint32_t name; /**< index of its namespace */
    uint32_t first, last;
};

/** All zero is the empty list. */
struct proclist {
    uint32_t nnames;
    char (*names)[PROCSET_NAME_MAX + 1]; /**< each once; owned */
    uint32_t n, cap;
    struct proclist_run *runs; /**< as few as there can be, when added from the front; owned */
};

/** Appends the ranks from @p first to @p last, downwards where @p first is the greater.
 * @return 0, or -1: out of memory or a name that is empty or too long */
int proclist_add(struct proclist *list, const char *nspace, uint32_t first, uint32_t last);

/** Appends all of a canonical set, ascending. @return 0, or -1 */
int proclist_add_set(struct proclist *list, const struct procset *set);

/** Adds all of @p more. @return 0, or -1: out of memory */
int proclist_add_list(struct proclist *list, const struct proclist *more);

/**
 * Appends those of @p more that are not in @p but, each once, and adds them to @p but.
 * @param but canonical, before and afterwards
 * @return 0, or -1
 */
int proclist_add_new(struct proclist *list, const struct proclist *more, struct procset *but);

/** Adds all to @p set, which is canonical afterwards. @return 0, or -1 */
int proclist_to_set(const struct proclist *list, struct procset *set);

/** @return the number of processes */
uint64_t proclist_size(const struct proclist *list);

/** Finds the process at @p place, from 0. @param nspace borrowed from the list
 * @return whether there are so many */
bool proclist_at(const struct proclist *list, uint64_t place, const char **nspace, uint32_t *rank);

/** @return whether the list has each member of a canonical set once, and no others; false, too,
 * when out of memory */
bool proclist_is_of(const struct proclist *list, const struct procset *set);

/** Orders two lists, by their first process that differs, for a sort that is the same everywhere.
 * @return as strcmp() */
int proclist_compare(const struct proclist *a, const struct proclist *b);

/** Appends a list. */
void proclist_write(const struct proclist *list, struct wire_out *out);

/** Reads a list into an all-zero @p list. */
void proclist_read(struct proclist *list, struct wire_in *in);

/** Where a walk through a list is. All zero is before the first process. */
struct proclist_at {
    uint32_t run, offset; /**< of the next process */
    const char *nspace;   /**< borrowed from the list */
    uint32_t rank;
};

/** Goes on to the next process. @return whether there is one */
bool proclist_next(const struct proclist *list, struct proclist_at *at);

void proclist_free(struct proclist *list);
