/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the loop, and the parts of the server that tasks.c calls. */
#include "common/server/tasks/test_tasks_kit.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <pmix_common.h>

static uint32_t r0[] = {0, 1}, r1[] = {2, 3}, r2[] = {4, 5};
struct boot_node nodes[] = {{"c07", 2, r0, 0}, {"c08", 2, r1, 0}, {"c09", 2, r2, 0}};

int64_t now;
char said[512];
unsigned nerrors, nends, nlosses, ngone;
uint32_t through, gone_slot;
char why[512];
unsigned status;
bool told;
uint32_t departed;
struct task tasks[2];
struct server server;

/* Instead of libc's: now_ms() is all that asks for it. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
    return 0;
}

void server_end_step(struct server *s, const struct rm_ending *ending, uint32_t teller)
{
    nends++;
    through = teller;
    status = ending->status;
    told = ending->told;
    snprintf(why, sizeof why, "%s", ending->why);
    if (teller == s->boot.node)
        log_error("%s", ending->why);
    s->ending = true;
}

bool server_has_left(const struct server *s, uint32_t node)
{
    (void)s;
    return node == departed;
}

void server_resume(struct server *s)
{
    (void)s;
}

static void task_lost(struct server *s, uint32_t slot, const char *text)
{
    (void)s, (void)slot, (void)text;
    nlosses++;
}

static void task_gone(struct server *s, uint32_t slot)
{
    (void)s;
    ngone++;
    gone_slot = slot;
}

static const struct server_hooks hooks = {.task_lost = task_lost, .task_gone = task_gone};

void engine_local_loss(struct engine *engine)
{
    (void)engine;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level != LOG_LEVEL_ERROR)
        return;
    nerrors++;
    snprintf(said, sizeof said, "%s", text);
}

int begin(void **state)
{
    (void)state;
    now = 10000;
    nerrors = nends = nlosses = 0;
    said[0] = why[0] = '\0';
    status = 0;
    departed = BOOT_NO_NODE;
    memset(tasks, 0, sizeof tasks);
    tasks[0].state = tasks[1].state = TASK_CONNECTED;
    server = (struct server){.hooks = &hooks,
                             .tasks = tasks,
                             .boot = {.nspace = "slurm.4711.0",
                                      .label = "4711.0",
                                      .node = 1,
                                      .nnodes = 3,
                                      .ntasks = 6,
                                      .nodes = nodes}};
    server.conf.on_task_loss = CONF_TASK_LOSS_END_STEP;
    tasks_open(&server);
    server.nspace = nspace_new(&server.boot);
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return server.nspace == NULL;
}

int end(void **state)
{
    (void)state;
    nspace_free(server.nspace);
    return 0;
}

void again(void **state)
{
    end(state);
    begin(state);
}

/* Time passes, and the loop ticks when it is asked to. */
void run(int64_t ms)
{
    int64_t until = now + ms;
    for (;;) {
        int64_t next = timers_wait(&server.timers);
        if (next < 0 || now + next > until)
            break;
        now += next;
        timers_run(&server.timers);
    }
    now = until;
}

/* So many ends of the step are asked for once that time has passed. */
void ends_after(int64_t ms, unsigned n)
{
    run(ms);
    assert_int_equal(nends, n);
}

/* An operation fails here, since a rank has ended. */
void fail_with(int32_t failure, uint32_t rank)
{
    struct procset gone = {0};
    procset_add(&gone, server.boot.nspace, rank, rank);
    procset_canonical(&gone);
    tasks_bereft(&server, failure, &gone);
    procset_free(&gone);
}

void fail_for(uint32_t rank)
{
    fail_with(PMIX_ERR_LOST_CONNECTION, rank);
}
