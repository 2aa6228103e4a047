/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the server's directory: what the sweep takes away, and what it leaves alone.
 */
#include "common/launch/scratch.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SOMEBODY = 65533, /* a uid that owns nothing else */
    DEPTH = 400,      /* more levels than a walk has descriptors for */
    SWEEPS = 60,
};

static char tmpfs[] = "/tmp/test_scratch.XXXXXX";
static struct identity user;

static char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", tmpfs, name);
    return path;
}

static bool exists(const char *name)
{
    struct stat st;
    return lstat(path_of(name), &st) == 0;
}

/* A directory as a step leaves it: with a file in it, the user's. */
static void leave(const char *name)
{
    char file[600];
    assert_int_equal(mkdir(path_of(name), 0700), 0);
    snprintf(file, sizeof(file), "%s/file", path_of(name));
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    if (user.drop) {
        assert_int_equal(chown(file, SOMEBODY, SOMEBODY), 0);
        assert_int_equal(chown(path_of(name), SOMEBODY, SOMEBODY), 0);
    }
}

/* The sweep is another process, so that no start waits for it; as its reaper we see it end. */
static void await_sweep(void)
{
    unsigned n = 0;
    while (wait(NULL) > 0)
        n++;
    assert_int_equal(n, 1);
}

static void make(struct scratch *scratch)
{
    struct err err = {0};
    if (scratch_make(scratch, "TmpFS", tmpfs, NULL, "4711.0", &user, &err) < 0)
        fail_msg("%s", err.text);
    await_sweep();
}

/* A sweep has half a second, which a busy machine may use up before it has removed anything; and
 * each sweep takes some of a deep tree away. So steps start until the entry has gone. */
static void make_until_gone(const char *name)
{
    struct scratch scratch;
    for (int i = 0; i < SWEEPS && exists(name); i++) {
        make(&scratch);
        scratch_remove(&scratch, &user);
    }
    assert_false(exists(name));
}

static int open_tmpfs(void **state)
{
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    log_open(NULL, NULL, LOG_LEVEL_ERROR, NULL);
    user = (struct identity){.uid = geteuid(), .gid = getegid(), .drop = geteuid() == 0};
    if (user.drop)
        user.uid = user.gid = SOMEBODY;
    /* sticky, as TmpFS is */
    return mkdtemp(tmpfs) && chmod(tmpfs, 01777) == 0 ? 0 : -1;
}

static int remove_tmpfs(void **state)
{
    (void)state;
    return rmdir(tmpfs); /* empty: each test has taken its own away */
}

static void made_and_removed(void **state)
{
    struct scratch scratch;
    struct stat st;
    (void)state;
    make(&scratch);
    assert_int_equal(stat(scratch.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, user.uid);
    scratch_remove(&scratch, &user);
    assert_null(scratch.path);
}

/* root could make it there, and its user's server would not get to it. */
static void where_users_may_not_search(void **state)
{
    struct scratch scratch;
    struct err err = {0};
    (void)state;
    if (!user.drop)
        return;
    assert_int_equal(chmod(tmpfs, 0700), 0);
    assert_int_equal(scratch_make(&scratch, "TmpFS", tmpfs, NULL, "4711.0", &user, &err), -1);
    assert_int_equal(chmod(tmpfs, 01777), 0);
    assert_non_null(strstr(err.text, "has mode 0700"));
    assert_non_null(strstr(err.text, "chmod 1777 it, or set tmpdir in"));
}

static void seen_by_its_path(void **state)
{
    struct scratch scratch;
    char moved[600];
    (void)state;
    make(&scratch);
    assert_true(scratch_is_seen(&scratch));
    snprintf(moved, sizeof(moved), "%s.moved", scratch.path);
    assert_int_equal(rename(scratch.path, moved), 0);
    assert_false(scratch_is_seen(&scratch));
    assert_int_equal(mkdir(scratch.path, 0700), 0); /* another one of that name */
    assert_false(scratch_is_seen(&scratch));
    assert_int_equal(rmdir(scratch.path), 0);
    assert_int_equal(rename(moved, scratch.path), 0);
    assert_int_equal(rmdir(scratch.path), 0);
    assert_true(scratch_is_seen(&scratch)); /* the server was faster */
    scratch_remove(&scratch, &user);
}

static void left_is_swept(void **state)
{
    (void)state;
    leave("muster.4710.3.0000abcd");
    make_until_gone("muster.4710.3.0000abcd");
}

/* Of a step that had a place of its own, as jobs of Flux have, which stays with it. */
static void left_beside_is_swept(void **state)
{
    struct scratch scratch;
    struct err err = {0};
    char own[600];
    (void)state;
    assert_int_equal(mkdir(path_of("job-1"), 0755), 0);
    leave("job-1/muster.4710.3.0000abcd");
    assert_int_equal(mkdir(path_of("other"), 0755), 0);
    leave("other/muster.4710.3.0000abcd");
    assert_int_equal(mkdir(path_of("job-2"), 0755), 0);
    snprintf(own, sizeof(own), "%s", path_of("job-2"));
    if (scratch_make(&scratch, "TmpFS", own, "job-", "4711.0", &user, &err) < 0)
        fail_msg("%s", err.text);
    await_sweep();
    assert_false(exists("job-1/muster.4710.3.0000abcd"));
    assert_true(exists("job-1"));
    assert_true(exists("other/muster.4710.3.0000abcd/file"));
    scratch_remove(&scratch, &user);
    unlink(path_of("other/muster.4710.3.0000abcd/file"));
    rmdir(path_of("other/muster.4710.3.0000abcd"));
    rmdir(path_of("other"));
    rmdir(path_of("job-1"));
    rmdir(path_of("job-2"));
}

/* A user can make such a directory, and make it deep, so that each step tries in vain. The first
 * level is what a sweep that was out of time has moved there. */
static void left_deep_is_swept(void **state)
{
    char name[] = "muster.4710.3.0000abcd";
    (void)state;
    assert_int_equal(mkdir(path_of(name), 0700), 0);
    int dir = open(path_of(name), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        const char *level = i == 0 ? "deep.0.0" : "d";
        assert_int_equal(mkdirat(dir, level, 0700), 0);
        int sub = openat(dir, level, O_RDONLY | O_DIRECTORY);
        assert_true(sub >= 0);
        if (user.drop)
            assert_int_equal(fchown(sub, SOMEBODY, SOMEBODY), 0);
        close(dir);
        dir = sub;
    }
    close(dir);
    if (user.drop)
        assert_int_equal(chown(path_of(name), SOMEBODY, SOMEBODY), 0);
    make_until_gone(name);
}

static void locked_is_left_alone(void **state)
{
    struct scratch first, second;
    char name[64];
    (void)state;
    make(&first);
    snprintf(name, sizeof(name), "%s", strrchr(first.path, '/') + 1);
    make(&second);
    assert_true(exists(name));
    scratch_remove(&second, &user);
    scratch_remove(&first, &user);
    assert_false(exists(name));
}

/* Names that we do not give, and what is no directory, are somebody else's. */
static void others_are_left_alone(void **state)
{
    static const char *const names[] = {"muster.4711.0", "muster.4711.0.0000abcd.old",
                                        "muster.0000abcd", "other"};
    struct scratch scratch;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mkdir(path_of(names[i]), 0700), 0);
    leave("target");
    assert_int_equal(symlink("target", path_of("muster.1.1.00000001")), 0);
    make(&scratch);
    for (size_t i = 0; i < 4; i++) {
        assert_true(exists(names[i]));
        assert_int_equal(rmdir(path_of(names[i])), 0);
    }
    assert_true(exists("muster.1.1.00000001"));
    assert_true(exists("target/file"));
    unlink(path_of("muster.1.1.00000001"));
    unlink(path_of("target/file"));
    rmdir(path_of("target"));
    scratch_remove(&scratch, &user);
}

/* A directory that others may write may have been moved here by them. */
static void writable_by_others_is_left_alone(void **state)
{
    static const mode_t modes[] = {0770, 0707, 02770, 0755};
    struct scratch scratch;
    (void)state;
    leave("muster.4710.3.0000abcd");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(chmod(path_of("muster.4710.3.0000abcd"), modes[i]), 0);
        make(&scratch);
        scratch_remove(&scratch, &user);
        assert_true(exists("muster.4710.3.0000abcd/file"));
    }
    assert_int_equal(chmod(path_of("muster.4710.3.0000abcd"), 0700), 0);
    make_until_gone("muster.4710.3.0000abcd");
}

/* The tree is emptied with its owner's rights: a file that is not the owner's to remove stays, and
 * so does the directory. */
static void swept_with_the_owners_rights(void **state)
{
    (void)state;
    if (!user.drop)
        skip();
    leave("muster.4710.3.0000abcd");
    assert_int_equal(mkdir(path_of("muster.4710.3.0000abcd/roots"), 0755), 0);
    assert_int_equal(mkdir(path_of("muster.4710.3.0000abcd/roots/more"), 0755), 0);
    make_until_gone("muster.4710.3.0000abcd/file");
    assert_true(exists("muster.4710.3.0000abcd/roots/more"));
    rmdir(path_of("muster.4710.3.0000abcd/roots/more"));
    rmdir(path_of("muster.4710.3.0000abcd/roots"));
    rmdir(path_of("muster.4710.3.0000abcd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_and_removed),
        cmocka_unit_test(where_users_may_not_search),
        cmocka_unit_test(seen_by_its_path),
        cmocka_unit_test(left_is_swept),
        cmocka_unit_test(left_beside_is_swept),
        cmocka_unit_test(left_deep_is_swept),
        cmocka_unit_test(locked_is_left_alone),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(writable_by_others_is_left_alone),
        cmocka_unit_test(swept_with_the_owners_rights),
    };

    return cmocka_run_group_tests(tests, open_tmpfs, remove_tmpfs);
}
