/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of questions: each is answered once, by the other side, its loss, or its deadline.
 */
#include "ci/loopback/loopback.h"
#include "common/transport/ask.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

/* A loopback of three servers; those asked answer at once, or keep the question. */
static struct {
    struct loopback *net;
    bool keep;
    uint32_t asked, from;
    uint64_t id;
} world;

/* What a question got. */
struct got {
    unsigned answers;
    int32_t status;
    bool data;
    char text[32];
    size_t len;
    uint64_t at;
};

static void serve(void *arg, uint32_t node, uint32_t from, uint64_t id, const void *body,
                  size_t len)
{
    (void)arg;
    world.asked++;
    world.from = from;
    world.id = id;
    assert_int_equal(len, 4);
    assert_memory_equal(body, "ping", 4);
    if (!world.keep)
        asks_reply(loopback_asks(world.net, node), from, id, 0, "pong", 4);
}

static void take(void *arg, int32_t status, const void *data, size_t len)
{
    struct got *got = arg;
    got->answers++;
    got->status = status;
    got->data = data != NULL;
    got->len = len;
    got->at = loopback_now(world.net);
    if (len > 0 && len < sizeof got->text)
        memcpy(got->text, data, len);
}

static void silent(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

static int open_world(void **state)
{
    const struct loopback_conf conf = {
        .nnodes = 3, .arity = 2, .seed = 3, .delay_max = 20, .duplicate = 300, .serve = serve};
    (void)state;
    memset(&world, 0, sizeof world);
    world.net = loopback_new(&conf);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    loopback_free(world.net);
    return 0;
}

static void ask(struct got *got, uint32_t node, uint32_t timeout)
{
    *got = (struct got){0};
    asks_send(loopback_asks(world.net, 0), node, ASK_MODEX, "ping", 4, timeout, take, got);
}

static void an_answer(void **state)
{
    struct got got[20];
    (void)state;
    for (int i = 0; i < 20; i++)
        ask(&got[i], 1 + (uint32_t)i % 2, 0);
    loopback_run(world.net, 1000);
    assert_int_equal(world.asked, 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(got[i].answers, 1);
        assert_int_equal(got[i].status, 0);
        assert_int_equal(got[i].len, 4);
        assert_string_equal(got[i].text, "pong");
    }
    assert_int_equal(loopback_wait(world.net, 0), -1);
}

static void a_refusal_has_no_data(void **state)
{
    struct got got;
    (void)state;
    world.keep = true;
    ask(&got, 1, 0);
    loopback_run(world.net, 100);
    asks_reply(loopback_asks(world.net, 1), 0, world.id, -5, "ignored", 7);
    loopback_run(world.net, 100);
    assert_int_equal(got.answers, 1);
    assert_int_equal(got.status, -5);
    assert_false(got.data);
    assert_int_equal(got.len, 0);
}

static void a_deadline(void **state)
{
    struct got two, five, none;
    (void)state;
    world.keep = true;
    uint64_t start = loopback_now(world.net);
    ask(&five, 1, 5);
    ask(&two, 2, 2);
    ask(&none, 2, 0);
    assert_int_equal(loopback_wait(world.net, 0), 1000); /* it knocks */
    loopback_run(world.net, 60000);
    assert_int_equal(two.status, LOOPBACK_TIMEOUT);
    assert_int_equal(two.at, start + 2000);
    assert_int_equal(five.status, LOOPBACK_TIMEOUT);
    assert_int_equal(five.at, start + 5000);
    assert_int_equal(none.answers, 0);
    /* an answer after the deadline is nobody's; ids ascend, so the last one asked is none's */
    for (uint64_t id = world.id - 2; id <= world.id; id++)
        asks_reply(loopback_asks(world.net, 2), 0, id, 0, "pong", 4);
    loopback_run(world.net, 100);
    assert_int_equal(two.answers, 1);
    assert_int_equal(five.answers, 1);
    assert_int_equal(none.answers, 1);
    assert_int_equal(none.status, 0);
}

/* The server that was asked may have left without reading it. */
static void a_question_that_waits_knocks(void **state)
{
    struct got got;
    (void)state;
    world.keep = true;
    ask(&got, 1, 0);
    loopback_run(world.net, 7000);
    assert_int_equal(world.asked, 1);
    asks_reply(loopback_asks(world.net, 1), 0, world.id, 0, "pong", 4);
    asks_reply(loopback_asks(world.net, 1), 0, world.id, 0, "pong", 4);
    loopback_run(world.net, 30000);
    assert_int_equal(got.answers, 1);
    assert_int_equal(world.asked, 1);
    assert_int_equal(loopback_wait(world.net, 0), -1);
}

static void a_loss(void **state)
{
    struct got lost[3], other, after;
    (void)state;
    world.keep = true;
    for (int i = 0; i < 3; i++)
        ask(&lost[i], 1, 0);
    ask(&other, 2, 0);
    loopback_run(world.net, 100);
    loopback_kill(world.net, 1, 10, 10);
    loopback_run(world.net, 100);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lost[i].answers, 1);
        assert_int_equal(lost[i].status, LOOPBACK_LOST);
    }
    assert_int_equal(other.answers, 0);
    ask(&after, 1, 0); /* at once */
    assert_int_equal(after.answers, 1);
    assert_int_equal(after.status, LOOPBACK_LOST);
    asks_close(loopback_asks(world.net, 0));
    assert_int_equal(other.answers, 1);
}

static void an_unknown_topic(void **state)
{
    static const uint8_t topics[] = {ASK_QUERY, ASK_TOPICS, 255};
    (void)state;
    for (size_t i = 0; i < sizeof topics; i++) {
        struct got got = {0};
        asks_send(loopback_asks(world.net, 0), 1, (enum ask_topic)topics[i], "ping", 4, 0, take,
                  &got);
        loopback_run(world.net, 100);
        assert_int_equal(got.answers, 1);
        assert_int_equal(got.status, LOOPBACK_UNSUPPORTED);
    }
    assert_int_equal(world.asked, 0);
}

static void closing(void **state)
{
    struct got got, after;
    (void)state;
    ask(&got, 1, 5);
    asks_close(loopback_asks(world.net, 0));
    assert_int_equal(got.answers, 1);
    assert_int_equal(got.status, LOOPBACK_CLOSING);
    ask(&after, 1, 5);
    assert_int_equal(after.answers, 1);
    assert_int_equal(after.status, LOOPBACK_CLOSING);
    loopback_run(world.net, 10000);
    assert_int_equal(got.answers, 1);
}

static void an_answer_of_the_wrong_server(void **state)
{
    struct got got;
    (void)state;
    world.keep = true;
    ask(&got, 1, 0);
    loopback_run(world.net, 100);
    asks_reply(loopback_asks(world.net, 2), 0, world.id, 0, "pong", 4);
    asks_reply(loopback_asks(world.net, 1), 0, world.id + 1, 0, "pong", 4);
    loopback_run(world.net, 100);
    assert_int_equal(got.answers, 0);
    asks_reply(loopback_asks(world.net, 1), 0, world.id, 0, "pong", 4);
    asks_reply(loopback_asks(world.net, 1), 0, world.id, 0, "pong", 4);
    loopback_run(world.net, 100);
    assert_int_equal(got.answers, 1);
}

static void cut_frames(void **state)
{
    struct got got;
    struct asks *asks = loopback_asks(world.net, 0);
    (void)state;
    world.keep = true;
    ask(&got, 1, 0);
    loopback_run(world.net, 100);
    for (size_t len = 0; len < 12; len++) {
        unsigned char answer[12] = {0, 0, 0, 0, 0, 0, 0, (unsigned char)world.id};
        asks_frame(asks, 1, FRAME_ANSWER, answer, len);
        assert_int_equal(got.answers, 0);
    }
    for (size_t len = 0; len < 9; len++)
        asks_frame(asks, 1, FRAME_ASK, "\0\0\0\0\0\0\0\1\1", len);
    loopback_run(world.net, 100);
    assert_int_equal(world.asked, 1);
    asks_close(asks);
    assert_int_equal(got.answers, 1);
}

static void ask_again(void *arg, int32_t status, const void *data, size_t len)
{
    struct got *got = arg;
    take(&got[0], status, data, len);
    ask(&got[1], 1, 0);
}

static void asking_from_an_answer(void **state)
{
    struct got got[2] = {{0}};
    (void)state;
    world.keep = true;
    asks_send(loopback_asks(world.net, 0), 1, ASK_MODEX, "ping", 4, 0, ask_again, got);
    loopback_run(world.net, 100);
    asks_lost(loopback_asks(world.net, 0), 1);
    assert_int_equal(got[0].answers, 1);
    assert_int_equal(got[1].answers, 1);
    assert_int_equal(got[1].status, LOOPBACK_LOST);
}

/* Questions on a clock of the test's own, with reports. */
static struct {
    int64_t now;
    unsigned lines;
    char last[256];
} reports;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return reports.now;
}

static struct timers timers = {.now = clock_of};

enum { FULL = -77 };
static size_t last_len;
static bool under_way;

static bool is_under_way(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    return under_way;
}

static void swallow(void *arg, uint32_t node, struct wire_out *frame)
{
    (void)arg, (void)node;
    last_len = frame->len;
    wire_out_free(frame);
}

static void describe(void *arg, uint32_t node, enum ask_topic topic, const void *body, size_t len,
                     char *buf, size_t cap)
{
    (void)arg;
    snprintf(buf, cap, "topic %d, \"%.*s\" of %u", (int)topic, (int)len, (const char *)body, node);
}

static void note(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level > LOG_LEVEL_WARNING)
        return;
    reports.lines++;
    snprintf(reports.last, sizeof reports.last, "%s", text);
}

/* The reports begin anew, at a clock of 1000 ms. @return questions that are reported after 60 s */
static struct asks *asks_reporting(void)
{
    const struct ask_env env = {.timeout = LOOPBACK_TIMEOUT,
                                .stall = 60,
                                .timers = &timers,
                                .full = FULL,
                                .send = swallow,
                                .is_under_way = is_under_way,
                                .describe = describe};
    memset(&reports, 0, sizeof reports);
    reports.now = 1000;
    log_open(note, NULL, LOG_LEVEL_WARNING, NULL);
    return asks_new(&env);
}

/* A piece of output is large, and waits until it is read: that is no stall, and the piece goes out
 * once. */
static void output_may_wait(void **state)
{
    static const unsigned long pauses[] = {1000, 5000, 5000, 5000};
    char body[2048] = "";
    struct got got = {0};
    (void)state;
    struct asks *asks = asks_reporting();
    asks_send(asks, 2, ASK_OUTPUT, body, sizeof body, 0, take, &got);
    assert_true(last_len > sizeof body);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        assert_int_equal(timers_wait(&timers), pauses[i]);
        reports.now += pauses[i];
        timers_run(&timers);
        assert_int_equal(last_len, 10);
    }
    assert_int_equal(reports.lines, 0);
    asks_free(asks);
    assert_int_equal(got.answers, 1);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
}

/* A sender does not knock at a server that has not taken what it was sent. */
static void a_server_that_takes_nothing(void **state)
{
    struct got got = {0};
    (void)state;
    struct asks *asks = asks_reporting();
    asks_send(asks, 2, ASK_MODEX, "ping", 4, 0, take, &got);
    for (unsigned i = 0; i < 4; i++) {
        under_way = i < 3;
        last_len = 0;
        reports.now += 5000;
        timers_run(&timers);
        assert_int_equal(last_len > 0, !under_way);
    }
    asks_free(asks);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
}

/* Questions that wait have a bound, and a line for the first one that is refused. Streams and what
 * is published have bounds of their own. */
static void too_many_questions(void **state)
{
    enum { LEN = 1 << 20, MANY = 64 };
    static const char body[LEN];
    struct got got = {0}, other = {0}, streams = {0};
    (void)state;
    struct asks *asks = asks_reporting();
    for (unsigned i = 0; i < MANY + 8; i++)
        asks_send(asks, i % 3, ASK_MODEX, body, LEN, 100, take, &got);
    assert_in_range(got.answers, 8, 9);
    assert_int_equal(got.status, FULL);
    assert_int_equal(reports.lines, 1);
    assert_non_null(strstr(reports.last, "refused, as 64 MiB of questions wait"));
    asks_send(asks, 1, ASK_OUTPUT, body, LEN, 0, take, &streams);
    asks_send(asks, 1, ASK_DATA, body, LEN, 0, take, &streams);
    assert_int_equal(streams.answers, 0);
    reports.now += 100000; /* those that were taken fail by their deadline */
    timers_run(&timers);
    assert_int_equal(got.answers, MANY + 8);
    asks_send(asks, 1, ASK_MODEX, body, LEN, 100, take, &other);
    assert_int_equal(other.answers, 0);
    asks_free(asks);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
}

static void count_view(void *arg, const struct ask_view *view)
{
    unsigned *n = arg;
    (*n)++;
    assert_int_equal(view->age, reports.now - 1000);
}

static void a_question_that_waits_is_reported(void **state)
{
    char body[] = "ping";
    struct got got = {0};
    unsigned n = 0;
    (void)state;
    struct asks *asks = asks_reporting();
    asks_send(asks, 2, ASK_MODEX, body, 4, 130, take, &got);
    memset(body, 'x', 4);                         /* the question has its own copy */
    assert_int_equal(timers_wait(&timers), 1000); /* it knocks */
    reports.now += 59999;
    timers_run(&timers);
    assert_int_equal(reports.lines, 0);
    reports.now += 1;
    timers_run(&timers);
    assert_int_equal(reports.lines, 1);
    assert_string_equal(reports.last, "waiting for 60 s: topic 1, \"ping\" of 2");
    assert_int_equal(timers_wait(&timers), 4999); /* and again */
    asks_walk(asks, count_view, &n);
    assert_int_equal(n, 1);
    reports.now += 60000;
    timers_run(&timers);
    assert_int_equal(reports.lines, 2);
    reports.now += 5000;
    timers_run(&timers);
    assert_int_equal(got.answers, 0);
    assert_int_equal(timers_wait(&timers), 5000); /* its deadline */
    reports.now += 5000;
    timers_run(&timers);
    assert_int_equal(got.answers, 1);
    assert_int_equal(reports.lines, 2);
    assert_int_equal(asks_counts(asks).asked[ASK_MODEX], 1);
    asks_free(asks);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(an_answer),
        TEST(a_refusal_has_no_data),
        TEST(a_deadline),
        TEST(a_question_that_waits_knocks),
        TEST(output_may_wait),
        TEST(a_server_that_takes_nothing),
        TEST(too_many_questions),
        TEST(a_loss),
        TEST(an_unknown_topic),
        TEST(closing),
        TEST(an_answer_of_the_wrong_server),
        TEST(cut_frames),
        TEST(asking_from_an_answer),
        TEST(a_question_that_waits_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
