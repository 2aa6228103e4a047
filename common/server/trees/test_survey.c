/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of survey.c: each server that is asked for is heard of once, whoever hangs, is lost or
 * leaves, and no server asks or is asked by many.
 */
#include "common/server/trees/survey.h"

#include "common/server/trees/test_frames.h"
#include "common/util/test_cmocka.h"

#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, FEW = 4, TIMEOUT_S = 5, WHO = 7, PART = 32 };

struct host {
    uint32_t self;
    struct timers timers;
    struct asks *asks;
    struct surveys *surveys;
    bool hangs;   /* frames to it wait */
    bool babbles; /* as a relay it says one server twice, and one of another part */
    uint32_t asked, served;
    /* what the one that asks has heard of it */
    uint32_t heard;
    int32_t status;
};

static struct host hosts[N];
static size_t answer_len;
static int64_t now;
static uint32_t nhosts;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now;
}

static void send_frame(void *arg, uint32_t node, struct wire_out *out)
{
    const struct host *host = arg;
    frames_send(host->self, node, out);
}

static void serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    static unsigned char answer[SURVEY_BYTES_MAX];
    struct host *host = arg;
    host->served++;
    assert_int_equal(len, 4);
    assert_memory_equal(body, "ping", 4);
    memcpy(answer, &host->self, sizeof host->self);
    asks_reply(host->asks, from, id, 0, answer, answer_len);
}

static void babble(const struct host *host, uint32_t from, uint64_t id)
{
    const uint32_t said[] = {host->self + 1, host->self + 1, host->self + 20};
    struct wire_out out = {0};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        unsigned char answer[100] = {0};
        memcpy(answer, &said[i], sizeof said[i]);
        wire_put_u32(&out, said[i]);
        wire_put_i32(&out, 0);
        wire_put_block(&out, answer, sizeof answer);
    }
    asks_reply(host->asks, from, id, 0, out.data, out.len);
    wire_out_free(&out);
}

static void relay(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    const struct host *host = arg;
    if (host->babbles)
        babble(host, from, id);
    else
        surveys_serve(host->surveys, from, id, body, len);
}

static void hear(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    assert_ptr_equal(arg, hosts);
    hosts[node].heard++;
    hosts[node].status = status;
    if (status == 0) {
        assert_int_equal(len, answer_len);
        assert_memory_equal(data, &node, sizeof node);
    }
}

/* Delivers all frames that do not wait. */
static void deliver(void)
{
    for (struct test_frame f; frames_take(&f); free(f.data)) {
        uint8_t type = *(uint8_t *)f.data;
        if (!hosts[f.to].hangs) {
            hosts[f.from].asked += type == FRAME_ASK;
            asks_frame(hosts[f.to].asks, f.from, type, (uint8_t *)f.data + 1, f.len - 1);
        }
    }
}

static void run(uint32_t seconds)
{
    deliver();
    for (uint32_t i = 0; i < seconds * 10; i++) {
        now += 100;
        for (uint32_t k = 0; k < nhosts; k++)
            if (!hosts[k].hangs)
                timers_run(&hosts[k].timers);
        deliver();
    }
}

static void open_all(uint32_t n)
{
    memset(hosts, 0, sizeof hosts);
    frames_open();
    nhosts = n;
    answer_len = 100;
    for (uint32_t i = 0; i < n; i++) {
        const struct ask_env env = {.arg = &hosts[i],
                                    .timeout = PMIX_ERR_TIMEOUT,
                                    .lost = PMIX_ERR_LOST_CONNECTION,
                                    .unsupported = PMIX_ERR_NOT_SUPPORTED,
                                    .closing = PMIX_ERR_UNREACH,
                                    .timers = &hosts[i].timers,
                                    .send = send_frame,
                                    .serve = {[ASK_STATUS] = serve, [ASK_RELAY] = relay}};
        hosts[i].self = i;
        hosts[i].timers = (struct timers){.now = clock_of};
        hosts[i].asks = asks_new(&env);
        hosts[i].surveys = surveys_new(hosts[i].asks, i, n, FEW);
    }
}

static void close_all(void)
{
    for (uint32_t i = 0; i < nhosts; i++) {
        asks_free(hosts[i].asks);
        surveys_free(hosts[i].surveys);
    }
    frames_close();
}

/* Asks all others. */
static void ask_all(void)
{
    struct ranges others = {0};
    for (uint32_t i = 0; i < nhosts; i++)
        if (i != WHO)
            ranges_put(&others, i);
    surveys_ask(hosts[WHO].surveys, &others, ASK_STATUS, "ping", 4, TIMEOUT_S, hear, hosts);
    ranges_free(&others);
}

/* Asserts that each other server is heard of once: those that hang have not answered. */
static void assert_heard(int32_t of_hanging)
{
    for (uint32_t i = 0; i < nhosts; i++) {
        assert_int_equal(hosts[i].heard, i != WHO);
        assert_int_equal(hosts[i].status, hosts[i].hangs ? of_hanging : 0);
    }
}

static void everybody_is_heard(void **state)
{
    (void)state;
    for (uint32_t n = WHO + 1; n <= N; n = n < 20 ? n + 1 : n + 49) {
        open_all(n);
        ask_all();
        run(0);
        assert_heard(0);
        uint32_t most = 2 * PART + 2 > n ? n : 2 * PART + 2;
        for (uint32_t i = 0; i < n; i++) {
            assert_in_range(hosts[i].asked, 0, most);
            assert_int_equal(hosts[i].served, i != WHO);
        }
        close_all();
    }
}

/* A few servers are asked without relays. */
static void few_are_asked_directly(void **state)
{
    struct ranges some = {0};
    (void)state;
    open_all(40);
    ranges_add(&some, 0, 1);
    ranges_add(&some, 30, 31);
    surveys_ask(hosts[WHO].surveys, &some, ASK_STATUS, "ping", 4, TIMEOUT_S, hear, hosts);
    ranges_free(&some);
    run(0);
    assert_int_equal(hosts[WHO].asked, 4);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(hosts[i].heard, i < 2 || i == 30 || i == 31);
    close_all();
}

/* Servers hang: relays, those that relays ask, and both. All others are heard, within the time that
 * a request for the state has. */
static void those_that_hang_hide_nobody(void **state)
{
    (void)state;
    for (int which = 1; which < 4; which++) {
        open_all(N);
        for (uint32_t i = 0; i < N; i++) /* relays are 0, 33, 65, and so on, as WHO is no part's */
            hosts[i].hangs = (which & 1 && i % 64 == 33) || (which & 2 && i % 50 == 4);
        ask_all();
        run(which == 2 ? TIMEOUT_S : 2 * TIMEOUT_S + SURVEY_RELAY_S);
        assert_heard(PMIX_ERR_TIMEOUT);
        for (uint32_t i = 0; i < N; i++)
            assert_in_range(hosts[i].served, 0, 2); /* the question comes again */
        close_all();
    }
}

/* Servers are lost that the relays take for alive: nobody waits for these. */
static void those_that_are_lost_keep_nobody(void **state)
{
    (void)state;
    open_all(N);
    for (uint32_t i = 0; i < N; i++)
        if (i % 33 == 0 || i % 50 == 4) {
            hosts[i].hangs = true;
            asks_lost(hosts[WHO].asks, i);
        }
    ask_all();
    run(0);
    assert_heard(PMIX_ERR_LOST_CONNECTION);
    assert_in_range(hosts[WHO].asked, 0, 2 * PART + 2);
    close_all();
}

/* A relay is lost, or leaves, while it waits for one that hangs. */
static void a_relay_that_goes_hides_nobody(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        open_all(N);
        hosts[10].hangs = true;
        ask_all();
        run(1);
        assert_int_equal(hosts[11].heard, 0); /* the relay waits for the one before */
        if (leaves)
            asks_close(hosts[0].asks);
        else
            hosts[0].hangs = true;
        asks_lost(hosts[WHO].asks, 0);
        run(TIMEOUT_S + 1);
        hosts[0].hangs = false;
        assert_heard(PMIX_ERR_TIMEOUT);
        close_all();
    }
}

/* What does not fit into a relay's answer is asked for directly. */
static void long_answers_are_fetched(void **state)
{
    (void)state;
    open_all(100);
    answer_len = SURVEY_BYTES_MAX / 3;
    ask_all();
    run(0);
    assert_heard(0);
    close_all();
}

/* A relay's word counts once for each server of its part, and for no other server. */
static void a_relay_that_babbles_is_heard_once(void **state)
{
    (void)state;
    open_all(40);
    hosts[0].babbles = true;
    ask_all();
    run(0);
    assert_heard(0);
    close_all();
}

/* A question that comes again while the relay waits is not put again. */
static void a_repeated_question_is_relayed_once(void **state)
{
    struct wire_out out = {0};
    struct ranges nodes = {0};
    (void)state;
    open_all(40);
    ranges_add(&nodes, 2, 3);
    wire_put_u8(&out, ASK_STATUS);
    wire_put_u32(&out, TIMEOUT_S);
    ranges_write(&nodes, UINT32_MAX, &out);
    wire_put_raw(&out, "ping", 4);
    for (int i = 0; i < 2; i++)
        surveys_serve(hosts[1].surveys, 0, 1, out.data, out.len);
    assert_int_equal(nframes, 2);
    run(0);
    assert_int_equal(hosts[2].served, 1);
    wire_out_free(&out);
    ranges_free(&nodes);
    close_all();
}

static void no_nonsense_is_relayed(void **state)
{
    struct wire_out out = {0};
    struct ranges all = {0}, other = {0};
    (void)state;
    open_all(40);
    ranges_add(&all, 0, 39);
    ranges_add(&other, 2, 3);
    wire_put_u8(&out, ASK_STATUS); /* to be asked of the relay, too */
    wire_put_u32(&out, 5);
    ranges_write(&all, UINT32_MAX, &out);
    for (size_t len = 0; len <= out.len; len++)
        surveys_serve(hosts[1].surveys, 0, 1, out.data, len);
    out.len = 0;
    wire_put_u8(&out, ASK_RELAY);
    wire_put_u32(&out, 5);
    ranges_write(&other, UINT32_MAX, &out);
    surveys_serve(hosts[1].surveys, 0, 2, out.data, out.len);
    run(0);
    assert_int_equal(nframes, 0);
    wire_out_free(&out);
    ranges_free(&all);
    ranges_free(&other);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_heard),
        cmocka_unit_test(few_are_asked_directly),
        cmocka_unit_test(those_that_hang_hide_nobody),
        cmocka_unit_test(those_that_are_lost_keep_nobody),
        cmocka_unit_test(a_relay_that_goes_hides_nobody),
        cmocka_unit_test(long_answers_are_fetched),
        cmocka_unit_test(a_relay_that_babbles_is_heard_once),
        cmocka_unit_test(a_repeated_question_is_relayed_once),
        cmocka_unit_test(no_nonsense_is_relayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
