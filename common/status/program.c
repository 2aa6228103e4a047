/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The kernel ends a program when the thread that has started it ends (PR_SET_PDEATHSIG), however it
 * ends.
 */
#include "common/status/program.h"

#include "common/status/owner.h"
#include "common/util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID_MAX = 1 << 20 };

extern char **environ;

struct rlimit program_limit_memory(unsigned long bytes)
{
    struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY};
#ifndef MUSTER_SANITIZED /* the sanitizers reserve terabytes */
    if (getrlimit(RLIMIT_AS, &before) == 0) {
        const struct rlimit own = {bytes < before.rlim_max ? bytes : before.rlim_max,
                                   before.rlim_max};
        setrlimit(RLIMIT_AS, &own);
    }
#else
    (void)bytes;
#endif
    return before;
}

/* Both ends of the pipes that a plan asks for. */
struct pipes {
    int out[2], errors[2], ready[2];
};

static void close_pipe(int pipe[2])
{
    for (int i = 0; i < 2; i++)
        if (pipe[i] >= 0)
            close(pipe[i]);
}

static int open_pipes(struct pipes *pipes, const struct program_plan *plan)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    bool out = plan->reads_out || (plan->reads_errors && !plan->apart);
    if ((!out || pipe2(pipes->out, O_CLOEXEC) == 0) &&
        (!plan->apart || pipe2(pipes->errors, O_CLOEXEC) == 0) &&
        pipe2(pipes->ready, O_CLOEXEC) == 0)
        return 0;
    int error = errno;
    close_pipe(pipes->out);
    close_pipe(pipes->errors);
    errno = error;
    return -1;
}

static _Noreturn void become(const struct program_plan *plan, pid_t parent,
                             const struct pipes *pipes)
{
    sigset_t none;
    int null;
    sigemptyset(&none);
    struct err err = {0};
    setsid();
    if (owner_become(plan->owner, 0, &err) != 0) {
        dprintf(STDERR_FILENO, "%s\n", err.text);
        _exit(127);
    }
    if (prctl(PR_SET_PDEATHSIG, plan->death) != 0 || getppid() != parent) /* a new user clears it */
        _exit(127);
    if (plan->no_input && (null = open("/dev/null", O_RDONLY)) >= 0)
        dup2(null, STDIN_FILENO);
    if (plan->reads_out)
        dup2(pipes->out[1], STDOUT_FILENO);
    if (plan->reads_errors)
        dup2(plan->apart ? pipes->errors[1] : pipes->out[1], STDERR_FILENO);
    if (plan->memory != NULL)
        setrlimit(RLIMIT_AS, plan->memory);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (plan->begins != NULL)
        plan->begins(plan->arg, true);
    execvpe(plan->argv[0], plan->argv, plan->env != NULL ? plan->env : environ);
    int error = errno;
    if (plan->begins != NULL)
        plan->begins(plan->arg, false);
    if (write(pipes->ready[1], &error, sizeof error) < 0)
        error = 0; /* nobody is there */
    _exit(127);
}

int program_start(struct program *program, const struct program_plan *plan)
{
    struct pipes pipes;
    int error = 0;
    pid_t parent = getpid();
    *program = (struct program){.out = -1, .errors = -1};
    if (open_pipes(&pipes, plan) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become(plan, parent, &pipes);
    if (pid < 0)
        error = errno;
    close(pipes.ready[1]);
    pipes.ready[1] = -1;
    /* the pipe closes with the exec, unless that has failed */
    if (pid > 0 && read(pipes.ready[0], &error, sizeof error) == sizeof error)
        waitpid(pid, NULL, 0);
    close_pipe(pipes.ready);
    if (error == 0) {
        *program = (struct program){.pid = pid, .out = pipes.out[0], .errors = pipes.errors[0]};
        pipes.out[0] = pipes.errors[0] = -1;
    }
    close_pipe(pipes.out);
    close_pipe(pipes.errors);
    errno = error;
    return error == 0 ? 0 : -1;
}

int program_end(struct program *program)
{
    int status = -1;
    if (program->out >= 0)
        close(program->out);
    if (program->errors >= 0)
        close(program->errors);
    while (program->pid > 0 && waitpid(program->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    *program = (struct program){.out = -1, .errors = -1};
    return status;
}

/* @return whether all of it was read before the deadline */
static bool read_to_end(int fd, char *text, size_t *len, int64_t deadline)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (;;) {
        int rc = poll(&wait, 1, deadline_left(deadline));
        if (rc < 0 && errno == EINTR)
            continue;
        ssize_t n = rc > 0 ? read(fd, text + *len, SAID_MAX - *len) : -1;
        if (n == 0)
            return true;
        if (n < 0 || (*len += (size_t)n) == SAID_MAX)
            return false;
    }
}

static void take_last_line(char *text, char *why, size_t cap)
{
    char *line;
    while ((line = strsep(&text, "\n")) != NULL)
        if (line[0] != '\0')
            snprintf(why, cap, "%s", line);
}

char *program_ask(char *const argv[], int ms, char *why, size_t cap)
{
    const struct program_plan plan = {.argv = argv,
                                      .death = SIGKILL,
                                      .reads_out = true,
                                      .reads_errors = why != NULL,
                                      .no_input = true};
    struct program program;
    size_t len = 0;
    char *text = malloc(SAID_MAX + 1);
    if (why != NULL)
        why[0] = '\0';
    if (text == NULL || program_start(&program, &plan) != 0) {
        free(text);
        return NULL;
    }
    bool whole = read_to_end(program.out, text, &len, now_ms() + ms);
    if (!whole)
        kill(program.pid, SIGKILL);
    text[len] = '\0';
    if (program_end(&program) == 0 && whole)
        return text;
    if (why != NULL)
        take_last_line(text, why, cap);
    free(text);
    return NULL;
}

bool program_is_there(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *dir = path != NULL ? path : "/usr/bin:/bin"; *dir != '\0';) {
        char file[PATH_MAX];
        size_t len = strcspn(dir, ":");
        if (len > 0 && snprintf(file, sizeof file, "%.*s/%s", (int)len, dir, name) < PATH_MAX &&
            access(file, X_OK) == 0)
            return true;
        dir += len + (dir[len] == ':');
    }
    return false;
}
