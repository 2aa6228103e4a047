/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the server's end, with test_server.sh in its place: what it was not yet told, and a
 * server that closes its socket and lives on.
 */
#include "common/launch/launch.h"

#include "common/launch/boot.h"
#include "common/launch/handshake.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RECORDS = 200000, /* more than a socket takes at once */
    RECORD_BYTES = 12,
    END_MS = 5000, /* for a killed process to be gone */
};

static char logged[1024];

static void keep(void *arg, enum log_level level, const char *text)
{
    size_t used = strlen(logged);
    (void)arg;
    (void)level;
    snprintf(logged + used, sizeof(logged) - used, "%s\n", text);
}

static void start(struct launch *launch, const char *how)
{
    const struct identity user = {.uid = geteuid(), .gid = getegid()};
    const char *const env[] = {how, NULL};
    const struct launcher launcher = {
        .node = "here", .log = "the log", .user = &user, .listener = -1, .env = env};
    struct err err = {0};

    logged[0] = '\0';
    log_open(keep, NULL, LOG_LEVEL_DEBUG, NULL);
    if (launch_server(launch, &launcher, &err) < 0)
        fail_msg("%s", err.text);
}

/* Whether the process that fd stands for has ended; closes fd. */
static bool has_ended(int fd)
{
    struct pollfd end = {fd, POLLIN, 0};
    int n = poll(&end, 1, END_MS);
    close(fd);
    return n == 1;
}

static void tells_all_before_the_end(void **state)
{
    struct launch launch;
    char total[32];
    (void)state;
    start(&launch, "HOW=counts");
    for (uint32_t i = 0; i < RECORDS; i++)
        launch_tell(&launch, i, 0, 0);
    launch_tell_text(&launch, 1, "text");
    launch_end(&launch);
    snprintf(total, sizeof(total), "%d\n", (RECORDS + 2) * RECORD_BYTES + 4);
    assert_string_equal(logged, total);
}

static void ends_one_that_closes_its_socket(void **state)
{
    struct launch launch;
    struct pollfd control;
    (void)state;
    start(&launch, "HOW=closes");
    if (launch.pidfd < 0)
        skip(); /* a kernel before 5.3 */
    int process = dup(launch.pidfd);
    control = (struct pollfd){launch.control, POLLIN, 0};
    assert_int_equal(poll(&control, 1, END_MS), 1);
    assert_int_equal(launch_attend(&launch), LAUNCH_DIED);
    assert_true(has_ended(process));
    launch_end(&launch);
    assert_string_equal(logged, "");
}

static pid_t at_gate;

static int stop_at_gate(pid_t server, struct err *err)
{
    at_gate = server;
    assert_int_equal(kill(server, 0), 0);
    return err_set(err, "not here");
}

/* At the gate it may be refused; then it ends, and no descriptor of it stays. */
static void ends_one_that_is_refused_at_the_gate(void **state)
{
    const struct identity user = {.uid = geteuid(), .gid = getegid()};
    const struct launcher launcher = {
        .node = "here", .log = "the log", .user = &user, .listener = -1, .at_gate = stop_at_gate};
    struct launch launch;
    struct err err = {0};
    int before = dup(0), after;

    (void)state;
    close(before);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* a pid 1 of a container may not reap it */
    assert_int_equal(launch_server(&launch, &launcher, &err), -1);
    assert_string_equal(err.text, "not here");
    assert_int_equal(launch.pidfd, -1);
    after = dup(0);
    close(after);
    assert_int_equal(after, before);
    for (int i = 0; i < END_MS && kill(at_gate, 0) == 0; i += 10) {
        waitpid(at_gate, NULL, WNOHANG); /* where it is this process that adopts it */
        poll(NULL, 0, 10);
    }
    assert_int_equal(kill(at_gate, 0), -1);
}

/* A server that asks again and again and does not read costs no memory: one answer is for all. */
static void answers_all_at_once(void **state)
{
    enum { ASKED = 1000 };
    struct launch launch = {.pidfd = -1, .relay = {.fd = -1}};
    const char ask = BOOT_SAYS_SHOW;
    uint32_t record[3] = {0};
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    launch.control = ends[0];
    do {
        launch_tell(&launch, 1, 0, 0);
    } while (launch.tell.len == 0);
    size_t len = launch.tell.len;
    for (int i = 0; i < ASKED; i++) {
        assert_int_equal(write(ends[1], &ask, 1), 1);
        assert_int_equal(launch_attend(&launch), LAUNCH_SERVES);
    }
    assert_int_equal(launch.tell.len, len);
    while (ntohl(record[0]) != BOOT_SHOWN) {
        launch_flush(&launch);
        assert_int_equal(recv(ends[1], record, sizeof(record), MSG_DONTWAIT), sizeof(record));
    }
    assert_int_equal(ntohl(record[1]), ASKED);
    assert_int_equal(recv(ends[1], record, sizeof(record), MSG_DONTWAIT), -1);
    wire_out_free(&launch.tell);
    close(ends[0]);
    close(ends[1]);
}

/* A process that is stopped: what the launcher takes for the server. */
static pid_t stopped_process(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

/* One question is under way, however often it is time to ask; the user is told once of a server
 * that does not answer, and once that it answers again. */
static void tells_of_one_that_is_silent(void **state)
{
    struct launch launch = {
        .pidfd = -1, .relay = {.fd = -1}, .node = "here", .server = stopped_process()};
    const char here = BOOT_SAYS_HERE;
    uint32_t record[4];
    int ends[2];

    (void)state;
    logged[0] = '\0';
    log_open(keep, NULL, LOG_LEVEL_DEBUG, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    launch.control = ends[0];
    for (unsigned i = 1; i < SILENCE_TOLD; i++)
        launch_ask(&launch);
    assert_string_equal(logged, "");
    for (int i = 0; i < 10; i++)
        launch_ask(&launch);
    assert_int_equal(recv(ends[1], record, sizeof(record), MSG_DONTWAIT), RECORD_BYTES);
    assert_int_equal(ntohl(record[0]), BOOT_ASKS);
    assert_non_null(strstr(logged, "on node here has not answered for 60 s"));
    assert_non_null(strstr(logged, "is stopped (state T)"));
    assert_int_equal(strlen(logged), strcspn(logged, "\n") + 1);
    kill(launch.server, SIGKILL);
    assert_int_equal(waitpid(launch.server, NULL, 0), launch.server);

    logged[0] = '\0';
    assert_int_equal(write(ends[1], &here, 1), 1);
    assert_int_equal(launch_attend(&launch), LAUNCH_SERVES);
    assert_string_equal(logged, "muster-server on node here answers again\n");
    logged[0] = '\0';
    for (int i = 0; i < 10; i++) {
        launch_ask(&launch);
        assert_int_equal(recv(ends[1], record, sizeof(record), MSG_DONTWAIT), RECORD_BYTES);
        assert_int_equal(write(ends[1], &here, 1), 1);
        assert_int_equal(launch_attend(&launch), LAUNCH_SERVES);
    }
    assert_string_equal(logged, "");
    wire_out_free(&launch.tell);
    close(ends[0]);
    close(ends[1]);
}

/* A server that waits for its lines to be logged is told so once they are. */
static void shows_what_it_was_told(void **state)
{
    struct launch launch;
    struct pollfd control;
    (void)state;
    start(&launch, "HOW=shows");
    control = (struct pollfd){launch.control, POLLIN, 0};
    assert_int_equal(poll(&control, 1, END_MS), 1);
    assert_int_equal(launch_attend(&launch), LAUNCH_SERVES);
    assert_string_equal(logged, "a line\n");
    launch_end(&launch);
    assert_string_equal(logged, "a line\n 255 255 255 251   0   0   0   2   0   0   0   0\n");
}

/* libpmix would take settings and code from the user's home directory. */
static void has_nobodys_home(void **state)
{
    struct launch launch;
    (void)state;
    start(&launch, "HOW=home");
    launch_end(&launch);
    assert_string_equal(logged, "/nonexistent\n");
}

/* The bound for one that says nothing is 5 s; this one takes 8. */
/* Signals of the launcher's group do not reach it; the scheduler takes both for one. */
static void has_its_own_group_in_our_session(void **state)
{
    struct launch launch;
    int pid = 0, group = 0, session = 0;
    (void)state;
    start(&launch, "HOW=group");
    launch_end(&launch);
    assert_int_equal(sscanf(logged, "%d %d %d", &pid, &group, &session), 3);
    assert_int_equal(group, pid);
    assert_int_equal(session, getsid(0));
}

static void waits_for_one_that_stays(void **state)
{
    struct launch launch;
    (void)state;
    start(&launch, "HOW=stays");
    launch_end(&launch);
    assert_string_equal(logged, "left\n");
}

/* One whose end is noticed only now may have died long ago. */
static void knows_one_that_died_from_one_that_left(void **state)
{
    struct launch launch;
    (void)state;
    start(&launch, "HOW=home");
    assert_false(launch_end(&launch));
    start(&launch, "HOW=leaves");
    assert_true(launch_end(&launch));
    assert_true(launch_end(&launch)); /* there is none any more */
}

static void ends_one_that_does_not_leave(void **state)
{
    struct launch launch;
    (void)state;
    start(&launch, "HOW=stuck");
    if (launch.pidfd < 0)
        skip(); /* a kernel before 5.3 */
    int process = dup(launch.pidfd);
    assert_true(launch_end(&launch)); /* it has not died by itself */
    assert_true(has_ended(process));
    assert_non_null(strstr(logged, "did not leave within 5 s and is killed"));
}

static void has_more_patience_with_a_large_step(void **state)
{
    const struct boot small = {.nnodes = 4, .ntasks = 8},
                      large = {.nnodes = 65536, .ntasks = 65536};
    const struct boot bound = {.nnodes = UINT32_MAX, .ntasks = UINT32_MAX};
    (void)state;
    assert_in_range(handshake_patience(&small), 30000, 30100);
    assert_in_range(handshake_patience(&large), 150000, 200000);
    assert_int_equal(handshake_patience(&bound), INT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_more_patience_with_a_large_step),
        cmocka_unit_test(tells_all_before_the_end),
        cmocka_unit_test(ends_one_that_closes_its_socket),
        cmocka_unit_test(ends_one_that_is_refused_at_the_gate),
        cmocka_unit_test(answers_all_at_once),
        cmocka_unit_test(tells_of_one_that_is_silent),
        cmocka_unit_test(shows_what_it_was_told),
        cmocka_unit_test(has_nobodys_home),
        cmocka_unit_test(has_its_own_group_in_our_session),
        cmocka_unit_test(waits_for_one_that_stays),
        cmocka_unit_test(knows_one_that_died_from_one_that_left),
        cmocka_unit_test(ends_one_that_does_not_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
