/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * announcement  u32 protocol, u32 port, u32 count, { block address }…, block credential, 32 proof
 * secret        str "muster direct", u32 protocol, u64 step, u32 node, 32 key
 */
#include "common/transport/direct/announce.h"

#include "common/transport/frame.h"

#include <string.h>

static const char PURPOSE[] = "muster direct";

void announce_put_secret(const struct identity *own, struct wire_out *secret)
{
    wire_put_str(secret, PURPOSE);
    wire_put_u32(secret, FRAME_PROTOCOL);
    wire_put_u64(secret, own->step);
    wire_put_u32(secret, own->self);
    wire_put_raw(secret, own->key, SEAL_SECRET);
}

bool announce_get_secret(const struct identity *own, uint32_t node, const void *secret, size_t len,
                         unsigned char key[SEAL_SECRET])
{
    char purpose[sizeof PURPOSE];
    struct wire_in in;
    wire_in_init(&in, secret, len);
    wire_get_str(&in, purpose, sizeof purpose);
    bool good = strcmp(purpose, PURPOSE) == 0;
    good &= wire_get_u32(&in) == FRAME_PROTOCOL;
    good &= wire_get_u64(&in) == own->step;
    good &= wire_get_u32(&in) == node;
    if (!good || in.bad || in.end - in.p != SEAL_SECRET)
        return false;
    memcpy(key, in.p, SEAL_SECRET);
    return true;
}

static const char USE[] = "muster announcement";

void announce_write(const struct identity *own, const struct addresses *addresses, uint16_t port,
                    const void *credential, size_t len, struct wire_out *out)
{
    unsigned char proof[SEAL_PROOF];
    size_t at = out->len;
    wire_put_u32(out, FRAME_PROTOCOL);
    wire_put_u32(out, port);
    wire_put_u32(out, addresses->n);
    for (uint32_t i = 0; i < addresses->n; i++)
        wire_put_block(out, addresses->list[i].bytes, addresses->list[i].len);
    wire_put_block(out, credential, len);
    out->failed =
        out->failed || !identity_prove(own, own->key, USE, out->data + at, out->len - at, proof);
    wire_put_raw(out, proof, sizeof proof);
}

bool announce_read(const void *data, size_t len, struct announcement *said)
{
    struct wire_in in;
    *said = (struct announcement){0};
    wire_in_init(&in, data, len);
    bool good = len <= ANNOUNCE_MAX && wire_get_u32(&in) == FRAME_PROTOCOL;
    uint32_t port = wire_get_u32(&in), n = wire_get_count(&in, 8);
    good = good && port > 0 && port <= UINT16_MAX && n > 0 && n <= ADDRESSES_MAX;
    for (uint32_t i = 0; good && i < n; i++) {
        size_t size;
        const void *bytes = wire_get_block(&in, &size);
        struct address *address = &said->addresses.list[said->addresses.n++];
        good = size == 4 || size == 16;
        address->len = (uint8_t)size;
        if (good)
            memcpy(address->bytes, bytes, size);
    }
    said->port = (uint16_t)port;
    said->credential = wire_get_block(&in, &said->len);
    return good && !in.bad && in.end - in.p == SEAL_PROOF && said->len <= ANNOUNCE_CREDENTIAL_MAX;
}

bool announce_fits(const struct identity *own, const unsigned char key[SEAL_SECRET],
                   const void *data, size_t len)
{
    unsigned char right[SEAL_PROOF];
    size_t said = len - SEAL_PROOF;
    return len > SEAL_PROOF && identity_prove(own, key, USE, data, said, right) &&
           own->seal->is_same(right, (const unsigned char *)data + said, sizeof right);
}
