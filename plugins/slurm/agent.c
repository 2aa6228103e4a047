/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agent in srun.
 *
 * It listens within SrunPortRange, where everybody can connect to it. So:
 *
 *     caller      what it may do
 *
 *     stranger    send one HELLO of AGENT_STRANGER_MAX bytes within STRANGER_MS; the oldest one
 *                 gives way to the next caller when all CALLERS_MAX places are taken
 *
 *     known       send frames until it has been silent for KNOWN_MS
 *
 * A stranger becomes known by the secret, which looks cheap and keeps munged out of the reach of
 * other users, and by a credential that says that it is a process of srun's own user, and of this
 * step. One thread does everything; all signals are blocked in it.
 */
#include "plugins/slurm/agent.h"

#include "common/transport/rm.h"
#include "common/util/clock.h"
#include "common/util/join.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/auth.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
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
    CALLERS_MAX = 32,
    BACKLOG = 64,
    STRANGER_MS = 5000,
    KNOWN_MS = 30000,
    ACCEPT_MS = 100, /* until the next try, when there are no descriptors */
    READ_BYTES = 4096,
    LINES_MAX = 16, /* of all callers, for the terminal */
    STOP_MS = 3000, /* for a credential that munged is being asked about */
};

enum caller_state { CALLER_STRANGER, CALLER_KNOWN };

struct caller {
    enum caller_state state;
    int fd;        /* -1: nobody */
    int64_t until; /* now_ms() when it is cut off */
    struct wire_out in;
};

struct agent {
    pthread_t thread;
    struct agent_address self;
    int listener, stop; /* stop: eventfd */
    int64_t accept_at;  /* now_ms(); not before */
    struct caller callers[CALLERS_MAX];
    unsigned nlines;
    char line[AGENT_TEXT_MAX]; /* the last one that was shown */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static struct agent *agent;
static unsigned users;          /* components that have entered and not left */
static struct rm_ending ending; /* how the step ends; status 0: nobody has told */

static void cut(struct caller *caller)
{
    close(caller->fd);
    wire_out_free(&caller->in);
    *caller = (struct caller){.fd = -1};
}

/* ---- what callers say ---- */

static bool is_secret(const struct agent *a, struct wire_in *in)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < sizeof a->self.secret; i++)
        differs |= wire_get_u8(in) ^ a->self.secret[i];
    return !in->bad && differs == 0;
}

static bool take_hello(const struct agent *a, struct caller *caller, struct wire_in *in)
{
    struct wire_out payload = {0};
    agent_payload(&a->self, &payload);
    bool known = is_secret(a, in) && auth_read(in, getuid(), payload.data, payload.len);
    wire_out_free(&payload);
    if (!known) {
        log_debug("a caller of srun's agent is not of this step");
        return false;
    }
    caller->state = CALLER_KNOWN;
    return true;
}

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

/* A caller that does not take its answer, of a few bytes, does not get it. */
static void answer(const struct caller *caller, uint32_t type, enum agent_result result)
{
    struct wire_out out = {0};
    size_t begin = agent_frame_begin(&out, AGENT_ANSWER);
    wire_put_u32(&out, type);
    wire_put_u32(&out, result);
    agent_frame_end(&out, begin);
    if (!out.failed && send(caller->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("a caller of srun's agent has gone: %s", strerror(errno));
    wire_out_free(&out);
}

/* @return whether the caller may stay */
static bool take_frame(struct agent *a, struct caller *caller, struct agent_frame *frame)
{
    enum agent_result result = AGENT_UNKNOWN;
    if (caller->state == CALLER_STRANGER) {
        if (frame->type != AGENT_HELLO || !take_hello(a, caller, &frame->body))
            return false;
        result = AGENT_TAKEN;
    } else if (frame->type == AGENT_STATUS) {
        result = take_status(&frame->body);
    } else if (frame->type == AGENT_SAY) {
        result = take_line(a, &frame->body);
    }
    answer(caller, frame->type, result);
    caller->until = now_ms() + KNOWN_MS;
    return true;
}

/* @return whether the caller may stay */
static bool take_frames(struct agent *a, struct caller *caller)
{
    size_t at = 0;
    for (;;) {
        struct agent_frame frame;
        size_t max = caller->state == CALLER_STRANGER ? AGENT_STRANGER_MAX : AGENT_FRAME_MAX;
        int found = agent_frame_read(caller->in.data + at, caller->in.len - at, max, &frame);
        if (found < 0 || (found > 0 && !take_frame(a, caller, &frame)))
            return false;
        if (found == 0)
            break;
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
        cut(caller);
}

/* ---- the loop ---- */

/* A place for the next caller: a free one, or that of the stranger who has it for longest. */
static struct caller *find_place(struct agent *a)
{
    struct caller *oldest = NULL;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &a->callers[i];
        if (caller->fd < 0)
            return caller;
        if (caller->state == CALLER_STRANGER && (oldest == NULL || caller->until < oldest->until))
            oldest = caller;
    }
    return oldest;
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
        cut(place);
    *place = (struct caller){.fd = fd, .until = now_ms() + STRANGER_MS};
}

/* Cuts off the callers whose time is over. @return ms until the next one has, or -1 */
static int look_at_clock(struct agent *a)
{
    int64_t now = now_ms(), first = a->accept_at > now ? a->accept_at : INT64_MAX;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &a->callers[i];
        if (caller->fd >= 0 && caller->until <= now)
            cut(caller);
        else if (caller->fd >= 0 && caller->until < first)
            first = caller->until;
    }
    return first == INT64_MAX ? -1 : (int)(first - now);
}

/* The thread. */
static void *run(void *arg)
{
    struct agent *a = arg;
    for (;;) {
        struct pollfd fds[2 + CALLERS_MAX] = {{a->stop, POLLIN, 0}, {-1, POLLIN, 0}};
        int ms = look_at_clock(a);
        if (a->accept_at <= now_ms())
            fds[1].fd = a->listener;
        for (int i = 0; i < CALLERS_MAX; i++)
            fds[2 + i] = (struct pollfd){a->callers[i].fd, POLLIN, 0};
        if (poll(fds, 2 + CALLERS_MAX, ms) < 0)
            continue;
        /* what was said before the end counts */
        for (int i = 0; i < CALLERS_MAX; i++)
            if (fds[2 + i].revents)
                caller_ready(a, &a->callers[i]);
        if (fds[0].revents)
            return NULL;
        if (fds[1].revents)
            take_caller(a);
    }
}

/* ---- its life ---- */

/* Tries the ports of SrunPortRange from a random one on, or lets the kernel choose. IPv6's sockets
 * take IPv4's callers, too. @return 0 or an error number */
static int listen_somewhere(int family, int *listener)
{
    const uint16_t *range = slurm_abi_srun_ports();
    uint32_t first = range != NULL ? range[0] : 0, n = range != NULL ? range[1] - first + 1U : 1;
    uint32_t random = 0;
    int off = 0, error = EADDRINUSE;
    if (getrandom(&random, sizeof random, 0) < 0)
        return errno;
    for (uint32_t i = 0; i < n && error == EADDRINUSE; i++) {
        uint16_t port = htons((uint16_t)(first + (random + i) % n));
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
        const void *address = family == AF_INET6 ? (void *)&six : (void *)&four;
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return errno;
        if (family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, address, family == AF_INET6 ? sizeof six : sizeof four) == 0 &&
            listen(fd, BACKLOG) == 0) {
            *listener = fd;
            return 0;
        }
        error = errno;
        close(fd);
    }
    return error;
}

static int describe(struct agent *a, const struct slurm_abi_step_id *step)
{
    struct sockaddr_in6 address; /* the port lies alike in both families */
    socklen_t len = sizeof address;
    if (getsockname(a->listener, (struct sockaddr *)&address, &len) < 0 ||
        getrandom(a->self.secret, sizeof a->self.secret, 0) != sizeof a->self.secret)
        return errno;
    snprintf(a->self.port, sizeof a->self.port, "%u", ntohs(address.sin6_port));
    snprintf(a->self.label, sizeof a->self.label, "%u.%u", step->job_id, step->step_id);
    return 0;
}

static void free_agent(struct agent *a)
{
    for (int i = 0; i < CALLERS_MAX; i++)
        if (a->callers[i].fd >= 0)
            cut(&a->callers[i]);
    if (a->listener >= 0)
        close(a->listener);
    if (a->stop >= 0)
        close(a->stop);
    free(a);
}

static int start_thread(struct agent *a)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = pthread_create(&a->thread, NULL, run, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* @return NULL with the reason in errno */
static struct agent *start(const struct slurm_abi_step_id *step)
{
    struct agent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->listener = -1;
    for (int i = 0; i < CALLERS_MAX; i++)
        a->callers[i].fd = -1;
    a->stop = eventfd(0, EFD_CLOEXEC);
    int rc = a->stop < 0 ? errno : listen_somewhere(AF_INET6, &a->listener);
    if (rc != 0 && a->stop >= 0)
        rc = listen_somewhere(AF_INET, &a->listener);
    if (rc == 0)
        rc = describe(a, step);
    if (rc == 0)
        rc = start_thread(a);
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

/* A thread that waits for a munged that hangs ends with the process. */
/* A plugin that is unloaded takes the code along that this thread runs. */
static bool stay_loaded(void)
{
    Dl_info info;
    return dladdr((void *)(uintptr_t)stay_loaded, &info) != 0 &&
           dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

static void stop(struct agent *a)
{
    uint64_t one = 1;
    if (write(a->stop, &one, sizeof one) < 0)
        log_debug("eventfd: %s", strerror(errno));
    if (join_until(a->thread, now_ms() + STOP_MS))
        free_agent(a);
    else if (stay_loaded()) /* munged does not answer it */
        pthread_detach(a->thread);
    else
        pthread_join(a->thread, NULL);
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
