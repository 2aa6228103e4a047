/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of input on its way into the pipes of spawned processes.
 */
#include "common/server/spawned/inputs.h"

#include "common/transport/wire.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <pmix_common.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { FROM = 5, OTHER = 6, NONE = 77 };

static struct event_base *base;
static struct inputs *inputs;
static int ends[2]; /* standard input of ranks 3 and 4 */
static uint64_t question, replied;
static int32_t status; /* of the last answer, or NONE */

static bool is_home(void *arg, uint32_t from)
{
    (void)arg;
    return from == FROM;
}

static void reply(void *arg, uint32_t from, uint64_t id, int32_t with)
{
    (void)arg;
    assert_true(is_home(NULL, from) || with == PMIX_ERR_NO_PERMISSIONS);
    replied = id;
    status = with;
}

static void ask_from(uint32_t from, uint32_t rank, const void *data, size_t len)
{
    struct wire_out body = {0};
    wire_put_u32(&body, rank);
    wire_put_block(&body, data, len);
    status = NONE;
    inputs_serve(inputs, from, question, body.data, body.len);
    wire_out_free(&body);
}

static void push_piece(uint32_t rank, const void *data, size_t len)
{
    ask_from(FROM, rank, data, len);
}

/* @return the answer's status, or NONE */
static int32_t push(uint32_t rank, const char *text)
{
    question++;
    push_piece(rank, text, strlen(text));
    assert_true(status == NONE || replied == question);
    return status;
}

/* @param text "": it is empty; NULL: the end of file */
static void reads(int end, const char *text)
{
    char found[64] = "";
    ssize_t n = read(end, found, sizeof found - 1);
    if (text != NULL && *text == '\0')
        assert_int_equal(n, -1);
    else
        assert_int_equal(n, text != NULL ? (ssize_t)strlen(text) : 0);
    assert_string_equal(found, text != NULL ? text : "");
}

static int setup(void **state)
{
    const struct inputs_env env = {
        .base = base = event_base_new(), .is_home = is_home, .reply = reply};
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    inputs = inputs_new(&env);
    for (int i = 0; i < 2; i++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        ends[i] = fds[0];
        inputs_add(inputs, (uint32_t)(3 + i), fds[1]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    inputs_free(inputs);
    close(ends[0]);
    close(ends[1]);
    event_base_free(base);
    return 0;
}

static void test_one(void **state)
{
    (void)state;
    assert_int_equal(push(4, "one"), PMIX_SUCCESS);
    assert_int_equal(push(4, "two"), PMIX_SUCCESS);
    reads(ends[1], "onetwo");
    reads(ends[0], "");
    assert_int_equal(push(4, ""), PMIX_SUCCESS);
    reads(ends[1], NULL);
    reads(ends[0], "");
    assert_int_equal(push(4, "late"), PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(push(5, "nobody"), PMIX_ERR_NOT_AVAILABLE);
}

static void test_all(void **state)
{
    (void)state;
    assert_int_equal(push(INPUTS_ALL, "one"), PMIX_SUCCESS);
    reads(ends[0], "one");
    reads(ends[1], "one");
    close(ends[0]);
    ends[0] = dup(STDIN_FILENO);
    assert_int_equal(push(INPUTS_ALL, "two"), PMIX_SUCCESS);
    reads(ends[1], "two");
    assert_int_equal(push(3, "x"), PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(push(INPUTS_ALL, ""), PMIX_SUCCESS);
    reads(ends[1], NULL);
}

/* A pipe that is full holds the answer back; nothing is lost. */
static void test_slow(void **state)
{
    static char much[INPUTS_PIECE], found[INPUTS_PIECE];
    size_t pushed = 0, taken = 0;
    (void)state;
    do {
        question++;
        memset(much, (int)question, sizeof much);
        push_piece(3, much, sizeof much);
        pushed += sizeof much;
    } while (status == PMIX_SUCCESS);
    assert_int_equal(status, NONE);
    for (int i = 0; i < 1000 && taken < pushed; i++) {
        ssize_t n = read(ends[0], found, sizeof found);
        taken += n > 0 ? (size_t)n : 0;
        assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
    }
    assert_int_equal(taken, pushed);
    assert_int_equal(status, PMIX_SUCCESS);
}

/* A process that ends while a piece waits. */
static void test_ends(void **state)
{
    static char much[INPUTS_PIECE];
    (void)state;
    do {
        question++;
        push_piece(3, much, sizeof much);
    } while (status == PMIX_SUCCESS);
    close(ends[0]);
    ends[0] = dup(STDIN_FILENO);
    assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
    assert_int_equal(status, PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(push(4, "one"), PMIX_SUCCESS);
    reads(ends[1], "one");
}

/* The end of file comes by a piece that waits. */
static void test_end_by_piece(void **state)
{
    static char much[INPUTS_PIECE];
    (void)state;
    do {
        question++;
        push_piece(3, much, sizeof much);
    } while (status == PMIX_SUCCESS);
    assert_int_equal(push(4, "one"), PMIX_ERR_BAD_PARAM); /* a piece at a time */
    assert_int_equal(push(INPUTS_ALL, ""), PMIX_SUCCESS);
    while (read(ends[0], much, sizeof much) > 0)
        ;
    assert_int_equal(read(ends[0], much, 1), 0);
}

/* The end of file of one process leaves the piece of others as it is. */
static void test_end_of_another(void **state)
{
    static char much[INPUTS_PIECE], found[INPUTS_PIECE];
    size_t pushed = 0, taken = 0;
    (void)state;
    do {
        question++;
        push_piece(INPUTS_ALL, much, sizeof much);
        pushed += sizeof much;
    } while (status == PMIX_SUCCESS);
    uint64_t waits = question;
    assert_int_equal(push(4, ""), PMIX_SUCCESS);
    status = NONE;
    for (int i = 0; i < 1000 && taken < pushed; i++) {
        ssize_t n = read(ends[0], found, sizeof found);
        taken += n > 0 ? (size_t)n : 0;
        assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
    }
    assert_int_equal(taken, pushed);
    assert_int_equal(status, PMIX_SUCCESS);
    assert_int_equal(replied, waits);
    assert_int_equal(push(3, "one"), PMIX_SUCCESS);
    reads(ends[0], "one");
}

/* Only the server of the process that has spawned them may: it can neither push nor end. */
static void test_stranger(void **state)
{
    (void)state;
    question++;
    ask_from(OTHER, 3, "one", 3);
    assert_int_equal(status, PMIX_ERR_NO_PERMISSIONS);
    question++;
    ask_from(OTHER, INPUTS_ALL, "", 0);
    assert_int_equal(status, PMIX_ERR_NO_PERMISSIONS);
    assert_int_equal(push(3, "two"), PMIX_SUCCESS);
    reads(ends[0], "two");
}

static void test_nonsense(void **state)
{
    static char much[INPUTS_PIECE + 1];
    (void)state;
    question++;
    inputs_serve(inputs, FROM, question, "x", 1);
    assert_int_equal(status, PMIX_ERR_BAD_PARAM);
    push_piece(3, much, sizeof much);
    assert_int_equal(status, PMIX_ERR_BAD_PARAM);
    reads(ends[0], "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one),
        TEST(test_all),
        TEST(test_slow),
        TEST(test_ends),
        TEST(test_end_by_piece),
        TEST(test_nonsense),
        TEST(test_end_of_another),
        TEST(test_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
