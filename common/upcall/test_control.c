/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of job control's questions to all servers: one that comes again gets the same answer.
 */
#include "common/server/ending.h"
#include "common/server/peers/ask_all.h"
#include "common/server/steps/sets.h"
#include "common/server/tasks/signals.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <pmix_server.h>

enum { LATER_MS = 60000 };

static struct server server;
static int64_t now = 1;
static unsigned nwaiting; /* requests here that a cancel finds */
static unsigned nasked;   /* how often each server is asked the same */
static pmix_status_t last;

static int64_t clock_now(void *arg)
{
    (void)arg;
    return now;
}

/* ---- the parts of the server that control.c calls ---- */

struct server *upcall_server(void)
{
    return &server;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    run(item);
    return PMIX_SUCCESS;
}

bool checkpoints_cancel(struct server *s, const char *request, const char *nspace, uint32_t rank)
{
    (void)s, (void)request, (void)nspace, (void)rank;
    if (nwaiting == 0)
        return false;
    nwaiting--;
    return true;
}

/* The last answer counts: those before it were on their way when the view changed. */
void ask_all(struct server *s, enum ask_topic topic, const void *body, size_t len, uint32_t timeout,
             ask_all_answer_fn *answer, void *arg)
{
    int32_t status = PMIX_ERR_LOST_CONNECTION;
    (void)timeout;
    assert_int_equal(topic, ASK_CONTROL);
    for (unsigned i = 0; i < nasked; i++)
        status = upcall_answer_control(s, body, len);
    answer(arg, 0, status, NULL, 0);
}

/* Not called. */
int32_t sets_add(struct server *s, const char *name, const struct procset *members)
{
    (void)s, (void)name, (void)members;
    return PMIX_ERROR;
}

void checkpoint_begin(struct server *s, const struct checkpoint_order *order, struct answer answer)
{
    (void)s, (void)order, (void)answer;
}

void server_end_step(struct server *s, const struct rm_ending *ending, uint32_t teller)
{
    (void)s, (void)ending, (void)teller;
}

struct rm_ending ending_of_abort(int status, const char *why)
{
    (void)status, (void)why;
    return (struct rm_ending){.status = 0};
}

void signals_send(struct server *s, const struct procset *set, int sig)
{
    (void)s, (void)set, (void)sig;
}

uint64_t engine_context_id(struct engine *engine, uint32_t flags)
{
    (void)engine;
    return flags;
}

/* ---- the tests ---- */

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *arg,
                      pmix_release_cbfunc_t release, void *release_arg)
{
    (void)info, (void)n, (void)arg;
    last = status;
    if (release != NULL)
        release(release_arg);
}

static pmix_status_t cancel(void)
{
    const pmix_proc_t self = {.nspace = "job.1", .rank = 0};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_CANCEL, "first", PMIX_STRING);
    assert_int_equal(upcall_job_control(&self, NULL, 0, &info, 1, on_answer, NULL), PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info);
    return last;
}

static int begin(void **state)
{
    (void)state;
    server = (struct server){
        .boot = {.nnodes = 1, .ntasks = 1, .nspace = "job.1"},
        .timers = {.now = clock_now},
    };
    nwaiting = 1;
    nasked = 1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    upcall_free_control(&server);
    assert_false(timers_wait(&server.timers) >= 0);
    return 0;
}

static void a_cancel_that_comes_again_has_been_done(void **state)
{
    (void)state;
    nasked = 3;
    assert_int_equal(cancel(), PMIX_SUCCESS);
    assert_int_equal(cancel(), PMIX_ERR_NOT_FOUND);
}

/* What was asked for after the cancel is not its business. */
static void a_cancel_that_comes_again_finds_nothing_new(void **state)
{
    (void)state;
    nwaiting = 2;
    nasked = 2;
    assert_int_equal(cancel(), PMIX_SUCCESS);
    assert_int_equal(nwaiting, 1);
}

static void answers_are_forgotten(void **state)
{
    (void)state;
    cancel();
    cancel();
    assert_false(LIST_EMPTY(&server.control_answers));
    now += LATER_MS;
    timers_run(&server.timers);
    assert_true(LIST_EMPTY(&server.control_answers));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_cancel_that_comes_again_has_been_done),
        TEST(a_cancel_that_comes_again_finds_nothing_new),
        TEST(answers_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
