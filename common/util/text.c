/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Formats into memory of the right size.
 */
#include "common/util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_format(const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
}

char *text_append(char *list, const char *between, const char *word)
{
    if (list == NULL)
        return NULL;
    size_t len = strlen(list), gap = len > 0 ? strlen(between) : 0, more = strlen(word);
    char *longer = realloc(list, len + gap + more + 1);
    if (longer == NULL) {
        free(list);
        return NULL;
    }
    memcpy(longer + len, between, gap);
    memcpy(longer + len + gap, word, more + 1);
    return longer;
}

bool text_fit(char *buf, size_t cap, const char *text)
{
    size_t len = strlen(buf);
    if (len >= 3 && strcmp(buf + len - 3, "...") == 0)
        return false;
    bool fits = len + strlen(text) + sizeof "..." <= cap;
    if (fits || len + sizeof "..." <= cap)
        strcpy(buf + len, fits ? text : "...");
    return fits;
}
