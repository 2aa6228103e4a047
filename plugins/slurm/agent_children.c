/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that were asked for, each with an srun of its own. */
#include "plugins/slurm/agent_children.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    BUSY_MS = 10000, /* when there were no free processors, so long none are asked for */
    STATUS_SIGNAL = 128,
};

struct children {
    struct children_env env;
    char **variables;
    struct child *list[CHILDREN_MAX]; /* NULL: free */
    int64_t busy_until;               /* no free processors were found lately */
    bool held;                        /* no srun is started */
    bool grown;                       /* children_have_grown() */
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

static void forget(struct children *c, struct child *child)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->list[i] == child)
            c->list[i] = NULL;
    child_close(child);
    wire_out_free(&child->in);
    spawn_order_free(&child->order);
    free(child->idle);
    free(child);
}

static void fail_to_start(struct children *c, struct child *child, int error)
{
    char text[SPAWN_TEXT_MAX];
    snprintf(text, sizeof text, "%s cannot be started for a spawned step: %s%s", c->env.program,
             strerror(error),
             error == E2BIG ? ": the environment, or the list of nodes, is too long" : "");
    log_error("%s", text);
    child_tell_failure(child, error == E2BIG ? RM_SPAWN_NO_RESOURCES : RM_SPAWN_FAILED, text);
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
        child->env = &c->env;
        child->variables = c->variables;
        child->caller = caller;
        return child;
    }
    return NULL;
}

/* job_cpus_shares_fn */
static bool shares(void *arg, uint32_t job, uint32_t step)
{
    const struct children *c = arg;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        const struct child *child = c->list[i];
        if (child != NULL && child->job == job && child->step == step)
            return child->cpus == SPAWN_SHARED_CPUS;
    }
    return false;
}

/* srun waits for a second for processors that another step has, so they are counted before it is
 * asked for them. */
static enum spawn_cpus choose_cpus(struct children *c, const struct spawn_order *order)
{
    if (c->grown || now_ms() < c->busy_until)
        return SPAWN_SHARED_CPUS;
    int64_t free = c->env.free_cpus(c->env.arg, c->env.job, shares, c);
    bool enough = free < 0 ? order->free_cpus : free >= order->what.ntasks;
    return enough ? SPAWN_FREE_CPUS : SPAWN_SHARED_CPUS;
}

static void launch(struct children *c, struct child *child)
{
    const struct rm_spawn *what = &child->order.what;
    child->cpus = choose_cpus(c, &child->order);
    if (c->grown && what->hosts == NULL)
        child->idle = c->env.idle_nodes(c->env.arg, c->env.job, what->ntasks, &child->nidle);
    int rc = child_try(child);
    if (rc != 0)
        fail_to_start(c, child, rc);
}

void children_start(struct children *c, uint64_t caller, struct wire_in *body)
{
    struct child *child = child_new(c, caller);
    if (child == NULL) {
        static const struct rm_spawn_news full = {
            .result = RM_SPAWN_NO_RESOURCES,
            .text = "srun looks after as many spawned steps as it can, or ends"};
        child_tell_caller(&c->env, caller, AGENT_STARTED, &full);
        return;
    }
    if (!spawn_get(body, &child->order)) {
        child_tell_failure(child, RM_SPAWN_FAILED, "srun cannot read what is to be spawned");
        forget(c, child);
        return;
    }
    child->until = now_ms() + (int64_t)child->order.what.timeout * 1000;
    child->state = CHILD_WAITS;
    if (!c->held)
        launch(c, child);
}

void children_have_grown(struct children *c)
{
    c->grown = true;
}

bool children_hold(struct children *c, bool on)
{
    bool quiet = true;
    c->held = on;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = c->list[i];
        quiet = quiet && (child == NULL || child->state != CHILD_TRIES);
        if (!on && child != NULL && child->state == CHILD_WAITS)
            launch(c, child);
    }
    return quiet;
}

/* Has it end, whether it has an srun yet or not. */
static void end(struct children *c, struct child *child)
{
    if (child->state == CHILD_WAITS)
        forget(c, child);
    else
        child_end(child);
}

/* ---- srun has ended ---- */

static void no_step(struct children *c, struct child *child)
{
    child->text[child->len] = '\0';
    if (child->cpus == SPAWN_FREE_CPUS) { /* whatever it was: the second srun will say it */
        log_debug("no free processors for a spawned step: %.300s", child->text);
        c->busy_until = now_ms() + BUSY_MS;
        child->cpus = SPAWN_SHARED_CPUS;
        child_close(child);
        child->in.len = 0;
        int rc = child_try(child);
        if (rc != 0)
            fail_to_start(c, child, rc);
        return;
    }
    child_show(child);
    char *line = child->text;
    line[strcspn(line, "\n")] = '\0';
    child_tell_failure(child, child_reason(child),
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
    child_read_channel(child);
    child_read_errors(child);
    log_debug("srun %d of a spawned step has ended with %u", (int)child->pid, status);
    if (child->state == CHILD_TRIES) {
        no_step(c, child);
        return;
    }
    child_tell_failure(child, RM_SPAWN_FAILED,
                       "the step has ended before all of its processes were started");
    const struct rm_spawn_news news = {.result = RM_SPAWN_ENDED, .status = status};
    child_tell(child, AGENT_ENDED, &news);
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
            child_read_channel(child);
        else if (child->errors == fds[i].fd)
            child_read_errors(child);
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
            child_kill_harder(child);
            continue;
        }
        if (child->state != CHILD_RUNS) {
            char text[128];
            snprintf(text, sizeof text, "a spawned step was not started within %u s",
                     child->order.what.timeout);
            log_error("%s", text);
            child_tell_failure(child, RM_SPAWN_TIMEOUT, text);
        }
        end(c, child);
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
            end(c, c->list[i]);
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
            end(c, c->list[i]);
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
