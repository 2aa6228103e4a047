/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how the server of a step is found: whether there is one, and which of several.
 */
#include "common/server/status/status.h"
#include "common/status/find.h"
#include "common/status/mine.h"
#include "common/status/reach.h"
#include "common/util/empty_dir.h"
#include "common/util/test_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/muster-test.XXXXXX";

static int open_dir(void **state)
{
    (void)state;
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
    return mkdtemp(dir) == NULL;
}

static int close_dir(void **state)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)state;
    empty_dir(fd);
    return rmdir(dir);
}

/* A server of step 4711.0 that answers one client by its name, and was started at that second. */
static pid_t serve(const char *name, time_t started)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct timespec times[] = {{.tv_sec = started}, {.tv_sec = started}};
    char path[64], request[16];
    snprintf(path, sizeof path, "%s/muster.4711.0.%s", dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/" STATUS_SOCKET, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(utimensat(AT_FDCWD, addr.sun_path, times, 0), 0);
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int client; pid == 0;) {
        client = accept(fd, NULL, NULL);
        if (recv(client, request, sizeof request, 0) > 0)
            send(client, name, strlen(name), MSG_NOSIGNAL);
        close(client);
    }
    close(fd);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static char *ask(struct found *found, struct err *err)
{
    struct find find = {.step = "4711.0", .dir = dir, .uid = (uid_t)-1, .ms = 20000};
    *err = (struct err){0};
    return find_state(&find, found, err);
}

static void no_such_server(void **state)
{
    struct err err;
    struct found found;
    (void)state;
    assert_null(ask(&found, &err));
    assert_non_null(strstr(err.text, "no server of step 4711.0 runs on this node"));
}

static bool name_f(const char *text, char *name, size_t cap)
{
    return text[0] == 'f' && snprintf(name, cap, "F%s", text) < (int)cap;
}

static void a_job_or_a_step(void **state)
{
    const struct place place = {.each = NULL, .name = name_f}, *const places[] = {&place, NULL};
    struct find find = {.places = places};
    char name[16];
    (void)state;
    assert_string_equal(find_unit(&find, "f2fC5xbh"), "job");
    assert_string_equal(find_unit(&find, "4711.0"), "step");
    assert_true(find_job(&find, "f2fC5xbh", name, sizeof name));
    assert_string_equal(name, "Ff2fC5xbh");
    assert_false(find_job(&find, "4711.0", name, sizeof name));
}

/* Whatever order the directory has them in. */
static void the_last_of_several_runs(void **state)
{
    static const char *const names[] = {"0000000a", "0000000b", "0000000c"};
    struct err err;
    struct found found;
    (void)state;
    for (int last = 0; last < 3; last++) {
        pid_t pids[3];
        for (int i = 0; i < 3; i++)
            pids[i] = serve(names[i], i == last ? 2000 : 1000 + i);
        char *text = ask(&found, &err);
        assert_string_equal(err.text, "");
        assert_string_equal(text, names[last]);
        assert_int_equal(found.runs, 3);
        assert_int_equal(found.owner, geteuid());
        free(text);
        for (int i = 0; i < 3; i++)
            end(pids[i]);
        close_dir(NULL);
        open_dir(NULL);
    }
}

/* What a run has left is none. */
static void one_run_and_what_is_left_of_another(void **state)
{
    struct err err;
    struct found found;
    (void)state;
    end(serve("0000000a", 2000));
    pid_t pid = serve("0000000b", 1000);
    char *text = ask(&found, &err);
    assert_string_equal(text, "0000000b");
    assert_int_equal(found.runs, 1);
    free(text);
    end(pid);
    assert_null(ask(&found, &err));
    assert_non_null(strstr(err.text, "has ended, or is about to start"));
}

static const char *const *known; /* to the resource manager, up to a NULL */

static void none(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap)
{
    (void)step, (void)visit, (void)arg, (void)cap;
    where[0] = '\0';
}

static char **mine(void)
{
    char **list = NULL;
    for (const char *const *name = known; *name != NULL; name++)
        list = reach_word(list, *name);
    return list;
}

/* @return what is wrong, or the step */
static const char *the_only(void)
{
    static const struct place place = {.each = none, .lists = "sh -c true", .mine = mine},
                              *const places[] = {&place, NULL};
    static struct err err;
    static char step[FIND_STEP_MAX + 1];
    const struct find find = {.dir = dir, .places = places, .uid = (uid_t)-1, .ms = 20000};
    err = (struct err){0};
    return mine_find(&find, step, &err) == 0 ? step : err.text;
}

/* Those on this node go before those that run elsewhere. */
static void the_only_step(void **state)
{
    (void)state;
    known = (const char *const[]){NULL};
    assert_non_null(strstr(the_only(), "has a server on this node"));
    assert_non_null(strstr(the_only(), "(sh -c true lists yours)"));
    known = (const char *const[]){"4712.0", NULL};
    assert_string_equal(the_only(), "4712.0");
    known = (const char *const[]){"4712.0", "4713.1", NULL};
    assert_string_equal(the_only(), "which step? 4712.0, 4713.1 run; give one");
    pid_t pid = serve("0000000a", 2000);
    assert_string_equal(the_only(), "4711.0");
    end(pid);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)
    const struct CMUnitTest tests[] = {
        TEST(no_such_server),
        TEST(a_job_or_a_step),
        TEST(the_last_of_several_runs),
        TEST(one_run_and_what_is_left_of_another),
        TEST(the_only_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
