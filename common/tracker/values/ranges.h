/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sets of numbers as ranges: places of an operation, servers.
 */
#pragma once

#include "common/transport/wire.h"

/** The numbers first..last, both included. */
struct range {
    uint32_t first, last;
};

/** All zero is the empty set. */
struct ranges {
    uint32_t n, cap;
    struct range *v; /**< ascending, disjoint, not adjacent once canonical; owned */
};

/** Adds first..last; ranges_canonical() must follow the last one. @return 0, or -1: out of memory
 */
int ranges_add(struct ranges *set, uint32_t first, uint32_t last);

/** Sorts and joins what was added, without duplicates. */
void ranges_canonical(struct ranges *set);

/** Adds all of @p more; ranges_canonical() must follow. @return 0, or -1: out of memory */
int ranges_unite(struct ranges *set, const struct ranges *more);

/** Adds one number to a canonical set. @return 0, or -1: out of memory */
int ranges_put(struct ranges *set, uint32_t number);

/** @return whether @p number is in a canonical set */
bool ranges_have(const struct ranges *set, uint32_t number);

/** @return how many numbers there are */
uint64_t ranges_count(const struct ranges *set);

/** Appends a canonical set: u32 count, { u32 first, u32 last }…. @param most ranges; the rest is
 * left out */
void ranges_write(const struct ranges *set, uint32_t most, struct wire_out *out);

/** Reads a set into an all-zero @p set; what is not canonical, or above @p most, makes the cursor
 * bad. */
void ranges_read(struct ranges *set, uint32_t most, struct wire_in *in);

/** Where a walk through a canonical set is. All zero is before the first number. */
struct ranges_at {
    uint32_t range, offset; /**< of the next number */
    uint32_t number;
};

/** Goes on to the next number: `for (struct ranges_at at = {0}; ranges_next(set, &at);)`.
 * @return whether there is one */
bool ranges_next(const struct ranges *set, struct ranges_at *at);

/** Reads "0-3,8", or "" for none, into an all-zero @p set. @param most a greater number is a fault
 * @return 0, or -1: it is no such list, or out of memory; the set is to be freed then, too */
int ranges_parse(struct ranges *set, const char *text, size_t len, uint32_t most);

/** Writes a canonical set so; what does not fit into @p cap bytes is "...". */
void ranges_text(const struct ranges *set, char *buf, size_t cap);

void ranges_free(struct ranges *set);
