/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the first report of what waits: that it names what the missing servers wait in.
 */
#include "common/server/status/stalled.h"

#include "common/server/status/test_status_kit.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

static const char text[] =
    "group \"ocean\" construct: 2 of 3 nodes missing: rank 1 on c001, rank 2 "
    "on c002";
static const uint32_t missing[] = {1, 2};

static struct kit *kit;
static char said[1024]; /* the last line for the user */

static void sink(void *arg, enum log_level level, const char *line)
{
    (void)arg;
    if (level == LOG_LEVEL_ERROR)
        snprintf(said, sizeof said, "%s", line);
}

static int open_kit(void **state)
{
    (void)state;
    said[0] = '\0';
    log_open(sink, NULL, LOG_LEVEL_ERROR, NULL);
    kit = kit_new(3, 1);
    return 0;
}

static int close_kit(void **state)
{
    (void)state;
    kit_free(kit);
    return 0;
}

/* @param state JSON of the server */
static void answer(uint32_t node, uint64_t id, const char *state)
{
    struct wire_out out = {0};
    wire_put_u64(&out, id);
    wire_put_i32(&out, 0);
    wire_put_raw(&out, state, strlen(state));
    asks_frame(kit->server.asks, node, FRAME_ANSWER, out.data, out.len);
    wire_out_free(&out);
}

/* Has a report made whose two missing servers answer so. */
static void report(const char *first, const char *second)
{
    stalled_operation(&kit->server, 60, text, missing, 2);
    assert_string_equal(said, "");
    answer(1, kit->ask - 1, first);
    assert_string_equal(said, "");
    answer(2, kit->ask, second);
}

static void assert_says(const char *also)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "waiting for 60 s: %s%s; the step goes on waiting; ", text,
             also);
    if (strncmp(said, expected, strlen(expected)) != 0)
        fail_msg("expected \"%s…\", found \"%s\"", expected, said);
}

#define OCAEN "{\"trackers\":[{\"operation\":\"group \\\"ocaen\\\" construct\",\"called\":true}]}"

static void in_another_operation(void **state)
{
    (void)state;
    report("{\"trackers\":[{\"operation\":\"group \\\"ocean\\\" construct\",\"called\":false},"
           "{\"operation\":\"fence of 4 processes\",\"called\":false},"
           "{\"operation\":\"group \\\"ocaen\\\" construct\",\"called\":true}]}",
           "{\"trackers\":[]}");
    assert_says("; c001 waits in another operation: group \"ocaen\" construct");
}

static void both_in_the_same(void **state)
{
    (void)state;
    report(OCAEN, OCAEN);
    assert_says("; c001, c002 wait in another operation: group \"ocaen\" construct");
}

static void for_an_answer(void **state)
{
    (void)state;
    report("{}", "{\"asks\":[{\"about\":\"direct modex of n rank 5: no answer of c000\"}]}");
    assert_says("; c002 waits in another operation: direct modex of n rank 5: no answer of c000");
}

static void in_none(void **state)
{
    (void)state;
    report("{\"trackers\":[{\"operation\":\"group \\\"ocean\\\" construct\",\"called\":true}]}",
           "nonsense");
    assert_says("");
}

/* The server that decides has been told of an operation that its own processes have not called. */
static void in_one_of_this_server(void **state)
{
    const uint32_t self[] = {0};
    (void)state;
    kit_construct(kit, "ocaen", 0);
    stalled_operation(&kit->server, 60, text, self, 1);
    char *id = strstr(said, "; c000 waits in another operation: group \"ocaen");
    assert_non_null(id);
}

static void of_a_lost_server(void **state)
{
    (void)state;
    asks_lost(kit->server.asks, 1);
    asks_lost(kit->server.asks, 2);
    stalled_operation(&kit->server, 60, text, missing, 2);
    assert_says("");
}

static void only_the_first_report(void **state)
{
    (void)state;
    kit->server.stall_told = true;
    stalled_operation(&kit->server, 60, text, missing, 2);
    assert_int_equal(kit->sent, 0);
    assert_string_equal(said, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        TEST(in_another_operation),  TEST(both_in_the_same),
        TEST(for_an_answer),         TEST(in_none),
        TEST(in_one_of_this_server), TEST(of_a_lost_server),
        TEST(only_the_first_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
