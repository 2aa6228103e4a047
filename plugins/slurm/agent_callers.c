/* SPDX-License-Identifier: BSD-3-Clause */
/* Those who call the agent in srun: their states, their frames and their time. */
#include "plugins/slurm/agent_callers.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STRANGER_MS = 5000,
    KNOWN_MS = 30000,
    ACCEPT_MS = 100, /* until the next try, when there are no descriptors */
    READ_BYTES = 4096,
    LAST_MS = 1000,      /* for strangers, once srun ends */
    LAST_WORD_MS = 2000, /* for greeted callers, once srun ends */
};

static void cut(struct callers *c, struct caller *caller)
{
    uint64_t id = caller->id;
    close(caller->fd);
    agent_line_close(&caller->line);
    wire_out_free(&caller->in);
    wire_out_free(&caller->out);
    *caller = (struct caller){.fd = -1};
    c->hooks.gone(c->hooks.arg, id);
}

/* ---- what they are told ---- */

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

void callers_tell(struct callers *c, uint64_t id, const struct wire_out *frame)
{
    for (int i = 0; i < CALLERS_MAX; i++)
        if (c->all[i].fd >= 0 && c->all[i].id == id)
            send_frame(&c->all[i], frame);
}

/* ---- what they say ---- */

/* Slurmstepd's line, and its answer. @return false: that was all */
static bool take_cause(struct callers *c, struct caller *caller, struct agent_frame *frame)
{
    struct agent_frame line = *frame;
    struct wire_out payload = {0};
    unsigned char taken[SEAL_PROOF];
    if (agent_hello_cause(&c->hellos, c->self, &frame->body, &payload, &line.body, taken) &&
        c->hooks.take(c->hooks.arg, caller->id, &line) == AGENT_TAKEN) {
        wire_put_raw(&caller->out, taken, sizeof taken);
        if (!caller->out.failed)
            send_out(caller);
    }
    wire_out_free(&payload);
    return false;
}

/* @return whether the caller may stay */
static bool take_hello(struct callers *c, struct caller *caller, struct agent_frame *frame)
{
    if (frame->type == AGENT_CAUSE)
        return take_cause(c, caller, frame);
    if (frame->type != AGENT_HELLO ||
        !agent_hello_take(&c->hellos, c->self, &frame->body, &caller->line, &caller->out))
        return false;
    caller->state = CALLER_GREETED;
    caller->until = now_ms() + (c->stopping ? LAST_WORD_MS : KNOWN_MS);
    if (!caller->out.failed)
        send_out(caller);
    return !caller->out.failed;
}

/* Of a greeted or known caller. @return whether it may stay */
static bool take_frame(struct callers *c, struct caller *caller, struct agent_frame *frame)
{
    caller->state = CALLER_KNOWN;
    enum agent_result result = c->hooks.take(c->hooks.arg, caller->id, frame);
    answer(caller, frame->type, result);
    if (result == AGENT_TAKEN)
        c->hooks.taken(c->hooks.arg, caller->id, frame);
    caller->until = now_ms() + KNOWN_MS;
    return !caller->out.failed;
}

/* @return whether the caller may stay */
static bool take_frames(struct callers *c, struct caller *caller)
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
            !(stranger ? take_hello(c, caller, &frame) : take_frame(c, caller, &frame)))
            return false;
        at += frame.len;
    }
    memmove(caller->in.data, caller->in.data + at, caller->in.len - at);
    caller->in.len -= at;
    return true;
}

static void caller_ready(struct callers *c, struct caller *caller)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(caller->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        wire_put_raw(&caller->in, bytes, (size_t)n);
    if (n <= 0 || caller->in.failed || !take_frames(c, caller))
        cut(c, caller);
}

/* ---- their coming and going ---- */

/* @return a place for the next caller: a free one, or that of the stranger that has waited longest;
 * NULL: there is neither */
static struct caller *find_place(struct callers *c)
{
    struct caller *oldest = NULL, *free = NULL;
    unsigned strangers = 0;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &c->all[i];
        if (caller->fd < 0) {
            free = caller;
            continue;
        }
        if (caller->state != CALLER_STRANGER)
            continue;
        strangers++;
        if (oldest == NULL || caller->id < oldest->id)
            oldest = caller;
    }
    return free != NULL && strangers < STRANGERS_MAX ? free : oldest;
}

/* A stranger is heard before it gives way: it may be of this step, and its HELLO may have come
 * since callers_ready(). @return as find_place(), a free one */
static struct caller *make_place(struct callers *c)
{
    struct caller *place;
    while ((place = find_place(c)) != NULL && place->fd >= 0) {
        caller_ready(c, place);
        if (place->fd >= 0 && place->state == CALLER_STRANGER)
            cut(c, place);
    }
    return place;
}

static void take_caller(struct callers *c)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            c->accept_at = now_ms() + ACCEPT_MS;
        return;
    }
    struct caller *place = make_place(c);
    if (place == NULL) { /* all are our own, and each speaks */
        close(fd);
        return;
    }
    agent_keep_alive(fd);
    *place = (struct caller){.fd = fd,
                             .id = ++c->last_id,
                             .until = c->stopping ? c->last_until : now_ms() + STRANGER_MS};
}

void callers_poll(const struct callers *c, struct pollfd *fds)
{
    fds[0] = (struct pollfd){c->accept_at <= now_ms() ? c->listener : -1, POLLIN, 0};
    for (int i = 0; i < CALLERS_MAX; i++)
        fds[1 + i] =
            (struct pollfd){c->all[i].fd, POLLIN | (c->all[i].out.len > 0 ? POLLOUT : 0), 0};
}

void callers_ready(struct callers *c, const struct pollfd *fds)
{
    for (int i = 0; i < CALLERS_MAX; i++) {
        if (fds[1 + i].revents & POLLOUT)
            send_out(&c->all[i]);
        if (fds[1 + i].revents & ~POLLOUT)
            caller_ready(c, &c->all[i]);
    }
}

bool callers_accept(struct callers *c, const struct pollfd *fds)
{
    if (fds[0].revents)
        take_caller(c);
    return fds[0].revents != 0;
}

int64_t callers_next(const struct callers *c, int64_t now)
{
    int64_t next = c->accept_at > now ? c->accept_at : INT64_MAX;
    for (int i = 0; i < CALLERS_MAX; i++) {
        const struct caller *caller = &c->all[i];
        if (caller->fd >= 0 && caller->until < next && !c->hooks.keeps(c->hooks.arg, caller->id))
            next = caller->until;
    }
    return next;
}

void callers_tick(struct callers *c, int64_t now)
{
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &c->all[i];
        if (caller->fd >= 0 && caller->until <= now && !c->hooks.keeps(c->hooks.arg, caller->id))
            cut(c, caller);
    }
}

/* ---- their life ---- */

int callers_open(struct callers *c, const struct callers_hooks *hooks,
                 const struct agent_address *self)
{
    *c = (struct callers){.hooks = *hooks, .self = self, .listener = -1};
    for (int i = 0; i < CALLERS_MAX; i++)
        c->all[i].fd = -1;
    return agent_listen(&c->listener);
}

void callers_stop(struct callers *c)
{
    c->stopping = true;
    c->last_until = now_ms() + LAST_MS;
    for (int i = 0; i < CALLERS_MAX; i++) {
        struct caller *caller = &c->all[i];
        int64_t last = caller->state == CALLER_STRANGER ? c->last_until : now_ms() + LAST_WORD_MS;
        if (caller->state != CALLER_KNOWN && caller->until > last)
            caller->until = last;
    }
}

bool callers_are_awaited(const struct callers *c)
{
    for (int i = 0; i < CALLERS_MAX; i++)
        if (c->all[i].fd >= 0 && c->all[i].state != CALLER_KNOWN)
            return true;
    return false;
}

void callers_close(struct callers *c)
{
    for (int i = 0; i < CALLERS_MAX; i++)
        if (c->all[i].fd >= 0)
            cut(c, &c->all[i]);
    agent_hello_free(&c->hellos);
    if (c->listener >= 0)
        close(c->listener);
}
