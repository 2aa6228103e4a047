/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the log: levels, prefix, cut, and what a hostile text can do to a terminal (nothing).
 */
#include "common/util/err.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static struct {
    int count;
    enum log_level level;
    char text[2048];
} seen;

static void sink(void *arg, enum log_level level, const char *text)
{
    assert_ptr_equal(arg, &seen);
    seen.count++;
    seen.level = level;
    strncpy(seen.text, text, sizeof(seen.text) - 1);
}

static int open_sink(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    log_open(sink, &seen, LOG_LEVEL_INFO, NULL);
    return 0;
}

static void levels_and_prefix(void **state)
{
    (void)state;
    log_open(sink, &seen, LOG_LEVEL_INFO, "4711.0 c07");
    log_debug("no");
    assert_int_equal(seen.count, 0);
    log_error("%d of %d", 1, 2);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.level, LOG_LEVEL_ERROR);
    assert_string_equal(seen.text, "4711.0 c07: 1 of 2");
    log_error("4711.0 c07: as its own process says");
    assert_string_equal(seen.text, "4711.0 c07: as its own process says");
    log_prefix("4711.0 c08");
    log_error("4711.0 c07: as another one says");
    assert_string_equal(seen.text, "4711.0 c08: 4711.0 c07: as another one says");
    assert_true(log_wants(LOG_LEVEL_WARNING));
    assert_false(log_wants(LOG_LEVEL_DEBUG));
}

static void hostile_bytes_are_masked(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?"},
        {"grün € 𝄞", "grün € 𝄞"},
        {"\xc2\x9b"
         "31m",
         "??31m"},                    /* C1 control sequence introducer */
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xe0\x80\xaf", "???"},      /* overlong */
        {"\xed\xa0\x80", "???"},      /* surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
        {"\xff\xfe", "??"},           /* never in UTF-8 */
        {"\xe2\x82", "??"},           /* cut short */
        {"\xe2\x82x", "??x"},         /* cut short */
        {"\xf0\x9d\x84\x9e", "\xf0\x9d\x84\x9e"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        log_error("%s", rows[i].in);
        assert_string_equal(seen.text, rows[i].out);
    }
}

static void long_text_is_cut(void **state)
{
    char text[3000];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_error("%s", text);
    assert_int_equal(strlen(seen.text), 1000);
    /* a character that the cut goes through is left out, one that just fits is kept */
    memcpy(text + 998, "€", 3);
    log_error("%s", text);
    assert_int_equal(strlen(seen.text), 998);
    memcpy(text + 997, "€€", 6);
    log_error("%s", text);
    assert_int_equal(strlen(seen.text), 1000);
    assert_string_equal(seen.text + 997, "€");
}

static void default_sink_writes_a_line(void **state)
{
    char line[64] = "";
    int ends[2], saved = dup(STDERR_FILENO);
    (void)state;
    assert_int_equal(pipe(ends), 0);
    log_open(NULL, NULL, LOG_LEVEL_INFO, "p");
    dup2(ends[1], STDERR_FILENO);
    log_warning("w %d", 1);
    dup2(saved, STDERR_FILENO);
    assert_int_equal(read(ends[0], line, sizeof(line) - 1), 10);
    assert_string_equal(line, "<4>p: w 1\n");
    close(ends[0]);
    close(ends[1]);
    close(saved);
}

static void first_error_wins(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(err_set(&err, "first %d", 1), -1);
    assert_int_equal(err_set(&err, "second"), -1);
    assert_string_equal(err.text, "first 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(levels_and_prefix, open_sink),
        cmocka_unit_test_setup(hostile_bytes_are_masked, open_sink),
        cmocka_unit_test_setup(long_text_is_cut, open_sink),
        cmocka_unit_test_setup(default_sink_writes_a_line, open_sink),
        cmocka_unit_test(first_error_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
