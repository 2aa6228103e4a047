/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of slurmstepd's lines for the user: srun's agent takes them, or they are logged, but not
 * before there is a task.
 */
#include "plugins/slurm/herald.h"

#include "common/util/test_cmocka.h"
#include "plugins/slurm/agent.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/test_agent_kit.h"
#include "plugins/slurm/test_munge.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[64 * 1024];

/* A call hangs in seal_load(), and returns when a line is logged. */
static sem_t mounted;
static _Atomic bool hangs, returns;

/* herald_of.log */
static void log_it(const char *line)
{
    if (returns)
        sem_post(&mounted);
    pthread_mutex_lock(&lock);
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s;", line);
    pthread_mutex_unlock(&lock);
}

static void is_logged(const char *text)
{
    pthread_mutex_lock(&lock);
    assert_string_equal(logged, text);
    pthread_mutex_unlock(&lock);
}

static struct herald *herald_on(const char *node, const char *agent)
{
    const struct identity user = {.uid = getuid(), .gid = getgid()};
    struct herald *herald =
        herald_new(&(struct herald_of){.user = &user, .node = node, .agent = agent, .log = log_it});
    assert_non_null(herald);
    logged[0] = '\0';
    return herald;
}

static void say(struct herald *herald, const char *line)
{
    herald_say(herald, line);
    struct pollfd wake = {herald_fd(herald), POLLIN, 0};
    assert_int_equal(poll(&wake, 1, WAIT_MS), 1);
    herald_wait(herald);
    assert_true(herald_is_idle(herald));
}

/* Two nodes say the same. */
static void the_agent_takes_lines(void **state)
{
    struct herald *herald = herald_on("c07", address), *other = herald_on("c08", address);
    (void)state;
    say(herald, "c07: no server");
    assert_string_equal(shown, "c07: no server");
    say(other, "c08: no server");
    say(other, "c08: no server");
    assert_int_equal(nshown, 1);
    herald_has_task(herald);
    herald_free(herald);
    herald_free(other);
    is_logged("");
    assert_int_equal(agent_leave(), 0);
    assert_int_equal(nshown, 2);
    assert_string_equal(shown, "1 more node says the same as c07: c08 (no server)");
}

/* srun was killed. */
static void the_agent_has_gone(void **state)
{
    (void)state;
    agent_leave();
    struct herald *herald = herald_on("c07", address);
    say(herald, "c07: no server");
    is_logged("");
    herald_has_task(herald);
    is_logged("c07: no server;");
    say(herald, "c07: another line");
    is_logged("c07: no server;c07: another line;");
    herald_free(herald);
}

/* And a step that ends before it has a task. */
static void there_is_no_agent(void **state)
{
    struct herald *herald = herald_on("c07", NULL);
    (void)state;
    agent_leave();
    say(herald, "c07: no server");
    is_logged("");
    herald_free(herald);
    is_logged("c07: no server;");
    assert_true(herald_is_idle(NULL));
    herald_wait(NULL);
    herald_free(NULL);
}

/* Where lines come faster than the agent takes them, each is said once all the same; and no more
 * of one than the agent takes. */
static void many_lines_at_once(void **state)
{
    enum { LINES = 14 };
    char text[2 * AGENT_TEXT_MAX];
    unsigned n = 0;
    (void)state;
    struct herald *herald = herald_on("c07", address);
    herald_has_task(herald);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < LINES; i++) {
        text[0] = (char)('a' + i);
        herald_say(herald, text);
    }
    herald_wait(herald);
    assert_true(herald_is_idle(herald));
    herald_free(herald);
    for (const char *p = logged; (p = strchr(p, ';')) != NULL; p++)
        n++;
    agent_leave();
    assert_int_equal(strlen(shown), AGENT_TEXT_MAX - 1);
    assert_int_equal(n + nshown, LINES);
}

/* The file system that has seal.so hangs. */

const struct seal_ops *__real_seal_load(struct err *err);
const struct seal_ops *__wrap_seal_load(struct err *err);
const struct seal_ops *__wrap_seal_load(struct err *err)
{
    if (hangs)
        sem_wait(&mounted);
    return __real_seal_load(err);
}

static void a_call_that_hangs(void **state)
{
    (void)state;
    struct herald *herald = herald_on("c07", address);
    sem_init(&mounted, 0, 0);
    hangs = true;
    herald_say(herald, "c07: no server");
    assert_false(herald_is_idle(herald));
    herald_wait(herald);
    assert_true(herald_is_idle(herald));
    herald_say(herald, "c07: another line");
    is_logged("");
    agent_leave();
    hangs = false;
    returns = true; /* once the lines are logged, which does not wait for it */
    herald_free(herald);
    returns = false;
    is_logged("c07: no server;c07: another line;"); /* and not again, though nobody takes them */
}

/* The thread that calls has the user's rights, and may get root's again at any time. */
static void nobody_else_reads_it(void **state)
{
    struct err err = {0};
    (void)state;
    munge.reader = getuid() + 1;
    assert_int_equal(agent_call_cause(address,
                                      &(struct agent_cause){munge.reader, "c07", "c07: no server"},
                                      WAIT_MS, &err),
                     0);
    munge.reader = 0;
    agent_leave();
}

/* As where the program is missing on all of them: more than the agent has places for. */
enum { NODES = 100 };
static _Atomic unsigned ntaken;

static void *call(void *arg)
{
    char node[8], text[64];
    struct err err = {0};
    snprintf(node, sizeof node, "c%02u", (unsigned)(uintptr_t)arg);
    snprintf(text, sizeof text, "%s: no server", node);
    ntaken +=
        agent_call_cause(address, &(struct agent_cause){geteuid(), node, text}, WAIT_MS, &err) == 0;
    return NULL;
}

static void all_nodes_at_once(void **state)
{
    pthread_t threads[NODES];
    unsigned n;
    (void)state;
    for (uintptr_t i = 0; i < NODES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call, (void *)i), 0);
    for (unsigned i = 0; i < NODES; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ntaken, NODES);
    agent_leave();
    assert_in_range(nshown, 2, 6); /* on a slow machine the others come in several parts */
    assert_int_equal(sscanf(shown, "%u more node", &n), 1);
    assert_true(nshown > 2 || n == NODES - 1);
}

static int tell_cause(const char *to)
{
    struct err err = {0};
    return agent_call_cause(to, &(struct agent_cause){geteuid(), "c07", "c07: no server"}, 500,
                            &err);
}

/* The agent shows no line of another step, and none of another user. */
static void strangers_tell_nothing(void **state)
{
    char other[256];
    (void)state;
    snprintf(other, sizeof other, "%s", address);
    char *end = other + strlen(other) - 1;
    *end = *end == '0' ? '1' : '0'; /* of the secret: munged is not asked */
    assert_int_equal(tell_cause(other), -1);
    assert_int_equal(munge.verified, 0);
    snprintf(other, sizeof other, "%s", address);
    *strstr(other, "4711.3") = '5';
    assert_int_equal(tell_cause(other), -1);
    assert_in_range(munge.verified, 1, 3); /* the caller tries again */
    munge.writer++;
    assert_int_equal(tell_cause(address), -1);
    munge.writer--;
    assert_int_equal(nshown, 0);
    assert_int_equal(tell_cause(address), 0);
    assert_int_equal(nshown, 1);
    assert_int_equal(agent_leave(), 0);
}

/* Somebody listens in the agent's place, and says that the line was taken. */
static void *answer_wrong(void *arg)
{
    char bytes[4096] = "", taken[SEAL_PROOF] = "";
    int fd = accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
    assert_true(recv(fd, bytes, sizeof bytes, 0) > 0);
    assert_int_equal(send(fd, taken, sizeof taken, MSG_NOSIGNAL), sizeof taken);
    close(fd);
    return NULL;
}

static void another_takes_nothing(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    pthread_t thread;
    char there[256];
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&in, &len);
    snprintf(there, sizeof there, "127.0.0.1 %u%s", ntohs(in.sin_port),
             strchr(strchr(address, ' '), ':'));
    assert_int_equal(pthread_create(&thread, NULL, answer_wrong, &fd), 0);
    assert_int_equal(tell_cause(there), -1);
    pthread_join(thread, NULL);
    close(fd);
    agent_leave();
    assert_int_equal(nshown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(the_agent_takes_lines),  AGENT_TEST(the_agent_has_gone),
        AGENT_TEST(there_is_no_agent),      AGENT_TEST(many_lines_at_once),
        AGENT_TEST(a_call_that_hangs),      AGENT_TEST(all_nodes_at_once),
        AGENT_TEST(strangers_tell_nothing), AGENT_TEST(another_takes_nothing),
        AGENT_TEST(nobody_else_reads_it),
    };
    start_first_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
