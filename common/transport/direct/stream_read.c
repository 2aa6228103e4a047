/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a connection, and reads records. A body that has come as a whole is handed up from where it
 * was read to; for any other one memory is taken once its head is known to be the peer's. */
#include "common/transport/direct/stream_private.h"

#include "common/util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    READS = 16,           /* until other events have their turn */
    UNTOLD_MAX = 1 << 20, /* bytes that the peer keeps for us without knowing that we have them */
};

static const char FORGED[] = "something that it has not written came in its name";

/* A record is there as a whole. @return whether the next one may be looked at */
static bool take(struct stream *s, const void *body, struct shared_bytes *whole)
{
    const struct record *r = &s->record;
    if (!stream_took(s, r->taken)) {
        stream_cut(s, "it has taken what was not sent");
        return false;
    }
    if (r->kind != RECORD_ACK && !stream_hears(s)) {
        stream_cut(s, "it sends after its goodbye");
        return false;
    }
    s->used = now_ms();
    s->ack |= r->hurry;
    if (r->kind == RECORD_DATA) {
        s->taken++;
        s->untold += r->len;
        s->ack |= s->untold > UNTOLD_MAX;
        if (s->ack_by == 0) {
            s->ack_by = s->used + STREAM_ACK_MS;
            timer_sooner(&s->due, s->ack_by);
        }
        s->env->receive(s->env->arg, s, body, r->len, whole);
    } else if (r->kind == RECORD_BYE) {
        stream_bye_came(s);
    }
    if (s->ack && s->broken == 0 && !event_pending(s->write, EV_WRITE, NULL))
        stream_write(s);
    return !stream_is_over(s);
}

static bool take_body(struct stream *s, const void *body, struct shared_bytes *whole)
{
    if (record_fits(&s->session, &s->record, body))
        return take(s, body, whole);
    stream_cut(s, FORGED);
    return false;
}

/* Room for a body of which something is missing. */
static bool begin_body(struct stream *s, const unsigned char *p, size_t len)
{
    s->body = shared_bytes_take(malloc(s->record.len), s->record.len);
    if (s->body == NULL) {
        stream_cut(s, "memory is used up here");
        return false;
    }
    memcpy(s->body->data, p, len);
    s->got = len;
    return true;
}

/* Takes all records of which the bytes have come. */
static void consume(struct stream *s, const unsigned char *p, size_t len)
{
    while (len > 0) {
        size_t n = RECORD_HEAD - s->have < len ? RECORD_HEAD - s->have : len;
        memcpy(s->in + s->have, p, n);
        s->have += n;
        p += n;
        len -= n;
        if (s->have < RECORD_HEAD)
            return;
        if (!record_open(&s->session, s->in, &s->record)) {
            stream_cut(s, FORGED);
            return;
        }
        n = s->record.len;
        if (n > len) {
            begin_body(s, p, len);
            return;
        }
        s->have = 0;
        if (n > 0 ? !take_body(s, p, NULL) : !take(s, NULL, NULL))
            return;
        p += n;
        len -= n;
    }
}

/* The rest of a body goes where its beginning is; what comes behind it, where all else goes.
 * @return bytes that were read; -1: nothing more is to be done */
static ssize_t read_some(struct stream *s, size_t *room)
{
    struct iovec iov[2];
    int n = 0;
    *room = STREAM_ROOM;
    if (s->body != NULL) {
        iov[n++] = (struct iovec){s->body->data + s->got, s->record.len - s->got};
        *room += s->record.len - s->got;
    }
    iov[n++] = (struct iovec){s->env->room, STREAM_ROOM};
    ssize_t got = readv(s->fd, iov, n);
    if (got > 0)
        return got;
    if (got == 0 && (s->state == STREAM_BOTH || s->state == STREAM_SHUT) && s->have == 0)
        stream_end(s, STREAM_END, NULL);
    else if (got == 0 || errno == ECONNRESET)
        stream_end(s, STREAM_CLOSE, "it has closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
        stream_cut(s, strerror(errno));
    else if (s->broken != 0)
        stream_cut(s, strerror(s->broken));
    return -1;
}

static void read_records(struct stream *s)
{
    for (int i = 0; i < READS && !stream_is_over(s); i++) {
        size_t room;
        ssize_t n = read_some(s, &room);
        if (n < 0)
            return;
        size_t rest = (size_t)n, more;
        if (s->body != NULL) {
            more = s->record.len - s->got < rest ? s->record.len - s->got : rest;
            s->got += more;
            rest -= more;
            if (s->got < s->record.len)
                continue;
            struct shared_bytes *body = s->body;
            s->body = NULL;
            s->have = 0;
            bool good = take_body(s, body->data, body);
            shared_bytes_drop(body);
            if (!good)
                return;
        }
        consume(s, s->env->room, rest);
        if ((size_t)n < room)
            return; /* that was all */
    }
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)fd, (void)what;
    if (!stream_is_over(s))
        read_records(s);
    if (stream_is_over(s))
        s->env->ended(s->env->arg, s, s->why);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)fd, (void)what;
    stream_write(s);
}

struct stream *stream_new(const struct stream_env *env, struct event_base *base, int fd,
                          const struct session *session, void *owner)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        env->sockets->close(fd);
        return NULL;
    }
    s->env = env;
    s->owner = owner;
    s->fd = fd;
    s->session = *session;
    s->tail = &s->pending;
    s->used = now_ms();
    timer_init(&s->due, env->timers, stream_on_due, s);
    s->read = event_new(base, fd, EV_READ | EV_PERSIST, on_read, s);
    s->write = event_new(base, fd, EV_WRITE, on_write, s);
    if (s->read != NULL && s->write != NULL && event_add(s->read, NULL) == 0)
        return s;
    stream_free(s);
    return NULL;
}
