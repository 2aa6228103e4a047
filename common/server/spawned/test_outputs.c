/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what spawned processes print: to the home, and to their own output.
 */
#include "common/server/spawned/outputs.h"

#include "common/transport/wire.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NODE = 7, NUMBER = 12 };

/* The home, and what it was asked. */
static struct {
    bool known;
    unsigned asked; /* so far */
    ask_done_fn *done;
    void *arg; /* NULL: nothing waits */
    uint32_t rank;
    uint8_t which;
    char text[OUTPUTS_PIECE + 1];
    size_t len;
} home;

static bool ends;
static int64_t ms = 1000;
static struct event_base *base;
static struct outputs *outputs;
static int program, own, pipe_in, own_out; /* the program's end; what the own output has got */

static int64_t clock_of(void *arg)
{
    (void)arg;
    return ms;
}

static struct timers timers = {.now = clock_of};

static bool find(void *arg, const struct outputs_home *of, uint32_t *node)
{
    (void)arg;
    assert_string_equal(of->nspace, "slurm.1.0");
    *node = NODE + of->node;
    return home.known;
}

static bool step_ends(void *arg)
{
    (void)arg;
    return ends;
}

static void ask(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg)
{
    struct wire_in in;
    (void)arg;
    assert_null(home.arg); /* a piece at a time */
    assert_int_equal(node, NODE + 2);
    wire_in_init(&in, body, len);
    assert_int_equal(wire_get_u64(&in), NUMBER);
    home.rank = wire_get_u32(&in);
    home.which = wire_get_u8(&in);
    const void *text = wire_get_block(&in, &home.len);
    assert_true(wire_end(&in));
    assert_true(home.len <= OUTPUTS_PIECE);
    memcpy(home.text, text, home.len);
    home.text[home.len] = '\0';
    home.done = done;
    home.arg = done_arg;
    home.asked++;
}

static void answer(int32_t status)
{
    void *arg = home.arg;
    home.arg = NULL;
    home.done(arg, status, NULL, 0);
}

static void loop(void)
{
    assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

/* Until the first timer. */
static void pass_time(void)
{
    int64_t wait = timers_wait(&timers);
    assert_true(wait >= 0);
    ms += wait;
    timers_run(&timers);
}

static void print(const char *text)
{
    assert_int_equal(write(program, text, strlen(text)), strlen(text));
    loop();
}

static void own_has(const char *text)
{
    char found[256] = "";
    ssize_t n = read(own_out, found, sizeof found - 1);
    assert_int_equal(n < 0 ? 0 : n, strlen(text));
    assert_string_equal(found, text);
}

static int open_one(void **state)
{
    const struct outputs_env env = {.timers = &timers, .find = find, .ends = step_ends, .ask = ask};
    struct outputs_env with = env;
    struct outputs_home to;
    int in[2], out[2];
    (void)state;
    memset(&home, 0, sizeof home);
    ends = false;
    home.known = true;
    base = event_base_new();
    with.base = base;
    outputs = outputs_new(&with);
    assert_int_equal(pipe(in) | pipe2(out, O_NONBLOCK), 0);
    program = in[1];
    pipe_in = in[0];
    own = out[1];
    own_out = out[0];
    assert_true(outputs_read_home("o 12 2 slurm.1.0", &to));
    assert_true(outputs_add(outputs, 3, &to, (int[]){pipe_in, own}, 2));
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    outputs_free(outputs);
    close(own_out);
    event_base_free(base);
    return 0;
}

/* The next piece is read when the last one was taken; the end is an empty one. */
static void test_home(void **state)
{
    (void)state;
    print("one\n");
    assert_string_equal(home.text, "one\n");
    assert_int_equal(home.rank, 3);
    assert_int_equal(home.which, PLAN_STDOUT);
    print("two\n");
    print("three\n");
    assert_int_equal(home.asked, 1);
    assert_true(outputs_busy(outputs, false));
    answer(0);
    loop();
    assert_string_equal(home.text, "two\nthree\n");
    answer(0);
    assert_false(outputs_busy(outputs, false));
    close(program);
    assert_true(outputs_busy(outputs, false)); /* the end has to arrive */
    loop();
    assert_int_equal(home.len, 0);
    answer(0);
    assert_false(outputs_busy(outputs, false));
    assert_int_equal(fcntl(pipe_in, F_GETFD), -1);
    own_has("");
}

/* What the home refuses, and what follows, goes where it would have gone without. */
static void test_refused(void **state)
{
    (void)state;
    print("one\n");
    answer(0);
    print("two\n");
    print("three\n");
    answer(-1);
    loop();
    print("four\n");
    own_has("two\nthree\nfour\n");
    assert_int_equal(home.asked, 2);
    assert_false(outputs_busy(outputs, false));
    close(program);
    assert_true(outputs_busy(outputs, false));
    assert_false(outputs_busy(outputs, true)); /* the home has nothing to wait for */
    loop();
    assert_int_equal(fcntl(own, F_GETFD), -1);
}

/* Pieces end with lines, but for one that is long, and one that does not come to an end. */
static void test_lines(void **state)
{
    static char much[OUTPUTS_PIECE + 10];
    (void)state;
    print("one\ntw");
    assert_string_equal(home.text, "one\n");
    answer(0);
    loop();
    assert_int_equal(home.asked, 1);
    print("o\nthree");
    assert_string_equal(home.text, "two\n");
    answer(0);
    pass_time();
    assert_string_equal(home.text, "three");
    answer(0);
    memset(much, 'x', sizeof much - 1);
    print(much);
    loop();
    assert_int_equal(home.len, OUTPUTS_PIECE);
    answer(0);
    loop();
    close(program);
    loop();
    assert_string_equal(home.text, "xxxxxxxxx");
    answer(0);
    loop();
    assert_int_equal(home.len, 0);
    answer(0);
    assert_false(outputs_busy(outputs, false));
}

/* A piece that the home does not want now, and the next one, that it does. */
static void test_passed(void **state)
{
    (void)state;
    print("one\n");
    answer(OUTPUTS_PASS);
    print("two\n");
    own_has("one\n");
    assert_string_equal(home.text, "two\n");
    answer(0);
    close(program);
    loop();
    assert_int_equal(home.len, 0);
    answer(OUTPUTS_PASS);
    assert_false(outputs_busy(outputs, false));
    own_has("");
}

/* The reader of the own output may be slow: the program waits, and nothing is lost. */
static void test_slow_own(void **state)
{
    static char much[3 * OUTPUTS_PIECE];
    size_t read_so_far = 0, written = 0;
    char bytes[4096];
    (void)state;
    fcntl(program, F_SETFL, O_NONBLOCK);
    fcntl(own, F_SETPIPE_SZ, 4096);
    print("x\n");
    answer(-1);
    for (int i = 0; i < 100000 && read_so_far < sizeof much + 2; i++) {
        ssize_t n = write(program, much, sizeof much - written);
        written += n > 0 ? (size_t)n : 0;
        loop();
        n = read(own_out, bytes, sizeof bytes);
        read_so_far += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(read_so_far, sizeof much + 2);
    close(program);
}

/* The program has the same open file, as a pipe, a socket or a terminal, for instance as a standard
 * error that is not forwarded: its own writes must not begin to fail with EAGAIN. */
static void test_shared_own(void **state)
{
    int pipes[2], sockets[2], terminal = posix_openpt(O_RDWR | O_NOCTTY), in[2];
    struct outputs_home to;
    (void)state;
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    assert_int_equal(pipe(pipes) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const int both[][2] = {{pipes[0], pipes[1]},
                           {sockets[0], sockets[1]},
                           {terminal, open(ptsname(terminal), O_RDWR | O_NOCTTY)}};
    assert_true(outputs_read_home("o 12 2 slurm.1.0", &to));
    for (int i = 0; i < 3; i++) {
        char found[16] = "";
        int shared = dup(both[i][1]);
        assert_int_equal(pipe(in), 0);
        assert_true(outputs_add(outputs, 4, &to, (int[]){in[0], both[i][1]}, 2));
        assert_int_equal(fcntl(shared, F_GETFL) & O_NONBLOCK, 0);
        assert_int_equal(write(in[1], "one\n", 4), 4);
        loop();
        answer(-1);
        assert_true(read(both[i][0], found, sizeof found) >= 4);
        assert_memory_equal(found, "one", 3);
        close(shared);
        close(in[1]);
        loop();
        close(both[i][0]);
    }
    close(program);
}

/* A socket whose reader is slow. */
static void test_slow_socket(void **state)
{
    static char much[OUTPUTS_PIECE], found[OUTPUTS_PIECE];
    size_t whole = 0, printed = 0;
    int in[2], sockets[2];
    struct outputs_home to;
    (void)state;
    assert_int_equal(pipe(in) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    assert_true(outputs_read_home("o 12 2 slurm.1.0", &to));
    assert_true(outputs_add(outputs, 4, &to, (int[]){in[0], sockets[1]}, 2));
    assert_int_equal(write(in[1], "x\n", 2), 2);
    loop();
    answer(-1);
    for (ssize_t n = 1; n > 0; loop()) {
        n = write(in[1], much, sizeof much);
        printed += n > 0 ? (size_t)n : 0;
    }
    assert_true(outputs_busy(outputs, false)); /* the socket is full, and the pipe */
    close(in[1]);
    for (ssize_t n = 1; n > 0; loop()) {
        n = read(sockets[0], found, sizeof found);
        whole += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(whole, printed + 2);
    close(sockets[0]);
    close(program);
}

static void test_nobody_reads_own(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    print("one\n");
    close(own_out);
    own_out = dup(STDIN_FILENO);
    answer(-1);
    assert_false(outputs_busy(outputs, false));
    assert_int_equal(write(program, "x", 1), -1); /* the program learns it, too */
    close(program);
}

/* A home that is not known yet is looked for. */
static void test_seeks(void **state)
{
    (void)state;
    home.known = false;
    print("one\n");
    assert_int_equal(home.asked, 0);
    home.known = true;
    pass_time();
    assert_string_equal(home.text, "one\n");
    answer(0);
    close(program);
}

/* The home ended before it was needed: it is not looked for, and no server stays for it. */
static void test_home_is_gone(void **state)
{
    (void)state;
    home.known = false;
    print("one\n");
    own_has("");
    outputs_home_gone(outputs);
    own_has("one\n");
    print("two\n");
    own_has("two\n");
    close(program);
    assert_false(outputs_busy(outputs, true));
    loop();
    assert_int_equal(fcntl(own, F_GETFD), -1);
    assert_int_equal(home.asked, 0);
}

static void test_seeks_in_vain(void **state)
{
    (void)state;
    home.known = false;
    print("one\n");
    own_has("");
    ms += OUTPUTS_SEEK_MS;
    pass_time();
    assert_false(outputs_busy(outputs, false));
    own_has("one\n");
    assert_int_equal(home.asked, 0);
    close(program);
}

/* A spawn that has failed is not introduced to its caller: the end of its output is not held. */
static void test_step_ends(void **state)
{
    (void)state;
    home.known = false;
    print("one\n");
    pass_time();
    ends = true;
    pass_time();
    ms += OUTPUTS_LAST_MS;
    pass_time();
    own_has("one\n");
    close(program);
    loop();
    assert_int_equal(fcntl(own, F_GETFD), -1);
    assert_int_equal(home.asked, 0);
}

/* A caller that hears of its spawn late gets what a step that ends has printed. */
static void test_step_ends_and_home_is_found(void **state)
{
    (void)state;
    home.known = false;
    ends = true;
    print("one\n");
    ms += OUTPUTS_LAST_MS - 1;
    pass_time();
    home.known = true;
    pass_time();
    assert_string_equal(home.text, "one\n");
    answer(0);
    own_has("");
    close(program);
}

/* What is left at the end is not thrown away. */
static void test_end(void **state)
{
    (void)state;
    print("one\n");
    print("two\n");
    answer(-1); /* as asks_close() does */
    print("three\n");
    assert_int_equal(write(program, "four", 4), 4);
    outputs_free(outputs);
    outputs = NULL;
    own_has("one\ntwo\nthree\nfour");
    close(program);
}

static void test_descriptors(void **state)
{
    struct outputs_home to;
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_true(outputs_read_home("oe 12 2 slurm.1.0", &to));
    assert_false(outputs_add(outputs, 4, &to, fds, 2)); /* two are missing */
    assert_int_equal(fcntl(fds[0], F_GETFD), -1);
    assert_int_equal(fcntl(fds[1], F_GETFD), -1);
    close(program);
}

static void test_homes(void **state)
{
    static const char *const bad[] = {"",         "o",       "x 1 2 a", "oeoe 1 2 a",
                                      "o 1 a",    "o a 2 b", "o 1 2",   "o 1 2 a b",
                                      " o 1 2",   "o 1 2 ",  "oe 1",    "o 1 99999999999 ",
                                      "io 1 2 a", "ii 1 2 a"};
    struct outputs_home to;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(outputs_read_home(bad[i], &to));
    assert_true(outputs_read_home("oe 18446744073709551615 4 flux.f1", &to));
    assert_string_equal(to.streams, "oe");
    assert_true(to.number == UINT64_MAX && to.node == 4);
    assert_string_equal(to.nspace, "flux.f1");
    assert_true(outputs_read_home("oei 12 2 a", &to));
    assert_string_equal(to.streams, "oe");
    assert_true(outputs_read_home("i 0 2 a", &to));
    assert_string_equal(to.streams, "");
    close(program);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)
    const struct CMUnitTest tests[] = {
        TEST(test_lines),        TEST(test_passed),        TEST(test_home),
        TEST(test_refused),      TEST(test_slow_own),      TEST(test_nobody_reads_own),
        TEST(test_seeks),        TEST(test_seeks_in_vain), TEST(test_end),
        TEST(test_home_is_gone), TEST(test_step_ends),     TEST(test_step_ends_and_home_is_found),
        TEST(test_descriptors),  TEST(test_homes),         TEST(test_shared_own),
        TEST(test_slow_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
