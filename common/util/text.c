/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Formats into memory of the right size.
 */
#include "common/util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
    char *more = text_format("%s%s%s", list, *list != '\0' ? between : "", word);
    free(list);
    return more;
}
