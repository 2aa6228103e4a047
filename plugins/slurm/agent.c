/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agent in srun: one thread, which does what its callers (agent_callers.h) ask for. It shows
 * the user what they tell, starts steps for them (agent_children.h) and changes the job's
 * allocation (agent_resize.h).
 */
#include "plugins/slurm/agent.h"

#include "common/transport/rm.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "common/util/thread.h"
#include "plugins/slurm/agent_callers.h"
#include "plugins/slurm/agent_causes.h"
#include "plugins/slurm/agent_children.h"
#include "plugins/slurm/agent_listen.h"
#include "plugins/slurm/agent_parent.h"
#include "plugins/slurm/agent_resize.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/own_program.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OWES_MS = 5000, /* for the server of a step that was short to say that it has begun */
    LINE_MS = 3000  /* for the servers to leave, and to say their line */
};

struct agent {
    pthread_t thread;
    struct agent_address self;
    int stop; /* eventfd */
    struct callers callers;
    struct children *children;
    struct resizes *resizes;
    struct causes causes;
    char program[PATH_MAX];   /* srun */
    char directory[PATH_MAX]; /* where that is */
    int parent;               /* the agent that has started this srun, or -1 */
    bool owes;                /* that agent has not been told what has become of this step */
    int64_t owes_until;       /* now_ms(); once stopping */
    bool awaits_line;         /* servers will say one when they leave */
    int64_t line_until;       /* now_ms(); once stopping */
    bool stopping;
    bool told; /* the user has read why the step ends */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static struct agent *agent;
static unsigned users;          /* components that have entered and not left */
static struct rm_ending ending; /* how the step ends, without the reason */
static bool ends;               /* the above was told */

/* ---- what callers say ---- */

/* Of several servers that have the step ended, the first one says why: what the others say has most
 * likely come of that. */
static void show(struct agent *a, const char *why)
{
    if (a->told)
        log_debug("another reason for the step's end: %s", why);
    else
        log_error("%s", why); /* it masks what a terminal would obey */
    a->told = true;
}

static enum agent_result take_status(struct agent *a, struct wire_in *in)
{
    char why[AGENT_TEXT_MAX] = "";
    uint32_t cause = wire_get_u32(in), status = wire_get_u32(in);
    if (in->p < in->end) /* not in version 3 */
        wire_get_str(in, why, sizeof why);
    if (in->bad || cause > RM_CAUSE_HOST || status > UINT8_MAX ||
        (status == 0 && cause != RM_CAUSE_ABORT))
        return AGENT_REFUSED;
    log_debug("the step ends with status %u, for cause %u", status, cause);
    if (why[0] != '\0')
        show(a, why);
    pthread_mutex_lock(&lock);
    if (!ends || (enum rm_cause)cause < ending.cause)
        ending = (struct rm_ending){.cause = (enum rm_cause)cause, .status = (uint8_t)status};
    ends = true;
    pthread_mutex_unlock(&lock);
    return AGENT_TAKEN;
}

static enum agent_result take_line(struct agent *a, struct wire_in *in)
{
    char line[AGENT_TEXT_MAX] = "";
    wire_get_str(in, line, sizeof line);
    if (in->bad)
        return AGENT_REFUSED;
    a->awaits_line = line[0] == '\0';
    if (line[0] != '\0')
        log_info("%s", line); /* it masks what a terminal would obey */
    return AGENT_TAKEN;
}

/* callers_hooks.take */
static enum agent_result take(void *arg, uint64_t caller, struct agent_frame *frame)
{
    struct agent *a = arg;
    switch (frame->type) {
    case AGENT_STATUS:
        return take_status(a, &frame->body);
    case AGENT_LINE:
        return take_line(a, &frame->body);
    case AGENT_CAUSE:
        return causes_take(&a->causes, &frame->body, now_ms()) ? AGENT_TAKEN : AGENT_REFUSED;
    case AGENT_STARTED:
        a->owes = false;
        return agent_parent_tell(a->parent, &frame->body) ? AGENT_TAKEN : AGENT_REFUSED;
    case AGENT_LET_GO:
        children_let_go(a->children, caller);
        return AGENT_TAKEN;
    case AGENT_SPAWN:
    case AGENT_ALLOCATE:
        return AGENT_TAKEN; /* news tell the rest */
    default:
        return AGENT_UNKNOWN;
    }
}

/* callers_hooks.taken */
static void taken(void *arg, uint64_t caller, struct agent_frame *frame)
{
    struct agent *a = arg;
    if (frame->type == AGENT_SPAWN)
        children_start(a->children, caller, &frame->body);
    else if (frame->type == AGENT_ALLOCATE)
        resizes_start(a->resizes, caller, &frame->body);
}

/* callers_hooks.keeps: it waits for the steps that it has started, or for an answer */
static bool keeps(void *arg, uint64_t caller)
{
    const struct agent *a = arg;
    return children_has(a->children, caller) || resizes_has(a->resizes, caller);
}

/* callers_hooks.gone */
static void gone(void *arg, uint64_t caller)
{
    struct agent *a = arg;
    children_caller_gone(a->children, caller);
    resizes_caller_gone(a->resizes, caller);
}

/* children_env.tell */
static void tell_caller(void *arg, uint64_t id, const struct wire_out *frame)
{
    struct agent *a = arg;
    callers_tell(&a->callers, id, frame);
}

/* children_env.kill */
static void kill_step(void *arg, uint32_t job, uint32_t step)
{
    (void)arg;
    if (slurm_abi_kill_step(job, step, SIGKILL, true) != 0)
        log_debug("step %u.%u, which was spawned, cannot be killed: %s", job, step,
                  slurm_abi_strerror(errno));
}

/* children_env.free_cpus */
static int64_t free_cpus(void *arg, uint32_t job, job_cpus_shares_fn *shares, void *shares_arg)
{
    (void)arg;
    return job_cpus_free(job, shares, shares_arg);
}

/* resize_env.hold */
static bool hold(void *arg, bool on)
{
    struct agent *a = arg;
    return children_hold(a->children, on);
}

/* children_env.idle_nodes */
static char *idle_nodes(void *arg, uint32_t job, uint32_t cpus, uint32_t *n)
{
    struct job_nodes nodes;
    char *names = NULL;
    (void)arg;
    if (job_nodes_read(job, &nodes) == 0 && job_nodes_use(job, &nodes) == 0)
        names = job_nodes_idle(&nodes, cpus, n);
    job_nodes_free(&nodes);
    return names;
}

/* resize_env.grown */
static void grown(void *arg)
{
    struct agent *a = arg;
    children_have_grown(a->children);
}

/* resize_env.split */
static char *split(const char *list)
{
    void *hosts = slurm_abi_hostlist_create(list);
    char *names = hosts != NULL ? strdup("") : NULL, *name;
    while (hosts != NULL && (name = slurm_abi_hostlist_shift(hosts)) != NULL) {
        names = text_append(names, ",", name);
        free(name);
    }
    if (hosts != NULL)
        slurm_abi_hostlist_destroy(hosts);
    return names;
}

/* ---- the loop ---- */

static int64_t soonest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* @return ms until the next deadline, or -1 */
static int look_at_clock(struct agent *a)
{
    int64_t now = now_ms();
    callers_tick(&a->callers, now);
    children_tick(a->children, now);
    resizes_tick(a->resizes, now);
    causes_tick(&a->causes, now);
    int64_t next = soonest(callers_next(&a->callers, now), children_next(a->children));
    next = soonest(next, soonest(resizes_next(a->resizes), causes_next(&a->causes)));
    if (a->stopping && a->owes)
        next = soonest(next, a->owes_until);
    if (a->stopping && a->awaits_line)
        next = soonest(next, a->line_until);
    return next == INT64_MAX ? -1 : next > now ? (int)(next - now) : 0;
}

/* The srun that has started this one says nothing: it has ended, perhaps by force. */
static void parent_ready(struct agent *a)
{
    char byte;
    ssize_t n = recv(a->parent, &byte, 1, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(a->parent);
    a->parent = -1;
    log_info("the srun that has started this one has ended: ending this step, too");
    kill(getpid(), SIGTERM);
}

static void stop_ready(struct agent *a)
{
    uint64_t told;
    if (read(a->stop, &told, sizeof told) != sizeof told)
        return;
    pthread_mutex_lock(&lock);
    bool failed = ending.status != 0;
    a->awaits_line &= !ends; /* no server says it then */
    pthread_mutex_unlock(&lock);
    a->stopping = true;
    a->line_until = now_ms() + LINE_MS;
    a->owes_until = now_ms() + OWES_MS;
    callers_stop(&a->callers);
    resizes_stop(a->resizes);
    children_stop(a->children, failed);
}

enum {
    FD_STOP,
    FD_PARENT,
    FD_RESIZES,
    FD_CALLERS = FD_RESIZES + TOOL_FDS,
    FDS_MAX = FD_CALLERS + CALLERS_FDS + CHILDREN_FDS
};

/* Whether srun has ended, and nothing is left to be heard or told. */
static bool is_done(const struct agent *a)
{
    return a->stopping && !a->owes && !a->awaits_line && children_count(a->children) == 0 &&
           resizes_count(a->resizes) == 0 && !callers_are_awaited(&a->callers);
}

/* The thread. */
static void *run(void *arg)
{
    struct agent *a = arg;
    struct pollfd fds[FDS_MAX], open[FDS_MAX];
    for (;;) {
        int ms = look_at_clock(a);
        if (is_done(a))
            break;
        fds[FD_STOP] = (struct pollfd){a->stop, POLLIN, 0};
        fds[FD_PARENT] = (struct pollfd){a->parent, POLLIN, 0};
        struct pollfd *callers = fds + FD_CALLERS, *children = callers + CALLERS_FDS;
        callers_poll(&a->callers, callers);
        resizes_poll(a->resizes, fds + FD_RESIZES);
        unsigned nchildren = children_poll(a->children, children);
        if (agent_poll(fds, open, FD_CALLERS + CALLERS_FDS + nchildren, ms) < 0)
            continue;
        children_ready(a->children, children, nchildren);
        resizes_ready(a->resizes, fds + FD_RESIZES);
        callers_ready(&a->callers, callers); /* what was said before the end counts */
        if (fds[FD_PARENT].revents)
            parent_ready(a);
        if (!callers_accept(&a->callers, callers) && fds[FD_STOP].revents)
            stop_ready(a); /* whoever has connected before was taken */
        a->owes &= a->parent >= 0 && (!a->stopping || now_ms() < a->owes_until);
        a->awaits_line &= !a->stopping || now_ms() < a->line_until;
    }
    return NULL;
}

/* ---- its life ---- */

static int describe(struct agent *a, const struct slurm_abi_step_id *step)
{
    uint16_t port;
    if (agent_listen_port(a->callers.listener, &port) != 0 ||
        getrandom(a->self.secret, sizeof a->self.secret, 0) != sizeof a->self.secret)
        return errno;
    snprintf(a->self.port, sizeof a->self.port, "%u", port);
    snprintf(a->self.label, sizeof a->self.label, "%u.%u", step->job_id, step->step_id);
    return 0;
}

static void free_agent(struct agent *a)
{
    callers_close(&a->callers);
    causes_end(&a->causes);
    children_free(a->children);
    resizes_free(a->resizes);
    if (a->stop >= 0)
        close(a->stop);
    if (a->parent >= 0)
        close(a->parent);
    free(a);
}

/* The environment is srun's own: prelaunch has only what plugins add to that of the tasks. */
static int open_children(struct agent *a, const struct slurm_abi_step_id *step)
{
    int rc = own_program(a->program, sizeof a->program);
    if (rc != 0)
        return rc;
    const char *slash = strrchr(a->program, '/');
    snprintf(a->directory, sizeof a->directory, "%.*s", (int)(slash - a->program), a->program);
    const struct children_env children = {.arg = a,
                                          .program = a->program,
                                          .job = step->job_id,
                                          .tell = tell_caller,
                                          .kill = kill_step,
                                          .free_cpus = free_cpus,
                                          .idle_nodes = idle_nodes};
    a->children = children_new(&children, environ);
    const struct resize_env resizes = {.arg = a,
                                       .directory = a->directory,
                                       .job = step->job_id,
                                       .variables = environ,
                                       .tell = tell_caller,
                                       .hold = hold,
                                       .grown = grown,
                                       .nodes = job_nodes_read,
                                       .use = job_nodes_use,
                                       .split = split};
    a->resizes = resizes_new(&resizes);
    return a->children != NULL && a->resizes != NULL ? 0 : ENOMEM;
}

/* @return NULL with the reason in errno */
static struct agent *start(const struct slurm_abi_step_id *step)
{
    struct agent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    const struct callers_hooks hooks = {
        .take = take, .taken = taken, .keeps = keeps, .gone = gone, .arg = a};
    int rc = callers_open(&a->callers, &hooks, &a->self);
    a->parent = agent_parent_take(step);
    a->owes = a->parent >= 0;
    a->stop = eventfd(0, EFD_CLOEXEC);
    if (rc == 0 && a->stop < 0)
        rc = errno;
    if (rc == 0)
        rc = open_children(a, step);
    if (rc == 0)
        rc = describe(a, step);
    if (rc == 0)
        rc = thread_start(&a->thread, run, a);
    if (rc == 0)
        return a;
    free_agent(a);
    errno = rc;
    return NULL;
}

void agent_enter(const struct slurm_abi_step_id *step, char ***env)
{
    char text[128] = "";
    pthread_mutex_lock(&lock);
    if (users == 0) {
        ending = (struct rm_ending){.status = 0};
        ends = false;
    }
    if (users++ == 0 && (agent = start(step)) == NULL)
        log_info("srun cannot listen for how the step ends: %s; its status will be Slurm's",
                 strerror(errno));
    if (agent != NULL)
        agent_env_write(&agent->self, text, sizeof text);
    pthread_mutex_unlock(&lock);
    slurm_abi_env_overwrite(env, AGENT_ENV, text); /* of a step that this srun was started in */
}

static void stop(struct agent *a)
{
    uint64_t one = 1;
    if (write(a->stop, &one, sizeof one) < 0)
        log_debug("eventfd: %s", strerror(errno));
    pthread_join(a->thread, NULL); /* all that it waits for has a deadline */
    free_agent(a);
}

int agent_leave(void)
{
    struct agent *last = NULL;
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        last = agent;
        agent = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (last != NULL)
        stop(last);
    pthread_mutex_lock(&lock);
    int status = ending.status;
    pthread_mutex_unlock(&lock);
    return status;
}
