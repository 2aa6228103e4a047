/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Messages, by the sink of the process that we live in.
 *
 * A message may quote what a peer or a user chose, and ends on terminals and in the logs of
 * daemons that run as root. So it is made harmless here, once, for every sink: no control
 * character, no newline that would fake a second message, no invalid UTF-8, no unbounded length.
 */
#include "common/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1000 };

/* Set by log_open() before other threads log, only read afterwards. */
static struct {
    log_sink_fn *sink;
    void *arg;
    enum log_level level;
    char prefix[128];
    char unit[16];
} out = {.level = LOG_LEVEL_INFO, .unit = "step"};

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Bytes of the printable character at p, or 0. The string ends with NUL, which no test below takes
 * for a continuation, so nothing behind it is read. */
static size_t printable(const unsigned char *p)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t len;
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        len = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        len = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        len = 4;
    else
        return 0;
    switch (p[0]) {
    case 0xc2: /* U+0080 to U+009F are control characters */
    case 0xe0: /* overlong */
        low = 0xa0;
        break;
    case 0xf0: /* overlong */
        low = 0x90;
        break;
    case 0xed: /* surrogates */
        high = 0x9f;
        break;
    case 0xf4: /* above U+10FFFF */
        high = 0x8f;
        break;
    default:
        break;
    }
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if (!is_continuation(p[i]))
            return 0;
    }
    return len;
}

bool log_is_text(const char *text, size_t len)
{
    size_t at = 0, n = 1;
    while (at < len && n > 0) {
        /* A character that goes on behind the end is none of these bytes. */
        unsigned char c[5] = {0};
        memcpy(c, text + at, len - at < 4 ? len - at : 4);
        n = printable(c);
        at += n;
    }
    return at == len;
}

void log_mask(char *text)
{
    unsigned char *p = (unsigned char *)text;
    while (*p != '\0') {
        size_t len = printable(p);
        if (len == 0)
            *p = '?';
        p += len > 0 ? len : 1;
    }
}

/* Takes away the character that the cut went through. */
static void trim_cut(char *text, size_t len)
{
    unsigned char *p = (unsigned char *)text;
    size_t lead = len;
    while (lead > 0 && len - lead < 3 && is_continuation(p[lead - 1]))
        lead--;
    if (lead > 0 && p[lead - 1] >= 0xc0 && printable(p + lead - 1) == 0)
        p[lead - 1] = '\0';
}

void log_stderr(void *arg, enum log_level level, const char *text)
{
    char line[TEXT_MAX + 16];
    int len = snprintf(line, sizeof(line), "<%d>%s\n", (int)level, text);
    (void)arg;
    /* One write, so that lines of several threads or processes do not mix. */
    while (write(STDERR_FILENO, line, (size_t)len) < 0 && errno == EINTR)
        ;
}

void log_open(log_sink_fn *sink, void *arg, enum log_level level, const char *prefix)
{
    out.sink = sink;
    out.arg = arg;
    out.level = level;
    log_prefix(prefix);
}

void log_prefix(const char *prefix)
{
    snprintf(out.prefix, sizeof(out.prefix), "%s", prefix ? prefix : "");
}

void log_set_unit(const char *unit)
{
    snprintf(out.unit, sizeof(out.unit), "%s", unit);
}

const char *log_unit(void)
{
    return out.unit;
}

int log_wants(enum log_level level)
{
    return level <= out.level;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    char text[TEXT_MAX + 1], *line;
    int saved_errno = errno, used = 0, n;
    va_list ap;
    if (!log_wants(level))
        return;
    if (out.prefix[0] != '\0')
        used = snprintf(text, sizeof(text), "%s: ", out.prefix);
    va_start(ap, fmt);
    n = vsnprintf(text + used, sizeof(text) - (size_t)used, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (used + n > TEXT_MAX)
        trim_cut(text, TEXT_MAX);
    log_mask(text);
    line = strncmp(text + used, text, (size_t)used) == 0 ? text + used : text;
    if (out.sink)
        out.sink(out.arg, level, line);
    else
        log_stderr(NULL, level, line);
    errno = saved_errno;
}
