/* SPDX-License-Identifier: BSD-3-Clause */
/* One step that was asked for: its srun, what that says, what the caller is told. */
#include "plugins/slurm/agent_child.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_BYTES = 16384,
    KILL_MS = 3000, /* after SIGTERM, and between the steps of killing */
    DRAIN_READS = 256,
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void child_close(struct child *child)
{
    close_fd(&child->pidfd);
    close_fd(&child->channel);
    close_fd(&child->errors);
}

/* ---- what callers are told ---- */

void child_tell_caller(const struct children_env *env, uint64_t caller, enum agent_type type,
                       const struct rm_spawn_news *news)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, type);
    spawn_put_news(&frame, news);
    agent_frame_end(&frame, begin);
    if (!frame.failed && caller != 0)
        env->tell(env->arg, caller, &frame);
    wire_out_free(&frame);
}

void child_tell(struct child *child, enum agent_type type, const struct rm_spawn_news *news)
{
    child_tell_caller(child->env, child->caller, type, news);
}

void child_tell_failure(struct child *child, enum rm_spawn_result result, const char *text)
{
    const struct rm_spawn_news news = {.result = result, .text = text};
    if (!child->told)
        child_tell(child, AGENT_STARTED, &news);
    child->told = true;
}

/* ---- the end of one ---- */

void child_end(struct child *child)
{
    if (child->state == CHILD_ENDS)
        return;
    log_debug("srun %d of a spawned step is told to end", (int)child->pid);
    child->state = CHILD_ENDS;
    child->killed = 0;
    child->until = now_ms() + KILL_MS;
    kill(child->pid, SIGTERM);
}

/* SIGTERM has not helped: perhaps tasks ignore it. */
void child_kill_harder(struct child *child)
{
    child->until = now_ms() + KILL_MS;
    if (child->killed++ == 0 && child->job != 0)
        child->env->kill(child->env->arg, child->job, child->step);
    else
        kill(child->pid, SIGKILL);
}

/* ---- starting ---- */

static int open_channels(struct child *child, int ends[2])
{
    int pair[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    if (pipe2(errors, O_CLOEXEC) != 0) {
        int rc = errno;
        close(pair[0]);
        close(pair[1]);
        return rc;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    child->channel = pair[0];
    child->errors = errors[0];
    ends[0] = pair[1];
    ends[1] = errors[1];
    return 0;
}

/* @return 0 or an error number */
int child_try(struct child *child)
{
    int ends[2] = {-1, -1}, rc = open_channels(child, ends);
    if (rc != 0)
        return rc;
    const struct spawn_place place = {.program = child->env->program,
                                      .job = child->env->job,
                                      .env = child->variables,
                                      .channel = ends[0],
                                      .errors = ends[1],
                                      .idle = child->idle,
                                      .nidle = child->nidle};
    child->state = CHILD_TRIES;
    child->len = 0;
    rc = spawn_srun(&place, &child->order, child->cpus, &child->pid);
    close(ends[0]);
    close(ends[1]);
    if (rc == 0) {
        child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
        if (child->pidfd < 0) {
            rc = errno;
            kill(child->pid, SIGKILL);
            waitpid(child->pid, NULL, 0);
        }
    }
    return rc;
}

/* ---- what srun, and its plugin, say ---- */

void child_read_errors(struct child *child)
{
    tool_read(&child->errors, child->text, sizeof child->text, &child->len);
}

static void take_launched(struct child *child, struct wire_in *body)
{
    uint32_t job = wire_get_u32(body), step = wire_get_u32(body);
    if (body->bad)
        return;
    child->job = job;
    child->step = step;
    if (child->state != CHILD_TRIES)
        return;
    child->state = CHILD_BEGINS;
    child_read_errors(child);
    if (child->len > 0 && write(STDERR_FILENO, child->text, child->len) < 0)
        log_debug("what srun says cannot be shown: %s", strerror(errno));
    child->len = 0;
}

static void take_started(struct child *child, struct wire_in *body)
{
    char text[SPAWN_TEXT_MAX];
    struct rm_spawn_news news = {0};
    if (child->told || child->state == CHILD_ENDS || !spawn_get_news(body, &news, text) ||
        news.result == RM_SPAWN_ENDED)
        return;
    child->told = true;
    child_tell(child, AGENT_STARTED, &news);
    if (news.result == RM_SPAWN_RUNS)
        child->state = CHILD_RUNS;
    else /* what a node says of a step that ends is lost on some releases of Slurm */
        log_error("%s", text);
}

static void take_frames(struct child *child)
{
    size_t at = 0;
    struct agent_frame frame;
    int found;
    while ((found = agent_frame_read(child->in.data + at, child->in.len - at, AGENT_FRAME_MAX,
                                     &frame)) > 0) {
        if (frame.type == AGENT_LAUNCHED)
            take_launched(child, &frame.body);
        else if (frame.type == AGENT_STARTED)
            take_started(child, &frame.body);
        at += frame.len;
    }
    if (found < 0) {
        close_fd(&child->channel);
        return;
    }
    memmove(child->in.data, child->in.data + at, child->in.len - at);
    child->in.len -= at;
}

void child_read_channel(struct child *child)
{
    char bytes[READ_BYTES];
    for (int i = 0; i < DRAIN_READS && child->channel >= 0; i++) {
        ssize_t n = recv(child->channel, bytes, sizeof bytes, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(&child->channel);
            return;
        }
        wire_put_raw(&child->in, bytes, (size_t)n);
        if (child->in.failed)
            close_fd(&child->channel);
        else
            take_frames(child);
    }
}

/* ---- why there is no step ---- */

/* What Slurm says when a job lacks what is asked for. */
enum rm_spawn_result child_reason(const struct child *child)
{
    static const char *const lacks[] = {
        "processors requested", "are busy",  "configuration is not available",
        "Memory required",      "CPU count", "not available in this",
    };
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (strstr(child->text, lacks[i]) != NULL)
            return RM_SPAWN_NO_RESOURCES;
    return RM_SPAWN_FAILED;
}

void child_show(const struct child *child)
{
    const char *p = child->text;
    while (*p != '\0') {
        size_t len = strcspn(p, "\n");
        if (len > 0)
            log_error("a step that rank %u of %s spawns: %.*s", child->order.what.rank,
                      child->order.what.parent, (int)(len < 400 ? len : 400), p);
        p += len + (p[len] == '\n');
    }
}
