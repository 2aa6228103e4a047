/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the watch over tasks: what the server hears of them, and whom the door is for. The test
 * plays slurmstepd, the server and the task; the killer is not needed.
 */
#include "plugins/slurm/watch.h"

#include "common/launch/boot.h"
#include "common/launch/door.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/killer.h"

#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORD = 12, BYTES = 8192 };

static uint32_t ranks[] = {0};
static struct boot_node nodes[] = {{.name = (char *)"c07", .ntasks = 1, .ranks = ranks}};
static struct facts facts = {
    .node = (char *)"c07",
    .boot = {.nodes = nodes, .nnodes = 1, .ntasks = 1, .label = (char *)"1.0"}};
static struct launch launch;
static struct listener listener = {.fd = -1};
static struct task_env env;
static struct door door = DOOR_NONE;
static struct herald *herald; /* none, but in one test */
static int busy[2], idle[2];  /* pipes: the watch is in on_left(); it may go on */

/* srun's agent takes its time. */
struct herald {
    int wake[2]; /* a pipe */
    _Atomic bool is_idle, has_task;
};
static _Atomic unsigned kills;

bool herald_is_idle(struct herald *h)
{
    return h == NULL || h->is_idle;
}

int herald_fd(const struct herald *h)
{
    return h != NULL ? h->wake[0] : -1;
}

void herald_has_task(struct herald *h)
{
    h->has_task = true;
}

void herald_wait(struct herald *h)
{
    assert_true(herald_is_idle(h));
}

struct killer *killer_start(const struct facts *of, const struct pollfd *tasks, size_t ntasks)
{
    static int killer;
    (void)of, (void)tasks, (void)ntasks;
    kills++;
    return (struct killer *)&killer;
}

void killer_stop(struct killer *killer, unsigned wait_s)
{
    (void)killer, (void)wait_s;
}

void listener_close(struct listener *of)
{
    (void)of;
}

/* The watch has much to do, as on a node with more processes than processors. */
static void on_left(void *arg)
{
    char byte;
    (void)arg;
    assert_int_equal(write(busy[1], "", 1), 1);
    assert_int_equal(read(idle[0], &byte, 1), 1);
}

/* watch_stop() has told the watch to end, and waits for it. */
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    assert_int_equal(write(idle[1], "", 1), 1);
    return __real_pthread_join(thread, result);
}

/* The server takes all that it is told, and ends. @return that, for free() */
static void *serve(void *arg)
{
    static unsigned char bytes[BYTES];
    int fd = *(int *)arg;
    size_t len = 0;
    ssize_t n;
    while (len < sizeof bytes && (n = recv(fd, bytes + len, sizeof bytes - len, 0)) > 0)
        len += (size_t)n;
    close(fd);
    wire_in_init(arg = malloc(sizeof(struct wire_in)), bytes, len);
    return arg;
}

/* A watch of a server that is this process, with the sockets between it and the server.
 * @param left called when the server has said that it leaves, or NULL */
static struct watch *begin_watch(int control[2], void (*left)(void *arg))
{
    struct err err = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
    launch = (struct launch){.control = control[0],
                             .pidfd = -1,
                             .relay = {.fd = -1},
                             .oom_kills = -1,
                             .node = "c07",
                             .server = getpid(),
                             .on_left = left};
    struct watch *watch = watch_start(&(struct watched){.facts = &facts,
                                                        .launch = &launch,
                                                        .listener = &listener,
                                                        .env = &env,
                                                        .door = &door,
                                                        .herald = herald},
                                      &err);
    assert_non_null(watch);
    return watch;
}

/* A task is killed, and slurmstepd is faster than the watch. */
static void server_hears_of_last_end(void **state)
{
    int control[2];
    pthread_t server;
    void *result;
    char byte;
    (void)state;
    assert_int_equal(pipe(busy) + pipe(idle), 0);
    struct watch *watch = begin_watch(control, on_left);
    pid_t task = fork();
    if (task == 0) {
        notes_task(watch_notes(watch), 0, getpid());
        pause();
    }
    /* The directory and the start. Then the task goes on, and the watch is held up. */
    unsigned char head[RECORD];
    struct pollfd told = {control[1], POLLIN, 0};
    assert_int_equal(poll(&told, 1, 60000), 1);
    assert_int_equal(recv(control[1], head, sizeof head, MSG_PEEK), sizeof head);
    const char says[] = {BOOT_SAYS_LEFT};
    assert_int_equal(send(control[1], says, 1, 0), 1);
    assert_int_equal(read(busy[0], &byte, 1), 1);
    kill(task, SIGKILL);
    assert_int_equal(waitpid(task, NULL, 0), task);
    assert_int_equal(pthread_create(&server, NULL, serve, &control[1]), 0);
    watch_stop(watch);
    assert_int_equal(__real_pthread_join(server, &result), 0);
    struct wire_in *in = result;
    uint32_t slot = BOOT_WDIR, len;
    while (slot == BOOT_WDIR || (slot & BOOT_TASK_STARTED && slot != BOOT_LEAVE)) {
        slot = wire_get_u32(in);
        len = wire_get_u32(in);
        wire_get_u32(in);
        in->p += slot == BOOT_WDIR ? len : 0;
        assert_false(in->bad);
    }
    assert_int_equal(slot, 0); /* and not BOOT_LEAVE */
    assert_int_equal(wire_get_u32(in), BOOT_LEAVE);
    free(in);
}

/* Time goes as fast as the watch waits for it. */
static _Atomic bool hurried;
static _Atomic int64_t gone_ms;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    if (!hurried || timeout <= 0)
        return __real_poll(fds, n, timeout);
    int rc = __real_poll(fds, n, 1);
    if (rc == 0)
        gone_ms += timeout;
    return rc;
}

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = __real_clock_gettime(id, t);
    t->tv_sec += gone_ms / 1000;
    return rc;
}

static int lines[2]; /* a pipe of what is logged */

static void log_line(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level;
    assert_int_equal(write(lines[1], text, strlen(text)), strlen(text));
}

static void logs(const char *text)
{
    char line[1024];
    ssize_t n = read(lines[0], line, sizeof line - 1);
    assert_in_range(n, 1, sizeof line - 1);
    line[n] = '\0';
    assert_non_null(strstr(line, text));
}

/* The server takes what it is told and says nothing, and then it does. */
static void silent_server_is_told_of(void **state)
{
    int control[2];
    pthread_t server;
    uint32_t record[3];
    void *result;
    const char here = BOOT_SAYS_HERE, left = BOOT_SAYS_LEFT;
    (void)state;
    assert_int_equal(pipe(lines) + pipe(idle), 0);
    log_open(log_line, NULL, LOG_LEVEL_ERROR, NULL);
    hurried = true;
    struct watch *watch = begin_watch(control, NULL);
    assert_int_equal(recv(control[1], record, sizeof record, 0), RECORD);
    assert_int_equal(ntohl(record[0]), BOOT_ASKS);
    logs("muster-server on node c07 has not answered for 60 s");
    assert_int_equal(send(control[1], &here, 1, 0), 1);
    logs("muster-server on node c07 answers again");
    hurried = false;
    assert_int_equal(send(control[1], &left, 1, 0), 1);
    assert_int_equal(pthread_create(&server, NULL, serve, &control[1]), 0);
    watch_stop(watch);
    assert_int_equal(__real_pthread_join(server, &result), 0);
    free(result);
}

/* Something of the user's connects to the door: before a task was sent there it is no task. */
static void door_is_for_unserved_tasks(void **state)
{
    int control[2], knock = socket(AF_INET, SOCK_STREAM, 0);
    struct err err = {0};
    const char left = BOOT_SAYS_LEFT;
    pthread_t server;
    pid_t task;
    void *result;
    char byte;
    (void)state;
    assert_int_equal(pipe(lines) + pipe(busy) + pipe(idle), 0);
    log_open(log_line, NULL, LOG_LEVEL_ERROR, NULL);
    assert_int_equal(door_open(&door, 0, &err), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(door.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    facts.user.uid = getuid();
    struct watch *watch = begin_watch(control, on_left);
    assert_int_equal(connect(knock, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(control[1], &left, 1, 0), 1);
    assert_int_equal(read(busy[0], &byte, 1), 1); /* the watch looks at doors before */
    assert_int_equal(poll(&(struct pollfd){lines[0], POLLIN, 0}, 1, 0), 0);
    assert_int_equal(write(idle[1], "", 1), 1);
    task = fork();
    if (task == 0) {
        notes_unserved(watch_notes(watch), NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(task, NULL, 0), task);
    logs("a task on node c07 asks for PMIx");
    assert_int_equal(pthread_create(&server, NULL, serve, &control[1]), 0);
    watch_stop(watch);
    assert_int_equal(__real_pthread_join(server, &result), 0);
    free(result);
    close(knock);
    door_close(&door);
}

static void until(const _Atomic bool *what)
{
    while (!*what)
        __real_poll(NULL, 0, 1);
}

/* A task is refused. The user reads why before the step is ended, as srun may end with it. */
static void the_reason_comes_first(void **state)
{
    struct herald slow = {.is_idle = false};
    int control[2];
    const char left = BOOT_SAYS_LEFT;
    pthread_t server;
    void *result;
    (void)state;
    assert_int_equal(pipe(lines) + pipe(idle) + pipe(slow.wake), 0);
    log_open(log_line, NULL, LOG_LEVEL_ERROR, NULL);
    herald = &slow;
    kills = 0;
    struct watch *watch = begin_watch(control, NULL);
    pid_t task = fork();
    if (task == 0) {
        notes_refused(watch_notes(watch), "no room for it");
        _exit(0);
    }
    assert_int_equal(waitpid(task, NULL, 0), task);
    logs("no room for it");
    until(&slow.has_task);
    assert_int_equal(kills, 0);
    slow.is_idle = true;
    assert_int_equal(write(slow.wake[1], "", 1), 1);
    while (kills == 0)
        __real_poll(NULL, 0, 1);
    assert_int_equal(send(control[1], &left, 1, 0), 1);
    assert_int_equal(pthread_create(&server, NULL, serve, &control[1]), 0);
    watch_stop(watch);
    assert_int_equal(__real_pthread_join(server, &result), 0);
    free(result);
    assert_int_equal(kills, 1);
    herald = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_hears_of_last_end), cmocka_unit_test(silent_server_is_told_of),
        cmocka_unit_test(door_is_for_unserved_tasks), cmocka_unit_test(the_reason_comes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
