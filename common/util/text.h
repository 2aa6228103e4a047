/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Strings that are made.
 */
#ifndef MUSTER_UTIL_TEXT_H
#define MUSTER_UTIL_TEXT_H

/** @return what printf() would write, malloc()ed, or NULL when out of memory. @thread any */
char *text_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
