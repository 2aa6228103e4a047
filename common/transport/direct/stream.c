/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a connection, what it writes, and its deadlines. */
#include "common/transport/direct/stream_private.h"

#include "common/util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void stream_free(struct stream *s)
{
    if (s == NULL)
        return;
    timer_stop(&s->part);
    if (s->read != NULL)
        event_free(s->read);
    if (s->write != NULL)
        event_free(s->write);
    s->env->sockets->close(s->fd);
    s->env->seal->destroy(s->seal);
    s->env->seal->destroy(s->seal_apart);
    outgoing_drop(s->frame);
    shared_bytes_drop(s->body);
    free(s->rest);
    free(s->kept);
    free(s);
}

void *stream_owner(const struct stream *s)
{
    return s->owner;
}

bool stream_is_open(const struct stream *s)
{
    return s->state == STREAM_OPEN;
}

int64_t stream_used(const struct stream *s)
{
    return s->used;
}

int64_t stream_moved(const struct stream *s)
{
    return s->moved;
}

bool stream_peer_closed(const struct stream *s)
{
    return s->state == STREAM_CLOSED;
}

/* The owner learns of it from the loop, because it may be in a call of ours now. */
void stream_end(struct stream *s, enum stream_state how, const char *why)
{
    if (s->state != STREAM_OPEN)
        return;
    s->state = how;
    s->why = why;
    event_active(s->read, EV_READ, 0);
}

void stream_cut(struct stream *s, const char *why)
{
    stream_end(s, STREAM_CUT, why);
}

/* ---- writing ---- */

/* Finds what is to be written next. @return its bytes; 0: there is nothing */
static size_t next_bytes(struct stream *s, unsigned char **data)
{
    if (s->rest != NULL) {
        *data = s->rest + s->rest_at;
        return s->rest_len - s->rest_at;
    }
    if (s->apart) {
        *data = s->frame->body->sealed.data + s->apart_at;
        return s->frame->body->sealed.len - s->apart_at;
    }
    *data = s->env->room + STREAM_ROOM;
    size_t len = stream_seal(s, *data);
    if (s->unsealable)
        stream_cut(s, "libcrypto does not encrypt");
    return s->unsealable ? 0 : len;
}

/* Keeps what the socket has not taken, and waits until it takes more. @param n bytes that it has
 * taken of @p data */
static void keep_rest(struct stream *s, const unsigned char *data, size_t len, size_t n)
{
    if (s->rest != NULL) {
        s->rest_at += n;
    } else if (data != s->env->room + STREAM_ROOM) {
        s->apart_at += n;
    } else {
        s->rest = malloc(len - n);
        if (s->rest == NULL) {
            stream_cut(s, OUT_OF_MEMORY);
            return;
        }
        memcpy(s->rest, data + n, len - n);
        s->rest_at = 0;
        s->rest_len = len - n;
    }
    event_add(s->write, NULL);
}

/* All of next_bytes() is written. */
static void wrote(struct stream *s, const unsigned char *data)
{
    bool rest = s->rest != NULL;
    free(s->rest);
    s->rest = NULL;
    if (!rest && data != s->env->room + STREAM_ROOM) {
        s->apart = false;
        stream_sealed(s, s->frame->body->len);
    }
}

void stream_write(struct stream *s)
{
    if (s->broken != 0 || event_pending(s->write, EV_WRITE, NULL))
        return;
    while (s->state == STREAM_OPEN) {
        unsigned char *data;
        size_t len = next_bytes(s, &data);
        if (len == 0)
            break;
        struct iovec part = {data, len};
        const struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n = s->env->sockets->sendmsg(s->fd, &msg);
        if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the peer's last words are read first */
            s->broken = errno;
            event_active(s->read, EV_READ, 0);
            return;
        }
        s->used = now_ms();
        if (n > 0 && s->full)
            s->moved = s->used;
        s->full = n >= 0 ? (size_t)n < len : errno == EAGAIN;
        if (n < 0 || (size_t)n < len) {
            keep_rest(s, data, len, n > 0 ? (size_t)n : 0);
            return;
        }
        wrote(s, data);
    }
    if (s->records >= (s->env->records > 0 ? s->env->records : STREAM_RECORDS) && s->frame == NULL)
        stream_bye(s); /* its keys have sealed their share */
}

void stream_bye(struct stream *s)
{
    struct iovec part = {s->env->room + STREAM_ROOM, 0};
    const struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (s->state != STREAM_OPEN)
        return;
    if (s->frame == NULL && s->rest == NULL && s->broken == 0)
        part.iov_len = stream_seal_bye(s, part.iov_base);
    if (part.iov_len > 0)
        s->env->sockets->sendmsg(s->fd, &msg);
    stream_end(s, STREAM_ENDED, NULL);
}
