/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Each line is written at once, so that those of several programs do not mix.
 */
#include "common/status/lines.h"

#include "common/util/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void put(const struct lines *lines, const char *from, size_t len)
{
    char line[sizeof lines->text + 1];
    memcpy(line, from, len);
    line[len] = '\0';
    if (lines->mask)
        log_mask(line);
    if (lines->to == NULL) {
        lines->take(lines->arg, line);
        return;
    }
    if (lines->tag != NULL)
        fprintf(lines->to, "[%s] ", lines->tag);
    fwrite(line, 1, len, lines->to);
    putc('\n', lines->to);
    fflush(lines->to);
}

static void put_whole(struct lines *lines)
{
    char *from = lines->text, *end;
    size_t left = lines->len;
    while ((end = memchr(from, '\n', left)) != NULL) {
        put(lines, from, (size_t)(end - from));
        left -= (size_t)(end - from) + 1;
        from = end + 1;
    }
    memmove(lines->text, from, left);
    lines->len = left;
    if (left == sizeof lines->text) {
        put(lines, lines->text, left);
        lines->len = 0;
    }
}

void lines_read(struct lines *lines, int *fd)
{
    ssize_t n = read(*fd, lines->text + lines->len, sizeof lines->text - lines->len);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0) {
        lines->len += (size_t)n;
        put_whole(lines);
        return;
    }
    if (lines->len > 0)
        put(lines, lines->text, lines->len);
    lines->len = 0;
    close(*fd);
    *fd = -1;
}
