/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * An error with its text.
 */
#include "common/util/err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, const char *fmt, ...)
{
    if (err->text[0] == '\0') {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
    }
    return -1;
}
