/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is said and done when a server is not there any more, on a clock of their own. The
 * test plays the loop, and the parts of the server that departed.c calls.
 */
#include "common/nspace/foreign.h"
#include "common/server/peers/departed.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/tasks.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <time.h>

enum { NNODES = 3, FOREIGN = 4 /* a handle of another step's server */ };

static uint32_t r0[] = {0}, r1[] = {1}, r2[] = {2};
static struct boot_node nodes[NNODES] = {{"c07", 1, r0, 0}, {"c08", 1, r1, 0}, {"c09", 1, r2, 0}};

static int64_t now;
static enum rm_peer_state peers[FOREIGN + 1]; /* as the back end says */
static bool awaited;                          /* for an operation */
static uint32_t failed[FOREIGN + 1], nfailed; /* what waited for these has failed, in this order */
static unsigned nends;                        /* of the step */
static char why_ended[256];
static struct task here[1];
static unsigned ntold;       /* losses that processes are told of */
static enum log_level level; /* of the last line */
static char said[256];
static struct server server;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
    return 0;
}

void engine_walk(const struct engine *engine,
                 void (*see)(void *arg, const struct engine_view *view), void *arg)
{
    static const uint32_t missing[] = {1};
    (void)engine;
    if (awaited)
        see(arg, &(struct engine_view){.root = 0, .missing = missing, .nmissing = 1});
}

void asks_walk(const struct asks *asks, void (*see)(void *arg, const struct ask_view *view),
               void *arg)
{
    (void)asks, (void)see, (void)arg;
}

bool engine_is_lost(const struct engine *engine, uint32_t node)
{
    (void)engine;
    for (uint32_t i = 0; i < nfailed; i++)
        if (failed[i] == node)
            return true;
    return false;
}

void engine_lost(struct engine *engine, uint32_t node)
{
    (void)engine;
    failed[nfailed++] = node;
}

void engine_left(struct engine *engine, uint32_t node)
{
    engine_lost(engine, node);
}

void asks_lost(struct asks *asks, uint32_t node)
{
    (void)asks;
    assert_int_equal(node, failed[nfailed - 1]);
}

bool steps_lost(struct server *s, uint32_t node)
{
    (void)s, (void)node;
    return true;
}

void server_learn(struct server *s, uint32_t node, enum rm_fact fact)
{
    (void)s;
    assert_int_equal(fact, RM_LEFT);
    assert_int_equal(failed[nfailed - 1], node);
}

void steps_tidy(struct server *s, uint32_t node)
{
    (void)s, (void)node;
}

static void server_lost(struct server *s, uint32_t node, const char *why)
{
    (void)s, (void)node, (void)why;
    ntold++;
}

static void task_lost(struct server *s, uint32_t slot, const char *text)
{
    (void)s, (void)slot, (void)text;
}

static const struct server_hooks hooks = {.task_lost = task_lost, .server_lost = server_lost};

void engine_local_loss(struct engine *engine)
{
    (void)engine;
}

bool server_has_left(const struct server *s, uint32_t node)
{
    (void)s, (void)node;
    return false;
}

void server_resume(struct server *s)
{
    (void)s;
}

void server_end_step(struct server *s, const struct rm_ending *ending, uint32_t teller)
{
    (void)s, (void)teller;
    nends++;
    assert_int_equal(ending->status, 137);
    snprintf(why_ended, sizeof why_ended, "%s", ending->why);
}

static struct rm_peer peer_of(struct rm *rm, uint32_t node)
{
    (void)rm;
    return (struct rm_peer){.state = peers[node]};
}

static void sink(void *arg, enum log_level l, const char *text)
{
    (void)arg;
    level = l;
    snprintf(said, sizeof said, "%s", text);
}

static int begin(void **state)
{
    static const struct rm_ops ops = {.peer = peer_of};
    (void)state;
    now = 10000;
    nfailed = ntold = nends = 0;
    awaited = false;
    for (uint32_t i = 0; i <= FOREIGN; i++)
        peers[i] = RM_PEER_LOST;
    said[0] = why_ended[0] = '\0';
    server = (struct server){.hooks = &hooks,
                             .rm_ops = &ops,
                             .boot = {.nspace = "slurm.4711.0",
                                      .label = "4711.0",
                                      .node = 2,
                                      .nnodes = NNODES,
                                      .ntasks = 3,
                                      .nodes = nodes}};
    server.nspace = nspace_new(&server.boot);
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return server.nspace == NULL;
}

static int end(void **state)
{
    (void)state;
    ranges_free(&server.in_order);
    nspaces_free(server.nspace);
    return 0;
}

/* Plays the loop until nothing is due. */
static void run_until(int64_t until)
{
    int64_t ms;
    while ((ms = timers_wait(&server.timers)) >= 0 && now + ms <= until) {
        now += ms;
        timers_run(&server.timers);
    }
    now = until;
}

static void test_a_loss_counts_at_once(void **state)
{
    (void)state;
    departed_lost(&server, 1, "its process has ended");
    assert_int_equal(nfailed, 1);
    assert_int_equal(ntold, 1);
    assert_int_equal(level, LOG_LEVEL_CAUSE);
    assert_string_equal(said, "muster-server on c08 is lost: its process has ended");
    assert_string_equal(server.lost, said);
    assert_int_equal(timers_wait(&server.timers), -1);
}

/* A server was killed, with its launcher or without, and no operation needs that node: the step is
 * ended by one whose tasks use PMIx, unless another was quicker, or the step is to go on. One that
 * is not reached may live, and one of another step is not its concern. */
static void test_one_that_died_ends_the_step(void **state)
{
    static const struct {
        uint32_t node;
        bool died, ending, goes_on;
        enum task_state task;
        unsigned nends;
    } rows[] = {
        {1, true, false, false, TASK_CONNECTED, 1},
        {1, false, false, false, TASK_CONNECTED, 0},
        {1, true, true, false, TASK_CONNECTED, 0},
        {1, true, false, true, TASK_CONNECTED, 0},
        {1, true, false, false, TASK_STARTED, 0},
        {1, true, false, false, TASK_FINALIZED, 0},
        {FOREIGN, true, false, false, TASK_CONNECTED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        server.conf.on_task_loss =
            rows[i].goes_on ? CONF_TASK_LOSS_CONTINUE : CONF_TASK_LOSS_END_STEP;
        server.tasks = here;
        peers[rows[i].node] = rows[i].died ? RM_PEER_DIED : RM_PEER_LOST;
        departed_lost(&server, rows[i].node, "its process has ended");
        assert_int_equal(timers_wait(&server.timers) > 0,
                         rows[i].died && !rows[i].goes_on && rows[i].node != FOREIGN);
        here[0].state = rows[i].task;
        server.ending = rows[i].ending; /* by the word of another server */
        run_until(now + 1039);          /* a second, and the turn of the third node */
        assert_int_equal(nends, 0);
        run_until(now + 1);
        assert_int_equal(nends, rows[i].nends);
        assert_string_equal(why_ended, nends == 0 ? ""
                                                  : "muster-server on c08 is lost: its process "
                                                    "has ended; ending the step");
        assert_int_equal(timers_wait(&server.timers), -1);
        end(state);
        begin(state);
    }
}

static void test_a_loss_of_another_step_counts_at_once(void **state)
{
    (void)state;
    peers[FOREIGN] = RM_PEER_LEFT; /* it says so itself, in order with its results */
    departed_lost(&server, FOREIGN, "it has left");
    assert_int_equal(nfailed, 1);
}

static void test_one_that_left_is_no_news(void **state)
{
    (void)state;
    peers[1] = RM_PEER_LEFT;
    departed_lost(&server, 1, "it has left");
    departed_left(&server, 1, false, "it has left"); /* by another way */
    assert_int_equal(nfailed, 1);
    assert_int_equal(failed[0], 1);
    assert_string_equal(said, ""); /* nobody waits for it */
    assert_int_equal(ntold, 0);    /* its tasks have ended in order, or were told of */
    assert_string_equal(server.lost, "");
}

static void test_one_that_left_and_is_awaited_is_an_error(void **state)
{
    (void)state;
    awaited = true;
    peers[1] = RM_PEER_LEFT;
    departed_lost(&server, 1, "it has left");
    assert_int_equal(nfailed, 1);
    assert_int_equal(level, LOG_LEVEL_CAUSE);
    assert_string_equal(said, "muster-server on c08 is lost: it has left");
}

static void test_one_without_tasks_is_told_of_when_needed(void **state)
{
    (void)state;
    departed_left(&server, 1, true, "rank 1 ended");
    assert_int_equal(nfailed, 1);
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_string_equal(server.lost, "muster-server on c08 is lost: rank 1 ended");
    assert_int_equal(server.loss, LOSS_UNSAID);
    assert_int_equal(ntold, 0);
    departed_lost(&server, 1, "nobody is there"); /* as the back end finds in the end */
    assert_int_equal(nfailed, 1);
    assert_int_equal(timers_wait(&server.timers), -1);
}

static void test_one_without_tasks_that_is_awaited_is_an_error(void **state)
{
    (void)state;
    awaited = true;
    departed_left(&server, 1, true, "rank 1 ended");
    assert_int_equal(level, LOG_LEVEL_CAUSE);
    assert_int_equal(server.loss, LOSS_SERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_loss_counts_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_died_ends_the_step, begin, end),
        cmocka_unit_test_setup_teardown(test_a_loss_of_another_step_counts_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_left_is_no_news, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_left_and_is_awaited_is_an_error, begin, end),
        cmocka_unit_test_setup_teardown(test_one_without_tasks_is_told_of_when_needed, begin, end),
        cmocka_unit_test_setup_teardown(test_one_without_tasks_that_is_awaited_is_an_error, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
