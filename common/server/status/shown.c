/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that wait until the user can see a line. */
#include "common/server/status/shown.h"

#include "common/server/server.h"
#include "common/util/event_ms.h"
#include "common/util/log.h"

enum { PATIENCE_MS = 2000 };

void shown_forget(struct shown_wait *wait)
{
    struct shown_wait **at = &wait->server->shown;
    if (wait->timer == NULL)
        return;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    event_free(wait->timer);
    wait->timer = NULL;
}

/* The launcher's answer counts for the next one then, which goes on too early by that much. */
static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct shown_wait *wait = arg;
    (void)fd, (void)what;
    log_debug("the launcher does not say that the user has been told");
    shown_forget(wait);
    wait->done(wait);
}

void shown_await(struct shown_wait *wait)
{
    struct server *server = wait->server;
    wait->timer = evtimer_new(server->base, on_patience, wait);
    if (wait->timer == NULL || event_add_ms(wait->timer, PATIENCE_MS) != 0 ||
        !server_tell_launcher(BOOT_SAYS_SHOW)) {
        if (wait->timer != NULL)
            event_free(wait->timer);
        wait->timer = NULL;
        wait->done(wait);
        return;
    }
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
        shown_forget(wait);
        wait->done(wait);
    }
}
