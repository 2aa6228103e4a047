/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what servers say on a direct connection, without one: tags, the handshake, heads; and of
 * addresses.
 */
#include "common/transport/direct/announce.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

/* The vectors of SipHash's authors, for texts of 0, 1, 2, ... bytes. */
static void tags_are_siphash(void **state)
{
    static const struct {
        size_t len;
        unsigned char tag[MAC_TAG];
    } vectors[] = {
        {0,
         {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
          0x93}},
        {1,
         {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
          0x45}},
        {2,
         {0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff,
          0xe4}},
        {15,
         {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3,
          0xd9}},
    };
    unsigned char key[MAC_KEY], text[64], tag[MAC_TAG];
    (void)state;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)i;
    memcpy(key, text, sizeof key);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        mac_of(key, text, vectors[i].len, tag);
        assert_memory_equal(tag, vectors[i].tag, MAC_TAG);
        assert_true(mac_same(tag, vectors[i].tag));
        tag[i] ^= 0x80;
        assert_false(mac_same(tag, vectors[i].tag));
    }
}

/* Bodies around the length from which on blocks are hashed first; tags by another implementation,
 * written from docs/wire.md. A bit that differs anywhere tells. */
static void long_bodies_have_tags(void **state)
{
    static const struct {
        size_t len;
        unsigned char tag[MAC_TAG];
    } vectors[] = {
        {4095,
         {0xa2, 0x9d, 0xe1, 0xec, 0x40, 0x82, 0x60, 0x9d, 0x64, 0xad, 0x11, 0xda, 0xe9, 0x9d, 0xb2,
          0xac}},
        {4096,
         {0xe2, 0xb1, 0xd5, 0x3d, 0x68, 0x3f, 0xef, 0xfe, 0xab, 0x0f, 0x50, 0xd9, 0xc8, 0x6d, 0xf6,
          0xd8}},
        {5003,
         {0xc2, 0x50, 0x6e, 0xf9, 0x86, 0x14, 0x76, 0x7d, 0x67, 0x7b, 0x02, 0x5f, 0x5c, 0x24, 0x76,
          0x8d}},
    };
    enum { MOST = 5003 };
    unsigned char key[MAC_KEY], text[MOST], tag[MAC_TAG];
    (void)state;
    for (unsigned i = 0; i < MAC_KEY; i++)
        key[i] = (unsigned char)i;
    for (unsigned i = 0; i < MOST; i++)
        text[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        mac_of_body(key, text, vectors[i].len, tag);
        assert_memory_equal(tag, vectors[i].tag, MAC_TAG);
        for (size_t at = 0; at < vectors[i].len; at += 61) {
            text[at] ^= 0x10;
            mac_of_body(key, text, vectors[i].len, tag);
            assert_memory_not_equal(tag, vectors[i].tag, MAC_TAG);
            text[at] ^= 0x10;
        }
    }
}

static struct identity a, b;
static struct session sa, sb;
static unsigned char challenge[CHALLENGE_BYTES], hello[HELLO_BYTES], welcome[WELCOME_BYTES];

/* b connects to a. */
static int shake(void **state)
{
    uint32_t from;
    (void)state;
    a = (struct identity){.step = 7, .self = 0};
    b = (struct identity){.step = 7, .self = 3};
    assert_true(mac_random(a.key, MAC_KEY) && mac_random(a.body, MAC_KEY) &&
                mac_random(b.key, MAC_KEY) && mac_random(b.body, MAC_KEY) &&
                mac_random(challenge, sizeof challenge));
    assert_true(hello_write(&b, 0, a.key, challenge, hello, &sb));
    assert_true(hello_read(&a, challenge, hello, &from, &sa));
    assert_int_equal(from, 3);
    welcome_write(&a, &sa, welcome);
    assert_true(welcome_read(&sb, welcome));
    return 0;
}

static void both_have_the_same_keys(void **state)
{
    (void)state;
    assert_memory_equal(sa.out, sb.in, MAC_KEY);
    assert_memory_equal(sa.in, sb.out, MAC_KEY);
    assert_memory_equal(sa.body_in, b.body, MAC_KEY);
    assert_memory_equal(sb.body_in, a.body, MAC_KEY);
    assert_memory_not_equal(sa.in, sa.out, MAC_KEY);
}

/* Of another challenge, step, protocol, to another server, changed anywhere, by a wrong key. */
static void no_other_hello(void **state)
{
    unsigned char other[CHALLENGE_BYTES];
    struct session s;
    uint32_t from;
    (void)state;
    memcpy(other, challenge, sizeof other);
    other[5] ^= 1;
    assert_false(hello_read(&a, other, hello, &from, &s));
    for (int i = 0; i < HELLO_BYTES; i++) {
        hello[i] ^= 0x10;
        assert_false(hello_read(&a, challenge, hello, &from, &s));
        hello[i] ^= 0x10;
    }
    assert_true(hello_write(&b, 1, a.key, challenge, hello, &s));
    assert_false(hello_read(&a, challenge, hello, &from, &s));
    assert_true(hello_write(&b, 0, b.key, challenge, hello, &s));
    assert_false(hello_read(&a, challenge, hello, &from, &s));
    b.step = 8;
    assert_true(hello_write(&b, 0, a.key, challenge, hello, &s));
    assert_false(hello_read(&a, challenge, hello, &from, &s));
    b = a; /* ourselves */
    assert_true(hello_write(&b, 0, a.key, challenge, hello, &s));
    assert_false(hello_read(&a, challenge, hello, &from, &s));
}

static void no_other_welcome(void **state)
{
    (void)state;
    for (int i = 0; i < WELCOME_BYTES; i++) {
        welcome[i] ^= 0x10;
        assert_false(welcome_read(&sb, welcome));
        welcome[i] ^= 0x10;
    }
    assert_true(welcome_read(&sb, welcome));
}

static void put_head(struct record *r, unsigned char head[RECORD_HEAD], const char *body,
                     size_t shared)
{
    *r = (struct record){
        .len = (uint32_t)strlen(body), .shared = (uint32_t)shared, .kind = RECORD_DATA, .taken = 5};
    record_digest(a.body, body, r->len - shared, body + r->len - shared, shared, NULL, r->digest);
    record_seal(&sa, r, head);
}

static void records_are_read(void **state)
{
    unsigned char head[RECORD_HEAD];
    struct record r, got;
    (void)state;
    put_head(&r, head, "hello, world", 0);
    assert_true(record_open(&sb, head, &got));
    assert_int_equal(got.len, 12);
    assert_int_equal(got.kind, RECORD_DATA);
    assert_int_equal(got.taken, 5);
    assert_false(got.hurry);
    assert_true(record_fits(&sb, &got, "hello, world"));
    assert_false(record_fits(&sb, &got, "hello, World"));
    put_head(&r, head, "hello, world", 5);
    assert_true(record_open(&sb, head, &got));
    assert_int_equal(got.shared, 5);
    assert_true(record_fits(&sb, &got, "hello, world"));
    assert_false(record_fits(&sb, &got, "hello, worle"));
    assert_false(record_fits(&sb, &got, "hellO, world"));
}

/* What is the same for all who get it is hashed once. */
static void a_shared_part_is_hashed_once(void **state)
{
    unsigned char tag[MAC_TAG], once[MAC_TAG], each[MAC_TAG];
    (void)state;
    mac_of(a.body, "shared", 6, tag);
    record_digest(a.body, "one", 3, "shared", 6, tag, once);
    record_digest(a.body, "one", 3, "shared", 6, NULL, each);
    assert_memory_equal(once, each, MAC_TAG);
    record_digest(a.body, "oneshared", 9, NULL, 0, NULL, each);
    assert_memory_not_equal(once, each, MAC_TAG);
}

/* Heads that are repeated, left out, in another order, of the other direction, or changed. */
static void no_other_heads(void **state)
{
    unsigned char first[RECORD_HEAD], second[RECORD_HEAD];
    struct record r, got;
    (void)state;
    put_head(&r, first, "first", 0);
    put_head(&r, second, "second", 0);
    assert_false(record_open(&sb, second, &got));
    assert_false(record_open(&sa, first, &got));
    for (int i = 0; i < RECORD_HEAD; i++) {
        first[i] ^= 1;
        assert_false(record_open(&sb, first, &got));
        first[i] ^= 1;
    }
    assert_true(record_open(&sb, first, &got));
    assert_false(record_open(&sb, first, &got));
    assert_true(record_open(&sb, second, &got));
}

/* What its sender has written, and makes no sense all the same. */
static void senseless_heads(void **state)
{
    static const struct record wrong[] = {
        {.len = 0, .kind = RECORD_DATA},
        {.len = 1, .kind = RECORD_ACK},
        {.len = 1, .kind = RECORD_BYE},
        {.len = 4, .kind = RECORD_KINDS},
        {.len = 4, .kind = (enum record_kind)0},
        {.len = 4, .shared = 5, .kind = RECORD_DATA},
        {.len = RECORD_MAX + 1u, .kind = RECORD_DATA},
    };
    unsigned char head[RECORD_HEAD];
    struct record got;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        record_seal(&sa, &wrong[i], head);
        assert_false(record_open(&sb, head, &got));
    }
}

static void places(void **state)
{
    static const char *const good[] = {"",          "lo",     "127.0.0.1", "127.0.0.0/8",
                                       "0.0.0.0/0", "::1/128"};
    static const char *const bad[] = {"nosuch0",
                                      "10.255.255.254",
                                      "203.0.113.0/24",
                                      "fe80::/10",
                                      "127.0.0.0/33",
                                      "::1/129",
                                      "a name that is too long for one"};
    struct addresses own;
    struct err err;
    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(addresses_own(good[i], &own, &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(addresses_own(bad[i], &own, &err), -1);
    assert_int_equal(addresses_own("127.0.0.1", &own, &err), 0);
    assert_int_equal(own.n, 1);
    assert_int_equal(own.list[0].len, 4);
}

/* First what is in a network of ours, last what we have ourselves. */
static void in_which_order(void **state)
{
    struct addresses list = {.n = 3,
                             .list = {{.len = 4, .bytes = {127, 0, 0, 1}},
                                      {.len = 4, .bytes = {203, 0, 113, 7}},
                                      {.len = 4, .bytes = {127, 9, 9, 9}}}};
    char text[64];
    (void)state;
    addresses_sort(&list);
    address_show(&list.list[0], text, sizeof text);
    assert_string_equal(text, "127.9.9.9");
    address_show(&list.list[1], text, sizeof text);
    assert_string_equal(text, "203.0.113.7");
    address_show(&list.list[2], text, sizeof text);
    assert_string_equal(text, "127.0.0.1");
}

#define TEST(name) cmocka_unit_test_setup(name, shake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tags_are_siphash),
        TEST(long_bodies_have_tags),
        TEST(both_have_the_same_keys),
        TEST(no_other_hello),
        TEST(no_other_welcome),
        TEST(records_are_read),
        TEST(a_shared_part_is_hashed_once),
        TEST(no_other_heads),
        TEST(senseless_heads),
        TEST(places),
        TEST(in_which_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
