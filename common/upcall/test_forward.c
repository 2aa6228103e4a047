/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of output on its way to libpmix: who has it while nobody pulls, and while connections are
 * congested.
 */
#include "common/launch/plan.h"
#include "common/server/process/rounds.h"
#include "common/server/spawned/outputs.h"
#include "common/upcall/forward.h"
#include "common/upcall/pullers.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <pmix_server.h>
#include <time.h>

enum { NOTHING = 77, FROM = 3, TASKS = 2 };

static struct server server;
static const pmix_proc_t task = {.nspace = "job.1", .rank = 0};
static const pmix_proc_t tool = {.nspace = "tool.1", .rank = 0};
static int64_t ms;
static bool busy; /* a connection is congested */

/* Instead of libc's, for now_ms(). */
__attribute__((visibility("hidden"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return 0;
}

struct server *upcall_server(void)
{
    return &server;
}

bool answer_wanted(void)
{
    return true;
}

bool rounds_congested(void)
{
    return busy;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    run(item);
    return PMIX_SUCCESS;
}

static int answered; /* the last answer's status, or NOTHING */

void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len)
{
    (void)asks, (void)id, (void)data, (void)len;
    assert_int_equal(node, FROM);
    answered = status;
}

static unsigned delivered;

pmix_status_t PMIx_server_IOF_deliver(const pmix_proc_t *source, pmix_iof_channel_t channel,
                                      const pmix_byte_object_t *bo, const pmix_info_t info[],
                                      size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)channel, (void)bo, (void)info, (void)ninfo;
    assert_string_equal(source->nspace, "child");
    delivered++;
    cbfunc(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

/* ---- helpers ---- */

static char nspace[] = "job.1";
static uint64_t question;

static void come(const char *name, uint32_t rank)
{
    struct pullers *pullers = forwards_pullers(&server);
    pullers_came(pullers, name, rank, pullers_now(pullers));
}

static int setup(void **state)
{
    (void)state;
    ms = 1000000;
    busy = false;
    delivered = 0;
    server.boot.nspace = nspace;
    forwards_new(&server);
    come("job.1", 0);
    come("job.1", 5);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    forwards_free(&server);
    return 0;
}

/* @return the number of a spawn whose call was answered */
static uint64_t spawn(const pmix_proc_t *parent)
{
    uint64_t number = forwards_number(&server);
    forwards_add(&server, number, parent, "o", TASKS);
    forwards_name(&server, number, "child");
    forwards_open(&server, number);
    return number;
}

/* A rank prints five bytes. @return what its server is answered, or NOTHING */
static int print_by(uint64_t number, uint32_t rank, char stream)
{
    struct wire_out out = {0};
    wire_put_u64(&out, number);
    wire_put_u32(&out, rank);
    wire_put_u8(&out, (uint8_t)stream);
    wire_put_block(&out, "text\n", 5);
    answered = NOTHING;
    upcall_serve_output(&server, FROM, ++question, out.data, out.len);
    wire_out_free(&out);
    return answered;
}

/* Rank 0 does. */
static int print(uint64_t number)
{
    return print_by(number, 0, PLAN_STDOUT);
}

static pmix_status_t pull_rank(pmix_rank_t rank, pmix_iof_channel_t channels, bool stops)
{
    pmix_info_t stop = {.key = PMIX_IOF_STOP};
    pmix_proc_t proc = {.nspace = "child", .rank = rank};
    return upcall_iof_pull(&proc, 1, &stop, stops, channels, NULL, NULL);
}

static pmix_status_t pull_of(pmix_iof_channel_t channels, bool stops)
{
    return pull_rank(PMIX_RANK_WILDCARD, channels, stops);
}

static pmix_status_t pull(bool stops)
{
    return pull_of(PMIX_FWD_STDOUT_CHANNEL, stops);
}

/* Until the timer, the only one that there is, has looked again. */
static void look(void)
{
    ms += timers_wait(&server.timers);
    timers_run(&server.timers);
}

/* ---- tests ---- */

static void test_pulled(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    assert_int_equal(print(number), OUTPUTS_PASS);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), PMIX_SUCCESS);
    assert_int_equal(delivered, 1);
}

/* muster is not told which process has pulled: no pull counts any more. */
static void test_one_of_two_stops(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(pull(true), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), OUTPUTS_PASS);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), PMIX_SUCCESS);
    assert_int_equal(delivered, 1);
}

/* When a process goes, muster is not told which pulls were its own, either. */
static void test_process_goes(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    forwards_parent_gone(&server, "job.1", 5);
    assert_int_equal(print(number), OUTPUTS_PASS);
    assert_int_equal(delivered, 0);
    forwards_parent_gone(&server, "job.1", 0);
    assert_int_equal(print(number), PMIX_ERR_NOT_FOUND);
}

/* The process has its answer before the loop hears that libpmix has sent it. */
static void test_pulled_at_once(void **state)
{
    (void)state;
    uint64_t number = forwards_number(&server);
    forwards_add(&server, number, &task, "o", TASKS);
    assert_int_equal(pull(false), PMIX_ERR_NOT_SUPPORTED);
    forwards_name(&server, number, "child");
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), NOTHING);
    forwards_open(&server, number);
    assert_int_equal(answered, PMIX_SUCCESS);
    assert_int_equal(delivered, 1);
}

/* Both streams come as one, and a pull may name both. */
static void test_merged(void **state)
{
    (void)state;
    const pmix_iof_channel_t both = PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    uint64_t number = spawn(&task);
    assert_int_equal(pull_of(both, false), PMIX_ERR_NOT_SUPPORTED);
    forwards_drop(&server, number);
    number = forwards_number(&server);
    forwards_add(&server, number, &task, "m", TASKS);
    forwards_name(&server, number, "child");
    forwards_open(&server, number);
    assert_int_equal(pull_of(PMIX_FWD_STDERR_CHANNEL, false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), OUTPUTS_PASS);
    assert_int_equal(pull_of(both, false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print(number), PMIX_SUCCESS);
}

/* muster leaves on the terminal what no process pulls. */
static void test_some_pulled(void **state)
{
    (void)state;
    uint64_t number = forwards_number(&server);
    forwards_add(&server, number, &task, "oe", TASKS);
    forwards_name(&server, number, "child");
    forwards_open(&server, number);
    assert_int_equal(pull_rank(TASKS, PMIX_FWD_STDOUT_CHANNEL, false), PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(pull_rank(1, PMIX_FWD_STDOUT_CHANNEL, false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print_by(number, 0, PLAN_STDOUT), OUTPUTS_PASS);
    assert_int_equal(print_by(number, 1, PLAN_STDERR), OUTPUTS_PASS);
    assert_int_equal(print_by(number, 1, PLAN_STDOUT), PMIX_SUCCESS);
    assert_int_equal(pull_of(PMIX_FWD_STDERR_CHANNEL, false), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print_by(number, 0, PLAN_STDOUT), OUTPUTS_PASS);
    assert_int_equal(print_by(number, 0, PLAN_STDERR), PMIX_SUCCESS);
    assert_int_equal(pull_of(PMIX_FWD_STDERR_CHANNEL, true), PMIX_OPERATION_SUCCEEDED);
    assert_int_equal(print_by(number, 1, PLAN_STDOUT), OUTPUTS_PASS);
    assert_int_equal(print_by(number, 0, PLAN_STDERR), OUTPUTS_PASS);
    assert_int_equal(delivered, 2);
}

/* The pull is of none that has come after it, nor of one that is not connected. */
static void test_others_go(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    forwards_parent_gone(&server, "job.1", 5); /* it has finalized, and ends below */
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    come("tool.1", 0);
    forwards_parent_gone(&server, "tool.1", 0);
    forwards_parent_gone(&server, "job.1", 5);
    forwards_parent_gone(&server, "job.1", 6);
    assert_int_equal(print(number), PMIX_SUCCESS);
    come("tool.1", 0);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    forwards_parent_gone(&server, "tool.1", 0);
    assert_int_equal(print(number), OUTPUTS_PASS);
}

/* libpmix drops all pulls of a name when one of two clients with that name goes. */
static void test_two_of_a_name(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
        if (i == 0)
            come("job.1", 5);
        assert_int_equal(print(number), PMIX_SUCCESS);
        forwards_parent_gone(&server, "job.1", 5);
        assert_int_equal(print(number), OUTPUTS_PASS);
    }
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    forwards_parent_gone(&server, "job.1", 5);
    assert_int_equal(print(number), PMIX_SUCCESS);
}

/* A tool's libpmix prints what comes, without a pull. */
static void test_tool_stays(void **state)
{
    (void)state;
    uint64_t number = spawn(&tool);
    forwards_parent_gone(&server, "job.1", 5);
    assert_int_equal(print(number), PMIX_SUCCESS);
    assert_int_equal(delivered, 1);
}

static void test_congested(void **state)
{
    (void)state;
    uint64_t number = spawn(&tool);
    busy = true;
    assert_int_equal(print(number), NOTHING);
    ms += FORWARD_HOLD_MS - 1;
    look();
    assert_int_equal(answered, NOTHING);
    busy = false;
    look();
    assert_int_equal(answered, PMIX_SUCCESS);
    assert_int_equal(delivered, 1);
}

/* Nothing is held for ever, and what follows is not held at all, until it is over. */
static void test_congested_for_long(void **state)
{
    (void)state;
    uint64_t number = spawn(&tool);
    busy = true;
    assert_int_equal(print(number), NOTHING);
    ms += FORWARD_HOLD_MS;
    look();
    assert_int_equal(answered, OUTPUTS_PASS);
    assert_int_equal(print(number), OUTPUTS_PASS);
    busy = false;
    look();
    assert_int_equal(print(number), PMIX_SUCCESS);
    busy = true; /* anew */
    assert_int_equal(print(number), NOTHING);
    assert_int_equal(delivered, 1);
}

/* Output that no process wants does not wait for connections. */
static void test_pull_ends_while_held(void **state)
{
    (void)state;
    uint64_t number = spawn(&task);
    assert_int_equal(pull(false), PMIX_OPERATION_SUCCEEDED);
    busy = true;
    assert_int_equal(print(number), NOTHING);
    forwards_parent_gone(&server, "job.1", 5);
    look();
    assert_int_equal(answered, OUTPUTS_PASS);
    assert_int_equal(delivered, 0);
}

/* How many there are costs nothing before the RM has started them. */
static void test_many(void **state)
{
    (void)state;
    uint64_t number = forwards_number(&server);
    forwards_add(&server, number, &task, "oe", UINT32_MAX / 2);
    forwards_drop(&server, number);
    assert_int_equal(print(number), PMIX_ERR_NOT_FOUND);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pulled),
        TEST(test_one_of_two_stops),
        TEST(test_process_goes),
        TEST(test_pulled_at_once),
        TEST(test_merged),
        TEST(test_some_pulled),
        TEST(test_others_go),
        TEST(test_two_of_a_name),
        TEST(test_tool_stays),
        TEST(test_congested),
        TEST(test_congested_for_long),
        TEST(test_pull_ends_while_held),
        TEST(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
