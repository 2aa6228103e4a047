/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of sealed connections: what goes through, and what somebody between both ends can do.
 */
#include "common/transport/seal/seal.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

extern const struct seal_ops muster_seal;

enum { ROOM = 4096, LONG = 100000 };

static const char secret[] = "0123456789abcdef", about[] = "4711.3";

static struct {
    struct seal *caller, *acceptor;
    unsigned char caller_point[SEAL_POINT], acceptor_point[SEAL_POINT];
} ends;

static bool agree_about(const char *callers_secret, const char *callers_about)
{
    return muster_seal.agree(ends.caller, SEAL_CALLER, ends.acceptor_point, callers_secret,
                             strlen(callers_secret), callers_about, strlen(callers_about)) &&
           muster_seal.agree(ends.acceptor, SEAL_ACCEPTOR, ends.caller_point, secret,
                             strlen(secret), about, strlen(about));
}

static int make(void **state)
{
    (void)state;
    ends.caller = muster_seal.create(ends.caller_point);
    ends.acceptor = muster_seal.create(ends.acceptor_point);
    return ends.caller == NULL || ends.acceptor == NULL;
}

static int begin(void **state)
{
    return make(state) != 0 || !agree_about(secret, about);
}

static int end(void **state)
{
    (void)state;
    muster_seal.destroy(ends.caller);
    muster_seal.destroy(ends.acceptor);
    return 0;
}

static size_t put(struct seal *seal, const char *text, unsigned char record[ROOM])
{
    /* in two parts, as if they were one */
    size_t half = strlen(text) / 2;
    const struct iovec parts[] = {{(char *)text, half}, {(char *)text + half, strlen(text) - half}};
    assert_true(muster_seal.write(seal, parts, 2, record));
    return SEAL_HEAD + strlen(text) + SEAL_TAG;
}

static int get(struct seal *seal, const unsigned char *bytes, size_t len, const char *expected)
{
    unsigned char copy[ROOM];
    struct seal_record record;
    memcpy(copy, bytes, len);
    int found = muster_seal.read(seal, copy, len, ROOM, NULL, &record);
    if (found == 1) {
        assert_int_equal(record.len, SEAL_HEAD + strlen(expected) + SEAL_TAG);
        assert_int_equal(record.body_len, strlen(expected));
        assert_memory_equal(record.body, expected, strlen(expected));
    }
    return found;
}

static void both_ends_understand_each_other(void **state)
{
    unsigned char record[ROOM];
    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t len = put(ends.caller, "the step ends", record);
        assert_null(memmem(record, len, "the step ends", 13));
        assert_int_equal(get(ends.acceptor, record, len, "the step ends"), 1);
        len = put(ends.acceptor, "taken", record);
        assert_int_equal(get(ends.caller, record, len, "taken"), 1);
    }
    size_t len = put(ends.caller, "", record);
    assert_int_equal(get(ends.acceptor, record, len, ""), 1);
}

static void a_long_record(void **state)
{
    unsigned char *body = malloc(LONG), *record = malloc(SEAL_HEAD + LONG + SEAL_TAG);
    struct seal_record found;
    (void)state;
    for (size_t i = 0; i < LONG; i++)
        body[i] = (unsigned char)(i * 7);
    const struct iovec part = {body, LONG};
    assert_true(muster_seal.write(ends.caller, &part, 1, record));
    assert_int_equal(
        muster_seal.read(ends.acceptor, record, SEAL_HEAD + LONG + SEAL_TAG, LONG, NULL, &found),
        1);
    assert_memory_equal(found.body, body, LONG);
    free(body);
    free(record);
}

/* The end of a body goes where its receiver wants to have it, if there is room. */
static void a_record_in_two_places(void **state)
{
    unsigned char record[ROOM], end_of_it[ROOM];
    struct seal_place place = {.skip = 4, .to = end_of_it, .room = 5};
    struct seal_record found;
    (void)state;
    size_t len = put(ends.caller, "head ends", record);
    assert_int_equal(muster_seal.read(ends.acceptor, record, len, ROOM, &place, &found), 1);
    assert_true(found.apart);
    assert_int_equal(found.body_len, 9);
    assert_memory_equal(found.body, "head", 4);
    assert_memory_equal(end_of_it, " ends", 5);
    place.room = 4;
    len = put(ends.caller, "head ends", record);
    assert_int_equal(muster_seal.read(ends.acceptor, record, len, ROOM, &place, &found), 1);
    assert_false(found.apart);
    assert_memory_equal(found.body, "head ends", 9);
}

/* Both halves are of records that the other end has written. */
static void a_record_of_two(void **state)
{
    unsigned char one[ROOM], two[ROOM];
    (void)state;
    size_t len = put(ends.caller, "one half", one);
    assert_int_equal(put(ends.caller, "two half", two), len);
    memcpy(one + len / 2, two + len / 2, len - len / 2);
    assert_int_equal(get(ends.acceptor, one, len, "one half"), -1);
}

/* Nothing is deciphered before all of it is there. */
static void a_record_that_is_not_whole(void **state)
{
    unsigned char record[ROOM];
    (void)state;
    size_t len = put(ends.caller, "status 7", record);
    for (size_t part = 0; part < len; part++)
        assert_int_equal(get(ends.acceptor, record, part, NULL), 0);
    assert_int_equal(get(ends.acceptor, record, len, "status 7"), 1);
}

/* Any bit; and then nothing more is believed. */
static void a_record_that_was_changed(void **state)
{
    unsigned char record[ROOM];
    size_t len = SEAL_HEAD + strlen("status 7") + SEAL_TAG;
    for (size_t bit = 0; bit < 8 * len; bit++) {
        assert_int_equal(put(ends.caller, "status 7", record), len);
        record[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int found = get(ends.acceptor, record, len, "status 7");
        if (bit < (size_t)8 * SEAL_HEAD && found == 0) {
            /* a longer one: more has to come, and is not right either */
            memset(record + len, 0, sizeof record - len);
            found = get(ends.acceptor, record, sizeof record, "status 7");
        }
        assert_int_equal(found, -1);
        record[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(get(ends.acceptor, record, len, "status 7"), -1);
        end(state);
        assert_int_equal(begin(state), 0);
    }
}

static void a_record_that_is_said_again(void **state)
{
    unsigned char record[ROOM];
    (void)state;
    size_t len = put(ends.caller, "spawn", record);
    assert_int_equal(get(ends.acceptor, record, len, "spawn"), 1);
    assert_int_equal(get(ends.acceptor, record, len, "spawn"), -1);
}

static void a_record_that_is_left_out(void **state)
{
    unsigned char record[ROOM];
    (void)state;
    put(ends.caller, "one", record);
    size_t len = put(ends.caller, "two", record);
    assert_int_equal(get(ends.acceptor, record, len, "two"), -1);
}

static void a_record_that_comes_back(void **state)
{
    unsigned char record[ROOM];
    (void)state;
    size_t len = put(ends.caller, "one", record);
    assert_int_equal(get(ends.caller, record, len, "one"), -1);
}

static void a_record_that_is_too_long(void **state)
{
    static const unsigned char head[] = {0, 0, 0x10, 1, 0, 0};
    (void)state;
    assert_int_equal(get(ends.acceptor, head, sizeof head, NULL), -1);
}

static void another_secret_or_purpose(void **state)
{
    static const char *const wrong[][2] = {{"0123456789abcdeF", about}, {secret, "4711.4"}};
    unsigned char record[ROOM];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(make(state), 0);
        assert_true(agree_about(wrong[i][0], wrong[i][1]));
        size_t len = put(ends.caller, "one", record);
        assert_int_equal(get(ends.acceptor, record, len, "one"), -1);
        end(state);
    }
}

/* Somebody between both ends gives each a point of his own. */
static void another_point(void **state)
{
    unsigned char between[SEAL_POINT], record[ROOM];
    assert_int_equal(make(state), 0);
    struct seal *third = muster_seal.create(between);
    assert_non_null(third);
    memcpy(ends.acceptor_point, between, sizeof between);
    assert_true(agree_about(secret, about));
    size_t len = put(ends.caller, "one", record);
    assert_int_equal(get(ends.acceptor, record, len, "one"), -1);
    muster_seal.destroy(third);
    end(state);
}

static void what_is_no_point(void **state)
{
    assert_int_equal(make(state), 0);
    ends.acceptor_point[SEAL_POINT - 1] ^= 1; /* not on the curve */
    assert_false(agree_about(secret, about));
    memset(ends.acceptor_point, 0, sizeof ends.acceptor_point);
    assert_false(agree_about(secret, about));
    end(state);
}

static void proofs(void **state)
{
    unsigned char one[SEAL_PROOF], other[SEAL_PROOF];
    (void)state;
    assert_true(muster_seal.prove(secret, strlen(secret), "a", 1, one));
    assert_true(muster_seal.prove(secret, strlen(secret), "a", 1, other));
    assert_true(muster_seal.is_same(one, other, sizeof one));
    assert_true(muster_seal.prove(secret, strlen(secret), "b", 1, other));
    assert_false(muster_seal.is_same(one, other, sizeof one));
    assert_true(muster_seal.prove(secret, strlen(secret) - 1, "a", 1, other));
    assert_false(muster_seal.is_same(one, other, sizeof one));
}

/* What goes one way, by a key that both know. */
static void by_a_key(void **state)
{
    static const unsigned char key[SEAL_SECRET] = "a key", other_key[SEAL_SECRET] = "another one";
    unsigned char record[ROOM];
    (void)state;
    struct seal *from = muster_seal.with_key(key, SEAL_CALLER);
    struct seal *to = muster_seal.with_key(key, SEAL_ACCEPTOR);
    struct seal *other = muster_seal.with_key(other_key, SEAL_ACCEPTOR);
    assert_true(from != NULL && to != NULL && other != NULL);
    size_t len = put(from, "one", record);
    assert_int_equal(get(other, record, len, "one"), -1);
    assert_int_equal(get(to, record, len, "one"), 1);
    len = put(from, "two", record);
    assert_int_equal(get(from, record, len, "two"), -1);
    assert_int_equal(get(to, record, len, "two"), 1);
    assert_int_equal(get(to, record, len, "two"), -1);
    assert_false(muster_seal.write(to, &(struct iovec){record, 1}, 1, record));
    muster_seal.destroy(from);
    muster_seal.destroy(to);
    muster_seal.destroy(other);
}

static void random_bytes(void **state)
{
    unsigned char one[SEAL_SECRET] = {0}, other[SEAL_SECRET] = {0};
    (void)state;
    assert_true(muster_seal.random(one, sizeof one));
    assert_memory_not_equal(one, other, sizeof one);
    assert_true(muster_seal.random(other, sizeof other));
    assert_memory_not_equal(one, other, sizeof one);
}

#define SEAL_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEAL_TEST(both_ends_understand_each_other),
        SEAL_TEST(a_long_record),
        SEAL_TEST(a_record_that_is_not_whole),
        SEAL_TEST(a_record_that_was_changed),
        SEAL_TEST(a_record_in_two_places),
        SEAL_TEST(a_record_of_two),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(by_a_key),
        SEAL_TEST(a_record_that_is_said_again),
        SEAL_TEST(a_record_that_is_left_out),
        SEAL_TEST(a_record_that_comes_back),
        SEAL_TEST(a_record_that_is_too_long),
        cmocka_unit_test(another_secret_or_purpose),
        cmocka_unit_test(another_point),
        cmocka_unit_test(what_is_no_point),
        cmocka_unit_test(proofs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
