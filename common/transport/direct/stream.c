/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a connection, what it writes, and its deadlines. */
#include "common/transport/direct/stream_private.h"

#include "common/util/clock.h"
#include "common/util/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
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

static void outgoing_free(struct outgoing *list)
{
    while (list != NULL) {
        struct outgoing *next = list->next;
        free(list->data);
        shared_bytes_drop(list->body);
        free(list);
        list = next;
    }
}

size_t outgoing_len(const struct outgoing *frame)
{
    return frame->len + (frame->body != NULL ? frame->body->len : 0);
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
    outgoing_free(s->pending);
    shared_bytes_drop(s->body);
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
    s->pending = s->unwritten = NULL;
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

/* The digest of a frame; that of its shared end is made once, for all whom it goes to. */
static void digest(const struct stream *s, const struct outgoing *o, struct record *record)
{
    const unsigned char *key = s->env->own->body;
    struct shared_bytes *body = o->body;
    record->len = (uint32_t)outgoing_len(o);
    if (body == NULL) {
        record_digest(key, o->data, o->len, NULL, 0, NULL, record->digest);
        return;
    }
    if (!body->tagged)
        mac_of_body(key, body->data, body->len, body->tag);
    body->tagged = true;
    record->shared = (uint32_t)body->len;
    record_digest(key, o->data, o->len, body->data, body->len, body->tag, record->digest);
}

/* Begins the next record. @return false: there is none */
static bool next_head(struct stream *s)
{
    struct record record = {.kind = RECORD_ACK, .hurry = s->ask, .taken = s->taken};
    const struct outgoing *o = s->unwritten;
    bool bye = s->state == STREAM_SAYING || s->state == STREAM_ANSWERING;
    if (o != NULL) {
        record.kind = RECORD_DATA;
        record.hurry = s->hurry;
        digest(s, o, &record);
    } else if (bye) {
        record.kind = RECORD_BYE;
    } else if (!s->ack && !s->ask) {
        return false;
    }
    record_seal(&s->session, &record, s->out);
    s->heading = record.kind;
    s->at = 0;
    s->ack = s->ask = false;
    s->ack_by = 0;
    s->untold = 0;
    return true;
}

/* A record is written. */
static void wrote(struct stream *s)
{
    if (s->heading == RECORD_DATA) {
        s->unwritten = s->unwritten->next;
        s->written++;
    } else if (s->heading == RECORD_BYE) {
        stream_move(s, STREAM_WRITE);
    }
    s->heading = 0;
}

/* Adds those bytes of a part that are not written. @param done how many of the record are
 * @param at where the part begins in it @return where it ends */
static size_t put_part(struct msghdr *msg, void *data, size_t len, size_t done, size_t at)
{
    if (done < at + len && len > 0) {
        size_t skip = done > at ? done - at : 0;
        msg->msg_iov[msg->msg_iovlen++] = (struct iovec){(char *)data + skip, len - skip};
    }
    return at + len;
}

/* Writes what the socket takes of the record that has begun. @param len its bytes */
static ssize_t write_some(struct stream *s, size_t *len)
{
    const struct outgoing *o = s->heading == RECORD_DATA ? s->unwritten : NULL;
    struct iovec iov[3];
    struct msghdr msg = {.msg_iov = iov};
    *len = put_part(&msg, s->out, RECORD_HEAD, s->at, 0);
    if (o != NULL)
        *len = put_part(&msg, o->data, o->len, s->at, *len);
    if (o != NULL && o->body != NULL)
        *len = put_part(&msg, o->body->data, o->body->len, s->at, *len);
    return s->env->sockets->sendmsg(s->fd, &msg);
}

void stream_write(struct stream *s)
{
    while (s->state < STREAM_SHUT && (s->heading != 0 || next_head(s))) {
        size_t len;
        ssize_t n = write_some(s, &len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            s->full = errno == EAGAIN;
            event_add(s->write, NULL);
            return;
        }
        if (n < 0) { /* the last words of the peer are read first */
            s->broken = errno;
            event_active(s->read, EV_READ, 0);
            return;
        }
        s->at += (size_t)n;
        if (s->full && s->progress_by != 0) /* the peer's kernel has made room */
            s->progress_by = now_ms() + PROGRESS_MS;
        s->full = false;
        if (s->at == len)
            wrote(s);
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
    if (s->unwritten == NULL)
        s->unwritten = frame;
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
    s->end_by = now_ms() + BYE_MS;
    timer_sooner(&s->due, s->end_by);
    stream_write(s);
}

void stream_bye_came(struct stream *s)
{
    s->ack = true;
    if (s->state == STREAM_OPEN) {
        s->end_by = now_ms() + BYE_MS;
        timer_sooner(&s->due, s->end_by);
    }
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
    if (taken < s->acked || taken > s->written)
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
