/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what servers say to each other before and on a direct connection, without one: the
 * handshake, heads of records; and of addresses.
 */
#include "common/transport/direct/announce.h"
#include "common/transport/direct/record.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

extern const struct seal_ops muster_seal;

static struct identity a, b;
static struct seal *sa, *sb;
static struct talk talk;

/* b connects to a. */
static int shake(void **state)
{
    uint32_t from;
    (void)state;
    a = (struct identity){.seal = &muster_seal, .step = 7, .self = 0};
    b = (struct identity){.seal = &muster_seal, .step = 7, .self = 3};
    assert_true(muster_seal.random(a.key, sizeof a.key) &&
                muster_seal.random(b.key, sizeof b.key) &&
                muster_seal.random(talk.challenge, sizeof talk.challenge));
    sb = hello_write(&b, 0, a.key, &talk);
    assert_non_null(sb);
    assert_true(hello_read(&a, &talk, &from));
    assert_int_equal(from, 3);
    sa = welcome_write(&a, &talk);
    assert_non_null(sa);
    return 0;
}

static int end(void **state)
{
    (void)state;
    muster_seal.destroy(sa);
    muster_seal.destroy(sb);
    return 0;
}

static bool understands(struct seal *to, struct seal *from)
{
    unsigned char record[SEAL_HEAD + 3 + SEAL_TAG];
    const struct iovec part = {"abc", 3};
    struct seal_record found;
    assert_true(muster_seal.write(from, &part, 1, record));
    return muster_seal.read(to, record, sizeof record, 3, NULL, &found) == 1 &&
           memcmp(found.body, "abc", 3) == 0;
}

static void both_understand_each_other(void **state)
{
    (void)state;
    assert_true(welcome_read(&b, a.key, &talk, sb));
    assert_true(understands(sa, sb));
    assert_true(understands(sb, sa));
}

/* Of another challenge, step, protocol, to another server, changed anywhere, by a wrong key. */
static void no_other_hello(void **state)
{
    struct seal *other;
    uint32_t from;
    (void)state;
    talk.challenge[5] ^= 1;
    assert_false(hello_read(&a, &talk, &from));
    talk.challenge[5] ^= 1;
    for (int i = 0; i < HELLO_BYTES; i++) {
        talk.hello[i] ^= 0x10;
        assert_false(hello_read(&a, &talk, &from));
        talk.hello[i] ^= 0x10;
    }
    assert_true(hello_read(&a, &talk, &from));
    muster_seal.destroy(hello_write(&b, 1, a.key, &talk));
    assert_false(hello_read(&a, &talk, &from));
    muster_seal.destroy(hello_write(&b, 0, b.key, &talk));
    assert_false(hello_read(&a, &talk, &from));
    b.step = 8;
    muster_seal.destroy(hello_write(&b, 0, a.key, &talk));
    assert_false(hello_read(&a, &talk, &from));
    other = hello_write(&a, 0, a.key, &talk); /* ourselves */
    assert_false(hello_read(&a, &talk, &from));
    muster_seal.destroy(other);
}

/* Changed anywhere; by a server that does not know the key; to another hello. */
static void no_other_welcome(void **state)
{
    struct talk other = talk;
    (void)state;
    for (int i = 0; i < WELCOME_BYTES; i++) {
        talk.welcome[i] ^= 0x10;
        assert_false(welcome_read(&b, a.key, &talk, sb));
        talk.welcome[i] ^= 0x10;
    }
    assert_false(welcome_read(&b, b.key, &talk, sb));
    muster_seal.destroy(hello_write(&b, 0, a.key, &other));
    assert_false(welcome_read(&b, a.key, &other, sb));
    assert_true(welcome_read(&b, a.key, &talk, sb));
}

/* Somebody between both ends, who does not know the key, gives them points of his own. */
static void somebody_between(void **state)
{
    unsigned char point[SEAL_POINT];
    uint32_t from;
    struct seal *third = muster_seal.create(point);
    (void)state;
    assert_non_null(third);
    memcpy(talk.welcome, point, sizeof point);
    assert_false(welcome_read(&b, a.key, &talk, sb));
    memcpy(talk.hello + HELLO_BYTES - SEAL_PROOF - SEAL_POINT, point, sizeof point);
    assert_false(hello_read(&a, &talk, &from));
    muster_seal.destroy(third);
}

static void heads_are_read(void **state)
{
    static const struct {
        struct record record;
        size_t part;
    } right[] = {
        {{RECORD_PART + 9, 0}, 9}, {{9, 0}, 9}, {{RECORD_PART, 0}, RECORD_PART},
        {{9, 4}, SEAL_SECRET + 5}, {{0, 0}, 0},
    };
    unsigned char head[RECORD_HEAD];
    struct record got;
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        record_write(&right[i].record, head);
        assert_true(record_read(head, right[i].part, &got));
        assert_memory_equal(&got, &right[i].record, sizeof got);
    }
}

/* What its sender has written, and makes no sense all the same. */
static void senseless_heads(void **state)
{
    static const struct {
        struct record record;
        size_t part;
    } wrong[] = {
        {{5, 0}, 4},
        {{5, 0}, 6},
        {{RECORD_PART + 1, 0}, RECORD_PART},
        {{RECORD_MAX + 1, 0}, 1},
        {{RECORD_MAX + 1, 1}, SEAL_SECRET + RECORD_MAX},
        {{0, 3}, 0},
        {{5, 5}, SEAL_SECRET},
        {{5, 6}, SEAL_SECRET - 1},
        {{5, 4}, SEAL_SECRET},
        {{5, 4}, 1},
        {{0, 0}, 1},
    };
    unsigned char head[RECORD_HEAD];
    struct record got;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        record_write(&wrong[i].record, head);
        assert_false(record_read(head, wrong[i].part, &got));
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, shake, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_understand_each_other), TEST(no_other_hello),
        TEST(no_other_welcome),           TEST(somebody_between),
        cmocka_unit_test(heads_are_read), cmocka_unit_test(senseless_heads),
        cmocka_unit_test(places),         cmocka_unit_test(in_which_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
