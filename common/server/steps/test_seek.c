/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of seek.c: each call goes on once, whoever finds out what it waits for, and only the
 * speaker asks as long as it does its work.
 */
#include "common/server/steps/seek.h"

#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/test_cmocka.h"

#include <string.h>

static struct server server;
static int64_t now;
static bool speaks, known[3];
static uint32_t found[3];
static enum { LATER, AT_ONCE, NEVER } answer;
static struct foreign lost = {.name = "job.0"};
static struct nspace there = {.nnodes = 1, .foreign = &lost};

static uint32_t index_of(const char *name)
{
    return (uint32_t)(name[4] - '0'); /* "job.0" */
}

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now;
}

/* ---- the parts of the server that seek.c calls ---- */

const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    (void)own;
    return known[index_of(name)] ? &there : NULL;
}

struct nspace *nspace_of(struct nspace *own, uint32_t node)
{
    (void)own, (void)node;
    return &there;
}

bool foreign_gone(const struct nspace *ns, uint32_t node)
{
    (void)ns, (void)node;
    return false;
}

uint32_t steps_speaker(void *arg, const struct procset *set)
{
    (void)arg, (void)set;
    return speaks ? 0 : 1;
}

struct nspace *steps_attach(struct server *s, const struct rm_server *at, struct err *err)
{
    (void)s, (void)at, (void)err;
    return &there;
}

/* It introduces itself at once. */
void steps_tell(struct server *s, struct nspace *ns, uint32_t node)
{
    (void)ns, (void)node;
    seek_learnt(s);
}

static void resolve(struct rm *rm, const char *name, rm_rendezvous_fn *done, void *arg)
{
    const struct rm_server at = {.node = 0};
    (void)rm;
    found[index_of(name)]++;
    known[index_of(name)] = answer == AT_ONCE;
    if (answer != LATER)
        done(arg, answer == AT_ONCE ? &at : NULL, "there is no such step");
}

struct call {
    struct seek_wait wait;
    struct procset set;
    uint32_t done;
};

static void on_done(struct seek_wait *wait)
{
    struct call *call = (struct call *)wait;
    call->done++;
    procset_free(&call->set); /* as a request is freed */
    call->set = (struct procset){0};
}

static void begin(struct call *call, int64_t ms)
{
    *call = (struct call){.wait = {.set = &call->set, .done = on_done}};
    procset_add(&call->set, "job.0", 0, 3);
    procset_add(&call->set, "job.1", 0, 0);
    procset_add(&call->set, "job.2", 0, 0);
    procset_canonical(&call->set);
    seek_begin(&server, &call->wait, ms);
}

static int setup(void **state)
{
    static const struct rm_ops ops = {.resolve = resolve};
    (void)state;
    server = (struct server){.rm_ops = &ops, .timers = {.now = clock_of}};
    seek_open(&server);
    now = 1000;
    speaks = false;
    answer = LATER;
    memset(found, 0, sizeof found);
    memset(known, 0, sizeof known);
    known[0] = true;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    seek_close(&server);
    return 0;
}

static void the_speaker_asks(void **state)
{
    struct call call;
    (void)state;
    speaks = true;
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(found[0], 0); /* it is known */
    assert_int_equal(found[1], 1);
    assert_int_equal(found[2], 1);
    known[1] = true;
    seek_learnt(&server);
    assert_int_equal(call.done, 0);
    known[2] = true;
    seek_learnt(&server);
    assert_int_equal(call.done, 1);
    assert_int_equal(timers_wait(&server.timers), -1);
}

static void an_answer_may_come_within_the_question(void **state)
{
    struct call call;
    (void)state;
    speaks = true;
    answer = AT_ONCE;
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(call.done, 1);
    known[1] = false;
    answer = NEVER;
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(call.done, 1);
    assert_int_equal(found[1], 2);
}

static void another_one_waits_and_then_asks(void **state)
{
    struct call call;
    (void)state;
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(found[1], 0);
    assert_int_equal(timers_wait(&server.timers), SEEK_SELF_MS);
    now += SEEK_SELF_MS;
    timers_run(&server.timers);
    assert_int_equal(found[1], 1);
    timers_run(&server.timers);
    assert_int_equal(found[1], 1); /* once */
    assert_int_equal(timers_wait(&server.timers), SEEK_WAIT_MS - SEEK_SELF_MS);
    now += SEEK_WAIT_MS - SEEK_SELF_MS;
    timers_run(&server.timers);
    assert_int_equal(call.done, 1);
}

static void the_callers_deadline_holds(void **state)
{
    struct call call, other;
    (void)state;
    begin(&call, 700);
    begin(&other, SEEK_WAIT_MS);
    now += 700;
    timers_run(&server.timers);
    assert_int_equal(call.done, 1);
    assert_int_equal(other.done, 0);
    seek_server_lost(&server, 3); /* those that name its namespace */
    assert_int_equal(other.done, 1);
}

static void what_waits_at_the_end_goes_on(void **state)
{
    struct call call;
    (void)state;
    begin(&call, SEEK_WAIT_MS);
    seek_go_on(&server);
    assert_int_equal(call.done, 1);
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(call.done, 1);
}

static void without_an_rm_that_finds_steps_none_waits(void **state)
{
    struct call call;
    (void)state;
    seek_close(&server);
    begin(&call, SEEK_WAIT_MS);
    assert_int_equal(call.done, 1);
    seek_learnt(&server);
    seek_server_lost(&server, 3);
    seek_go_on(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_speaker_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_may_come_within_the_question, setup, teardown),
        cmocka_unit_test_setup_teardown(another_one_waits_and_then_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(the_callers_deadline_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_at_the_end_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(without_an_rm_that_finds_steps_none_waits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
