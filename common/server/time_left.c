/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries that wait for the RM to say how long the job may run. The server asks the RM one question
 * at a time, also when the answer is late. */
#include "common/server/time_left.h"

#include "common/util/clock.h"

/* Takes the first one off. @return NULL: there is none */
static struct time_wait *take(struct server *server)
{
    struct time_wait *wait = server->time_left.first;
    if (wait != NULL)
        server->time_left.first = wait->next;
    return wait;
}

static void tell_all(struct server *server, int64_t seconds, const char *why)
{
    struct time_wait *wait;
    while ((wait = take(server)) != NULL)
        wait->done(wait->arg, seconds, why);
}

static void on_answer(void *arg, int64_t seconds, const char *why)
{
    struct server *server = arg;
    server->time_left.asked = false;
    tell_all(server, seconds, why);
}

void time_left_ask(struct server *server, struct time_wait *wait)
{
    struct time_wait **end = &server->time_left.first;
    if (server->rm == NULL || server->rm_ops->time_left == NULL) {
        wait->done(wait->arg, TIME_LEFT_UNKNOWN, "the resource manager has no such bound");
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = wait;
    wait->next = NULL;
    wait->until = now_ms() + (int64_t)server->conf.timeouts.query * 1000;
    if (server->time_left.asked)
        return; /* the answer to the earlier question will do */
    server->time_left.asked = true;
    server->rm_ops->time_left(server->rm, on_answer, server);
}

int64_t time_left_next(const struct server *server, int64_t now)
{
    const struct time_wait *first = server->time_left.first;
    return ms_until(first != NULL ? first->until : 0, now);
}

void time_left_tick(struct server *server, int64_t now)
{
    while (time_left_next(server, now) == 0) {
        struct time_wait *wait = take(server);
        wait->done(wait->arg, TIME_LEFT_LATE, "the resource manager does not answer");
    }
}

void time_left_close(struct server *server)
{
    tell_all(server, TIME_LEFT_UNKNOWN, "the server leaves");
}
