/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sets of broker ranks as Flux writes them: "0-3,7", or "" for none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Ranks 0 to size-1; all zero is an empty set of size 0. */
struct idset {
    uint32_t size;
    bool *has; /**< owned */
};

/**
 * Reads a set; brackets around it are taken too.
 * @param size ranks from here on are an error
 * @param set  filled in also after an error; idset_free()
 * @return 0, or -1
 */
int idset_parse(struct idset *set, const char *text, uint32_t size);

bool idset_has(const struct idset *set, uint32_t rank);

/**
 * Writes those of @p a that are not in @p b.
 * @return a text for free(), or NULL when out of memory
 */
char *idset_minus(const struct idset *a, const struct idset *b);

void idset_free(struct idset *set);
