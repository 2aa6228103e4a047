/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what a server sees of its user's others: their number and memory, by name and by user.
 * The others are children of the test under a name that no process has.
 */
#include "common/server/process/share.h"

#include "common/util/test_cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD = 64 << 20, NOBODY = 65534 };

static char name[16]; /* of this run's servers */

/* A server that has some memory, and stays. @param uid it becomes that user; (uid_t)-1: nobody else
 */
static pid_t start(const char *called, uid_t uid)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, called);
        if (mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                MAP_FAILED ||
            (uid != (uid_t)-1 && setuid(uid) != 0))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid() forgets it */
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_one(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void nobody_else(void **state)
{
    (void)state;
    struct share share = share_look(geteuid(), name, 0);
    assert_int_equal(share.servers, 0);
    assert_int_equal(share.bytes, 0);
    assert_true(share_own() > 0);
}

/* Two count, beyond what each has at its start, until they end. */
static void servers_of_the_user(void **state)
{
    (void)state;
    uint64_t base = share_own();
    pid_t one = start(name, (uid_t)-1), two = start(name, (uid_t)-1),
          other = start("muster-x", -1u);
    struct share share = share_look(geteuid(), name, base);
    assert_int_equal(share.servers, 2);
    assert_in_range(share.bytes, 2ull * HELD, 3ull * HELD - 1); /* a sanitizer has its own, too */
    end_one(one);
    share = share_look(geteuid(), name, base);
    assert_int_equal(share.servers, 1);
    assert_int_equal(share_look(geteuid(), name, base + 2ull * HELD).bytes, 0);
    end_one(two);
    end_one(other);
    assert_int_equal(share_look(geteuid(), name, base).servers, 0);
}

/* Whatever another user has, and how he calls it. */
static void servers_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t one = start(name, NOBODY);
    assert_int_equal(share_look(0, name, 0).servers, 0);
    assert_int_equal(share_look(NOBODY, name, 0).servers, 1);
    end_one(one);
}

int main(void)
{
    snprintf(name, sizeof name, "must-%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_else),
        cmocka_unit_test(servers_of_the_user),
        cmocka_unit_test(servers_of_another_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
