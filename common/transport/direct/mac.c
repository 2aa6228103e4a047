/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4, by the paper of Aumasson and Bernstein; words are little-endian.
 *
 * Long bodies go through NH first, of RFC 4418 (UMAC) with words of 64 bits as VMAC has them: two
 * blocks that differ come out alike once in 2^64 times, for a sender that does not know the key.
 * SipHash of what comes out, of the length and of the rest hides that. It is several times as fast.
 */
#include "common/transport/direct/mac.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

enum { NH_BLOCK = 256, NH_WORDS = NH_BLOCK / 8 };

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

static struct state begin(const unsigned char key[MAC_KEY])
{
    uint64_t k0 = word(key), k1 = word(key + 8);
    return (struct state){k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
                          k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
}

/* Takes the last bytes. @param len bytes of all that was hashed */
static void end(struct state *s, const unsigned char *p, size_t left, size_t len,
                unsigned char tag[MAC_TAG])
{
    uint64_t last = (uint64_t)len << 56;
    for (; left >= 8; left -= 8, p += 8)
        take(s, word(p));
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    take(s, last);
    s->v2 ^= 0xee;
    finish(s, tag);
    s->v1 ^= 0xdd;
    finish(s, tag + 8);
}

void mac_of(const unsigned char key[MAC_KEY], const void *data, size_t len,
            unsigned char tag[MAC_TAG])
{
    struct state s = begin(key);
    end(&s, data, len, len, tag);
}

/* The keys of NH: the tags of "body" and of a number, one after another. No body is such a text,
 * because frames begin with their length. */
static void nh_keys(const unsigned char key[MAC_KEY], uint64_t keys[NH_WORDS])
{
    unsigned char text[5] = "body", two[MAC_TAG];
    for (unsigned i = 0; i < NH_WORDS; i += 2) {
        text[4] = (unsigned char)(i / 2);
        mac_of(key, text, sizeof text, two);
        keys[i] = word(two);
        keys[i + 1] = word(two + 8);
    }
}

/* A block of 256 bytes becomes 16. */
static inline void take_block(struct state *s, const uint64_t keys[NH_WORDS],
                              const unsigned char *p)
{
    unsigned __int128 sum = 0;
    for (unsigned i = 0; i < NH_WORDS; i += 2)
        sum += (unsigned __int128)(word(p + 8ul * i) + keys[i]) *
               (word(p + 8ul * i + 8) + keys[i + 1]);
    take(s, (uint64_t)sum);
    take(s, (uint64_t)(sum >> 64));
}

void mac_of_body(const unsigned char key[MAC_KEY], const void *data, size_t len,
                 unsigned char tag[MAC_TAG])
{
    const unsigned char *p = data;
    size_t left = len;
    uint64_t keys[NH_WORDS];
    if (len < MAC_LONG) {
        mac_of(key, data, len, tag);
        return;
    }
    struct state s = begin(key);
    nh_keys(key, keys);
    take(&s, len);
    for (; left >= NH_BLOCK; left -= NH_BLOCK, p += NH_BLOCK)
        take_block(&s, keys, p);
    end(&s, p, left, len, tag);
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
