/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each refusal. */
#include "common/notify/refuse.h"

#include <pmix.h>
#include <stdarg.h>
#include <stdio.h>

pmix_status_t refused_at(enum log_level level, pmix_status_t status, const char *fmt, ...)
{
    char why[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    log_write(level, "%s (%s)", why, PMIx_Error_string(status));
    return status;
}
