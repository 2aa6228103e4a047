/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how a spawned step comes up, on its first server: which processes it takes, and what it
 * tells when one of them cannot be started.
 *
 * Two nodes of two ranks each. The server is that of the first one; the test plays muster-exec, the
 * other server, and the parts of the server that execs.c calls.
 */
#include "common/server/spawned/execs.h"

#include "common/launch/plan.h"
#include "common/server/ending.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint32_t r0[] = {0, 1}, r1[] = {2, 3};
static struct boot_node nodes[] = {{"c07", 2, r0, 0}, {"c08", 2, r1, 0}};

static struct boot_setting settings[] = {{(char *)"parent", (char *)"0 slurm.1.0"}};
static char dir[] = "/tmp/test_execs.XXXXXX", place[108];
static struct server server;
static struct nspace own;
static unsigned ntold, nends;
static enum rm_spawn_result told;
static char why[512], said[512]; /* what was told; the last error */

void server_end_step(struct server *s, const struct rm_ending *ending, uint32_t teller)
{
    (void)ending;
    assert_int_equal(teller, ENDING_NOBODY_TELLS);
    nends++;
    s->ending = true;
}

/* Of processes that are stopped at their exec. */
static uint32_t stopped[2];
static unsigned nstopped;

/* server_hooks.stopped */
static void stopped_ready(struct server *s, uint32_t rank, const char *where)
{
    assert_ptr_equal(s, &server);
    assert_string_equal(where, "exec");
    assert_true(nstopped < 2);
    stopped[nstopped++] = rank;
}

/* rm_ops.started */
static void started(struct rm *rm, const struct rm_spawn_news *news)
{
    (void)rm;
    ntold++;
    told = news->result;
    snprintf(why, sizeof why, "%s", news->text != NULL ? news->text : "");
}

static const struct rm_ops ops = {.started = started};
static const struct server_hooks hooks = {.stopped = stopped_ready};

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_ERROR)
        snprintf(said, sizeof said, "%s", text);
}

static int begin(void **state)
{
    struct err err = {0};
    (void)state;
    ntold = nends = 0;
    why[0] = said[0] = '\0';
    server = (struct server){.boot = {.nodes = nodes,
                                      .nnodes = 2,
                                      .ntasks = 4,
                                      .label = (char *)"1.1",
                                      .nspace = (char *)"slurm.1.1",
                                      .tmpdir = dir,
                                      .settings = settings,
                                      .nsettings = 1},
                             .base = event_base_new(),
                             .nspace = &own,
                             .rm_ops = &ops,
                             .hooks = &hooks,
                             .rm = (struct rm *)&server};
    assert_non_null(mkdtemp(dir));
    snprintf(place, sizeof place, "%s/" PLAN_SOCKET, dir);
    log_open(sink, NULL, LOG_LEVEL_ERROR, NULL);
    assert_int_equal(execs_open(&server, &err), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    execs_close(&server);
    event_base_free(server.base);
    unlink(place);
    assert_int_equal(rmdir(dir), 0);
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    return 0;
}

/* The server has done all that there is to do. */
static void settle(void)
{
    for (int i = 0; i < 10; i++)
        event_base_loop(server.base, EVLOOP_NONBLOCK);
}

/* ---- muster-exec ---- */

/* @param fds go with the home @return the connection, after the server has had its turn */
static int hello(uint32_t rank, const char *home, const int *fds, unsigned nfds)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE((PLAN_FDS_MAX + 1) * sizeof(int))];
    } control;
    struct wire_out out = {0};
    wire_put_u32(&out, rank);
    wire_put_u32(&out, (uint32_t)strlen(home));
    wire_put_u32(&out, 0); /* no input */
    wire_put_raw(&out, home, strlen(home));
    struct iovec part = {out.data, out.len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (nfds > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(nfds * sizeof(int)),
                                        .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", place);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(sendmsg(fd, &message, 0), out.len);
    wire_out_free(&out);
    settle();
    return fd;
}

/* @return bytes of the answer: 1 has muster-exec go on, 0 has it end; -1: there is none yet */
static ssize_t answer(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT);
}

static void says(uint8_t what, uint32_t result, const char *text)
{
    struct wire_out out = {0};
    wire_put_u8(&out, what);
    wire_put_u32(&out, result);
    wire_put_str(&out, text);
    execs_receive(&server, 1, out.data, out.len);
    wire_out_free(&out);
}

enum { STARTED = 1, FAILED }; /* words of a server */

static void all_run(void **state)
{
    (void)state;
    int fds[] = {hello(0, "", NULL, 0), hello(1, "", NULL, 0)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(answer(fds[i]), 1);
        close(fds[i]);
    }
    settle();
    assert_int_equal(ntold, 0); /* the other node's are awaited */
    assert_true(execs_owe(&server));
    says(STARTED, RM_SPAWN_RUNS, "");
    assert_int_equal(ntold, 1);
    assert_int_equal(told, RM_SPAWN_RUNS);
    assert_false(execs_owe(&server));
}

/* Only the rank that is to stop is told so, and is believed. */
static void one_stops_at_its_exec(void **state)
{
    const unsigned char word[12] = {0, 0, 0, PLAN_STOPPED};
    char byte;
    (void)state;
    server.stopped.stop = (struct stop){STOP_ON_EXEC, 1};
    nstopped = 0;
    int fds[] = {hello(0, "", NULL, 0), hello(1, "", NULL, 0)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), 1);
        assert_int_equal(byte, i == 1 ? PLAN_STOP : PLAN_GO);
        assert_int_equal(send(fds[i], word, sizeof word, MSG_NOSIGNAL), sizeof word);
        close(fds[i]);
    }
    settle();
    assert_int_equal(nstopped, 1);
    assert_int_equal(stopped[0], 1);
    says(STARTED, RM_SPAWN_RUNS, "");
    assert_int_equal(told, RM_SPAWN_RUNS);
}

static void strangers_are_refused(void **state)
{
    (void)state;
    int of_other_node = hello(2, "", NULL, 0), first = hello(0, "", NULL, 0),
        again = hello(0, "", NULL, 0);
    assert_int_equal(answer(of_other_node), 0);
    assert_int_equal(answer(first), 1);
    assert_int_equal(answer(again), 0);
    close(of_other_node);
    close(first);
    close(again);
}

/* A stream needs two descriptors; a program whose output goes nowhere does not start. */
static void output_that_cannot_be_taken(void **state)
{
    int pipes[2];
    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    int fd = hello(0, "o 12 0 slurm.1.0", pipes, 1);
    close(pipes[0]);
    assert_int_equal(answer(fd), 0);
    assert_non_null(strstr(said, "rank 0 is not started: its output or input cannot be taken"));
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(write(pipes[1], "", 1), -1); /* the server has not kept its copy */
    assert_int_equal(errno, EPIPE);
    assert_int_equal(ntold, 0);
    execs_ended(&server, 0, 0, 1); /* muster-exec has given up */
    assert_int_equal(told, RM_SPAWN_FAILED);
    assert_int_equal(nends, 1);
    close(pipes[1]);
    close(fd);
}

/* Any process of the user may send as many as it likes. The server keeps none of them. */
static void too_many_descriptors(void **state)
{
    int pipes[2], sent[PLAN_FDS_MAX + 1];
    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    for (int i = 0; i <= PLAN_FDS_MAX; i++)
        sent[i] = pipes[0];
    int fd = hello(0, "oe 12 0 slurm.1.0", sent, PLAN_FDS_MAX + 1);
    close(pipes[0]);
    assert_int_equal(answer(fd), 0);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(write(pipes[1], "", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(pipes[1]);
    close(fd);
}

/* ---- why a process was killed ---- */

static void other_server_says_why(void **state)
{
    (void)state;
    assert_false(execs_await_why(&server));
    execs_ended(&server, 1, SIGKILL, 0);
    assert_true(execs_await_why(&server)); /* so the server stays */
    assert_int_equal(ntold + nends, 0);
    says(FAILED, RM_SPAWN_NO_PROGRAM, "/no/such");
    assert_int_equal(told, RM_SPAWN_NO_PROGRAM);
    assert_string_equal(why, "/no/such");
    assert_false(execs_await_why(&server));
    says(FAILED, RM_SPAWN_NO_EXECUTE, "/etc/passwd");
    assert_int_equal(ntold, 1);
}

static int64_t second_later(void *arg)
{
    (void)arg;
    return now_ms() + 1000;
}

static void nobody_says_why(void **state)
{
    (void)state;
    execs_ended(&server, 1, SIGTERM, 0);
    execs_ended(&server, 0, SIGKILL, 0); /* the first one is told of */
    timers_run(&server.timers);
    assert_true(execs_await_why(&server));
    server.timers.now = second_later;
    timers_run(&server.timers);
    assert_false(execs_await_why(&server));
    assert_int_equal(ntold, 1);
    assert_int_equal(told, RM_SPAWN_FAILED);
    assert_string_equal(why, "rank 1 on c07 ended before it was started: signal 15");
    assert_int_equal(nends, 1);
}

/* An end that no other process's failure explains is told at once. */
static void exit_is_told_at_once(void **state)
{
    (void)state;
    execs_ended(&server, 0, 0, 3);
    assert_false(execs_await_why(&server));
    assert_int_equal(told, RM_SPAWN_FAILED);
    assert_string_equal(why, "rank 0 on c07 ended before it was started: exit code 3");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_run),
        TEST(one_stops_at_its_exec),
        TEST(strangers_are_refused),
        TEST(output_that_cannot_be_taken),
        TEST(too_many_descriptors),
        TEST(other_server_says_why),
        TEST(nobody_says_why),
        TEST(exit_is_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
