/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries that wait for the RM to say what the job has now. The server asks the RM one question at
 * a time, also when the answer is late. */
#include "common/server/job_now.h"

static void tell(struct job_wait *wait, int64_t seconds, const char *nodes, const char *why)
{
    LIST_REMOVE(wait, entry);
    timer_stop(&wait->until);
    wait->done(wait->arg, seconds, nodes, why);
}

static void tell_all(struct server *server, int64_t seconds, const char *nodes, const char *why)
{
    while (!LIST_EMPTY(&server->job_now.waits))
        tell(LIST_FIRST(&server->job_now.waits), seconds, nodes, why);
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    tell(arg, JOB_NOW_LATE, NULL, "the resource manager does not answer");
}

static void on_answer(void *arg, int64_t seconds, const char *nodes, const char *why)
{
    struct server *server = arg;
    server->job_now.asked = false;
    tell_all(server, seconds, nodes, why);
}

void job_now_ask(struct server *server, struct job_wait *wait)
{
    if (server->rm == NULL || server->rm_ops->job_now == NULL) {
        wait->done(wait->arg, JOB_NOW_UNKNOWN, NULL, "the resource manager has no such bound");
        return;
    }
    LIST_INSERT_HEAD(&server->job_now.waits, wait, entry);
    timer_init(&wait->until, &server->timers, on_late, wait);
    timer_after(&wait->until, (int64_t)server->conf.timeouts.query * 1000);
    if (server->job_now.asked)
        return; /* the answer to the earlier question will do */
    server->job_now.asked = true;
    server->rm_ops->job_now(server->rm, on_answer, server);
}

void job_now_close(struct server *server)
{
    tell_all(server, JOB_NOW_UNKNOWN, NULL, "the server leaves");
}
