/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that wait until the user can see a line. */
#include "common/server/status/shown.h"

#include "common/server/server.h"
#include "common/util/log.h"

enum { PATIENCE_MS = 2000 };

static void leave(struct shown_wait *wait)
{
    struct shown_wait **at = &wait->server->shown;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    timer_stop(&wait->patience);
}

void shown_forget(struct shown_wait *wait)
{
    if (timer_runs(&wait->patience))
        leave(wait);
}

/* The launcher's answer counts for the next one then, which goes on too early by that much. */
static void on_patience(void *arg, struct timer *timer)
{
    struct shown_wait *wait = arg;
    (void)timer;
    log_debug("the launcher does not say that the user has been told");
    leave(wait);
    wait->done(wait);
}

void shown_await(struct shown_wait *wait)
{
    struct server *server = wait->server;
    if (!server_tell_launcher(BOOT_SAYS_SHOW)) {
        wait->done(wait);
        return;
    }
    timer_init(&wait->patience, &server->timers, on_patience, wait);
    timer_after(&wait->patience, PATIENCE_MS);
    struct shown_wait **at = &server->shown;
    while (*at != NULL)
        at = &(*at)->next;
    *at = wait;
    wait->next = NULL;
}

void shown_take(struct server *server, uint32_t n)
{
    while (n-- > 0 && server->shown != NULL) {
        struct shown_wait *wait = server->shown;
        leave(wait);
        wait->done(wait);
    }
}
