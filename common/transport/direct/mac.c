/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4, by the paper of Aumasson and Bernstein; words are little-endian. */
#include "common/transport/direct/mac.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline void rounds(struct state *s, int n)
{
    for (int i = 0; i < n; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static inline uint64_t word(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return le64toh(w);
}

static inline void take(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static void finish(struct state *s, unsigned char *half)
{
    rounds(s, 4);
    uint64_t w = htole64(s->v0 ^ s->v1 ^ s->v2 ^ s->v3);
    memcpy(half, &w, sizeof w);
}

void mac_of(const unsigned char key[MAC_KEY], const void *data, size_t len,
            unsigned char tag[MAC_TAG])
{
    const unsigned char *p = data;
    uint64_t k0 = word(key), k1 = word(key + 8), last = (uint64_t)len << 56;
    struct state s = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
                      k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8)
        take(&s, word(p));
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    take(&s, last);
    s.v2 ^= 0xee;
    finish(&s, tag);
    s.v1 ^= 0xdd;
    finish(&s, tag + 8);
}

bool mac_same(const unsigned char a[MAC_TAG], const unsigned char b[MAC_TAG])
{
    unsigned char differ = 0;
    for (int i = 0; i < MAC_TAG; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

bool mac_random(void *bytes, size_t len)
{
    return getrandom(bytes, len, 0) == (ssize_t)len;
}
