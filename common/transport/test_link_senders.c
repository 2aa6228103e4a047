/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the link: who a sender is. Greetings, other runs of the step, servers of other steps.
 */
#include "common/transport/test_link_kit.h"
#include "common/util/log.h"

#include <stdlib.h>

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
    const struct link_env sender = {.arg = &ends.sender,
                                    .nnodes = 3,
                                    .step = STEP,
                                    .native = keep,
                                    .deliver = take,
                                    .greet = greet};
    const struct link_env receiver = {
        .self = 1, .nnodes = 3, .step = STEP, .native = keep, .deliver = take, .fits = fits};
    link_free(ends.sender);
    link_free(ends.receiver);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    assert_non_null(ends.sender);
    assert_non_null(ends.receiver);
    greeting = text;
    asked = 0;
}

/* The greeting comes with the first frame, and only with that, whatever overtakes it. */
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

/* No frame of a server that does not fit is delivered, neither before its greeting nor after it. */
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

/* A sender that does not greet. */
static void a_greeting_is_missing(void **state)
{
    const struct link_env mute = {
        .arg = &ends.sender, .nnodes = 3, .step = STEP, .native = keep, .deliver = take};
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

/* Frames of another run are no repetitions, and take no number of this run's; each server gets one
 * line in the log. */
static void another_run(void **state)
{
    const struct link_env before = {
        .arg = &ends.sender, .nnodes = 3, .step = STEP + 1, .native = keep, .deliver = take};
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

static bool known, ended;

static int find(void *arg, uint64_t step, uint32_t index, uint32_t *node)
{
    (void)arg;
    *node = HANDLE + index;
    return ended ? 1 : known && step == OTHER && index < 2 ? 0 : -1;
}

static bool introduce(void *arg, uint64_t step, const void *body, size_t len)
{
    (void)arg;
    assert_int_equal(step, OTHER);
    assert_false(known);
    return known = len == 5 && memcmp(body, "hello", 5) == 0;
}

static void take_foreign(void *arg, uint32_t from, enum frame_type type, const void *body,
                         size_t len, struct shared_bytes *whole)
{
    (void)arg, (void)whole;
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
    const struct link_env sender = {.arg = &ends.sender,
                                    .self = 1,
                                    .nnodes = 2,
                                    .step = OTHER,
                                    .native = keep,
                                    .deliver = take};
    const struct link_env receiver = {.nnodes = 3,
                                      .step = STEP,
                                      .native = keep,
                                      .deliver = take_foreign,
                                      .find = find,
                                      .introduce = introduce};
    link_free(ends.sender);
    link_free(ends.receiver);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    assert_non_null(ends.sender);
    assert_non_null(ends.receiver);
    known = ended = false;
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

/* What comes when a step has ended waits for nothing. */
static void a_step_has_ended(void **state)
{
    (void)state;
    open_foreign("hello", 2);
    receive(0);
    assert_int_equal(ends.ngot, 1);
    known = false;
    ended = true;
    receive(1);
    ended = false;
    receive(0); /* an introduction: what waited for one would come now */
    assert_true(known);
    assert_int_equal(ends.ngot, 1);
}

/* Without find(), another step's frames are not ours. */
static void one_step_only(void **state)
{
    (void)state;
    open_foreign("hello", 5);
    const struct link_env receiver = {.nnodes = 3, .step = STEP, .native = keep, .deliver = take};
    link_free(ends.receiver);
    ends.receiver = link_new(&receiver);
    for (uint32_t i = 0; i <= 5; i++)
        receive(i);
    assert_int_equal(ends.ngot, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(a_greeting_comes_first),
        LINK_TEST(a_greeting_is_refused),
        LINK_TEST(a_greeting_is_missing),
        LINK_TEST(another_run),
        LINK_TEST(a_server_of_another_step_introduces_itself),
        LINK_TEST(an_introduction_is_overtaken),
        LINK_TEST(an_introduction_is_refused),
        LINK_TEST(a_step_has_ended),
        LINK_TEST(one_step_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
