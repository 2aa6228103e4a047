/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the line at the end of a step.
 */
#include "common/server/totals.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>

static const char *name_of(void *arg, uint32_t node)
{
    static char name[16];
    (void)arg;
    snprintf(name, sizeof name, "c%02u", node);
    return name;
}

static void assert_line(const struct totals *totals, const char *expected)
{
    char line[512];
    totals_line(totals, 600 * UINT64_C(1000000), name_of, NULL, line, sizeof line);
    assert_string_equal(line, expected);
}

static void late_nodes_are_named(void **state)
{
    struct totals totals = {.servers = 4};
    (void)state;
    assert_line(&totals, "no operation of PMIx in 600 s");
    tally_wait(&totals.tally, COLL_CONSTRUCT, NULL, 0, 1000);
    totals.tally.decided[COLL_CONSTRUCT] = 1;
    assert_line(&totals, "1 construct waited 0.25 ms of 600 s");
    for (int i = 0; i < 812; i++) {
        totals.tally.decided[COLL_FENCE]++;
        tally_wait(&totals.tally, COLL_FENCE, NULL, 0, 200000);
        if (i < 633)
            tally_last(&totals.tally, COLL_FENCE, 7, i == 5 ? 210000 : 48000);
        else
            tally_last(&totals.tally, COLL_FENCE, 3, 1000);
    }
    assert_line(&totals, "812 fences waited 41 s of 600 s; last: c07 in 633 (77 %), 48 ms late by "
                         "median, 210 ms at most");
}

static void messages_on_their_way_are_not_late(void **state)
{
    struct totals totals = {.servers = 1};
    (void)state;
    totals.tally.decided[COLL_FENCE] = 2;
    tally_wait(&totals.tally, COLL_FENCE, NULL, 0, 200000);
    tally_last(&totals.tally, COLL_FENCE, 7, 200);
    assert_line(&totals, "2 fences waited 200 ms of 600 s; no node was late by 1 ms as a rule");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_nodes_are_named),
        cmocka_unit_test(messages_on_their_way_are_not_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
