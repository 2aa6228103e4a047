/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Strings that are made.
 * @thread any
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** @return what printf() would write, malloc()ed, or NULL when out of memory. */
char *text_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** Puts a word at the end of a list. @param list freed; NULL: memory ran out before, and the result
 * is NULL again @param between stands before the word, unless it is the first one
 * @return the list with the word, malloc()ed, or NULL when out of memory. */
char *text_append(char *list, const char *between, const char *word);

/** Appends what fits into @p cap bytes. A text that was cut ends in "...", and takes no more.
 * @return whether it fitted. */
bool text_fit(char *buf, size_t cap, const char *text);
