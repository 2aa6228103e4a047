/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agent in srun.
 *
 * It listens within SrunPortRange, where any user can connect to it. So:
 *
 *     caller      what it may do
 *
 *     stranger    send one HELLO of AGENT_STRANGER_MAX bytes within STRANGER_MS; the oldest one
 *                 gives way to the next caller when there are STRANGERS_MAX, or no place is free
 *
 *     greeted     send its first frame
 *
 *     known       send frames until it has been silent for KNOWN_MS, or as long as a step runs that
 *                 it has started (agent_children.h)
 *
 * A stranger becomes known by a proof that it knows the secret, which looks cheap and keeps munged
 * out of the reach of other users, and by a credential that says that its point is of a process of
 * srun's own user, and of this step. The agent's own credential says the same of the agent's point.
 * From then on all frames are sealed (agent_line.h). One thread does everything.
 *
 * srun may end while a server is about to say with what status: what has connected by then, or does
 * so within LAST_MS, is heard.
 */
#include "plugins/slurm/agent.h"

#include "common/transport/rm.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/thread.h"
#include "plugins/slurm/agent_children.h"
#include "plugins/slurm/agent_hello.h"
#include "plugins/slurm/agent_listen.h"
#include "plugins/slurm/agent_parent.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/own_program.h"

#include <errno.h>
#include <fcntl.h>
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
    STRANGERS_MAX = 32,
    CALLERS_MAX = STRANGERS_MAX + 32 + CHILDREN_MAX,
    STRANGER_MS = 5000,
    KNOWN_MS = 30000,
    ACCEPT_MS = 100, /* until the next try, when there are no descriptors */
    READ_BYTES = 4096,
    LAST_MS = 1000,      /* for strangers, once srun ends */
    LAST_WORD_MS = 2000, /* for greeted callers, once srun ends */
    OWES_MS = 5000,      /* for the server of a step that was short to say that it has begun */
    LINES_MAX = 16,      /* of all callers, for the terminal */
};

enum caller_state { CALLER_STRANGER, CALLER_GREETED, CALLER_KNOWN };

struct caller {
    enum caller_state state;
    int fd;                 /* -1: no caller */
    uint64_t id;            /* never the same twice */
    int64_t until;          /* now_ms() when it is cut off, unless it has started a step */
    struct agent_line line; /* of all but strangers: what they say and are told is sealed */
    struct wire_out in, out;
};

struct agent {
    pthread_t thread;
    struct agent_address self;
    int listener, stop; /* stop: eventfd */
    int64_t accept_at;  /* now_ms(); not before */
    struct caller callers[CALLERS_MAX];
    uint64_t last_id;
    struct agent_hellos hellos;
    struct children *children;
    char program[PATH_MAX]; /* srun */
    int parent;             /* the agent that has started this srun, or -1 */
    bool owes;              /* that agent has not been told what has become of this step */
    int64_t owes_until;     /* now_ms(); once stopping */
    int64_t last_until;     /* now_ms(), when strangers are no more heard; once stopping */
    bool stopping;
    unsigned nlines;
    char line[AGENT_TEXT_MAX]; /* the last one that was shown */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static struct agent *agent;
static unsigned users;          /* components that have entered and not left */
static struct rm_ending ending; /* how the step ends; status 0: it was not told */

static void cut(struct agent *a, struct caller *caller)
{
    uint64_t id = caller->id;
    close(caller->fd);
    agent_line_close(&caller->line);
    wire_out_free(&caller->in);
    wire_out_free(&caller->out);
    *caller = (struct caller){.fd = -1};
    children_caller_gone(a->children, id);
}

/* ---- what callers say ---- */

static enum agent_result take_status(struct wire_in *in)
{
    uint32_t cause = wire_get_u32(in), status = wire_get_u32(in);
    if (in->bad || cause > RM_CAUSE_HOST || status == 0 || status > UINT8_MAX)
        return AGENT_REFUSED;
    log_debug("the step ends with status %u, for cause %u", status, cause);
    pthread_mutex_lock(&lock);
    if (ending.status == 0 || (enum rm_cause)cause < ending.cause)
        ending = (struct rm_ending){.cause = (enum rm_cause)cause, .status = (uint8_t)status};
    pthread_mutex_unlock(&lock);
    return AGENT_TAKEN;
}

/* Several servers may say the same. */
static enum agent_result take_line(struct agent *a, struct wire_in *in)
{
    char text[AGENT_TEXT_MAX];
    wire_get_str(in, text, sizeof text);
    if (in->bad)
        return AGENT_REFUSED;
    if (strcmp(text, a->line) == 0 || a->nlines == LINES_MAX)
        return AGENT_TAKEN;
    a->nlines++;
    memcpy(a->line, text, sizeof text);
    log_error("%s", text); /* it masks what a terminal would obey */
    return AGENT_TAKEN;
}

/* What it does not take now is sent when it can be. */
static void send_out(struct caller *caller)
{
    ssize_t n = send(caller->fd, caller->out.data, caller->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        log_debug("a caller of srun's agent has gone: %s", strerror(errno));
        n = (ssize_t)caller->out.len; /* recv() says it, too */
    }
    if (n <= 0)
        return;
    memmove(caller->out.data, caller->out.data + n, caller->out.len - (size_t)n);
    caller->out.len -= (size_t)n;
}

/* What cannot be sealed, or kept until it can be sent, is the last that the caller is told. */
static void send_frame(struct caller *caller, const struct wire_out *frame)
{
    caller->out.failed |= !agent_line_put(&caller->line, frame, &caller->out);
    if (!caller->out.failed)
        send_out(caller);
}

static void answer(struct caller *caller, uint32_t type, enum agent_result result)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_ANSWER);
    wire_put_u32(&frame, type);
    wire_put_u32(&frame, result);
    agent_frame_end(&frame, begin);
    send_frame(caller, &frame);
    wire_out_free(&frame);
}

/* children_env.tell */
static void tell_caller(void *arg, uint64_t id, const struct wire_out *frame)
{
    struct agent *a = arg;
    for (int i = 0; i < CALLERS_MAX; i++)
        if (a->callers[i].fd >= 0 && a->callers[i].id == id)
            send_frame(&a->callers[i], frame);
}

/* children_env.kill */
static void kill_step(void *arg, uint32_t job, uint32_t step)
{
    (void)arg;
    if (slurm_abi_kill_step(job, step, SIGKILL, true) != 0)
        log_debug("step %u.%u, which was spawned, cannot be killed: %s", job, step,
                  slurm_abi_strerror(errno));
}

/* @return whether the caller may stay */
static bool take_hello(struct agent *a, struct caller *caller, struct agent_frame *frame)
{
    if (frame->type != AGENT_HELLO ||
        !agent_hello_take(&a->hellos, &a->self, &frame->body, &caller->line, &caller->out))
        return false;
    caller->state = CALLER_GREETED;
    caller->until = now_ms() + (a->stopping ? LAST_WORD_MS : KNOWN_MS);
    if (!caller->out.failed)
        send_out(caller);
    return !caller->out.failed;
}

/* Of a greeted or known caller. @return whether it may stay */
static bool take_frame(struct agent *a, struct caller *caller, struct agent_frame *frame)
{
    enum agent_result result = AGENT_UNKNOWN;
    caller->state = CALLER_KNOWN;
    if (frame->type == AGENT_STATUS) {
        result = take_status(&frame->body);
    } else if (frame->type == AGENT_SAY) {
        result = take_line(a, &frame->body);
    } else if (frame->type == AGENT_STARTED) {
        result = agent_parent_tell(a->parent, &frame->body) ? AGENT_TAKEN : AGENT_REFUSED;
        a->owes = false;
    } else if (frame->type == AGENT_LET_GO) {
        children_let_go(a->children, caller->id);
        result = AGENT_TAKEN;
    } else if (frame->type == AGENT_SPAWN) {
        result = AGENT_TAKEN; /* news tell the rest */
    }
    answer(caller, frame->type, result);
    if (frame->type == AGENT_SPAWN && result == AGENT_TAKEN)
        children_start(a->children, caller->id, &frame->body);
    caller->until = now_ms() + KNOWN_MS;
    return !caller->out.failed;
}

/* @return whether the caller may stay */
static bool take_frames(struct agent *a, struct caller *caller)
{
    size_t at = 0;
    for (;;) {
        struct agent_frame frame;
        bool stranger = caller->state == CALLER_STRANGER;
        unsigned char *data = caller->in.data + at;
        int found = stranger
                        ? agent_frame_read(data, caller->in.len - at, AGENT_STRANGER_MAX, &frame)
                        : agent_line_read(&caller->line, data, caller->in.len - at, &frame);
        if (found == 0)
            break;
        if (found < 0 ||
            !(stranger ? take_hello(a, caller, &frame) : take_frame(a, caller, &frame)))
            return false;
        at += frame.len;
    }
    memmove(caller->in.data, caller->in.data + at, caller->in.len - at);
    caller->in.len -= at;
    return true;
}

static void caller_ready(struct agent *a, struct caller *caller)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(caller->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        wire_put_raw(&caller->in, bytes, (size_t)n);
    if (n <= 0 || caller->in.failed || !take_frames(a, caller))
        cut(a, caller);
}

/* ---- the loop ---- */

/* A place for the next caller: a free one, or that of the stranger that has waited longest. */
static struct caller *find_place(struct agent *a)
{
    struct caller *oldest = NULL, *free = NULL;
    unsigned strangers = 0;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &a->callers[i];
        if (caller->fd < 0) {
            free = caller;
            continue;
        }
        if (caller->state != CALLER_STRANGER)
            continue;
        strangers++;
        if (oldest == NULL || caller->until < oldest->until)
            oldest = caller;
    }
    return free != NULL && strangers < STRANGERS_MAX ? free : oldest;
}

static void take_caller(struct agent *a)
{
    struct caller *place = find_place(a);
    int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            a->accept_at = now_ms() + ACCEPT_MS;
        return;
    }
    if (place == NULL) { /* all are our own, and each speaks */
        close(fd);
        return;
    }
    if (place->fd >= 0)
        cut(a, place);
    agent_keep_alive(fd);
    *place = (struct caller){.fd = fd,
                             .id = ++a->last_id,
                             .until = a->stopping ? a->last_until : now_ms() + STRANGER_MS};
}

/* Cuts off the callers whose time is over. @return ms until the next one has, or -1 */
static int look_at_clock(struct agent *a)
{
    int64_t now = now_ms(), first = a->accept_at > now ? a->accept_at : INT64_MAX;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &a->callers[i];
        if (caller->fd < 0 || children_has(a->children, caller->id))
            continue;
        if (caller->until <= now)
            cut(a, caller);
        else if (caller->until < first)
            first = caller->until;
    }
    children_tick(a->children, now);
    int64_t next = children_next(a->children);
    if (a->stopping && a->owes && a->owes_until < first)
        first = a->owes_until;
    if (next < first)
        first = next;
    return first == INT64_MAX ? -1 : first > now ? (int)(first - now) : 0;
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
    pthread_mutex_unlock(&lock);
    a->stopping = true;
    a->owes_until = now_ms() + OWES_MS;
    a->last_until = now_ms() + LAST_MS;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &a->callers[i];
        int64_t last = caller->state == CALLER_STRANGER ? a->last_until : now_ms() + LAST_WORD_MS;
        if (caller->state != CALLER_KNOWN && caller->until > last)
            caller->until = last;
    }
    children_stop(a->children, failed);
}

enum {
    FD_STOP,
    FD_LISTENER,
    FD_PARENT,
    FD_CALLERS,
    FDS_MAX = FD_CALLERS + CALLERS_MAX + CHILDREN_FDS
};

/* Whether srun has ended, and nothing is left to be heard or told. */
static bool is_done(const struct agent *a)
{
    if (!a->stopping || a->owes || children_count(a->children) > 0)
        return false;
    for (int i = 0; i < CALLERS_MAX; i++)
        if (a->callers[i].fd >= 0 && a->callers[i].state != CALLER_KNOWN)
            return false;
    return true;
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
        fds[FD_LISTENER] = (struct pollfd){a->accept_at <= now_ms() ? a->listener : -1, POLLIN, 0};
        fds[FD_PARENT] = (struct pollfd){a->parent, POLLIN, 0};
        struct pollfd *callers = fds + FD_CALLERS, *children = callers + CALLERS_MAX;
        for (int i = 0; i < CALLERS_MAX; i++)
            callers[i] = (struct pollfd){a->callers[i].fd,
                                         POLLIN | (a->callers[i].out.len > 0 ? POLLOUT : 0), 0};
        unsigned nchildren = children_poll(a->children, children);
        if (agent_poll(fds, open, FD_CALLERS + CALLERS_MAX + nchildren, ms) < 0)
            continue;
        children_ready(a->children, children, nchildren);
        /* what was said before the end counts */
        for (int i = 0; i < CALLERS_MAX; i++) {
            if (callers[i].revents & POLLOUT)
                send_out(&a->callers[i]);
            if (callers[i].revents & ~POLLOUT)
                caller_ready(a, &a->callers[i]);
        }
        if (fds[FD_PARENT].revents)
            parent_ready(a);
        if (fds[FD_LISTENER].revents)
            take_caller(a);
        else if (fds[FD_STOP].revents)
            stop_ready(a); /* whoever has connected before was taken */
        a->owes &= a->parent >= 0 && (!a->stopping || now_ms() < a->owes_until);
    }
    return NULL;
}

/* ---- its life ---- */

static int describe(struct agent *a, const struct slurm_abi_step_id *step)
{
    uint16_t port;
    if (agent_listen_port(a->listener, &port) != 0 ||
        getrandom(a->self.secret, sizeof a->self.secret, 0) != sizeof a->self.secret)
        return errno;
    snprintf(a->self.port, sizeof a->self.port, "%u", port);
    snprintf(a->self.label, sizeof a->self.label, "%u.%u", step->job_id, step->step_id);
    return 0;
}

static void free_agent(struct agent *a)
{
    for (int i = 0; a->children != NULL && i < CALLERS_MAX; i++)
        if (a->callers[i].fd >= 0)
            cut(a, &a->callers[i]);
    children_free(a->children);
    agent_hello_free(&a->hellos);
    if (a->listener >= 0)
        close(a->listener);
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
    const struct children_env children = {.arg = a,
                                          .program = a->program,
                                          .job = step->job_id,
                                          .tell = tell_caller,
                                          .kill = kill_step};
    a->children = children_new(&children, environ);
    return a->children != NULL ? 0 : ENOMEM;
}

/* @return NULL with the reason in errno */
static struct agent *start(const struct slurm_abi_step_id *step)
{
    struct agent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->listener = -1;
    a->parent = agent_parent_take(step);
    a->owes = a->parent >= 0;
    for (int i = 0; i < CALLERS_MAX; i++)
        a->callers[i].fd = -1;
    a->stop = eventfd(0, EFD_CLOEXEC);
    int rc = a->stop < 0 ? errno : agent_listen(&a->listener);
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
    if (users == 0)
        ending = (struct rm_ending){.cause = RM_CAUSE_HOST};
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
