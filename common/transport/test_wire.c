/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the writer and the bounded reader.
 */
#include "common/transport/wire.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

static void fields_round_trip(void **state)
{
    struct wire_out out = {0};
    struct wire_in in;
    char buf[8], *dup;
    const void *block;
    size_t len;

    (void)state;
    wire_put_u32(&out, 0);
    wire_put_u8(&out, 0xfe);
    wire_put_u32(&out, 0x01020304);
    wire_put_i32(&out, -5);
    wire_put_u64(&out, 0x0102030405060708ULL);
    wire_put_str(&out, "muster");
    wire_put_str(&out, NULL);
    wire_put_block(&out, "a\0b", 3);
    wire_put_str(&out, "dup");
    wire_put_raw(&out, "raw", 3);
    wire_set_u32(&out, 0, 77);
    assert_false(out.failed);
    assert_memory_equal(out.data + 5, "\1\2\3\4", 4);

    wire_in_init(&in, out.data, out.len);
    assert_int_equal(wire_get_u32(&in), 77);
    assert_int_equal(wire_get_u8(&in), 0xfe);
    assert_int_equal(wire_get_u32(&in), 0x01020304);
    assert_int_equal(wire_get_i32(&in), -5);
    assert_true(wire_get_u64(&in) == 0x0102030405060708ULL);
    wire_get_str(&in, buf, sizeof(buf));
    assert_string_equal(buf, "muster");
    wire_get_str(&in, buf, sizeof(buf));
    assert_string_equal(buf, "");
    block = wire_get_block(&in, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(block, "a\0b", 3);
    dup = wire_get_strdup(&in, 3);
    assert_string_equal(dup, "dup");
    free(dup);
    assert_false(wire_end(&in)); /* "raw" is left over */
    wire_out_free(&out);
}

static void growth_and_take(void **state)
{
    struct wire_out out = {0};
    unsigned char *data;
    size_t len;

    (void)state;
    for (uint32_t i = 0; i < 100000; i++)
        wire_put_u32(&out, i);
    data = wire_out_take(&out, &len);
    assert_int_equal(len, 400000);
    assert_memory_equal(data + 4 * 99999, "\x00\x01\x86\x9f", 4);
    assert_null(out.data);
    free(data);
}

static void a_failed_writer_stays_failed(void **state)
{
    struct wire_out out = {.failed = true};

    (void)state;
    wire_put_u32(&out, 1);
    wire_set_u32(&out, 0, 1);
    assert_int_equal(out.len, 0);
    wire_out_free(&out);
}

static void bad_stays_bad(void **state)
{
    const unsigned char data[] = {0, 0, 0, 9, 'x', 1, 2, 3};
    struct wire_in in;
    size_t len = 1;

    (void)state;
    wire_in_init(&in, data, sizeof(data));
    assert_null(wire_get_block(&in, &len)); /* 9 bytes of 4 */
    assert_int_equal(len, 0);
    assert_int_equal(wire_get_u8(&in), 0);
    assert_int_equal(wire_get_u32(&in), 0);
    assert_true(wire_get_u64(&in) == 0);
    assert_null(wire_get_strdup(&in, 100));
    assert_int_equal(wire_get_count(&in, 1), 0);
    assert_false(wire_end(&in));
}

static void strings_are_bounded(void **state)
{
    const unsigned char data[] = {0, 0, 0, 4, 'a', 'b', 'c', 'd'};
    const unsigned char nul[] = {0, 0, 0, 3, 'a', 0, 'c'};
    struct wire_in in;
    char buf[5], small[4];

    (void)state;
    wire_in_init(&in, data, sizeof(data));
    wire_get_str(&in, buf, sizeof(buf));
    assert_string_equal(buf, "abcd");
    assert_true(wire_end(&in));
    wire_in_init(&in, data, sizeof(data));
    wire_get_str(&in, small, sizeof(small));
    assert_string_equal(small, "");
    assert_true(in.bad);
    wire_in_init(&in, data, sizeof(data));
    assert_null(wire_get_strdup(&in, 3));
    assert_true(in.bad);
    wire_in_init(&in, nul, sizeof(nul));
    wire_get_str(&in, buf, sizeof(buf));
    assert_true(in.bad);
    wire_in_init(&in, nul, sizeof(nul));
    assert_null(wire_get_strdup(&in, 100));
    assert_true(in.bad);
}

static void counts_are_bounded(void **state)
{
    const unsigned char data[] = {0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0};
    const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 1};
    struct wire_in in;

    (void)state;
    wire_in_init(&in, data, sizeof(data));
    assert_int_equal(wire_get_count(&in, 4), 2);
    assert_false(in.bad);
    wire_in_init(&in, data, sizeof(data));
    assert_int_equal(wire_get_count(&in, 5), 0);
    assert_true(in.bad);
    wire_in_init(&in, huge, sizeof(huge));
    assert_int_equal(wire_get_count(&in, 0), 0);
    assert_true(in.bad);
}

/* No bytes may be no pointer either, to which C adds not even 0. */
static void nothing_from_nowhere(void **state)
{
    struct wire_out out = {0};
    struct wire_in in;
    size_t len;

    (void)state;
    wire_put_raw(&out, NULL, 0);
    assert_false(out.failed);
    assert_int_equal(out.len, 0);
    wire_in_init(&in, out.data, out.len);
    assert_non_null(in.p);
    assert_true(wire_end(&in));
    assert_null(wire_get_block(&in, &len));
    assert_int_equal(len, 0);
    assert_true(in.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_round_trip),
        cmocka_unit_test(growth_and_take),
        cmocka_unit_test(a_failed_writer_stays_failed),
        cmocka_unit_test(bad_stays_bad),
        cmocka_unit_test(strings_are_bounded),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(nothing_from_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
