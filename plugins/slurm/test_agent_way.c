/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the agent in srun with somebody on the way between it and its caller.
 */
#include "plugins/slurm/agent.h"

#include "common/util/test_cmocka.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/agent_line.h"
#include "plugins/slurm/auth.h"
#include "plugins/slurm/test_agent_kit.h"
#include "plugins/slurm/test_munge.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum way {
    PASSES,   /* and only listens */
    CHANGES,  /* a bit of what the caller says after HELLO */
    REPLACES, /* that by a status in clear, as it was in version 2 */
    ANSWERS,  /* in the place of the agent, as another user */
};

static struct {
    enum way way;
    int listener;
    const char *seeks;
    bool found; /* it can be read */
} spy;

static int accept_one(void)
{
    struct pollfd poller = {.fd = spy.listener, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, WAIT_MS), 1);
    return accept4(spy.listener, NULL, NULL, SOCK_CLOEXEC);
}

/* A WELCOME to the caller whose HELLO this is. */
static void answer_as_another(int caller, const unsigned char *hello)
{
    struct agent_address at;
    struct agent_line line;
    struct wire_out out = {0}, payload = {0};
    struct err err = {0};
    assert_true(agent_address_read(address, &at));
    assert_true(agent_line_open(&line, &err));
    size_t from = agent_frame_begin(&out, AGENT_WELCOME);
    agent_payload(&at, hello + AGENT_HEAD + SEAL_PROOF, line.point, &payload);
    wire_put_raw(&out, line.point, SEAL_POINT);
    munge.writer++;
    assert_true(auth_write(&out, getuid(), payload.data, payload.len, WAIT_MS));
    munge.writer--;
    agent_frame_end(&out, from);
    assert_int_equal(send(caller, out.data, out.len, MSG_NOSIGNAL), out.len);
    wire_out_free(&out);
    wire_out_free(&payload);
    agent_line_close(&line);
}

/* What the caller says, of which the first is HELLO. @return how much is to go to the agent */
static size_t spoil(unsigned char *bytes, size_t len, bool first)
{
    struct wire_out status = {0};
    spy.found |= memmem(bytes, len, spy.seeks, strlen(spy.seeks)) != NULL;
    if (first || spy.way == PASSES)
        return len;
    if (spy.way == CHANGES) {
        bytes[len - 1] ^= 1;
        return len;
    }
    put_status(&status, AGENT_STATUS, RM_CAUSE_ABORT, 66);
    wire_put_u64(&status, 0); /* as long as a record of the length that it begins with */
    memcpy(bytes, status.data, status.len);
    len = status.len;
    wire_out_free(&status);
    return len;
}

/* The thread. */
static void *stand_between(void *arg)
{
    unsigned char bytes[4096];
    bool first = true;
    int caller = accept_one(), there = stranger();
    struct pollfd both[] = {{caller, POLLIN, 0}, {there, POLLIN, 0}};
    while (poll(both, 2, WAIT_MS) > 0) {
        bool says = both[0].revents != 0;
        ssize_t n = recv(says ? caller : there, bytes, sizeof bytes, 0);
        if (n <= 0)
            break;
        if (says && first && spy.way == ANSWERS)
            answer_as_another(caller, bytes);
        else if (send(says ? there : caller, bytes,
                      says ? spoil(bytes, (size_t)n, first) : (size_t)n, MSG_NOSIGNAL) < 0)
            break;
        first &= !says;
    }
    close(caller);
    close(there);
    return arg;
}

static void somebody_on_the_way(void **state)
{
    static const char text[] = "the step ends since rank 5 was lost";
    const struct rm_ending ending = {.cause = RM_CAUSE_TASK, .status = 3, .why = text};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct agent_address at;
    char by_spy[128];
    socklen_t len = sizeof in;
    (void)state;
    assert_true(agent_address_read(address, &at));
    spy.seeks = text;
    spy.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(spy.listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(spy.listener, 1), 0);
    getsockname(spy.listener, (struct sockaddr *)&in, &len);
    snprintf(by_spy, sizeof by_spy, "127.0.0.1 %u%s", ntohs(in.sin_port),
             strchr(strchr(address, ' '), ':'));
    for (spy.way = PASSES; spy.way <= ANSWERS; spy.way++) {
        struct err err = {0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stand_between, NULL), 0);
        assert_int_equal(agent_call_status(by_spy, &ending, WAIT_MS, &err),
                         spy.way == PASSES ? 0 : -1);
        pthread_join(thread, NULL);
    }
    close(spy.listener);
    assert_false(spy.found);
    assert_int_equal(agent_leave(), 3);
    assert_int_equal(nshown, 1);
    assert_string_equal(shown, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {AGENT_TEST(somebody_on_the_way)};
    start_first_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
