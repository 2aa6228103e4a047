/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-exec: becomes the program of one process of a spawned step (plan.h). */
#include "common/launch/plan.h"
#include "common/util/io_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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
        no_plan("the plan in the environment cannot be read");
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

/* Where the streams go that do not go to the RM. */
struct streams {
    char home[PLAN_HOME_MAX + 1]; /* "": none does */
    bool input;                   /* the input comes from there */
};

static void read_streams(struct reader *r, unsigned long rank, struct streams *streams)
{
    char *end;
    const char *home = next(r), *input = next(r);
    if (strlen(home) > PLAN_HOME_MAX)
        no_plan("the plan in the environment cannot be read");
    strcpy(streams->home, home);
    streams->input = strcmp(input, PLAN_INPUT_ALL) == 0 ||
                     (*input != '\0' && strtoul(input, &end, 10) == rank && *end == '\0');
}

static struct app find_app(unsigned long rank, struct streams *streams)
{
    struct reader r = {0};
    unsigned long napps = next_number(&r, PLAN_APPS_MAX), first = 0;
    read_streams(&r, rank, streams);
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
    if (old == NULL || *old == '\0') {
        setenv(name, value, 1);
        return;
    }
    int rc = asprintf(&text, "%s%c%s", before ? value : old, separator, before ? old : value);
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
        no_plan("the plan in the environment cannot be read");
    *value++ = '\0';
    if (kind == PLAN_SET || kind == PLAN_ADD)
        setenv(text, value, kind == PLAN_SET);
    else
        join_value(text, value, separator, kind == PLAN_PREPEND);
}

/* ---- the server, and the streams that it takes ---- */

/* Pipes for the streams that go to the home. */
struct pipes {
    unsigned n; /* of output */
    int ends[PLAN_FDS_MAX];
    char streams[PLAN_FDS_MAX];
    int input;               /* to read from; -1: the input is not changed */
    int given[PLAN_FDS_MAX]; /* to the server: a reading end and what was there, of each output; a
                                writing end of the input */
    unsigned ngiven;
};

static int fd_of(char stream)
{
    return stream == PLAN_STDERR ? STDERR_FILENO : STDOUT_FILENO;
}

static void open_pipes(struct pipes *pipes, const struct streams *streams)
{
    const char *home = streams->home;
    int pair[2];
    size_t n = strspn(home, PLAN_OUTPUTS);
    if (n > PLAN_FDS_MAX / 2)
        no_plan("the plan in the environment cannot be read");
    *pipes = (struct pipes){.n = (unsigned)n, .input = -1};
    for (size_t i = 0; i < n; i++) {
        if (pipe2(pair, O_CLOEXEC) != 0)
            no_plan("there is no pipe for the output");
        pipes->given[pipes->ngiven++] = pair[0];
        pipes->given[pipes->ngiven++] = fd_of(home[i]);
        pipes->ends[i] = pair[1];
        pipes->streams[i] = home[i];
    }
    if (!streams->input)
        return;
    if (pipe2(pair, O_CLOEXEC) != 0)
        no_plan("there is no pipe for the input");
    pipes->input = pair[0];
    pipes->given[pipes->ngiven++] = pair[1];
}

/* From now on, what is printed goes there, and what is read comes from there. */
static void use_pipes(const struct pipes *pipes)
{
    if (pipes->input >= 0 && dup2(pipes->input, STDIN_FILENO) < 0)
        no_plan("the input cannot be turned round");
    for (unsigned i = 0; i < pipes->n; i++)
        if (dup2(pipes->ends[i], fd_of(pipes->streams[i])) < 0 ||
            (pipes->streams[i] == PLAN_BOTH && dup2(pipes->ends[i], STDERR_FILENO) < 0))
            no_plan("the output cannot be turned round");
}

static bool say_hello(int fd, uint32_t rank, const char *home, const struct pipes *pipes)
{
    size_t nhome = strlen(home), len = pipes->ngiven * sizeof(int);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(PLAN_FDS_MAX * sizeof(int))];
    } control;
    uint32_t words[] = {htonl(rank), htonl((uint32_t)nhome), htonl(pipes->input >= 0)};
    struct iovec parts[] = {{words, sizeof words}, {(void *)home, nhome}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (len > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(len);
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(len), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), pipes->given, len);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof words + nhome);
}

/* @param answer the server's: enum plan_answer */
static int connect_server(uint32_t rank, const struct streams *streams, char *answer)
{
    const char *path = getenv(PLAN_SOCKET_ENV);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct pipes pipes;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (path == NULL || strlen(path) >= sizeof addr.sun_path)
        no_plan("the environment has no server's socket");
    strcpy(addr.sun_path, path);
    open_pipes(&pipes, streams);
    /* The answer comes before exec, so that the server knows us before it hears of our end. */
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        !say_hello(fd, rank, streams->home, &pipes) || recv(fd, answer, 1, 0) != 1) {
        fprintf(stderr, "muster-exec: rank %u does not reach its muster-server at %s: %s\n", rank,
                path, strerror(errno));
        exit(STATUS_NO_PLAN);
    }
    use_pipes(&pipes);
    return fd;
}

/* Tells the server why the program does not run; the server says it on the terminal, once for the
 * step. A path that is too long is shown by its end. */
static _Noreturn void fail(int server, enum plan_step what, const char *name)
{
    int error = errno;
    char end[PLAN_NAME_MAX + 1];
    size_t len = strlen(name);
    if (len > PLAN_NAME_MAX) {
        snprintf(end, sizeof end, "...%s", name + len - (PLAN_NAME_MAX - 3));
        name = end;
        len = PLAN_NAME_MAX;
    }
    uint32_t words[] = {htonl(what), htonl((uint32_t)error), htonl((uint32_t)len)};
    if (send_all(server, words, sizeof words))
        send_all(server, name, len);
    exit(STATUS_NO_EXEC);
}

/* ---- the stop at exec ---- */

/* Beside the process that becomes the program: stops it before the program's first instruction, and
 * leaves it stopped. Until then the end of this process is that one's, too: no program runs that
 * was to be stopped. */
static void stop_at_exec(pid_t pid, int server)
{
    uint32_t words[] = {htonl(PLAN_STOPPED), 0, 0};
    bool runs = false; /* it has become the program */
    int status, sig;
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        sig = WSTOPSIG(status);
        if (status >> 16 == PTRACE_EVENT_EXEC) {
            kill(pid, SIGSTOP);
            runs = true;
        }
        if (runs && status >> 16 == PTRACE_EVENT_STOP && sig == SIGSTOP) {
            /* it is stopped, and stays that */
            if (ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0)
                send_all(server, words, sizeof words);
            return;
        }
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(status >> 16 == 0 ? sig : 0));
    }
}

/* Says by @p out whether it can. @param error of the fork that made it, or 0 */
static _Noreturn void watch(pid_t pid, int error, int out, int server)
{
    if (error == 0 && ptrace(PTRACE_SEIZE, pid, NULL,
                             (void *)(intptr_t)(PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) != 0)
        error = errno;
    if (write(out, &error, sizeof error) == sizeof error && error == 0)
        stop_at_exec(pid, server);
    _exit(0);
}

/* The watcher is no child of the program. Yama, where it is on, has to be told that it may trace.
 * @return 0, or -1 with errno */
static int start_watcher(int server)
{
    int ends[2], error = ECHILD;
    pid_t own = getpid(), child;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        child = fork();
        if (child <= 0)
            watch(own, child < 0 ? errno : 0, ends[1], server);
        _exit(0);
    }
    if (child < 0)
        error = errno;
    close(ends[1]);
    ssize_t n = child > 0 ? read(ends[0], &error, sizeof error) : 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    errno = n == sizeof error || child < 0 ? error : ECHILD;
    return errno == 0 ? 0 : -1;
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
    struct streams streams;
    struct app app = find_app(rank, &streams);
    char answer;
    int server = connect_server((uint32_t)rank, &streams, &answer);
    forget_plan();
    for (unsigned long i = 0; i < app.nchanges; i++)
        change(app.changes[i]);
    if (app.wdir[0] != '\0') {
        if (chdir(app.wdir) != 0)
            fail(server, PLAN_AT_DIRECTORY, app.wdir);
        setenv("PWD", app.wdir, 1);
    }
    if (answer == PLAN_STOP && start_watcher(server) != 0)
        fail(server, PLAN_AT_STOP, app.program);
    execvp(app.program, app.argv);
    fail(server, PLAN_AT_EXEC, app.program);
}
