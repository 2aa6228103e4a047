/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the agent in srun, by the calls of muster-server and by those of strangers. munged is
 * played: test_munge.h.
 */
#include "plugins/slurm/agent.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/agent_callers.h"
#include "plugins/slurm/agent_line.h"
#include "plugins/slurm/agent_listen.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/auth.h"
#include "plugins/slurm/test_agent_kit.h"
#include "plugins/slurm/test_munge.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FLOOD = 200 };

static sem_t hanging;

/* Sends it and waits for the answer. @return how many bytes came before the agent hung up */
static size_t say(struct wire_out *out, bool hangs_up)
{
    char answers[256];
    int fd = stranger();
    size_t have = 0;
    assert_true(send(fd, out->data, out->len, MSG_NOSIGNAL) > 0);
    if (!hangs_up)
        shutdown(fd, SHUT_WR);
    for (ssize_t n; (n = recv(fd, answers, sizeof answers, 0)) > 0;)
        have += (size_t)n;
    close(fd);
    wire_out_free(out);
    return have;
}

/* A HELLO, right but for what the test spoils. */
static void put_hello(struct wire_out *out, const struct agent_address *at, const char *label)
{
    struct agent_address in = *at;
    struct wire_out payload = {0}, vouched = {0};
    struct agent_line line;
    struct err err = {0};
    unsigned char proof[SEAL_PROOF];
    size_t from = agent_frame_begin(out, AGENT_HELLO);
    assert_true(agent_line_open(&line, &err));
    agent_payload(&in, line.point, NULL, &payload);
    snprintf(in.label, sizeof in.label, "%s", label);
    agent_payload(&in, line.point, NULL, &vouched);
    assert_true(line.ops->prove(at->secret, sizeof at->secret, payload.data, payload.len, proof));
    wire_put_raw(out, proof, sizeof proof);
    wire_put_raw(out, line.point, sizeof line.point);
    assert_true(auth_write(out, getuid(), vouched.data, vouched.len, 20000));
    agent_frame_end(out, from);
    wire_out_free(&payload);
    wire_out_free(&vouched);
    agent_line_close(&line);
}

/* ---- tests ---- */

static void hang(void)
{
    while (sem_wait(&hanging) != 0)
        ;
}

/* A munged that does not answer holds neither the caller, nor srun's end. */
static void munged_hangs(void **state)
{
    (void)state;
    struct wire_out out = {0};
    unsigned made = munge.made + 2, verified = munge.verified + 1;
    sem_init(&hanging, 0, 0);
    munge.while_asked = hang;
    assert_false(auth_write(&out, getuid(), "x", 1, 50));
    assert_int_equal(out.len, 0);
    munge.while_asked = NULL;
    munge.while_verified = hang;
    assert_int_not_equal(tell(RM_CAUSE_ABORT, 7), 0);
    assert_int_equal(agent_leave(), 0);
    munge.while_verified = NULL;
    sem_post(&hanging);
    sem_post(&hanging);
    while (munge.made < made || munge.verified < verified)
        poll(NULL, 0, 1);
}

static void the_status_comes_home(void **state)
{
    (void)state;
    assert_int_equal(tell(RM_CAUSE_ABORT, 7), 0);
    assert_int_equal(agent_leave(), 7);
    assert_int_not_equal(tell(RM_CAUSE_ABORT, 7), 0);
}

static sem_t srun_ends;

/* The caller looks at the agent's credential. */
static void end_srun(void)
{
    if (munge.verified % 2 == 0)
        return; /* the agent looks at the caller's */
    munge.while_verified = NULL;
    sem_post(&srun_ends);
    poll(NULL, 0, 100); /* long enough for srun to end without the status */
}

static void *tell_in_thread(void *arg)
{
    *(int *)arg = tell(RM_CAUSE_ABORT, 7);
    return NULL;
}

/* A server that has connected before the last task has ended is heard. */
static void srun_ends_meanwhile(void **state)
{
    pthread_t thread;
    int told = -1;
    (void)state;
    sem_init(&srun_ends, 0, 0);
    munge.while_verified = end_srun;
    assert_int_equal(pthread_create(&thread, NULL, tell_in_thread, &told), 0);
    while (sem_wait(&srun_ends) != 0)
        ;
    assert_int_equal(agent_leave(), 7);
    pthread_join(thread, NULL);
    assert_int_equal(told, 0);
}

static void nobody_tells(void **state)
{
    (void)state;
    assert_int_equal(agent_leave(), 0);
}

/* The weightier cause wins, and of two alike the first. */
static void which_status_wins(void **state)
{
    (void)state;
    assert_int_equal(tell(RM_CAUSE_HOST, 137), 0);
    assert_int_equal(tell(RM_CAUSE_TASK, 139), 0);
    assert_int_equal(tell(RM_CAUSE_TASK, 3), 0);
    assert_int_equal(tell(RM_CAUSE_HOST, 137), 0);
    enter();
    assert_int_equal(agent_leave(), 139);
    assert_int_equal(tell(RM_CAUSE_ABORT, 255), 0);
    assert_int_equal(tell(RM_CAUSE_ABORT, 1), 0);
    assert_int_equal(agent_leave(), 255);
}

static void what_is_no_status(void **state)
{
    (void)state;
    assert_int_equal(tell(RM_CAUSE_ABORT, 0), 0); /* PMIx_Abort with status 0: Slurm's is right */
    assert_int_equal(tell(RM_CAUSE_HOST, 0), -1);
    assert_int_equal(tell((enum rm_cause)3, 5), -1);
    assert_int_equal(agent_leave(), 0);
}

static void one_agent_for_all_components(void **state)
{
    char first[sizeof agent_variable];
    (void)state;
    memcpy(first, agent_variable, sizeof first);
    enter();
    assert_string_equal(agent_variable, first);
    assert_int_equal(agent_leave(), 0);
    assert_int_equal(tell(RM_CAUSE_ABORT, 9), 0);
    assert_int_equal(agent_leave(), 9);
}

/* Without the secret munged is not even asked. */
static void strangers_are_cut_off(void **state)
{
    struct agent_address right, wrong;
    struct wire_out out = {0};
    (void)state;
    assert_true(agent_address_read(address, &right));
    wrong = right;
    wrong.secret[15] ^= 1;
    put_hello(&out, &wrong, wrong.label);
    put_status(&out, AGENT_STATUS, RM_CAUSE_ABORT, 5);
    assert_int_equal(say(&out, true), 0);
    put_status(&out, AGENT_STATUS, RM_CAUSE_ABORT, 5);
    assert_int_equal(say(&out, true), 0);
    wire_put_raw(&out, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_int_equal(say(&out, true), 0);
    assert_int_equal(munge.verified, 0);
    put_hello(&out, &right, "4711.4");
    assert_int_equal(say(&out, true), 0);
    munge.writer++;
    put_hello(&out, &right, right.label);
    assert_int_equal(say(&out, true), 0);
    assert_int_equal(munge.verified, 2);
    assert_int_equal(agent_leave(), 0);
}

/* Whether Slurm says so or not. */
static void a_credential_is_good_once(void **state)
{
    struct agent_address at;
    struct wire_out out = {0}, again = {0};
    (void)state;
    munge.takes_twice = true;
    assert_true(agent_address_read(address, &at));
    put_hello(&out, &at, at.label);
    wire_put_raw(&again, out.data, out.len);
    assert_true(say(&out, false) > AGENT_HEAD + SEAL_POINT);
    assert_int_equal(say(&again, true), 0);
    munge.takes_twice = false;
    agent_leave();
}

/* Callers that connect and say nothing, or half of it, do not keep the step's server out. */
static void silent_strangers_cost_nothing(void **state)
{
    int silent[FLOOD];
    (void)state;
    for (int i = 0; i < FLOOD; i++) {
        silent[i] = stranger();
        if (i % 2 == 0)
            assert_true(send(silent[i], "\0\0\0\1", 4, MSG_NOSIGNAL) == 4);
    }
    int64_t from = now_ms();
    assert_int_equal(tell(RM_CAUSE_ABORT, 7), 0);
    assert_true(now_ms() - from < WAIT_MS);
    assert_true(count("/proc/self/fd") < fds + FLOOD + 64);
    assert_int_equal(agent_leave(), 7);
    for (int i = 0; i < FLOOD; i++)
        close(silent[i]);
}

static int flooding[FLOOD];

static void flood(void)
{
    munge.while_asked = NULL; /* the agent asks, too */
    for (int i = 0; i < FLOOD; i++)
        flooding[i] = stranger();
}

/* munged takes its time, in which a flood of strangers would have taken the server's place. */
static void strangers_do_not_push_a_server_out(void **state)
{
    (void)state;
    munge.while_asked = flood;
    assert_int_equal(tell(RM_CAUSE_ABORT, 7), 0);
    assert_int_equal(agent_leave(), 7);
    for (int i = 0; i < FLOOD; i++)
        close(flooding[i]);
}

/* ---- callers without an agent, one step after another ---- */

static struct agent_address self = {.label = "4711.3"};
static struct callers callers;
static unsigned ngone;

static enum agent_result take(void *arg, uint64_t caller, struct agent_frame *frame)
{
    (void)arg, (void)caller, (void)frame;
    return AGENT_TAKEN;
}

static void taken(void *arg, uint64_t caller, struct agent_frame *frame)
{
    (void)arg, (void)caller, (void)frame;
}

static bool keeps(void *arg, uint64_t caller)
{
    (void)arg, (void)caller;
    return false;
}

static void gone(void *arg, uint64_t caller)
{
    (void)arg, (void)caller;
    ngone++;
}

static int connected(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t port;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(agent_listen_port(callers.listener, &port), 0);
    at.sin_port = htons(port);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* The agent finds one that has connected, and nothing else. */
static void accept_one(void)
{
    const struct pollfd ready = {.revents = POLLIN};
    assert_true(callers_accept(&callers, &ready));
}

/* Its HELLO comes between the look at those that are there and the next one, to which it would give
 * way. */
static void one_that_has_said_hello_stays(void **state)
{
    const struct callers_hooks hooks = {.take = take, .taken = taken, .keeps = keeps, .gone = gone};
    int fds_of[STRANGERS_MAX + 1];
    char welcome[256];
    struct wire_out out = {0};
    (void)state;
    ngone = 0;
    assert_int_equal(callers_open(&callers, &hooks, &self), 0);
    for (int i = 0; i < STRANGERS_MAX; i++) {
        fds_of[i] = connected();
        accept_one();
    }
    put_hello(&out, &self, self.label);
    assert_true(send(fds_of[0], out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len);
    fds_of[STRANGERS_MAX] = connected();
    accept_one();
    assert_true(recv(fds_of[0], welcome, sizeof welcome, MSG_DONTWAIT) > 0);
    assert_int_equal(ngone, 0);
    int last = connected();
    accept_one();
    assert_int_equal(ngone, 1); /* a silent one */
    wire_out_free(&out);
    callers_close(&callers);
    for (int i = 0; i <= STRANGERS_MAX; i++)
        close(fds_of[i]);
    close(last);
    assert_int_equal(agent_leave(), 0);
}

/* A caller that is known. @return its socket */
static int known(struct agent_line *line)
{
    struct wire_out frame = {0};
    struct err err = {0};
    agent_frame_end(&frame, agent_frame_begin(&frame, AGENT_LET_GO));
    int fd = agent_call_open(address, &frame, WAIT_MS, line, &err);
    assert_int_not_equal(fd, -1);
    wire_out_free(&frame);
    return fd;
}

static void leave(int fd, struct agent_line *line)
{
    close(fd);
    agent_line_close(line);
}

static ssize_t next(int fd, void *bytes, size_t len)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, WAIT_MS), 1);
    return recv(fd, bytes, len, 0);
}

static void send_sealed(int fd, struct agent_line *line, struct wire_out *frame)
{
    struct wire_out out = {0};
    assert_true(agent_line_put(line, frame, &out));
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
    wire_out_free(&out);
    wire_out_free(frame);
}

/* @return what the agent says of the frame */
static uint32_t result(int fd, struct agent_line *line, struct wire_out *frame)
{
    unsigned char bytes[SEAL_HEAD + AGENT_HEAD + 8 + SEAL_TAG];
    struct agent_frame answer;
    send_sealed(fd, line, frame);
    assert_int_equal(next(fd, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(agent_line_read(line, bytes, sizeof bytes, &answer), 1);
    assert_int_equal(answer.type, AGENT_ANSWER);
    wire_get_u32(&answer.body);
    return wire_get_u32(&answer.body);
}

/* A caller of a later muster may say what we do not know, or more than we know. */
static void unknown_frames_are_skipped(void **state)
{
    struct agent_line line = {0};
    struct wire_out frame = {0};
    (void)state;
    int fd = known(&line);
    put_status(&frame, 77, 1, 2);
    assert_int_equal(result(fd, &line, &frame), AGENT_UNKNOWN);
    size_t from = agent_frame_begin(&frame, AGENT_STATUS);
    wire_put_u32(&frame, RM_CAUSE_TASK);
    wire_put_u32(&frame, 11);
    wire_put_str(&frame, "a reason");
    wire_put_str(&frame, "of a later version");
    agent_frame_end(&frame, from);
    assert_int_equal(result(fd, &line, &frame), AGENT_TAKEN);
    leave(fd, &line);
    put_status(&frame, AGENT_STATUS, RM_CAUSE_ABORT, 12); /* of an earlier one */
    fd = known(&line);
    assert_int_equal(result(fd, &line, &frame), AGENT_TAKEN);
    leave(fd, &line);
    assert_int_equal(agent_leave(), 12);
}

static void a_frame_is_bounded(void **state)
{
    struct agent_line line = {0};
    struct wire_out out = {0};
    char byte;
    (void)state;
    int fd = known(&line);
    wire_put_u32(&out, AGENT_FRAME_MAX + 1);
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
    assert_int_equal(next(fd, &byte, 1), 0);
    wire_out_free(&out);
    leave(fd, &line);
    agent_leave();
}

/* A record that holds no whole frame, or more than one. */
static void a_record_is_a_frame(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct agent_line line = {0};
        struct wire_out frame = {0};
        char byte;
        int fd = known(&line);
        put_status(&frame, AGENT_STATUS, RM_CAUSE_ABORT, 5);
        if (more)
            wire_put_u32(&frame, 0);
        else
            frame.len--;
        send_sealed(fd, &line, &frame);
        assert_int_equal(next(fd, &byte, 1), 0);
        leave(fd, &line);
    }
    assert_int_equal(agent_leave(), 0);
}

/* The first one, and harmless; the status is that of the weightiest cause. */
static void the_reason_comes_home(void **state)
{
    (void)state;
    assert_int_equal(tell(RM_CAUSE_HOST, 137), 0); /* told otherwise */
    assert_int_equal(nshown, 0);
    assert_int_equal(tell_why(RM_CAUSE_HOST, 137, "a server\033[2J is lost"), 0);
    assert_int_equal(nshown, 1);
    assert_string_equal(shown, "a server?[2J is lost");
    assert_int_equal(tell_why(RM_CAUSE_TASK, 139, "a task is lost"), 0);
    assert_int_equal(tell_why(RM_CAUSE_TASK, 3, "another task is lost"), 0);
    assert_int_equal(agent_leave(), 139);
    assert_int_equal(nshown, 1);
}

/* What is too long for the agent is cut by the caller. */
static void a_long_reason_keeps_the_status(void **state)
{
    char why[2 * AGENT_TEXT_MAX];
    (void)state;
    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    assert_int_equal(tell_why(RM_CAUSE_HOST, 137, why), 0);
    assert_int_equal(agent_leave(), 137);
    assert_int_equal(strlen(shown), AGENT_TEXT_MAX - 1);
}

/* Where somebody listens who is no agent, a call ends when its time is over. */
static void who_does_not_answer(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct rm_ending ending = {.cause = RM_CAUSE_ABORT, .status = 7};
    socklen_t len = sizeof in;
    struct err err = {0};
    char text[128];
    (void)state;
    agent_leave();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 1), 0);
    getsockname(fd, (struct sockaddr *)&in, &len);
    snprintf(text, sizeof text, "127.0.0.1 %u:1.0:%032d", ntohs(in.sin_port), 0);
    assert_int_equal(agent_call_status(text, &ending, 50, &err), -1);
    close(fd);
    assert_int_equal(agent_call_status(text, &ending, WAIT_MS, &err), -1);
    assert_int_equal(agent_call_status(NULL, &ending, WAIT_MS, &err), -1);
}

/* SrunPortRange is kept to, and a port that is taken is passed over. */
static void ports_of_the_range(void **state)
{
    uint16_t range[2];
    struct agent_address at;
    char *env[] = {agent_variable, NULL};
    (void)state;
    assert_true(agent_address_read(address, &at));
    range[0] = (uint16_t)(atoi(at.port) < 60000 ? atoi(at.port) : atoi(at.port) - 40);
    range[1] = (uint16_t)(range[0] + 40);
    int taken = stranger(); /* keeps the first agent's port in use */
    agent_leave();
    ports = range;
    enter();
    ports = NULL;
    assert_null(agent_find(env)); /* without Slurm's variable */
    unsigned port = (unsigned)atoi(strchr(agent_variable, '=') + 1);
    assert_in_range(port, range[0], range[1]);
    agent_leave();
    close(taken);
}

static void what_is_no_address(void **state)
{
    static const char *const bad[] = {"",
                                      "127.0.0.1",
                                      "127.0.0.1 1:1.0:",
                                      " 1:1.0:00000000000000000000000000000000",
                                      "127.0.0.1 x:1.0:00000000000000000000000000000000",
                                      "127.0.0.1 123456789:1.0:00000000000000000000000000000000",
                                      "127.0.0.1 1:1.0:0000000000000000000000000000000",
                                      "127.0.0.1 1::00000000000000000000000000000000",
                                      "127.0.0.1 1:1.0:0000000000000000000000000000000G"};
    struct agent_address at;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(agent_address_read(bad[i], &at));
    assert_true(agent_address_read("::1 1:1.0:000000000000000000000000000000ff", &at));
    assert_int_equal(at.secret[15], 255);
}

int main(void)
{
    start_first_thread();
    const struct CMUnitTest tests[] = {
        AGENT_TEST(the_status_comes_home),
        AGENT_TEST(srun_ends_meanwhile),
        AGENT_TEST(nobody_tells),
        AGENT_TEST(which_status_wins),
        AGENT_TEST(what_is_no_status),
        AGENT_TEST(one_agent_for_all_components),
        AGENT_TEST(strangers_are_cut_off),
        AGENT_TEST(a_credential_is_good_once),
        AGENT_TEST(silent_strangers_cost_nothing),
        AGENT_TEST(strangers_do_not_push_a_server_out),
        AGENT_TEST(one_that_has_said_hello_stays),
        AGENT_TEST(unknown_frames_are_skipped),
        AGENT_TEST(a_frame_is_bounded),
        AGENT_TEST(a_record_is_a_frame),
        AGENT_TEST(the_reason_comes_home),
        AGENT_TEST(a_long_reason_keeps_the_status),
        AGENT_TEST(munged_hangs),
        AGENT_TEST(who_does_not_answer),
        AGENT_TEST(ports_of_the_range),
        cmocka_unit_test(what_is_no_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
