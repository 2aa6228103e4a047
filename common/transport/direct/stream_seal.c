/* SPDX-License-Identifier: BSD-3-Clause */
/* Seals what a connection is to say next: frames in parts, and what is said without one. */
#include "common/transport/direct/stream_private.h"

#include <stdlib.h>

enum { APART_MIN = RECORD_PART /* bytes that are worth a key of their own */ };

/* Adds of @p len bytes those that are among @p n from @p from on. @param at where the bytes begin
 * @return how many parts there are */
static int put_part(struct iovec *parts, int n_parts, void *data, size_t len, size_t at,
                    size_t from, size_t n)
{
    size_t first = from > at ? from - at : 0, end = from + n < at + len ? from + n - at : len;
    if (from + n > at && first < end)
        parts[n_parts++] = (struct iovec){(char *)data + first, end - first};
    return n_parts;
}

/* Seals a record. @param head NULL: it has none @param n bytes of the frame @param to RECORD_BYTES
 * @return its bytes; 0: that cannot be done */
static size_t seal_record(struct stream *s, const struct record *head, size_t n, unsigned char *to)
{
    unsigned char bytes[RECORD_HEAD];
    struct iovec parts[4];
    const struct outgoing *o = s->frame;
    size_t len = SEAL_HEAD + SEAL_TAG;
    int n_parts = 0;
    if (head != NULL) {
        record_write(head, bytes);
        parts[n_parts++] = (struct iovec){bytes, sizeof bytes};
    }
    if (head != NULL && head->apart > 0)
        parts[n_parts++] = (struct iovec){o->body->sealed.key, SEAL_SECRET};
    if (n > 0)
        n_parts = put_part(parts, n_parts, o->data, o->len, 0, s->at, n);
    if (n > 0 && o->body != NULL)
        n_parts = put_part(parts, n_parts, o->body->data, o->body->len, o->len, s->at, n);
    for (int i = 0; i < n_parts; i++)
        len += parts[i].iov_len;
    s->unsealable = !s->env->seal->write(s->seal, parts, n_parts, to);
    return s->unsealable ? 0 : len;
}

/* Encrypts the end of a frame that goes to several servers, once for all of them. @return whether
 * that is done, and all else of the frame fits into a record */
static bool seal_apart(const struct stream *s, const struct outgoing *o)
{
    struct shared_bytes *body = o->body;
    if (body == NULL || !body->spread || body->len < APART_MIN ||
        o->len > RECORD_PART - SEAL_SECRET)
        return false;
    if (body->sealed.data != NULL)
        return true;
    const struct seal_ops *ops = s->env->seal;
    size_t most = body->len / RECORD_PART + 1, len = 0;
    unsigned char *to = malloc(body->len + most * (SEAL_HEAD + SEAL_TAG));
    bool good = to != NULL && ops->random(body->sealed.key, sizeof body->sealed.key);
    struct seal *seal = good ? ops->with_key(body->sealed.key, SEAL_CALLER) : NULL;
    good = seal != NULL;
    for (size_t at = 0, n; good && at < body->len; at += n) {
        n = record_part(body->len - at);
        good = ops->write(seal, &(struct iovec){body->data + at, n}, 1, to + len);
        len += SEAL_HEAD + n + SEAL_TAG;
    }
    ops->destroy(seal);
    if (good) {
        body->sealed.data = to;
        body->sealed.len = len;
    } else {
        free(to);
    }
    return good;
}

/* The first @p n bytes of what was left of a frame are sealed, or were before. */
void stream_sealed(struct stream *s, size_t n)
{
    s->at += n;
    if (s->at < outgoing_len(s->frame))
        return;
    outgoing_drop(s->frame);
    s->frame = NULL;
}

/* Seals the next record, if there is one. @return its bytes */
static size_t seal_next(struct stream *s, unsigned char *to)
{
    if (s->frame == NULL) {
        s->frame = s->env->next(s->env->arg, s);
        s->at = 0;
    }
    const struct outgoing *o = s->frame;
    if (o == NULL)
        return 0;
    bool apart = s->at == 0 && seal_apart(s, o);
    struct record head = {(uint32_t)outgoing_len(o), apart ? (uint32_t)o->body->len : 0};
    size_t n = apart ? o->len : record_part(outgoing_len(o) - s->at);
    size_t len = seal_record(s, s->at == 0 ? &head : NULL, n, to);
    if (len == 0)
        return 0;
    s->apart = apart;
    s->apart_at = 0;
    stream_sealed(s, n);
    s->records++;
    return len;
}

size_t stream_seal_bye(struct stream *s, unsigned char *to)
{
    return seal_record(s, &(struct record){0}, 0, to);
}

size_t stream_seal(struct stream *s, unsigned char *to)
{
    size_t len = 0, n;
    while (!s->apart && len + RECORD_BYTES <= STREAM_ROOM && (n = seal_next(s, to + len)) > 0)
        len += n;
    return len;
}
