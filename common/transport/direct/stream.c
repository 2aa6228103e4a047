/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a connection, what it writes, and its deadlines. */
#include "common/transport/direct/stream_private.h"

#include "common/util/clock.h"
#include "common/util/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PROGRESS_MS = 5000,    /* until the peer has taken something of what was sent */
    BYE_MS = 1000,         /* for the whole end */
    STOOD_STILL_MS = 1000, /* the loop is never that late while it runs */
};

static const char *const state_names[STREAM_STATES] = {
    "open", "saying", "said", "answering", "both", "shut", "ended", "cut", "closed"};
static const char *const event_names[STREAM_EVENTS] = {"say", "write", "hear", "fin",
                                                       "end", "break", "close"};

enum {
    NONE = STATES_NONE,
    SAYING = STREAM_SAYING,
    SAID = STREAM_SAID,
    ANSWERING = STREAM_ANSWERING,
    BOTH = STREAM_BOTH,
    SHUT = STREAM_SHUT,
    ENDED = STREAM_ENDED,
    CUT = STREAM_CUT,
    CLOSED = STREAM_CLOSED,
};

/* Both ends may say BYE at once. A peer that has both may end before ours could be: then it has
 * taken all, and we too. */
/* clang-format off */
static const int table[STREAM_STATES][STREAM_EVENTS] = {
    /*                     SAY     WRITE HEAR       FIN   END    BREAK CLOSE */
    [STREAM_OPEN]      = {SAYING, NONE, ANSWERING, NONE, NONE,  CUT,  CLOSED},
    [STREAM_SAYING]    = {NONE,   SAID, ANSWERING, NONE, NONE,  CUT,  CLOSED},
    [STREAM_SAID]      = {NONE,   NONE, BOTH,      NONE, NONE,  CUT,  CLOSED},
    [STREAM_ANSWERING] = {NONE,   BOTH, NONE,      NONE, NONE,  CUT,  CLOSED},
    [STREAM_BOTH]      = {NONE,   NONE, NONE,      SHUT, ENDED, CUT,  CLOSED},
    [STREAM_SHUT]      = {NONE,   NONE, NONE,      NONE, ENDED, CUT,  CLOSED},
    [STREAM_ENDED]     = {NONE,   NONE, NONE,      NONE, NONE,  NONE, NONE},
    [STREAM_CUT]       = {NONE,   NONE, NONE,      NONE, NONE,  NONE, NONE},
    [STREAM_CLOSED]    = {NONE,   NONE, NONE,      NONE, NONE,  NONE, NONE},
};
/* clang-format on */

static const struct states life = {state_names, event_names, &table[0][0], STREAM_EVENTS};

bool stream_move(struct stream *s, enum stream_event event)
{
    int to = states_next(&life, (int)s->state, (int)event, "transport: connection %d", s->fd);
    if (to != STATES_NONE)
        s->state = (enum stream_state)to;
    return to != STATES_NONE;
}

void outgoing_free(struct outgoing *list)
{
    while (list != NULL) {
        struct outgoing *next = list->next;
        free(list->data);
        shared_bytes_drop(list->body);
        free(list);
        list = next;
    }
}

void stream_free(struct stream *s)
{
    if (s == NULL)
        return;
    timer_stop(&s->due);
    if (s->read != NULL)
        event_free(s->read);
    if (s->write != NULL)
        event_free(s->write);
    s->env->sockets->close(s->fd);
    s->env->seal->destroy(s->seal);
    s->env->seal->destroy(s->seal_apart);
    outgoing_free(s->pending);
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

bool stream_peer_closed(const struct stream *s)
{
    return s->state == STREAM_CLOSED;
}

const struct outgoing *stream_pending(const struct stream *s)
{
    return s->pending;
}

struct outgoing *stream_take_pending(struct stream *s)
{
    struct outgoing *list = s->pending;
    s->pending = s->unsealed = NULL;
    s->tail = &s->pending;
    return list;
}

/* The owner learns of it from the loop, because it may be in a call of ours now. */
void stream_end(struct stream *s, enum stream_event event, const char *why)
{
    if (stream_is_over(s) || !stream_move(s, event))
        return;
    s->why = why;
    event_active(s->read, EV_READ, 0);
}

void stream_cut(struct stream *s, const char *why)
{
    stream_end(s, STREAM_BREAK, why);
}

/* ---- writing ---- */

static void begin_end(struct stream *s)
{
    s->end_by = now_ms() + BYE_MS;
    timer_sooner(&s->due, s->end_by);
}

/* Finds what is to be written next. @return its bytes; 0: there is nothing */
static size_t next_bytes(struct stream *s, unsigned char **data)
{
    if (s->rest != NULL) {
        *data = s->rest + s->rest_at;
        return s->rest_len - s->rest_at;
    }
    if (s->apart) {
        *data = s->unsealed->body->sealed.data + s->apart_at;
        return s->unsealed->body->sealed.len - s->apart_at;
    }
    *data = s->env->room + STREAM_ROOM;
    size_t len = stream_seal(s, *data);
    if (s->unsealable)
        stream_cut(s, "libcrypto does not encrypt");
    if (s->records >= (s->env->records > 0 ? s->env->records : STREAM_RECORDS) &&
        s->state == STREAM_OPEN) { /* its keys have sealed their share */
        stream_move(s, STREAM_SAY);
        begin_end(s);
    }
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
        stream_sealed(s, s->unsealed->body->len);
    }
    if (s->bye)
        stream_move(s, STREAM_WRITE);
    s->bye = false;
}

void stream_write(struct stream *s)
{
    while (s->state < STREAM_SHUT) {
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
        if (n > 0 && s->full && s->progress_by != 0) /* the peer's kernel has made room */
            s->progress_by = now_ms() + PROGRESS_MS;
        s->full = n >= 0 ? (size_t)n < len : errno == EAGAIN;
        if (n < 0 || (size_t)n < len) {
            keep_rest(s, data, len, n > 0 ? (size_t)n : 0);
            return;
        }
        wrote(s, data);
    }
    if (s->state == STREAM_BOTH && stream_move(s, STREAM_FIN)) /* what was taken has been said */
        shutdown(s->fd, SHUT_WR);
}

void stream_send(struct stream *s, struct outgoing *frame)
{
    s->used = now_ms();
    frame->next = NULL;
    *s->tail = frame;
    s->tail = &frame->next;
    if (s->unsealed == NULL)
        s->unsealed = frame;
    if (s->progress_by == 0) {
        s->progress_by = s->used + PROGRESS_MS;
        timer_sooner(&s->due, s->progress_by);
    }
    if (!event_pending(s->write, EV_WRITE, NULL) && s->broken == 0)
        stream_write(s);
}

void stream_bye(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    stream_move(s, STREAM_SAY);
    begin_end(s);
    stream_write(s);
}

void stream_bye_came(struct stream *s)
{
    s->ack = true;
    if (s->state == STREAM_OPEN)
        begin_end(s);
    stream_move(s, STREAM_HEAR);
    stream_write(s);
}

void stream_hurry(struct stream *s)
{
    s->hurry = true;
    if (s->pending == NULL || stream_is_over(s) || s->broken != 0)
        return;
    s->ask = true;
    stream_write(s);
}

/* ---- deadlines ---- */

/* The peer has taken what it says to have. @return false: that was not sent */
bool stream_took(struct stream *s, uint64_t taken)
{
    if (taken < s->acked || taken > s->sealed)
        return false;
    if (taken == s->acked)
        return true;
    for (; s->acked < taken; s->acked++) {
        struct outgoing *o = s->pending;
        s->pending = o->next;
        o->next = NULL;
        outgoing_free(o);
    }
    if (s->pending == NULL)
        s->tail = &s->pending;
    s->progress_by = s->pending != NULL ? now_ms() + PROGRESS_MS : 0;
    if (s->progress_by != 0)
        timer_sooner(&s->due, s->progress_by);
    return true;
}

/* A deadline that has passed while this server itself stood still, as when it was stopped, says
 * nothing of the peer. */
static bool has_passed(int64_t *by, int64_t now, int64_t more)
{
    if (*by == 0 || now < *by)
        return false;
    if (now < *by + STOOD_STILL_MS)
        return true;
    *by = now + more;
    return false;
}

void stream_on_due(void *arg, struct timer *timer)
{
    struct stream *s = arg;
    int64_t now = now_ms();
    if (s->ack_by != 0 && now >= s->ack_by) {
        s->ack = true;
        stream_write(s);
        s->ack_by = 0;
    }
    if (has_passed(&s->progress_by, now, PROGRESS_MS)) {
        s->progress_by = 0;
        stream_cut(s, "it takes nothing any more");
    }
    if (has_passed(&s->end_by, now, BYE_MS)) {
        s->end_by = 0;
        stream_cut(s, "it does not end the connection");
    }
    timer_at(timer, earlier(earlier(s->ack_by, s->progress_by), s->end_by));
}
