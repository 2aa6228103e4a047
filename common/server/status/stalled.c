/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reports of what has waited for stall_report seconds.
 */
#include "common/server/status/stalled.h"

#include "common/util/log.h"

#include <stdio.h>
#include <string.h>

enum { STALLED_MAX = 1000 /* bytes of a line */ };

/* How the user asks all servers of the step; only the launcher may know how to get to a node. */
static void command(const struct server *server, char *buf, size_t cap)
{
    const struct boot *boot = &server->boot;
    const char *ask = boot_setting(boot, "ask"), *slash = strrchr(boot->tmpdir, '/');
    if (ask != NULL)
        snprintf(buf, cap, "%s", ask);
    else
        snprintf(buf, cap, "muster-status --dir=%.*s %s", (int)(slash - boot->tmpdir), boot->tmpdir,
                 boot->label);
}

/* All servers of the step may have something to report: the first one shows it. */
void stalled(void *arg, uint64_t s, const char *text)
{
    struct server *server = arg;
    char how[512], line[STALLED_MAX];
    if (server->stall_told || server->conf.stall_terminal == CONF_STALL_NEVER) {
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
        return;
    }
    server->stall_told = true;
    command(server, how, sizeof how);
    snprintf(line, sizeof line,
             "waiting for %llu s: %s; the %s goes on waiting; to see all of it: %s",
             (unsigned long long)s, text, log_unit(), how);
    if (server_first(server) == server->boot.node) {
        log_error("%s", line);
        return;
    }
    struct wire_out frame = {0};
    log_warning("waiting for %llu s: %s", (unsigned long long)s,
                text); /* Flux's user sees it, too */
    wire_put_u8(&frame, FRAME_STALLED);
    wire_put_str(&frame, line);
    link_send(server->link, server_first(server), &frame);
}

void stalled_receive(struct server *server, const void *body, size_t len)
{
    struct wire_in in;
    char line[STALLED_MAX];
    wire_in_init(&in, body, len);
    wire_get_str(&in, line, sizeof line);
    if (in.bad || server->stall_told || server->conf.stall_terminal == CONF_STALL_NEVER)
        return;
    server->stall_told = true;
    log_error("%s", line);
}
