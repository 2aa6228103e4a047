/* SPDX-License-Identifier: BSD-3-Clause */
/* A command of Slurm. */
#include "plugins/slurm/agent_tool.h"

#include "common/util/child.h"
#include "common/util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_BYTES = 16384, DRAIN_READS = 256 };

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The child, which may call nothing that is not safe after a fork of a process with threads. In
 * /proc no file can be made: scontrol writes scripts for shells to its directory. */
static _Noreturn void be(const char *program, char **argv, char **env, int out, pid_t srun)
{
    child_default_signals();
    int null = open("/dev/null", O_RDONLY);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == srun && chdir("/proc") == 0 &&
        dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(out, STDERR_FILENO) >= 0) {
        child_close_from(STDERR_FILENO + 1);
        execve(program, argv, env);
    }
    _exit(127);
}

static int start(struct tool *tool, const char *program, char **argv, char **env, int out)
{
    pid_t self = getpid();
    tool->pid = fork();
    if (tool->pid < 0)
        return errno;
    if (tool->pid == 0)
        be(program, argv, env, out, self);
    tool->pidfd = (int)syscall(SYS_pidfd_open, tool->pid, 0);
    if (tool->pidfd >= 0)
        return 0;
    int rc = errno;
    kill(tool->pid, SIGKILL);
    waitpid(tool->pid, NULL, 0);
    return rc;
}

int tool_start(struct tool *tool, const char *program, char **argv, char **env, int64_t ms)
{
    int ends[2];
    *tool = (struct tool){.pidfd = -1, .out = -1, .until = now_ms() + ms};
    if (access(program, X_OK) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    tool->out = ends[0];
    int rc = start(tool, program, argv, env, ends[1]);
    close(ends[1]);
    if (rc != 0) {
        close_fd(&tool->out);
        tool->pid = 0;
    }
    return rc;
}

void tool_end(struct tool *tool)
{
    if (tool->pid == 0 || tool->signals > 0)
        return;
    tool->until = now_ms();
    tool_tick(tool, tool->until);
}

void tool_poll(const struct tool *tool, struct pollfd *fds)
{
    fds[0] = (struct pollfd){tool->pid != 0 ? tool->out : -1, POLLIN, 0};
    fds[1] = (struct pollfd){tool->pid != 0 ? tool->pidfd : -1, POLLIN, 0};
}

void tool_read(int *fd, char *text, size_t cap, size_t *len)
{
    char bytes[READ_BYTES];
    for (int i = 0; i < DRAIN_READS && *fd >= 0; i++) {
        ssize_t n = read(*fd, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(fd);
            return;
        }
        size_t room = cap - 1 - *len, take = (size_t)n < room ? (size_t)n : room;
        memcpy(text + *len, bytes, take);
        *len += take;
    }
}

static void read_out(struct tool *tool)
{
    tool_read(&tool->out, tool->text, sizeof tool->text, &tool->len);
}

bool tool_ready(struct tool *tool, const struct pollfd *fds, int *status)
{
    if (tool->pid == 0)
        return false;
    if (fds[0].revents != 0)
        read_out(tool);
    if (fds[1].revents == 0)
        return false;
    *status = -1; /* of one that somebody else has waited for */
    if (waitpid(tool->pid, status, WNOHANG) == 0)
        return false;
    read_out(tool);
    tool->text[tool->len] = '\0';
    close_fd(&tool->out);
    close_fd(&tool->pidfd);
    tool->pid = 0;
    return true;
}

int64_t tool_next(const struct tool *tool)
{
    return tool->pid != 0 ? tool->until : INT64_MAX;
}

void tool_tick(struct tool *tool, int64_t now)
{
    if (tool->pid == 0 || now < tool->until)
        return;
    kill(tool->pid, tool->signals++ == 0 ? SIGTERM : SIGKILL);
    tool->until = now + TOOL_KILL_MS;
}
