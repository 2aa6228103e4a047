/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the link: each frame once, in order, and nothing that is not ours.
 */
#include "common/transport/link.h"
#include "common/transport/loopback.h"
#include "common/util/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAMES = 3000, MANY = 1024, WINDOW_MAX = 1 << 20, STEP = 99 };

/* Two ends: what the sender's back end was given, and what the receiver delivered. */
static struct {
    struct link *sender, *receiver;
    void *bytes[FRAMES];
    size_t len[FRAMES];
    uint32_t nsent;
    enum frame_care care; /* of the last one */
    uint32_t got[FRAMES], ngot;
} ends;

static void keep(void *arg, uint32_t node, void *data, size_t len, enum frame_care care)
{
    (void)arg;
    ends.care = care;
    assert_int_equal(node, 1);
    ends.bytes[ends.nsent] = data;
    ends.len[ends.nsent++] = len;
}

static void take(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len)
{
    struct wire_in in;
    (void)arg;
    assert_int_equal(from, 0);
    assert_true(type == FRAME_ASK || type == FRAME_ABSENT);
    wire_in_init(&in, body, len);
    ends.got[ends.ngot++] = wire_get_u32(&in);
    assert_true(wire_end(&in));
}

static void swallow(void *arg, uint32_t node, void *data, size_t len, enum frame_care care)
{
    (void)arg;
    (void)node;
    (void)len;
    (void)care;
    free(data);
}

static void silent(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    (void)level;
    (void)text;
}

static int open_ends(void **state)
{
    const struct link_env sender = {NULL, 0, 3, STEP, keep, take, NULL, NULL, NULL, NULL};
    const struct link_env receiver = {NULL, 1, 3, STEP, keep, take, NULL, NULL, NULL, NULL};
    (void)state;
    memset(&ends, 0, sizeof ends);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
    return ends.sender == NULL || ends.receiver == NULL;
}

static int close_ends(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ends.nsent; i++)
        free(ends.bytes[i]);
    link_free(ends.sender);
    link_free(ends.receiver);
    return 0;
}

/* Sends frames 0..n-1, each of which says its number. */
static void send_frames(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, FRAME_ASK);
        wire_put_u32(&out, i);
        link_send(ends.sender, 1, &out);
        assert_null(out.data); /* the bytes were taken */
    }
    assert_int_equal(ends.nsent, n);
}

static void receive(uint32_t i)
{
    link_receive(ends.receiver, ends.bytes[i], ends.len[i]);
}

static void assert_got(uint32_t first, uint32_t n)
{
    assert_int_equal(ends.ngot, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ends.got[i], first + i);
}

static void repeated_frames(void **state)
{
    (void)state;
    send_frames(2 * MANY);
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        receive(i);
        receive(i);
        receive(i / 2);
    }
    assert_got(0, 2 * MANY);
    assert_int_equal(link_counts(ends.receiver, 0).frames_in, 3 * 2 * MANY);
    assert_int_equal(link_counts(ends.receiver, 0).repeated, 2 * 2 * MANY);
    assert_int_equal(link_counts(ends.sender, 1).frames_out, 2 * MANY);
    assert_int_equal(link_counts(ends.sender, 1).bytes_out, 2 * MANY * ends.len[0]);
    assert_int_equal(link_counts(ends.receiver, 0).bytes_in, 3 * 2 * MANY * ends.len[0]);
}

static void frames_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct loopback_random random = {seed};
        uint32_t order[MANY];
        send_frames(MANY);
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t k = loopback_below(&random, i + 1);
            order[i] = i;
            order[i] = order[k];
            order[k] = i;
        }
        for (uint32_t i = 0; i < MANY; i++) {
            receive(order[i]);
            receive(order[loopback_below(&random, i + 1)]);
        }
        assert_got(0, MANY);
        close_ends(NULL);
        open_ends(NULL);
    }
}

/* As many as one message of a busy back end may have brought. */
static void the_first_frame_comes_last(void **state)
{
    (void)state;
    send_frames(FRAMES);
    for (uint32_t i = 1; i < FRAMES; i++)
        receive(i);
    assert_int_equal(ends.ngot, 0);
    assert_int_equal(link_counts(ends.receiver, 0).held, FRAMES - 1);
    receive(0);
    assert_got(0, FRAMES);
    assert_int_equal(link_counts(ends.receiver, 0).held, 0);
}

/* Gives a frame that was sent another number. */
static void renumber(uint32_t i, uint64_t number)
{
    struct wire_out out = {0};
    wire_put_u64(&out, number);
    memcpy((char *)ends.bytes[i] + 4 + 8 + 4, out.data, 8);
    wire_out_free(&out);
}

static void beyond_the_window(void **state)
{
    (void)state;
    send_frames(7);
    renumber(4, WINDOW_MAX + 1);
    renumber(5, WINDOW_MAX);
    renumber(6, WINDOW_MAX + 2);
    receive(3); /* held */
    receive(1); /* held */
    receive(5); /* held: the last that fits */
    assert_int_equal(ends.ngot, 0);
    assert_int_equal(link_counts(ends.receiver, 0).held, 3);
    receive(4);
    /* the others are given up, in order: 1, 3, 5, and the one that did not fit */
    static const uint32_t order[] = {1, 3, 5, 4};
    assert_int_equal(ends.ngot, 4);
    assert_memory_equal(ends.got, order, sizeof order);
    receive(0);
    receive(2);
    receive(3);
    assert_int_equal(ends.ngot, 4);
    receive(6);
    assert_int_equal(ends.ngot, 5);
}

static void a_number_out_of_all_bounds(void **state)
{
    (void)state;
    send_frames(3);
    unsigned char *bytes = ends.bytes[1];
    memset(bytes + 4 + 8 + 4, 0xff, 8);
    receive(2); /* held */
    receive(1);
    assert_int_equal(ends.ngot, 2);
    receive(0);
    assert_int_equal(ends.ngot, 2);
}

/* Frames of CARE_MAY are in no order: they neither wait for others nor do others for them. */
static void frames_that_need_not_arrive(void **state)
{
    static const enum frame_type types[] = {FRAME_ASK, FRAME_ABSENT, FRAME_ABSENT, FRAME_ASK};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, (uint8_t)types[i]);
        wire_put_u32(&out, i);
        link_send(ends.sender, 1, &out);
        assert_int_equal(ends.care, types[i] == FRAME_ABSENT ? CARE_MAY : CARE_SHOULD);
    }
    receive(2); /* number 1 is lost */
    assert_got(2, 1);
    receive(3); /* waits */
    receive(0);
    assert_int_equal(ends.ngot, 3);
    assert_int_equal(ends.got[1], 0);
    assert_int_equal(ends.got[2], 3);
    /* What has to come in its turn is no frame without a number. */
    memset((char *)ends.bytes[0] + 4 + 8 + 4, 0, 8);
    receive(0);
    assert_int_equal(ends.ngot, 3);
}

/* What another step, another sender or nobody wrote. */
static void frames_that_are_not_ours(void **state)
{
    static const struct {
        size_t at;
        unsigned char bend;
    } bends[] = {
        {4, 1},             /* step */
        {11, 1},            /* step */
        {4 + 8, 1},         /* sender 0x1000000 */
        {4 + 8 + 3, 1},     /* sender 1: the receiver itself */
        {4 + 8 + 3, 3},     /* sender 3: there is none */
        {4 + 8 + 4 + 7, 1}, /* number 0 */
    };
    (void)state;
    send_frames(1);
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        unsigned char *bytes = ends.bytes[0];
        bytes[bends[i].at] ^= bends[i].bend;
        receive(0);
        bytes[bends[i].at] ^= bends[i].bend;
    }
    assert_int_equal(ends.ngot, 0);
    receive(0);
    assert_got(0, 1);
}

static void several_frames_in_one_buffer(void **state)
{
    unsigned char all[1000];
    size_t len = 0;
    (void)state;
    send_frames(5);
    for (uint32_t i = 5; i-- > 0;) {
        memcpy(all + len, ends.bytes[i], ends.len[i]);
        len += ends.len[i];
    }
    link_receive(ends.receiver, all, len);
    assert_got(0, 5);
}

static void cut_frames(void **state)
{
    (void)state;
    send_frames(2);
    for (size_t len = 0; len < ends.len[0]; len++) {
        void *exact = malloc(len > 0 ? len : 1);
        assert_non_null(exact);
        memcpy(exact, ends.bytes[0], len);
        link_receive(ends.receiver, exact, len);
        free(exact);
    }
    /* a frame whose own length leaves no room for its header or its type */
    for (uint32_t size = 0; size <= 8 + 4 + 8; size++) {
        unsigned char bytes[4 + 20];
        memcpy(bytes, ends.bytes[0], sizeof bytes);
        bytes[3] = (unsigned char)size;
        link_receive(ends.receiver, bytes, 4 + size);
    }
    assert_int_equal(ends.ngot, 0);
    receive(0);
    receive(1);
    assert_got(0, 2);
}

/* A frame that cannot be built must not leave a gap that the receiver waits for. */
static void a_failed_frame_leaves_no_gap(void **state)
{
    struct wire_out failed = {.failed = true};
    (void)state;
    link_send(ends.sender, 1, &failed);
    send_frames(1);
    receive(0);
    assert_got(0, 1);
}

/* ---- greetings ---- */

static const char *greeting;
static unsigned asked;

static void greet(void *arg, uint32_t node, struct wire_out *out)
{
    (void)arg;
    assert_int_equal(node, 1);
    wire_put_raw(out, greeting, strlen(greeting));
}

static bool fits(void *arg, uint32_t from, const void *bytes, size_t len)
{
    (void)arg;
    assert_int_equal(from, 0);
    asked++;
    return bytes != NULL && len == 4 && memcmp(bytes, "good", 4) == 0;
}

static void open_greeted(const char *text)
{
    const struct link_env sender = {NULL, 0, 3, STEP, keep, take, NULL, NULL, greet, NULL};
    const struct link_env receiver = {NULL, 1, 3, STEP, keep, take, NULL, NULL, NULL, fits};
    link_free(ends.sender);
    link_free(ends.receiver);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    assert_non_null(ends.sender);
    assert_non_null(ends.receiver);
    greeting = text;
    asked = 0;
}

/* It comes with the first frame, and only with that, whatever overtakes it. */
static void a_greeting_comes_first(void **state)
{
    (void)state;
    open_greeted("good");
    send_frames(4);
    assert_int_equal(ends.len[0], ends.len[1] + 1 + 4 + 4);
    for (uint32_t i = 3; i > 0; i--)
        receive(i);
    assert_int_equal(asked, 0);
    assert_int_equal(ends.ngot, 0);
    receive(0);
    assert_int_equal(asked, 1);
    assert_got(0, 4);
    receive(0);
    assert_got(0, 4);
}

/* Of a server that does not fit nothing counts, neither before its greeting nor after it. */
static void a_greeting_is_refused(void **state)
{
    static const char *const greetings[] = {"", "bad", "good and bad"};
    (void)state;
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
        open_greeted(greetings[i]);
        send_frames(4);
        receive(1);
        receive(0);
        receive(0);
        receive(2);
        receive(3);
        assert_int_equal(asked, 1);
        assert_int_equal(ends.ngot, 0);
        close_ends(NULL);
        open_ends(NULL);
    }
}

/* One that says nothing of itself. */
static void a_greeting_is_missing(void **state)
{
    const struct link_env mute = {NULL, 0, 3, STEP, keep, take, NULL, NULL, NULL, NULL};
    (void)state;
    open_greeted("");
    link_free(ends.sender);
    ends.sender = link_new(&mute);
    assert_non_null(ends.sender);
    send_frames(2);
    receive(0);
    receive(1);
    assert_int_equal(asked, 1);
    assert_int_equal(ends.ngot, 0);
}

/* ---- other runs of the step ---- */

static unsigned warnings;

static void count(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_WARNING && strstr(text, "of another run of this step") != NULL)
        warnings++;
}

/* They are no repetitions, and take no number of this run's; a line for each server. */
static void another_run(void **state)
{
    const struct link_env before = {NULL, 0, 3, STEP + 1, keep, take, NULL, NULL, NULL, NULL};
    struct link *now = ends.sender;
    (void)state;
    log_open(count, NULL, LOG_LEVEL_WARNING, NULL);
    warnings = 0;
    ends.sender = link_new(&before);
    assert_non_null(ends.sender);
    send_frames(3);
    for (uint32_t i = 0; i < 3; i++)
        receive(i);
    assert_int_equal(warnings, 1);
    assert_int_equal(ends.ngot, 0);
    assert_int_equal(link_counts(ends.receiver, 0).refused, 3);
    assert_int_equal(link_counts(ends.receiver, 0).repeated, 0);
    for (uint32_t i = 0; i < 3; i++)
        free(ends.bytes[i]);
    ends.nsent = 0;
    link_free(ends.sender);
    ends.sender = now;
    send_frames(3);
    for (uint32_t i = 0; i < 3; i++)
        receive(i);
    assert_got(0, 3);
    assert_int_equal(warnings, 1);
}

/* ---- servers of other steps ---- */

enum { OTHER = 100, HANDLE = 7 };

static bool known;

static int find(void *arg, uint64_t step, uint32_t index, uint32_t *node)
{
    (void)arg;
    *node = HANDLE + index;
    return known && step == OTHER && index < 2 ? 0 : -1;
}

static bool introduce(void *arg, uint64_t step, const void *body, size_t len)
{
    (void)arg;
    assert_int_equal(step, OTHER);
    assert_false(known);
    return known = len == 5 && memcmp(body, "hello", 5) == 0;
}

static void take_foreign(void *arg, uint32_t from, enum frame_type type, const void *body,
                         size_t len)
{
    (void)arg;
    assert_int_equal(from, HANDLE + 1);
    if (ends.ngot == 0)
        assert_int_equal(type, FRAME_NSPACE);
    else
        assert_memory_equal(body, &(unsigned char){(unsigned char)ends.ngot}, len);
    ends.ngot++;
}

/* A sender of another step, whose first frame says @p hello; then frames that say their number. */
static void open_foreign(const char *hello, uint32_t n)
{
    const struct link_env sender = {NULL, 1, 2, OTHER, keep, take, NULL, NULL, NULL, NULL};
    const struct link_env receiver = {NULL,         0,    3,         STEP, keep,
                                      take_foreign, find, introduce, NULL, NULL};
    link_free(ends.sender);
    link_free(ends.receiver);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    assert_non_null(ends.sender);
    assert_non_null(ends.receiver);
    known = false;
    for (uint32_t i = 0; i <= n; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, i == 0 ? FRAME_NSPACE : FRAME_CONTRIB);
        if (i == 0)
            wire_put_raw(&out, hello, strlen(hello));
        else
            wire_put_u8(&out, (uint8_t)i);
        link_send(ends.sender, 1, &out);
    }
}

static void a_server_of_another_step_introduces_itself(void **state)
{
    (void)state;
    open_foreign("hello", 5);
    for (uint32_t i = 0; i <= 5; i++)
        receive(i);
    assert_int_equal(ends.ngot, 6);
    receive(0); /* again: it is known, and nothing is delivered */
    assert_int_equal(ends.ngot, 6);
    assert_int_equal(link_counts(ends.receiver, HANDLE + 1).frames_in, 7);
    assert_int_equal(link_counts(ends.receiver, HANDLE + 1).repeated, 1);
}

/* What overtakes the introduction waits for it, in any order, once. */
static void an_introduction_is_overtaken(void **state)
{
    static const uint32_t order[] = {3, 1, 3, 5, 2, 4, 0};
    (void)state;
    open_foreign("hello", 5);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        assert_int_equal(ends.ngot, 0);
        receive(order[i]);
    }
    assert_int_equal(ends.ngot, 6);
}

static void an_introduction_is_refused(void **state)
{
    (void)state;
    open_foreign("hallo", 5);
    for (uint32_t i = 0; i <= 5; i++)
        receive(5 - i);
    assert_int_equal(ends.ngot, 0);
    assert_false(known);
}

/* Bytes that several frames share are at the end of each, and are freed with the last owner. */
static void bytes_that_are_shared(void **state)
{
    static const unsigned char number[] = {0, 0, 0, 0};
    struct shared_bytes *body = shared_bytes_copy(number, sizeof number);
    (void)state;
    assert_non_null(body);
    for (int i = 0; i < 3; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, FRAME_ASK);
        link_send_shared(ends.sender, 1, &out, body);
        assert_null(out.data);
        receive((uint32_t)i);
    }
    assert_ptr_equal(shared_bytes_hold(body), body);
    shared_bytes_drop(body);
    assert_int_equal(body->owners, 1);
    assert_memory_equal(body->data, number, sizeof number);
    shared_bytes_drop(body);
    shared_bytes_drop(NULL);
    assert_int_equal(ends.ngot, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ends.got[i], 0);
        assert_int_equal(ends.len[i], ends.len[0]);
    }
}

/* Without find(), another step's frames are not ours. */
static void one_step_only(void **state)
{
    (void)state;
    open_foreign("hello", 5);
    const struct link_env receiver = {NULL, 0, 3, STEP, keep, take, NULL, NULL, NULL, NULL};
    link_free(ends.receiver);
    ends.receiver = link_new(&receiver);
    for (uint32_t i = 0; i <= 5; i++)
        receive(i);
    assert_int_equal(ends.ngot, 0);
}

/* What a link holds does not grow with the servers of its step, but with those that it has met. */
static void many_servers(void **state)
{
    enum { MET = 500 };
    struct link_env env = {
        .self = UINT32_MAX - 1, .nnodes = UINT32_MAX, .step = STEP, .send = swallow};
    struct link *link = link_new(&env);
    (void)state;
    assert_non_null(link);
    assert_int_equal(link_counts(link, UINT32_MAX - 2).frames_out, 0);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MET; i++) {
            struct wire_out frame = {0};
            wire_put_u8(&frame, FRAME_ASK);
            link_send(link, i * 1000003, &frame);
        }
    for (uint32_t i = 0; i < MET; i++)
        assert_int_equal(link_counts(link, i * 1000003).frames_out, 2);
    assert_int_equal(link_counts(link, 1).frames_out, 0);
    link_free(link);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)
    const struct CMUnitTest tests[] = {
        TEST(repeated_frames),
        TEST(frames_in_any_order),
        TEST(the_first_frame_comes_last),
        TEST(beyond_the_window),
        TEST(a_number_out_of_all_bounds),
        TEST(frames_that_need_not_arrive),
        TEST(frames_that_are_not_ours),
        TEST(several_frames_in_one_buffer),
        TEST(cut_frames),
        TEST(a_failed_frame_leaves_no_gap),
        TEST(a_greeting_comes_first),
        TEST(a_greeting_is_refused),
        TEST(a_greeting_is_missing),
        TEST(another_run),
        TEST(a_server_of_another_step_introduces_itself),
        TEST(an_introduction_is_overtaken),
        TEST(an_introduction_is_refused),
        TEST(one_step_only),
        TEST(many_servers),
        TEST(bytes_that_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
