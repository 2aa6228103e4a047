/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello    u32 protocol, u64 step, u32 from, u32 to, 65 point, 32 proof
 * welcome  65 point, 32 proof
 */
#include "common/transport/direct/hello.h"

#include "common/transport/frame.h"
#include "common/transport/wire.h"

#include <string.h>

enum { POINT_AT = 20, PROOF_AT = POINT_AT + SEAL_POINT };

_Static_assert(sizeof(struct talk) == CHALLENGE_BYTES + HELLO_BYTES + WELCOME_BYTES,
               "proofs are made of its bytes");

/* Of a talk up to the proof that is made, and up to the points, on which the keys depend by
 * themselves. */
enum {
    UP_TO_POINTS = CHALLENGE_BYTES + POINT_AT,
    UP_TO_HELLO = CHALLENGE_BYTES + PROOF_AT,
    UP_TO_WELCOME = CHALLENGE_BYTES + HELLO_BYTES + SEAL_POINT,
};

bool identity_prove(const struct identity *own, const unsigned char key[SEAL_SECRET],
                    const char *use, const void *data, size_t len, unsigned char *proof)
{
    struct wire_out text = {0};
    wire_put_str(&text, use);
    wire_put_raw(&text, data, len);
    bool good = !text.failed && own->seal->prove(key, SEAL_SECRET, text.data, text.len, proof);
    wire_out_free(&text);
    return good;
}

static bool proves(const struct identity *own, const unsigned char key[SEAL_SECRET],
                   const char *use, const void *data, size_t len, const unsigned char *proof)
{
    unsigned char right[SEAL_PROOF];
    return identity_prove(own, key, use, data, len, right) &&
           own->seal->is_same(right, proof, sizeof right);
}

static void put_names(const struct identity *own, uint32_t to, unsigned char *hello)
{
    struct wire_out out = {0};
    wire_put_u32(&out, FRAME_PROTOCOL);
    wire_put_u64(&out, own->step);
    wire_put_u32(&out, own->self);
    wire_put_u32(&out, to);
    if (!out.failed)
        memcpy(hello, out.data, POINT_AT);
    wire_out_free(&out);
}

struct seal *hello_write(const struct identity *own, uint32_t to,
                         const unsigned char key[SEAL_SECRET], struct talk *talk)
{
    memset(talk->hello, 0, sizeof talk->hello);
    put_names(own, to, talk->hello);
    struct seal *seal = own->seal->create(talk->hello + POINT_AT);
    if (seal != NULL &&
        identity_prove(own, key, "muster hello", talk, UP_TO_HELLO, talk->hello + PROOF_AT))
        return seal;
    own->seal->destroy(seal);
    return NULL;
}

bool hello_read(const struct identity *own, const struct talk *talk, uint32_t *from)
{
    struct wire_in in;
    wire_in_init(&in, talk->hello, POINT_AT);
    bool good = wire_get_u32(&in) == FRAME_PROTOCOL;
    good &= wire_get_u64(&in) == own->step;
    *from = wire_get_u32(&in);
    good &= wire_get_u32(&in) == own->self && *from != own->self;
    return good && proves(own, own->key, "muster hello", talk, UP_TO_HELLO, talk->hello + PROOF_AT);
}

struct seal *welcome_write(const struct identity *own, struct talk *talk)
{
    struct seal *seal = own->seal->create(talk->welcome);
    if (seal != NULL &&
        own->seal->agree(seal, SEAL_ACCEPTOR, talk->hello + POINT_AT, own->key, SEAL_SECRET, talk,
                         UP_TO_POINTS) &&
        identity_prove(own, own->key, "muster welcome", talk, UP_TO_WELCOME,
                       talk->welcome + SEAL_POINT))
        return seal;
    own->seal->destroy(seal);
    return NULL;
}

bool welcome_read(const struct identity *own, const unsigned char key[SEAL_SECRET],
                  const struct talk *talk, struct seal *seal)
{
    return proves(own, key, "muster welcome", talk, UP_TO_WELCOME, talk->welcome + SEAL_POINT) &&
           own->seal->agree(seal, SEAL_CALLER, talk->welcome, key, SEAL_SECRET, talk, UP_TO_POINTS);
}
