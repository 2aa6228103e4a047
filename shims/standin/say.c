/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * musterrun's own messages: one write a line, so that lines of several processes do not mix.
 */
#include "shims/standin/say.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const struct standin_step *step;
static const struct standin_node *here;

void say_describe(const struct standin_step *its, const struct standin_node *node)
{
    step = its;
    here = node;
}

void say_list(int level, const char *fmt, va_list ap)
{
    static const char *const marks[] = {"error: ", "", "debug: ", ""};
    char line[2048];
    if (step && level != SAY_NOTE && step->verbose < level)
        return;
    int n = snprintf(line, sizeof(line), "musterrun: %s%s%s", here ? here->name : "",
                     here ? ": " : "", marks[level]);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        errno = 0; /* standard error is closed */
}

void say(int level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(level, fmt, ap);
    va_end(ap);
}
