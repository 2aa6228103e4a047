/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is made of servers' counts, and of what is no count.
 */
#include "common/status/stats.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

#define TIMES(n, each)                                                                             \
    "\"count\":" #n ",\"total_us\":" #n "0000,\"max_us\":" each                                    \
    ",\"buckets\":[{\"from_us\":8192,\"count\":" #n ",\"total_us\":" #n "0000}]"
#define NODE(name, rest)                                                                           \
    "{\"step\":\"4711.0\",\"unit\":\"step\",\"node\":\"" name                                      \
    "\",\"uptime\":70.25,\"collectives\":{" rest "}}"

static const char two[] = "{\"nodes\":[" NODE(
    "c03",
    "\"waits\":[{\"kind\":\"fence\",\"decided\":30," TIMES(
        30,
        "10000") "}],"
                 "\"last\":[{\"node\":\"c07\",\"kind\":\"fence\"," TIMES(
                     20,
                     "10000") "},"
                              "{\"node\":\"c03\",\"kind\":\"fence\"," TIMES(
                                  10,
                                  "10000") "}]") "," NODE("c07",
                                                          "\"waits\":[{\"kind\":\"fence\","
                                                          "\"decided\":10," TIMES(
                                                              40,
                                                              "10000") "}],"
                                                                       "\"last\":[{\"node\":"
                                                                       "\"c07\",\"kind\":"
                                                                       "\"fence\"," TIMES(
                                                                           10,
                                                                           "10000") "}],"
                                                                                    "\"most_used\":"
                                                                                    "[{"
                                                                                    "\"operation\":"
                                                                                    "\"fence of 2 "
                                                                                    "processes\","
                                                                                    "\"kind\":"
                                                                                    "\"fence\","
                                                                                    "\"id\":"
                                                                                    "\"1\"," TIMES(
                                                                                        40,
                                                                                        "10000") "}"
                                                                                                 "]") "],\"silent\":[]}";

static struct stats stats_of(const char *text, int expected)
{
    struct stats stats = {0};
    json_object *answer = json_tokener_parse(text);
    assert_int_equal(stats_read(&stats, answer), expected);
    json_object_put(answer);
    return stats;
}

static void servers_are_put_together(void **state)
{
    struct stats stats = stats_of(two, 0);
    (void)state;
    assert_int_equal(stats.nkinds, 1);
    assert_int_equal(stats.kinds[0].decided, 40);
    assert_int_equal(stats.kinds[0].waits.count, 70);
    assert_int_equal(stats.nlast, 2);
    assert_string_equal(stats_latest(&stats, "fence", 0)->name, "c07");
    assert_int_equal(stats_latest(&stats, "fence", 0)->times.count, 30);
    assert_int_equal(times_quantile(&stats.last[0].times, 0.5), 10000);
    assert_string_equal(stats_latest(&stats, "fence", 1)->name, "c03");
    assert_null(stats_latest(&stats, "fence", 2));
    assert_null(stats_latest(&stats, "connect", 0));
    stats_free(&stats);
}

static void as_tables(void **state)
{
    struct stats stats = stats_of(two, 0);
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    stats_write(out, &stats, "alice");
    fclose(out);
    assert_string_equal(
        text, "step 4711.0 of alice: 2 of 2 nodes answer, up 70 s\n\n"
              "operation        count     calls     median       p99       max  latest\n"
              "fence               40        70      10 ms     10 ms     10 ms  c07: last in 30 "
              "(75 %)\n\n"
              "last                 times     median       p99       max    in all\n"
              "c07                     30      10 ms     10 ms     10 ms    300 ms "
              "##############################\n"
              "c03                     10      10 ms     10 ms     10 ms    100 ms ##########\n");
    free(text);
    stats_free(&stats);
}

static void as_metrics(void **state)
{
    struct stats stats = stats_of(two, 0);
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    stats_metrics(out, &stats, "a\"b\\c");
    fclose(out);
    assert_non_null(strstr(text, "\nmuster_operations{step=\"4711.0\",user=\"a\\\"b\\\\c\","
                                 "kind=\"fence\"} 40\n"));
    assert_non_null(strstr(text, "kind=\"fence\",node=\"c07\",le=\"0.008192\"} 0\n"));
    assert_non_null(strstr(text, "kind=\"fence\",node=\"c07\",le=\"0.016384\"} 30\n"));
    assert_non_null(strstr(text, "kind=\"fence\",node=\"c07\",le=\"+Inf\"} 30\n"));
    assert_non_null(strstr(text, "node=\"c07\"} 0.300000\n"));
    assert_string_equal(text + len - 6, "# EOF\n");
    free(text);
    stats_free(&stats);
}

static void what_makes_no_sense_counts_for_nothing(void **state)
{
    static const char *const texts[] = {
        "{\"nodes\":[1,\"x\",null," NODE(
            "c", "\"waits\":7,\"last\":{},\"most_used\":[3,null]") "],"
                                                                   "\"silent\":[]}",
        "{\"nodes\":[" NODE(
            "c", "\"waits\":[{\"kind\":3,\"decided\":-1,\"count\":9e99,"
                 "\"buckets\":[{\"from_us\":9223372036854775807,\"count\":-4}]}]") "],"
                                                                                   "\"silent\":[]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct stats stats = stats_of(texts[i], 0);
        for (size_t k = 0; k < stats.nkinds; k++) {
            assert_int_equal(stats.kinds[k].decided, 0);
            assert_int_equal(stats.kinds[k].waits.count, 0);
            assert_int_equal(times_quantile(&stats.kinds[k].waits, 0.5), 0);
        }
        stats_free(&stats);
    }
    struct stats none = stats_of("[]", -1);
    stats_free(&none);
    none = stats_of("{\"nodes\":[],\"silent\":[]}", -1);
    stats_free(&none);
}

/* What MUSTER_STATS_DIR keeps has one state for all servers. */
static void of_a_step_that_has_ended(void **state)
{
    struct stats stats = stats_of("{\"ended\":true,\"silent\":[],\"silent_servers\":1,\"nodes\":[{"
                                  "\"step\":\"4711.0\",\"unit\":\"step\",\"uptime\":11.0,"
                                  "\"servers\":3,\"collectives\":{}}]}",
                                  0);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    assert_int_equal(stats.nodes, 3);
    stats_write(out, &stats, "alice");
    fclose(out);
    assert_string_equal(text,
                        "step 4711.0 of alice: 3 of 4 nodes have counted, ended after 11 s\n\n"
                        "no operation has ended\n");
    free(text);
    stats_free(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_put_together),
        cmocka_unit_test(as_tables),
        cmocka_unit_test(as_metrics),
        cmocka_unit_test(what_makes_no_sense_counts_for_nothing),
        cmocka_unit_test(of_a_step_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
