/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A set of processes: namespaces by name, each with ranges of ranks, in one canonical order, so
 * that equal sets have equal bytes on every server. Knows no PMIx.
 */
#pragma once

#include "common/tracker/values/ranges.h"

enum { PROCSET_NAME_MAX = 255 /**< bytes of a namespace's name, PMIX_MAX_NSLEN */ };

/** The members within one namespace. */
struct procset_part {
    char nspace[PROCSET_NAME_MAX + 1];
    struct ranges ranks;
};

/** All zero is the empty set. */
struct procset {
    uint32_t nparts;
    struct procset_part *parts; /**< ascending by strcmp() of their names once canonical */
};

/** Adds first..last of @p nspace; procset_canonical() must follow the last one.
 * @return 0, or -1: out of memory or a name that is empty or too long */
int procset_add(struct procset *set, const char *nspace, uint32_t first, uint32_t last);

/** Sorts and joins what was added, without duplicates. */
void procset_canonical(struct procset *set);

/** @return the number of processes */
uint64_t procset_size(const struct procset *set);

/** @return whether @p rank of @p nspace is a member; the set is canonical */
bool procset_has(const struct procset *set, const char *nspace, uint32_t rank);

/** @return whether processes of a namespace are in it */
bool procset_has_of(const struct procset *set, const char *nspace);

/** @return whether the first process of @p one is in @p set; both are canonical */
bool procset_has_first(const struct procset *set, const struct procset *one);

/** @return the place of a process in the order of a canonical set, from 0; UINT64_MAX: it is no
 * member */
uint64_t procset_place(const struct procset *set, const char *nspace, uint32_t rank);

/** Finds the process at @p place. @param part its part of @p set, and its rank
 * @return whether there are so many */
bool procset_at_place(const struct procset *set, uint64_t place, const struct procset_part **part,
                      uint32_t *rank);

/** Adds all of @p more to @p set, which is canonical afterwards. @return 0, or -1 */
int procset_unite(struct procset *set, const struct procset *more);

/** Adds what is in @p from and not in @p without to @p set, which is canonical afterwards.
 * @return 0, or -1 */
int procset_except(struct procset *set, const struct procset *from, const struct procset *without);

/** Takes the processes of a namespace out of it. */
void procset_drop(struct procset *set, const char *nspace);

/** @return whether all of @p set are in @p all; false, too, when out of memory */
bool procset_within(const struct procset *set, const struct procset *all);

/** @return whether two canonical sets have the same members */
bool procset_equal(const struct procset *a, const struct procset *b);

/** Appends a canonical set. */
void procset_write(const struct procset *set, struct wire_out *out);

/** Reads a set into an all-zero @p set; what is not canonical makes the cursor bad. */
void procset_read(struct procset *set, struct wire_in *in);

/** Where a walk through a canonical set is. All zero is before the first process. */
struct procset_at {
    uint32_t part;
    struct ranges_at ranks;
    const char *nspace; /**< borrowed from the set */
    uint32_t rank;
};

/** Goes on to the next process: `for (struct procset_at at = {0}; procset_next(set, &at);)`.
 * @return whether there is one */
bool procset_next(const struct procset *set, struct procset_at *at);

void procset_free(struct procset *set);
