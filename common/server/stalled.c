/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reports of what has waited for stall_report seconds.
 */
#include "common/server/stalled.h"

#include "common/util/log.h"

#include <stdio.h>
#include <string.h>

/* How the user asks all servers of the step; the launcher knows how to get to a node, if anybody.
 */
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

void stalled(void *arg, uint64_t s, const char *text)
{
    struct server *server = arg;
    char how[512];
    if (server->stall_told || server->conf.stall_terminal == CONF_STALL_NEVER) {
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
        return;
    }
    server->stall_told = true;
    command(server, how, sizeof how);
    log_error("waiting for %llu s: %s; the %s goes on waiting; to see all of it: %s",
              (unsigned long long)s, text, boot_unit(&server->boot), how);
}
