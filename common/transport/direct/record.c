/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello    u32 protocol, u64 step, u32 from, u32 to, 16 nonce, 16 masked key of bodies, 16 tag
 * welcome  16 masked key of bodies, 16 tag
 * head     u32 length, u32 shared, u32 kind and flag, u64 taken, 16 digest, 16 tag
 */
#include "common/transport/direct/record.h"

#include "common/transport/frame.h"

#include <endian.h>
#include <string.h>

enum { NONCE_AT = 20, MASKED_AT = 36, HELLO_TAG_AT = 52, HEAD_TAG_AT = 36, HURRY = 1 << 8 };

static void put32(unsigned char *at, uint32_t v)
{
    v = htobe32(v);
    memcpy(at, &v, sizeof v);
}

static void put64(unsigned char *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return be32toh(v);
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return be64toh(v);
}

/* A key of its own for each use, named by a word of 8 letters. */
static void derive(const unsigned char key[MAC_KEY], const char *use, unsigned char out[MAC_KEY])
{
    mac_of(key, use, strlen(use), out);
}

static void mask(const unsigned char a[MAC_KEY], const unsigned char b[MAC_KEY],
                 unsigned char out[MAC_KEY])
{
    for (int i = 0; i < MAC_KEY; i++)
        out[i] = a[i] ^ b[i];
}

/* The session follows from the acceptor's key, both random numbers and both servers. */
static void make_session(const unsigned char key[MAC_KEY],
                         const unsigned char challenge[CHALLENGE_BYTES],
                         const unsigned char hello[HELLO_BYTES], bool acceptor,
                         struct session *session)
{
    unsigned char mixed[CHALLENGE_BYTES + MASKED_AT], root[MAC_KEY], base[MAC_KEY];
    memcpy(mixed, challenge, CHALLENGE_BYTES);
    memcpy(mixed + CHALLENGE_BYTES, hello, MASKED_AT);
    *session = (struct session){0};
    derive(key, "session", base);
    mac_of(base, mixed, sizeof mixed, root);
    derive(root, "acceptor", acceptor ? session->out : session->in);
    derive(root, "connector", acceptor ? session->in : session->out);
    derive(root, "acceptor's body", acceptor ? session->mask_out : session->mask_in);
    derive(root, "connector's body", acceptor ? session->mask_in : session->mask_out);
}

static void tag_hello(const unsigned char key[MAC_KEY],
                      const unsigned char challenge[CHALLENGE_BYTES],
                      const unsigned char hello[HELLO_BYTES], unsigned char tag[MAC_TAG])
{
    unsigned char said[CHALLENGE_BYTES + HELLO_TAG_AT], base[MAC_KEY];
    memcpy(said, challenge, CHALLENGE_BYTES);
    memcpy(said + CHALLENGE_BYTES, hello, HELLO_TAG_AT);
    derive(key, "hello", base);
    mac_of(base, said, sizeof said, tag);
}

bool hello_write(const struct identity *own, uint32_t to, const unsigned char key[MAC_KEY],
                 const unsigned char challenge[CHALLENGE_BYTES], unsigned char hello[HELLO_BYTES],
                 struct session *session)
{
    put32(hello, FRAME_PROTOCOL);
    put64(hello + 4, own->step);
    put32(hello + 12, own->self);
    put32(hello + 16, to);
    if (!mac_random(hello + NONCE_AT, MASKED_AT - NONCE_AT))
        return false;
    make_session(key, challenge, hello, false, session);
    mask(own->body, session->mask_out, hello + MASKED_AT);
    tag_hello(key, challenge, hello, hello + HELLO_TAG_AT);
    return true;
}

bool hello_read(const struct identity *own, const unsigned char challenge[CHALLENGE_BYTES],
                const unsigned char hello[HELLO_BYTES], uint32_t *from, struct session *session)
{
    unsigned char tag[MAC_TAG];
    tag_hello(own->key, challenge, hello, tag);
    *from = get32(hello + 12);
    if (!mac_same(tag, hello + HELLO_TAG_AT) || get32(hello) != FRAME_PROTOCOL ||
        get64(hello + 4) != own->step || get32(hello + 16) != own->self || *from == own->self)
        return false;
    make_session(own->key, challenge, hello, true, session);
    mask(hello + MASKED_AT, session->mask_in, session->body_in);
    return true;
}

static void tag_welcome(const unsigned char key[MAC_KEY], const unsigned char *masked,
                        unsigned char tag[MAC_TAG])
{
    unsigned char base[MAC_KEY];
    derive(key, "welcome", base);
    mac_of(base, masked, MAC_KEY, tag);
}

void welcome_write(const struct identity *own, const struct session *session,
                   unsigned char welcome[WELCOME_BYTES])
{
    mask(own->body, session->mask_out, welcome);
    tag_welcome(session->out, welcome, welcome + MAC_KEY);
}

bool welcome_read(struct session *session, const unsigned char welcome[WELCOME_BYTES])
{
    unsigned char tag[MAC_TAG];
    tag_welcome(session->in, welcome, tag);
    mask(welcome, session->mask_in, session->body_in);
    return mac_same(tag, welcome + MAC_KEY);
}

void record_digest(const unsigned char key[MAC_KEY], const void *first, size_t nfirst,
                   const void *shared, size_t nshared, const unsigned char *of_shared,
                   unsigned char digest[MAC_TAG])
{
    unsigned char tags[2 * MAC_TAG];
    if (nshared == 0) {
        mac_of_body(key, first, nfirst, digest);
        return;
    }
    mac_of_body(key, first, nfirst, tags);
    if (of_shared != NULL)
        memcpy(tags + MAC_TAG, of_shared, MAC_TAG);
    else
        mac_of_body(key, shared, nshared, tags + MAC_TAG);
    mac_of(key, tags, sizeof tags, digest);
}

/* The number is not sent: both ends count. */
static void tag_head(const unsigned char key[MAC_KEY], uint64_t number,
                     const unsigned char head[RECORD_HEAD], unsigned char tag[MAC_TAG])
{
    unsigned char said[8 + HEAD_TAG_AT];
    put64(said, number);
    memcpy(said + 8, head, HEAD_TAG_AT);
    mac_of(key, said, sizeof said, tag);
}

void record_seal(struct session *session, const struct record *record,
                 unsigned char head[RECORD_HEAD])
{
    put32(head, record->len);
    put32(head + 4, record->shared);
    put32(head + 8, (uint32_t)record->kind | (record->hurry ? HURRY : 0));
    put64(head + 12, record->taken);
    memcpy(head + 20, record->digest, MAC_TAG);
    tag_head(session->out, session->nout++, head, head + HEAD_TAG_AT);
}

bool record_open(struct session *session, const unsigned char head[RECORD_HEAD],
                 struct record *record)
{
    unsigned char tag[MAC_TAG];
    uint32_t kind = get32(head + 8);
    tag_head(session->in, session->nin, head, tag);
    if (!mac_same(tag, head + HEAD_TAG_AT))
        return false;
    session->nin++;
    record->len = get32(head);
    record->shared = get32(head + 4);
    record->hurry = kind & HURRY;
    kind &= ~(uint32_t)HURRY;
    record->kind = (enum record_kind)kind;
    record->taken = get64(head + 12);
    memcpy(record->digest, head + 20, MAC_TAG);
    return kind >= RECORD_DATA && kind < RECORD_KINDS && record->len <= RECORD_MAX &&
           record->shared <= record->len && (record->len > 0) == (kind == RECORD_DATA);
}

bool record_fits(const struct session *session, const struct record *record, const void *body)
{
    unsigned char digest[MAC_TAG];
    size_t first = record->len - record->shared;
    record_digest(session->body_in, body, first, (const unsigned char *)body + first,
                  record->shared, NULL, digest);
    return mac_same(digest, record->digest);
}
