/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of slurmstepd that many nodes may have alike, on their way to srun's agent. */
#include "plugins/slurm/herald.h"

#include "common/handoff/worker.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_call.h"

#include <errno.h>
#include <linux/securebits.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    AGENT_MS = 4000,          /* for a call: all nodes of a step may make theirs at once */
    WAIT_MS = AGENT_MS + 500, /* for all calls; those that take longer go on by themselves */
    CALLING_MAX = 8,          /* lines; more are logged at once */
};

struct line {
    struct work work;
    struct herald *herald;
    struct line *next; /* in held */
    bool taken;        /* by the agent */
    char text[AGENT_TEXT_MAX];
};

struct herald {
    struct identity user; /* without its groups */
    char *node, *agent;
    void (*log)(const char *line);
    struct worker *worker;
    int wake; /* eventfd */

    pthread_mutex_t lock; /* guards all below */
    unsigned calling;     /* lines that the worker has */
    struct line *current; /* of them, that which the agent is told; said already: NULL */
    bool gone;            /* no agent has answered; none is called any more */
    bool has_task;
    struct line *held, **end; /* no agent has taken them, and there is no task */
};

/* @thread any, locked */
static void fall_back(struct herald *h, struct line *line)
{
    if (h->has_task) {
        h->log(line->text);
        free(line);
        return;
    }
    line->next = NULL;
    *h->end = line;
    h->end = &line->next;
}

/* The kernel has credentials of each thread; glibc's functions would change those of all. The
 * thread keeps its capabilities: slurmstepd changes the uid of all its threads while it launches,
 * and glibc ends the process when that fails in one of them. @thread the worker's */
static bool become(const struct identity *user)
{
    return !user->drop || (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0 &&
                           syscall(SYS_setresgid, -1, user->gid, -1) == 0 &&
                           syscall(SYS_setresuid, -1, user->uid, -1) == 0);
}

/* work_ops.call */
static void call(struct work *work)
{
    struct line *line = (struct line *)work;
    struct herald *h = line->herald;
    struct err err = {0};
    pthread_mutex_lock(&h->lock);
    bool gone = h->gone;
    h->current = gone ? NULL : line;
    pthread_mutex_unlock(&h->lock);
    if (gone)
        return;
    if (!become(&h->user))
        err_set(&err, "a thread cannot have the user's rights: %s", strerror(errno));
    else
        line->taken =
            agent_call_cause(h->agent, &(struct agent_cause){h->user.uid, h->node, line->text},
                             AGENT_MS, &err) == 0;
    if (line->taken)
        log_info("%s", line->text);
    else
        log_info("srun cannot be told of lines for the user, and slurmstepd shows them: %s",
                 err.text);
    pthread_mutex_lock(&h->lock);
    h->gone |= !line->taken;
    line->taken |= h->current == NULL; /* the call took too long */
    h->current = NULL;
    pthread_mutex_unlock(&h->lock);
}

/* work_ops.drop, and done() when it was called. @thread the worker's, or the last one */
static void drop(struct work *work)
{
    struct line *line = (struct line *)work;
    struct herald *h = line->herald;
    uint64_t one = 1;
    pthread_mutex_lock(&h->lock);
    if (line->taken)
        free(line);
    else
        fall_back(h, line);
    h->calling--;
    if (write(h->wake, &one, sizeof one) < 0)
        log_debug("eventfd: %s", strerror(errno));
    pthread_mutex_unlock(&h->lock);
}

/* A call hangs that has a deadline: maybe the file system does that has libcrypto. @thread any,
 * locked */
static void give_up(struct herald *h)
{
    struct line *copy = h->current != NULL ? malloc(sizeof *copy) : NULL;
    h->gone = true;
    if (copy == NULL)
        return;
    *copy = *h->current;
    h->current = NULL;
    fall_back(h, copy);
}

static const struct work_ops calls = {call, NULL, drop};

/* worker_post_fn */
static void post(struct handoff *none, struct handoff_item *item, handoff_run_fn *run)
{
    (void)none, (void)run;
    drop((struct work *)item);
}

struct herald *herald_new(const struct herald_of *of)
{
    struct herald *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->user = (struct identity){.uid = of->user->uid, .gid = of->user->gid, .drop = of->user->drop};
    h->log = of->log;
    h->end = &h->held;
    pthread_mutex_init(&h->lock, NULL);
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (of->agent != NULL) {
        h->node = strdup(of->node);
        h->agent = strdup(of->agent);
        h->worker = worker_make(&calls, post, NULL);
    }
    return h;
}

void herald_say(struct herald *h, const char *text)
{
    struct line *line = calloc(1, sizeof *line);
    if (line == NULL) {
        h->log(text);
        return;
    }
    line->herald = h;
    snprintf(line->text, sizeof line->text, "%s", text);
    pthread_mutex_lock(&h->lock);
    bool calls_agent = h->worker != NULL && h->node != NULL && h->agent != NULL && h->wake >= 0 &&
                       h->calling < CALLING_MAX && !h->gone;
    h->calling++;
    pthread_mutex_unlock(&h->lock);
    if (!calls_agent || !worker_do(h->worker, &line->work))
        drop(&line->work);
}

void herald_has_task(struct herald *h)
{
    pthread_mutex_lock(&h->lock);
    struct line *held = h->held, *next;
    h->has_task = true;
    h->held = NULL;
    h->end = &h->held;
    pthread_mutex_unlock(&h->lock);
    for (; held != NULL; held = next) {
        next = held->next;
        h->log(held->text);
        free(held);
    }
}

int herald_fd(const struct herald *h)
{
    return h != NULL ? h->wake : -1;
}

bool herald_is_idle(struct herald *h)
{
    uint64_t n;
    if (h == NULL)
        return true;
    int64_t since = h->worker != NULL ? worker_since(h->worker) : 0;
    pthread_mutex_lock(&h->lock);
    if (read(h->wake, &n, sizeof n) < 0 && errno != EAGAIN)
        log_debug("eventfd: %s", strerror(errno));
    bool late = since != 0 && now_ms() - since >= WAIT_MS;
    if (late)
        give_up(h);
    bool idle = h->calling == 0 || late;
    pthread_mutex_unlock(&h->lock);
    return idle;
}

void herald_wait(struct herald *h)
{
    int64_t by = now_ms() + WAIT_MS + 1; /* then it is late() */
    struct pollfd wake = {herald_fd(h), POLLIN, 0};
    while (!herald_is_idle(h) && deadline_left(by) > 0)
        poll(&wake, 1, deadline_left(by));
}

void herald_free(struct herald *h)
{
    if (h == NULL)
        return;
    herald_has_task(h); /* what is held is logged, also where a call never returns */
    if (!worker_close(h->worker, now_ms() + WAIT_MS))
        return; /* its thread has it, and ends with the process */
    pthread_mutex_destroy(&h->lock);
    if (h->wake >= 0)
        close(h->wake);
    free(h->node);
    free(h->agent);
    free(h);
}
