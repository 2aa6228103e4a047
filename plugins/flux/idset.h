/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sets of ranks as Flux writes them: "0-3,7", with or without brackets around, or "" for none.
 */
#pragma once

#include "common/tracker/values/ranges.h"

#include <string.h>

/**
 * @param set  all zero; to be freed also after an error
 * @param size ranks from here on are an error
 * @return 0, or -1
 */
static inline int idset_parse(struct ranges *set, const char *text, uint32_t size)
{
    size_t len = strlen(text), bracket = len > 1 && text[0] == '[' && text[len - 1] == ']';
    return ranges_parse(set, text + bracket, len - 2 * bracket, size - 1);
}
