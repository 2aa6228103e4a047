/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what the slurmds that musterrun plays do for which user. The test itself says, in the
 * kernel's place, which user asks.
 */
#include "shims/slurm/standin/slurmd.h"

#include "common/util/io_all.h"
#include "common/util/test_cmocka.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[] = "/tmp/test_slurmd.XXXXXX", spool[96], place[128];
static struct standin_node nodes[] = {{.name = "node0"}};
static uint16_t cpus[] = {4};
static struct standin_step step = {
    .job = 1, .nnodes = 1, .ntasks = 1, .nodes = nodes, .job_nodes = 1, .cpus = cpus};
static atomic_uint asker; /* uid; the slurmd's threads read it */

/* Instead of libc's: SO_PEERCRED is all that is asked for. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    struct ucred cred = {.pid = getpid(), .uid = asker, .gid = getgid()};
    (void)fd;
    assert_true(level == SOL_SOCKET && name == SO_PEERCRED && *len == sizeof cred);
    memcpy(value, &cred, sizeof cred);
    return 0;
}

/* @return bytes of the answer: up to @p cap, until the slurmd has closed the connection */
static ssize_t ask_as(uid_t uid, const struct standin_head *head, const void *more, size_t len,
                      void *found, size_t cap)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    asker = uid;
    slurmd_path(&step, &nodes[0], to.sun_path, sizeof to.sun_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_true(send_all(fd, head, sizeof *head) && send_all(fd, more, len));
    shutdown(fd, SHUT_WR);
    ssize_t n = recv(fd, found, cap, MSG_WAITALL);
    close(fd);
    return n;
}

static void make_credential(uid_t reader, unsigned char *token)
{
    const struct standin_head head = {.kind = STANDIN_TOKEN_NEW,
                                      .make = {.reader = reader, .len = 2}};
    struct {
        int32_t code;
        unsigned char token[STANDIN_TOKEN];
    } answer;
    assert_int_equal(ask_as(geteuid(), &head, "ab", 2, &answer, sizeof answer), sizeof answer);
    assert_int_equal(answer.code, 0);
    memcpy(token, answer.token, STANDIN_TOKEN);
}

static ssize_t read_as_run(uid_t uid, const unsigned char *token)
{
    struct standin_head head = {.kind = STANDIN_RUN_TOKEN};
    struct {
        int32_t code;
        struct standin_credential found;
    } answer = {.code = -1};
    memcpy(head.read.token, token, STANDIN_TOKEN);
    ssize_t n = ask_as(uid, &head, NULL, 0, &answer, sizeof answer);
    if (n == sizeof answer) {
        assert_int_equal(answer.code, 0);
        assert_int_equal(answer.found.uid, geteuid());
        assert_memory_equal(answer.found.data, "ab", 2);
    }
    return n;
}

/* Only a slurmd of the same user reads credentials of this run for another one; a try
 * by another user does not use a credential up. */
static void run_token_is_for_the_user(void **state)
{
    unsigned char token[STANDIN_TOKEN];
    uid_t other = geteuid() + 1;
    (void)state;
    make_credential(other, token);
    assert_int_equal(read_as_run(other, token), 0);
    make_credential(geteuid(), token);
    assert_int_equal(read_as_run(other, token), 0);
    assert_true(read_as_run(geteuid(), token) > (ssize_t)sizeof(int32_t));
}

static void step_is_for_the_user(void **state)
{
    const struct standin_head head = {.kind = STANDIN_JOIN, .join = {.ntasks = 1}};
    char answer[sizeof(int32_t)];
    (void)state;
    assert_int_equal(ask_as(geteuid() + 1, &head, NULL, 0, answer, sizeof answer), 0);
    assert_int_equal(ask_as(geteuid(), &head, NULL, 0, answer, sizeof answer), sizeof answer);
}

/* Every user may read the list of steps, as with Slurm. */
static void steps_are_for_all(void **state)
{
    const struct standin_head head = {.kind = STANDIN_RUN_STEPS};
    char answer[sizeof(int32_t)];
    (void)state;
    assert_int_equal(ask_as(geteuid() + 1, &head, NULL, 0, answer, sizeof answer), sizeof answer);
}

static int begin(void **state)
{
    struct err err = {0};
    static int events[2];
    (void)state;
    if (mkdtemp(dir) == NULL || pipe(events) != 0)
        return -1;
    snprintf(step.dir, sizeof step.dir, "%s", dir);
    snprintf(spool, sizeof spool, "%s/node0", dir);
    slurmd_path(&step, &nodes[0], place, sizeof place);
    if (mkdir(spool, 0700) != 0)
        return -1;
    struct slurmd *slurmd = slurmd_open(&step, NULL, &err);
    return slurmd != NULL ? slurmd_start(slurmd, events[1], &err) : -1;
}

static int end(void **state)
{
    (void)state;
    return unlink(place) | rmdir(spool) | rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_token_is_for_the_user),
        cmocka_unit_test(step_is_for_the_user),
        cmocka_unit_test(steps_are_for_all),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
