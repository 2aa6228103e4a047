/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries that wait for the RM to say how long the job may run. The server asks the RM one question
 * at a time, also when the answer is late. */
#include "common/server/time_left.h"

static void tell(struct time_wait *wait, int64_t seconds, const char *why)
{
    LIST_REMOVE(wait, entry);
    timer_stop(&wait->until);
    wait->done(wait->arg, seconds, why);
}

static void tell_all(struct server *server, int64_t seconds, const char *why)
{
    while (!LIST_EMPTY(&server->time_left.waits))
        tell(LIST_FIRST(&server->time_left.waits), seconds, why);
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    tell(arg, TIME_LEFT_LATE, "the resource manager does not answer");
}

static void on_answer(void *arg, int64_t seconds, const char *why)
{
    struct server *server = arg;
    server->time_left.asked = false;
    tell_all(server, seconds, why);
}

void time_left_ask(struct server *server, struct time_wait *wait)
{
    if (server->rm == NULL || server->rm_ops->time_left == NULL) {
        wait->done(wait->arg, TIME_LEFT_UNKNOWN, "the resource manager has no such bound");
        return;
    }
    LIST_INSERT_HEAD(&server->time_left.waits, wait, entry);
    timer_init(&wait->until, &server->timers, on_late, wait);
    timer_after(&wait->until, (int64_t)server->conf.timeouts.query * 1000);
    if (server->time_left.asked)
        return; /* the answer to the earlier question will do */
    server->time_left.asked = true;
    server->rm_ops->time_left(server->rm, on_answer, server);
}

void time_left_close(struct server *server)
{
    tell_all(server, TIME_LEFT_UNKNOWN, "the server leaves");
}
