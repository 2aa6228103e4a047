/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of files for the step's user: whole, or given up when the file system does not answer.
 */
#include "common/server/user_write.h"
#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* a file system that hangs waits for it */
static _Atomic bool hangs;
static _Atomic unsigned through;
static unsigned nturns, nsaid;
static struct server server;
static struct event_base *base;
static char home[64], path[256];

/* The first call that changes something below a home. */
int mkdir(const char *name, mode_t mode)
{
    if (hangs) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
        through++;
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
}

bool server_turn(struct server *s, int64_t ms)
{
    const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)s;
    nturns++;
    event_base_loopexit(base, &t);
    event_base_loop(base, EVLOOP_ONCE);
    return true;
}

bool server_tell_launcher(unsigned char what)
{
    nsaid += what == BOOT_SAYS_STAYS;
    return true;
}

static int begin(void **state)
{
    (void)state;
    nturns = nsaid = 0;
    snprintf(home, sizeof home, "/tmp/muster-write.XXXXXX");
    base = event_base_new();
    server.handoff = handoff_new(base);
    return mkdtemp(home) == NULL;
}

static int end(void **state)
{
    char command[128];
    (void)state;
    handoff_free(server.handoff);
    event_base_free(base);
    snprintf(command, sizeof command, "rm -r %s", home);
    return system(command);
}

static void assert_has(const char *file, const char *text)
{
    char found[64] = "";
    FILE *in = fopen(file, "r");
    assert_non_null(in);
    assert_non_null(fgets(found, sizeof found, in));
    fclose(in);
    assert_string_equal(found, text);
}

static void a_file_is_written_once(void **state)
{
    bool made;
    (void)state;
    assert_int_equal(user_write(&server, home, "one", strdup("first"), 5, &made), 0);
    assert_true(made);
    assert_true(nturns > 0 && nsaid == 1);
    assert_int_equal(user_write(&server, home, "one", strdup("other"), 5, &made), EEXIST);
    assert_false(made);
    snprintf(path, sizeof path, "%s/one", home);
    assert_has(path, "first");
    assert_int_equal(user_write(&server, "/nowhere", "one", strdup("other"), 5, &made), ENOENT);
}

static void one_is_kept_in_the_place_of_another(void **state)
{
    (void)state;
    assert_int_equal(user_keep(&server, home, "a.part", "muster.1.0", strdup("first"), 5), 0);
    assert_int_equal(user_keep(&server, home, "b.part", "muster.1.0", strdup("other"), 5), 0);
    snprintf(path, sizeof path, "%s/" BOOT_KEPT "/muster.1.0", home);
    assert_has(path, "other");
    snprintf(path, sizeof path, "%s/" BOOT_KEPT "/b.part", home);
    assert_int_equal(access(path, F_OK), -1);
}

/* The loop goes on meanwhile, and what is left behind is freed when it returns. */
static void a_home_that_hangs_is_given_up(void **state)
{
    (void)state;
    pthread_mutex_lock(&gate);
    hangs = true;
    int64_t from = now_ms();
    assert_int_equal(user_keep(&server, home, "a.part", "muster.1.0", strdup("first"), 5),
                     ETIMEDOUT);
    assert_in_range(now_ms() - from, USER_WRITE_MS, USER_WRITE_MS + LONG_MS);
    assert_int_equal(through, 0);
    hangs = false;
    pthread_mutex_unlock(&gate);
    snprintf(path, sizeof path, "%s/" BOOT_KEPT "/muster.1.0", home);
    for (int64_t by = now_ms() + LONG_MS; access(path, F_OK) != 0 && now_ms() < by;)
        usleep(1000);
    assert_int_equal(through, 1);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_written_once),
        TEST(one_is_kept_in_the_place_of_another),
        TEST(a_home_that_hangs_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
