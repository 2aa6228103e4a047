/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the relay: which level a line has, and what is kept of it.
 */
#include "common/launch/relay.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char logged[1024];

static void keep(void *arg, enum log_level level, const char *text)
{
    size_t used = strlen(logged);
    (void)arg;
    snprintf(logged + used, sizeof(logged) - used, "%d %s\n", (int)level, text);
}

/* Errors reach the user's terminal, where lines of libpmix do not help. */
static void levels(void **state)
{
    static const char lines[] =
        "[n1:04977] PMIX ERROR: PMIX_ERR_UNREACH in file ptl_base_connection_hdlr.c at line 396\n"
        "<3>an error\n<4>a warning\n<7>a debug line\n<9>no level\n<3>\033[31mred\n";
    struct relay relay;
    int ends[2];
    (void)state;
    log_open(keep, NULL, LOG_LEVEL_DEBUG, NULL);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    relay_open(&relay, ends[0]);
    assert_int_equal(write(ends[1], lines, strlen(lines)), strlen(lines));
    relay_drain(&relay);
    assert_string_equal(logged, "6 [n1:04977] PMIX ERROR: PMIX_ERR_UNREACH in file "
                                "ptl_base_connection_hdlr.c at line 396\n"
                                "3 an error\n4 a warning\n7 a debug line\n6 <9>no level\n"
                                "3 ?[31mred\n");
    assert_string_equal(relay.last_error, "?[31mred");
    assert_string_equal(relay.last_words, "<9>no level");
    close(ends[1]);
    relay_close(&relay);
}

/* The dynamic linker gives no level, and what it says is why there is no server. */
static void no_library(void **state)
{
    static const char line[] = "/x/muster-server: " RELAY_NO_LIBRARY "libpmix.so.2: cannot open "
                               "shared object file: No such file or directory\n";
    struct relay relay;
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    relay_open(&relay, ends[0]);
    assert_int_equal(write(ends[1], line, strlen(line)), strlen(line));
    relay_drain(&relay);
    assert_memory_equal(relay.last_error, line, strlen(line) - 1);
    close(ends[1]);
    relay_close(&relay);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(levels),
                                              cmocka_unit_test(no_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
