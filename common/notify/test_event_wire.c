/* SPDX-License-Identifier: BSD-3-Clause */
/* The body of an event between servers. */
#include "common/notify/event_wire.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

static struct wire_out written(uint32_t ninfo, const void *infos, size_t len, const char *nspace)
{
    struct event_frame frame = {.library = 0x050007,
                                .code = -200,
                                .range = 6,
                                .rank = 3,
                                .ninfo = ninfo,
                                .infos = infos,
                                .len = len};
    struct wire_out out = {0};
    strcpy(frame.nspace, nspace);
    event_frame_write(&frame, &out);
    assert_false(out.failed);
    return out;
}

static int read_back(const struct wire_out *out, struct event_frame *frame)
{
    return event_frame_read(frame, out->data, out->len);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct event_frame frame;
    struct wire_out out = written(2, "twelve bytes", 12, "slurm.1.0");
    assert_int_equal(read_back(&out, &frame), 0);
    assert_int_equal(frame.library, 0x050007);
    assert_int_equal(frame.code, -200);
    assert_int_equal(frame.range, 6);
    assert_string_equal(frame.nspace, "slurm.1.0");
    assert_int_equal(frame.rank, 3);
    assert_int_equal(frame.ninfo, 2);
    assert_int_equal(frame.len, 12);
    assert_memory_equal(frame.infos, "twelve bytes", 12);
    wire_out_free(&out);
}

static void nothing_but_a_whole_one_is_read(void **state)
{
    (void)state;
    struct event_frame frame;
    struct wire_out out = written(2, "twelve bytes", 12, "slurm.1.0");
    for (size_t len = 0; len < out.len; len++)
        assert_int_equal(event_frame_read(&frame, out.data, len), -1);
    wire_put_u8(&out, 0);
    assert_int_equal(read_back(&out, &frame), -1);
    wire_out_free(&out);
}

static void more_infos_than_bytes_are_refused(void **state)
{
    (void)state;
    struct event_frame frame;
    struct wire_out out = written(UINT32_MAX, "twelve bytes", 12, "slurm.1.0");
    assert_int_equal(read_back(&out, &frame), -1);
    wire_out_free(&out);
    out = written(4, "twelve bytes", 12, "slurm.1.0");
    assert_int_equal(read_back(&out, &frame), -1);
    wire_out_free(&out);
}

static void a_source_has_a_name(void **state)
{
    (void)state;
    struct event_frame frame;
    struct wire_out out = written(0, NULL, 0, "");
    assert_int_equal(read_back(&out, &frame), -1);
    wire_out_free(&out);
}

static void size_is_bounded(void **state)
{
    (void)state;
    struct event_frame frame;
    char *bytes = calloc(1, EVENT_BYTES_MAX + 1);
    struct wire_out out = written(1, bytes, EVENT_BYTES_MAX, "x");
    assert_int_equal(read_back(&out, &frame), 0);
    wire_out_free(&out);
    out = written(1, bytes, EVENT_BYTES_MAX + 1, "x");
    assert_int_equal(read_back(&out, &frame), -1);
    wire_out_free(&out);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nothing_but_a_whole_one_is_read),
        cmocka_unit_test(more_infos_than_bytes_are_refused),
        cmocka_unit_test(a_source_has_a_name),
        cmocka_unit_test(size_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
