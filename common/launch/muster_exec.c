/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-exec: becomes the program of one process of a spawned step (plan.h). */
#include "common/launch/plan.h"
#include "common/util/send_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { STATUS_NO_PLAN = 126, STATUS_NO_EXEC = 127 };

/* The plan, as it is read. */
struct reader {
    uint32_t at;
};

/* One application; strings are the environment's. */
struct app {
    unsigned long first, ntasks;
    const char *wdir, *program;
    char **argv;
    char **changes;
    unsigned long nchanges;
};

static _Noreturn void no_plan(const char *what)
{
    fprintf(stderr,
            "muster-exec: %s; muster starts it in steps that a program spawns, and it is of no use "
            "by hand\n",
            what);
    exit(STATUS_NO_PLAN);
}

static char *next(struct reader *r)
{
    char name[32];
    snprintf(name, sizeof name, PLAN_ENV "%u", r->at++);
    char *text = getenv(name);
    if (text == NULL)
        no_plan("the plan in the environment is cut");
    return text;
}

static unsigned long next_number(struct reader *r, unsigned long max)
{
    char *end, *text = next(r);
    unsigned long n = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n > max)
        no_plan("the plan in the environment makes no sense");
    return n;
}

/* Copies, since the environment is changed below. @return ended by NULL */
static char **next_list(struct reader *r, unsigned long n)
{
    char **list = calloc(n + 1, sizeof *list);
    for (unsigned long i = 0; list != NULL && i < n; i++)
        if ((list[i] = strdup(next(r))) == NULL)
            no_plan("out of memory");
    if (list == NULL)
        no_plan("out of memory");
    return list;
}

static struct app next_app(struct reader *r, unsigned long first)
{
    struct app app = {.first = first, .ntasks = next_number(r, UINT32_MAX)};
    app.wdir = next(r);
    unsigned long nargs = next_number(r, PLAN_STRINGS_MAX);
    app.program = next(r);
    app.argv = next_list(r, nargs);
    app.nchanges = next_number(r, PLAN_STRINGS_MAX);
    app.changes = next_list(r, app.nchanges);
    return app;
}

static struct app find_app(unsigned long rank)
{
    struct reader r = {0};
    unsigned long napps = next_number(&r, PLAN_APPS_MAX), first = 0;
    for (unsigned long i = 0; i < napps; i++) {
        struct app app = next_app(&r, first);
        if (rank - first < app.ntasks) {
            app.wdir = strdup(app.wdir);
            app.program = strdup(app.program);
            if (app.wdir == NULL || app.program == NULL)
                no_plan("out of memory");
            return app;
        }
        first += app.ntasks;
    }
    no_plan("the plan in the environment has no program for this rank");
}

/* ---- the environment of the program ---- */

/* Programs, and steps that they start, must not take this step's plan for theirs. */
static void forget_plan(void)
{
    char name[32];
    for (uint32_t i = 0; i < PLAN_STRINGS_MAX; i++) {
        snprintf(name, sizeof name, PLAN_ENV "%u", i);
        if (getenv(name) == NULL)
            break;
        unsetenv(name);
    }
    unsetenv(PLAN_SOCKET_ENV);
    unsetenv(PLAN_PARENT_ENV);
    unsetenv(PLAN_APPS_ENV);
    unsetenv(PLAN_CHANNEL_ENV);
}

static void join_value(const char *name, const char *value, char separator, bool before)
{
    const char *old = getenv(name);
    char *text;
    int rc;
    if (old == NULL || *old == '\0') {
        setenv(name, value, 1);
        return;
    }
    rc = asprintf(&text, "%s%c%s", before ? value : old, separator, before ? old : value);
    if (rc < 0)
        no_plan("out of memory");
    setenv(name, text, 1);
    free(text);
}

static void change(char *text)
{
    char kind = *text++, separator = ':';
    if (kind == PLAN_UNSET) {
        unsetenv(text);
        return;
    }
    if ((kind == PLAN_PREPEND || kind == PLAN_APPEND) && *text != '\0')
        separator = *text++;
    char *value = strchr(text, '=');
    if (value == NULL)
        no_plan("the plan in the environment makes no sense");
    *value++ = '\0';
    if (kind == PLAN_SET || kind == PLAN_ADD)
        setenv(text, value, kind == PLAN_SET);
    else
        join_value(text, value, separator, kind == PLAN_PREPEND);
}

/* ---- the server ---- */

static int connect_server(uint32_t rank)
{
    const char *path = getenv(PLAN_SOCKET_ENV);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    uint32_t word = htonl(rank);
    char answer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (path == NULL || strlen(path) >= sizeof addr.sun_path)
        no_plan("the environment has no server's socket");
    strcpy(addr.sun_path, path);
    /* The answer comes before exec, so that the server knows us before it hears of our end. */
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        !send_all(fd, &word, sizeof word) || recv(fd, &answer, 1, 0) != 1) {
        fprintf(stderr, "muster-exec: rank %u does not reach its muster-server at %s: %s\n", rank,
                path, strerror(errno));
        exit(STATUS_NO_PLAN);
    }
    return fd;
}

/* The server says it on the terminal, once for the step. */
static _Noreturn void fail(int server, enum plan_step what, const char *name)
{
    size_t len = strnlen(name, PLAN_NAME_MAX);
    uint32_t words[] = {htonl(what), htonl((uint32_t)errno), htonl((uint32_t)len)};
    if (send_all(server, words, sizeof words))
        send_all(server, name, len);
    exit(STATUS_NO_EXEC);
}

int main(void)
{
    const char *text = getenv("PMIX_RANK");
    char *end;
    if (text == NULL || *text == '\0')
        no_plan("PMIX_RANK is not set");
    unsigned long rank = strtoul(text, &end, 10);
    if (*end != '\0' || rank > UINT32_MAX)
        no_plan("PMIX_RANK is no rank");
    struct app app = find_app(rank);
    int server = connect_server((uint32_t)rank);
    forget_plan();
    for (unsigned long i = 0; i < app.nchanges; i++)
        change(app.changes[i]);
    if (app.wdir[0] != '\0') {
        if (chdir(app.wdir) != 0)
            fail(server, PLAN_AT_DIRECTORY, app.wdir);
        setenv("PWD", app.wdir, 1);
    }
    execvp(app.program, app.argv);
    fail(server, PLAN_AT_EXEC, app.program);
}
