/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's standard error, carried into the launcher's log line by line.
 *
 * A line may begin with the level of sd-daemon(3), "<4>". The server's own lines have one. A line
 * without a level comes from a library, as libpmix's "PMIX ERROR ... in file ... at line". It helps
 * a developer, but not the user, to whom errors are shown; so the relay logs it as information.
 */
#include "common/launch/relay.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINES_MAX = 200,      /* in one window */
    WINDOW_MS = 10000,    /* milliseconds */
    DRAIN_READS_MAX = 64, /* a server that never stops writing must not hold us */
};

void relay_open(struct relay *relay, int fd)
{
    *relay = (struct relay){.fd = fd, .window = now_ms()};
}

static enum log_level take_level(const char **text)
{
    const char *p = *text;
    if (p[0] != '<' || p[1] < '0' || p[1] > '7' || p[2] != '>') /* not the server's own */
        return strstr(p, RELAY_NO_LIBRARY) != NULL ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO;
    *text = p + 3;
    switch (p[1]) {
    case '2':
        return LOG_LEVEL_CAUSE;
    case '4':
        return LOG_LEVEL_WARNING;
    case '5':
    case '6':
        return LOG_LEVEL_INFO;
    case '7':
        return LOG_LEVEL_DEBUG;
    default:
        return LOG_LEVEL_ERROR;
    }
}

static void report_omitted(struct relay *relay)
{
    if (relay->omitted > 0)
        log_error("%lu lines of muster-server were left out: more than %d came within %d s",
                  relay->omitted, LINES_MAX, WINDOW_MS / 1000);
    relay->omitted = 0;
}

static void keep(char *to, size_t cap, const char *text)
{
    snprintf(to, cap, "%.200s", text);
    log_mask(to);
}

static void finish_line(struct relay *relay)
{
    const char *text = relay->line;
    relay->line[relay->used] = '\0';
    relay->used = 0;
    enum log_level level = take_level(&text);
    if (*text == '\0')
        return;
    if (now_ms() - relay->window >= WINDOW_MS) {
        report_omitted(relay);
        relay->window = now_ms();
        relay->count = 0;
    }
    if (level <= LOG_LEVEL_ERROR)
        keep(relay->last_error, sizeof(relay->last_error), text);
    if (text == relay->line) {
        keep(relay->last_words, sizeof(relay->last_words), text);
        relay->said = now_ms();
    }
    if (++relay->count > LINES_MAX)
        relay->omitted++;
    else
        log_write(level, "%s", text);
}

static void take_byte(struct relay *relay, char c)
{
    if (c == '\n')
        finish_line(relay);
    else if (relay->used < sizeof(relay->line) - 1) /* the rest of a long line is left out */
        relay->line[relay->used++] = c != '\0' ? c : '?';
}

bool relay_read(struct relay *relay)
{
    char buf[4096];
    ssize_t n;
    if (relay->fd < 0)
        return false;
    do {
        n = read(relay->fd, buf, sizeof(buf));
    } while (n < 0 && errno == EINTR);
    for (ssize_t i = 0; i < n; i++)
        take_byte(relay, buf[i]);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        close(relay->fd);
        relay->fd = -1;
    }
    return n > 0;
}

void relay_drain(struct relay *relay)
{
    for (int i = 0; i < DRAIN_READS_MAX && relay_read(relay); i++)
        ;
}

void relay_close(struct relay *relay)
{
    relay_drain(relay);
    if (relay->used > 0)
        finish_line(relay);
    report_omitted(relay);
    if (relay->fd >= 0)
        close(relay->fd);
    relay->fd = -1;
}
