/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is held of bytes that have several owners.
 */
#include "common/util/shared_bytes.h"
#include "common/util/test_cmocka.h"

/* A part that is most of the whole is held in it, and lives as long as its last owner; also a part
 * of a part. */
static void a_large_part_is_held(void **state)
{
    struct shared_bytes *whole = shared_bytes_copy("0123456789", 10);
    struct shared_bytes *part = shared_bytes_part(whole, whole->data + 2, 8);
    struct shared_bytes *half = shared_bytes_part(part, part->data + 3, 5);
    (void)state;
    assert_ptr_equal(part->data, whole->data + 2);
    assert_ptr_equal(half->data, whole->data + 5);
    assert_int_equal(whole->owners, 3);
    shared_bytes_drop(part);
    assert_int_equal(whole->owners, 2);
    shared_bytes_drop(whole);
    assert_memory_equal(half->data, "56789", 5);
    shared_bytes_drop(half);
}

/* A small part must not keep a large whole, even by way of a part; and what has no owner is
 * copied. */
static void what_is_small_or_borrowed_is_copied(void **state)
{
    static const char borrowed[] = "borrowed";
    struct shared_bytes *whole = shared_bytes_copy("0123456789", 10);
    struct shared_bytes *part = shared_bytes_part(whole, whole->data, 6);
    struct shared_bytes *of_part = shared_bytes_part(part, part->data + 1, 4);
    struct shared_bytes *small = shared_bytes_part(whole, whole->data + 1, 4);
    struct shared_bytes *other = shared_bytes_part(NULL, borrowed, sizeof borrowed);
    (void)state;
    assert_int_equal(whole->owners, 2);
    shared_bytes_drop(part);
    shared_bytes_drop(whole);
    assert_memory_equal(small->data, "1234", 4);
    assert_memory_equal(of_part->data, "1234", 4);
    assert_ptr_not_equal(other->data, borrowed);
    assert_string_equal(other->data, borrowed);
    shared_bytes_drop(of_part);
    shared_bytes_drop(small);
    shared_bytes_drop(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_part_is_held),
        cmocka_unit_test(what_is_small_or_borrowed_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
