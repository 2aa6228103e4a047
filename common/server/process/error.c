/* SPDX-License-Identifier: BSD-3-Clause */
/* error(), which libraries of resource managers define for themselves, with these arguments, and
 * call by its bare name. libc has one of that name, with other arguments, that ends the process,
 * and a library that is loaded later is searched after libc; the program itself is first. */
#include "common/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At info: what fails for good comes back as a status, and the caller tells it.
 * @thread any */
int error(const char *format, ...)
{
    char text[512];
    int saved = errno; /* callers look at it afterwards */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_info("%s", text);
    errno = saved;
    return -1;
}
