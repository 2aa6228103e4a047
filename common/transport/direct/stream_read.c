/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a connection, and reads records. A frame that is one record is handed up from where it was
 * read to. Memory for a longer one is taken with its first record, and the others are deciphered
 * into it. */
#include "common/transport/direct/stream_private.h"

#include "common/util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READS = 16,            /* until other events have their turn */
    STOOD_STILL_MS = 1000, /* the loop is never that late while it runs */
};

static const char FORGED[] = "something that it has not written came in its name";

/* @p n more bytes of a frame are in their place. */
static void advance(struct stream *s, size_t n)
{
    struct shared_bytes *body = s->body;
    s->got += n;
    if (s->got < body->len)
        return;
    s->env->seal->destroy(s->seal_apart);
    s->seal_apart = NULL;
    s->body = NULL;
    s->env->receive(s->env->arg, s, body->data, body->len, body);
    shared_bytes_drop(body);
}

/* A frame of several records begins. */
static void begin_frame(struct stream *s, const struct record *record, const unsigned char *part,
                        size_t n)
{
    s->got = 0;
    s->body = shared_bytes_take(malloc(record->whole), record->whole);
    if (record->apart > 0) {
        s->seal_apart = s->env->seal->with_key(part, SEAL_ACCEPTOR);
        part += SEAL_SECRET;
        n -= SEAL_SECRET;
    }
    if (s->body == NULL || (record->apart > 0 && s->seal_apart == NULL)) {
        stream_cut(s, OUT_OF_MEMORY);
        return;
    }
    memcpy(s->body->data, part, n);
    advance(s, n);
}

/* Takes the first record of a frame, or a BYE. */
static void take(struct stream *s, const struct seal_record *sealed)
{
    const unsigned char *part = sealed->body + RECORD_HEAD;
    struct record r;
    size_t n = sealed->body_len - RECORD_HEAD;
    if (sealed->body_len < RECORD_HEAD || !record_read(sealed->body, n, &r))
        stream_cut(s, FORGED);
    else if (r.whole == 0)
        stream_end(s, STREAM_ENDED, NULL);
    else if (r.whole == n && r.apart == 0)
        s->env->receive(s->env->arg, s, part, n, NULL);
    else
        begin_frame(s, &r, part, n);
}

/* Reads the next record, whose body has a known length unless it is a frame's first. @return as of
 * seal_ops::read() */
static int read_next(struct stream *s, unsigned char *p, size_t len, struct seal_record *record)
{
    const struct seal_ops *ops = s->env->seal;
    if (s->body == NULL)
        return ops->read(s->seal, p, len, RECORD_HEAD + RECORD_PART, NULL, record);
    struct seal_place place = {.to = s->body->data + s->got, .room = s->body->len - s->got};
    size_t want = record_part(place.room);
    int found =
        ops->read(s->seal_apart != NULL ? s->seal_apart : s->seal, p, len, want, &place, record);
    return found > 0 && record->body_len != want ? -1 : found;
}

/* Takes all records that have come as a whole. @return how many bytes these are */
static size_t consume(struct stream *s, unsigned char *p, size_t len)
{
    size_t used = 0;
    s->used = now_ms();
    while (s->state == STREAM_OPEN) {
        struct seal_record record;
        int found = read_next(s, p + used, len - used, &record);
        if (found == 0)
            break;
        if (found < 0) {
            stream_cut(s, FORGED);
            break;
        }
        used += record.len;
        if (s->body != NULL)
            advance(s, record.body_len);
        else
            take(s, &record);
    }
    return used;
}

static void await_part(struct stream *s)
{
    s->part_by = now_ms() + STREAM_PART_MS;
    timer_at(&s->part, s->have > 0 ? s->part_by : 0);
}

/* Keeps the beginning of a record until more of it comes. */
static void keep(struct stream *s, const unsigned char *p, size_t len)
{
    free(s->kept);
    s->kept = len > 0 ? malloc(len) : NULL;
    s->have = s->kept != NULL ? len : 0;
    if (s->have > 0)
        memcpy(s->kept, p, len);
    else if (len > 0)
        stream_cut(s, OUT_OF_MEMORY);
    await_part(s);
}

/* @param len of what there is of a record, before which nothing is read
 * @return bytes that were read; -1: nothing more is to be done */
static ssize_t read_some(struct stream *s, size_t len)
{
    ssize_t got = read(s->fd, s->env->room + len, STREAM_ROOM - len);
    if (got > 0)
        return got;
    if (got == 0 || errno == ECONNRESET)
        stream_end(s, STREAM_CLOSED, "it has closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
        stream_cut(s, strerror(errno));
    else if (s->broken != 0)
        stream_cut(s, strerror(s->broken));
    return -1;
}

static void read_records(struct stream *s)
{
    for (int i = 0; i < READS && s->state == STREAM_OPEN; i++) {
        unsigned char *room = s->env->room;
        ssize_t n = read_some(s, s->have);
        if (n < 0)
            return;
        if (s->have > 0)
            memcpy(room, s->kept, s->have);
        size_t len = s->have + (size_t)n, used = consume(s, room, len);
        if (s->state == STREAM_OPEN)
            keep(s, room + used, len - used);
        if (len < STREAM_ROOM)
            return; /* that was all */
    }
}

static void on_part(void *arg, struct timer *timer)
{
    struct stream *s = arg;
    int64_t late = now_ms() - s->part_by;
    read_records(s); /* it may be there */
    if (s->state != STREAM_OPEN || timer_runs(timer) || s->have == 0)
        return;
    if (late < STOOD_STILL_MS)
        stream_cut(s, "the rest of a message does not come, or it was changed on its way");
    else /* this server stood still, as when it was stopped */
        await_part(s);
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)fd, (void)what;
    if (s->state == STREAM_OPEN)
        read_records(s);
    if (s->state != STREAM_OPEN)
        s->env->ended(s->env->arg, s, s->why);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)fd, (void)what;
    stream_write(s); /* the event is not pending any more */
}

struct stream *stream_new(const struct stream_env *env, struct event_base *base, int fd,
                          struct seal *seal, void *owner)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        env->seal->destroy(seal);
        env->sockets->close(fd);
        return NULL;
    }
    s->env = env;
    s->owner = owner;
    s->fd = fd;
    s->seal = seal;
    s->used = now_ms();
    timer_init(&s->part, env->timers, on_part, s);
    s->read = event_new(base, fd, EV_READ | EV_PERSIST, on_read, s);
    s->write = event_new(base, fd, EV_WRITE, on_write, s);
    if (s->read != NULL && s->write != NULL && event_add(s->read, NULL) == 0)
        return s;
    stream_free(s);
    return NULL;
}
