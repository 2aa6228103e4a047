/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that were asked for, each with an srun of its own. */
#include "plugins/slurm/agent_children.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/spawn_srun.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ERRORS_MAX = 4096, /* bytes of what srun says before there is a step; the rest is lost */
    READ_BYTES = 16384,
    KILL_MS = 3000,  /* after SIGTERM, and between the steps of killing */
    BUSY_MS = 10000, /* when there were no free processors, so long none are asked for */
    DRAIN_READS = 256,
    STATUS_SIGNAL = 128,
};

enum child_state { CHILD_NONE, CHILD_TRIES, CHILD_BEGINS, CHILD_RUNS, CHILD_ENDS };

struct child {
    enum child_state state;
    uint64_t caller; /* 0: let go, or gone */
    bool told;       /* the caller knows that it runs, or that it failed */
    enum spawn_cpus cpus;
    struct spawn_order order;
    pid_t pid;
    int pidfd, channel, errors; /* -1: none */
    struct wire_out in;         /* of channel */
    char text[ERRORS_MAX];      /* of errors */
    size_t len;
    uint32_t job, step; /* job 0: not known yet */
    int64_t until;      /* TRIES and BEGINS: when it is given up; ENDS: when it is killed */
    int killed;         /* ENDS: how often */
};

struct children {
    struct children_env env;
    char **variables;
    struct child *list[CHILDREN_MAX]; /* NULL: free */
    int64_t busy_until;               /* no free processors were found lately */
    bool stopping;
    int64_t stopped; /* now_ms() of children_stop() */
};

struct children *children_new(const struct children_env *env, char *const *variables)
{
    struct children *c = calloc(1, sizeof *c);
    size_t n = 0;
    while (variables != NULL && variables[n] != NULL)
        n++;
    if (c == NULL || (c->variables = calloc(n + 1, sizeof *c->variables)) == NULL) {
        free(c);
        return NULL;
    }
    c->env = *env;
    for (size_t i = 0; i < n; i++)
        if ((c->variables[i] = strdup(variables[i])) == NULL) {
            children_free(c);
            return NULL;
        }
    return c;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void forget(struct children *c, struct child *child)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] == child)
            c->list[i] = NULL;
    close_fd(&child->pidfd);
    close_fd(&child->channel);
    close_fd(&child->errors);
    wire_out_free(&child->in);
    spawn_order_free(&child->order);
    free(child);
}

/* ---- what callers are told ---- */

static void tell_caller(struct children *c, uint64_t caller, enum agent_type type,
                        const struct rm_spawn_news *news)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, type);
    spawn_put_news(&frame, news);
    agent_frame_end(&frame, begin);
    if (!frame.failed && caller != 0)
        c->env.tell(c->env.arg, caller, &frame);
    wire_out_free(&frame);
}

static void tell(struct children *c, struct child *child, enum agent_type type,
                 const struct rm_spawn_news *news)
{
    tell_caller(c, child->caller, type, news);
}

static void tell_failure(struct children *c, struct child *child, enum rm_spawn_result result,
                         const char *text)
{
    const struct rm_spawn_news news = {.result = result, .text = text};
    if (!child->told)
        tell(c, child, AGENT_STARTED, &news);
    child->told = true;
}

/* ---- the end of one ---- */

static void end(struct child *child)
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
static void kill_harder(struct children *c, struct child *child)
{
    child->until = now_ms() + KILL_MS;
    if (child->killed++ == 0 && child->job != 0)
        c->env.kill(c->env.arg, child->job, child->step);
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
static int try(struct children *c, struct child *child)
{
    int ends[2] = {-1, -1}, rc = open_channels(child, ends);
    if (rc != 0)
        return rc;
    const struct spawn_place place = {.program = c->env.program,
                                      .job = c->env.job,
                                      .env = c->variables,
                                      .channel = ends[0],
                                      .errors = ends[1]};
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

static void fail_to_start(struct children *c, struct child *child, int error)
{
    char text[SPAWN_TEXT_MAX];
    snprintf(text, sizeof text, "srun cannot be started for a spawned step: %s", strerror(error));
    log_error("%s", text);
    tell_failure(c, child, error == E2BIG ? RM_SPAWN_NO_RESOURCES : RM_SPAWN_FAILED, text);
    forget(c, child);
}

static struct child *child_new(struct children *c, uint64_t caller)
{
    for (int i = 0; i < CHILDREN_MAX && !c->stopping; i++) {
        if (c->list[i] != NULL)
            continue;
        struct child *child = c->list[i] = calloc(1, sizeof *child);
        if (child == NULL)
            return NULL;
        child->pidfd = child->channel = child->errors = -1;
        child->caller = caller;
        return child;
    }
    return NULL;
}

void children_start(struct children *c, uint64_t caller, struct wire_in *body)
{
    struct child *child = child_new(c, caller);
    if (child == NULL) {
        static const struct rm_spawn_news full = {
            .result = RM_SPAWN_NO_RESOURCES,
            .text = "srun looks after as many spawned steps as it can, or ends"};
        tell_caller(c, caller, AGENT_STARTED, &full);
        return;
    }
    if (!spawn_get(body, &child->order)) {
        tell_failure(c, child, RM_SPAWN_FAILED, "srun cannot read what is to be spawned");
        forget(c, child);
        return;
    }
    child->until = now_ms() + (int64_t)child->order.what.timeout * 1000;
    child->cpus =
        child->order.free_cpus && now_ms() >= c->busy_until ? SPAWN_FREE_CPUS : SPAWN_SHARED_CPUS;
    int rc = try(c, child);
    if (rc != 0)
        fail_to_start(c, child, rc);
}

/* ---- what srun, and its plugin, say ---- */

static void read_errors(struct child *child)
{
    char bytes[READ_BYTES];
    ssize_t n;
    for (int i = 0; i < DRAIN_READS && child->errors >= 0; i++) {
        n = read(child->errors, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(&child->errors);
            return;
        }
        size_t room = sizeof child->text - 1 - child->len;
        size_t take = (size_t)n < room ? (size_t)n : room;
        memcpy(child->text + child->len, bytes, take);
        child->len += take;
    }
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
    read_errors(child);
    if (child->len > 0 && write(STDERR_FILENO, child->text, child->len) < 0)
        log_debug("what srun says cannot be shown: %s", strerror(errno));
    child->len = 0;
}

static void take_started(struct children *c, struct child *child, struct wire_in *body)
{
    char text[SPAWN_TEXT_MAX];
    struct rm_spawn_news news = {0};
    if (child->told || child->state == CHILD_ENDS || !spawn_get_news(body, &news, text) ||
        news.result == RM_SPAWN_ENDED)
        return;
    child->told = true;
    tell(c, child, AGENT_STARTED, &news);
    if (news.result == RM_SPAWN_RUNS)
        child->state = CHILD_RUNS;
    else /* what a node says of a step that ends is lost on some releases of Slurm */
        log_error("%s", text);
}

static void take_frames(struct children *c, struct child *child)
{
    size_t at = 0;
    struct agent_frame frame;
    int found;
    while ((found = agent_frame_read(child->in.data + at, child->in.len - at, AGENT_FRAME_MAX,
                                     &frame)) > 0) {
        if (frame.type == AGENT_LAUNCHED)
            take_launched(child, &frame.body);
        else if (frame.type == AGENT_STARTED)
            take_started(c, child, &frame.body);
        at += frame.len;
    }
    if (found < 0) {
        close_fd(&child->channel);
        return;
    }
    memmove(child->in.data, child->in.data + at, child->in.len - at);
    child->in.len -= at;
}

static void read_channel(struct children *c, struct child *child)
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
            take_frames(c, child);
    }
}

/* ---- srun has ended ---- */

/* What Slurm says when a job lacks what is asked for. */
static enum rm_spawn_result reason(const char *text)
{
    static const char *const lacks[] = {
        "processors requested", "are busy",  "configuration is not available",
        "Memory required",      "CPU count", "not available in this",
    };
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (strstr(text, lacks[i]) != NULL)
            return RM_SPAWN_NO_RESOURCES;
    return RM_SPAWN_FAILED;
}

static void show(const struct child *child)
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

static void no_step(struct children *c, struct child *child)
{
    child->text[child->len] = '\0';
    if (child->cpus == SPAWN_FREE_CPUS) { /* whatever it was: the second srun will say it */
        c->busy_until = now_ms() + BUSY_MS;
        child->cpus = SPAWN_SHARED_CPUS;
        close_fd(&child->pidfd);
        close_fd(&child->channel);
        close_fd(&child->errors);
        child->in.len = 0;
        int rc = try(c, child);
        if (rc != 0)
            fail_to_start(c, child, rc);
        return;
    }
    show(child);
    char *line = child->text;
    line[strcspn(line, "\n")] = '\0';
    tell_failure(c, child, reason(child->text),
                 line[0] != '\0' ? line : "srun ended without a step");
    forget(c, child);
}

static uint32_t status_of(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED ? (uint32_t)info->si_status & 0xff
                                       : STATUS_SIGNAL + (uint32_t)info->si_status;
}

static void srun_ended(struct children *c, struct child *child)
{
    siginfo_t info = {0};
    int rc = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG);
    if (rc == 0 && info.si_pid == 0)
        return; /* not yet */
    uint32_t status = rc == 0 ? status_of(&info) : 1;
    read_channel(c, child);
    read_errors(child);
    log_debug("srun %d of a spawned step has ended with %u", (int)child->pid, status);
    if (child->state == CHILD_TRIES) {
        no_step(c, child);
        return;
    }
    tell_failure(c, child, RM_SPAWN_FAILED,
                 "the step has ended before all of its processes were started");
    const struct rm_spawn_news news = {.result = RM_SPAWN_ENDED, .status = status};
    tell(c, child, AGENT_ENDED, &news);
    forget(c, child);
}

/* ---- the loop ---- */

unsigned children_poll(const struct children *c, struct pollfd *fds)
{
    unsigned n = 0;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        const struct child *child = c->list[i];
        if (child == NULL)
            continue;
        const int of[] = {child->channel, child->errors, child->pidfd};
        for (int k = 0; k < 3; k++)
            fds[n++] = (struct pollfd){of[k], POLLIN, 0};
    }
    return n;
}

static struct child *find_fd(const struct children *c, int fd)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = c->list[i];
        if (child != NULL && fd >= 0 &&
            (child->channel == fd || child->errors == fd || child->pidfd == fd))
            return child;
    }
    return NULL;
}

void children_ready(struct children *c, const struct pollfd *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct child *child = fds[i].revents != 0 ? find_fd(c, fds[i].fd) : NULL;
        if (child == NULL)
            continue;
        if (child->channel == fds[i].fd)
            read_channel(c, child);
        else if (child->errors == fds[i].fd)
            read_errors(child);
        else
            srun_ended(c, child);
    }
}

/* When a child that runs has to end, as srun has. */
static int64_t lingers_until(const struct children *c, const struct child *child)
{
    if (!c->stopping || child->order.what.linger == 0)
        return INT64_MAX;
    return c->stopped + (int64_t)child->order.what.linger * 1000;
}

static int64_t deadline_of(const struct children *c, const struct child *child)
{
    return child->state == CHILD_RUNS ? lingers_until(c, child) : child->until;
}

int64_t children_next(const struct children *c)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL && deadline_of(c, c->list[i]) < next)
            next = deadline_of(c, c->list[i]);
    return next;
}

void children_tick(struct children *c, int64_t now)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = c->list[i];
        if (child == NULL || deadline_of(c, child) > now)
            continue;
        if (child->state == CHILD_ENDS) {
            kill_harder(c, child);
            continue;
        }
        if (child->state != CHILD_RUNS) {
            char text[128];
            snprintf(text, sizeof text, "a spawned step was not started within %u s",
                     child->order.what.timeout);
            log_error("%s", text);
            tell_failure(c, child, RM_SPAWN_TIMEOUT, text);
        }
        end(child);
    }
}

/* ---- callers ---- */

void children_let_go(struct children *c, uint64_t caller)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL && c->list[i]->caller == caller && c->list[i]->state == CHILD_RUNS)
            c->list[i]->caller = 0;
}

void children_caller_gone(struct children *c, uint64_t caller)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL && c->list[i]->caller == caller) {
            c->list[i]->caller = 0;
            end(c->list[i]);
        }
}

bool children_has(const struct children *c, uint64_t caller)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL && c->list[i]->caller == caller)
            return true;
    return false;
}

void children_stop(struct children *c, bool failed)
{
    c->stopping = true;
    c->stopped = now_ms();
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL && (failed || c->list[i]->state != CHILD_RUNS))
            end(c->list[i]);
}

unsigned children_count(const struct children *c)
{
    unsigned n = 0;
    for (int i = 0; i < CHILDREN_MAX; i++)
        n += c->list[i] != NULL;
    return n;
}

void children_free(struct children *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] != NULL)
            forget(c, c->list[i]);
    spawn_list_free(c->variables);
    free(c);
}
