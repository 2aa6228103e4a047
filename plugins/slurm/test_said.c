/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what the agent in srun shows of what it is told: once for the step.
 */
#include "plugins/slurm/agent_said.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

static struct said said;
static char shown[1024]; /* the last error */
static unsigned nshown;

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level != LOG_LEVEL_ERROR)
        return;
    nshown++;
    snprintf(shown, sizeof shown, "%s", text);
}

static int begin(void **state)
{
    (void)state;
    said = (struct said){0};
    nshown = 0;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return 0;
}

static void say(const char *format, const char *node, int64_t now)
{
    char text[256];
    snprintf(text, sizeof text, format, node, node);
    said_line(&said, text, node, now);
}

/* One cause on many nodes is one line, also where one name is the beginning of another. */
static void nodes_are_folded(void **state)
{
    (void)state;
    say("no server on node %s: muster-check -w %s", "c1", 1000);
    assert_int_equal(said_next(&said), 1000 + SAID_FOLD_MS);
    say("no server on node %s: muster-check -w %s", "c12", 1100);
    say("no server on node %s: muster-check -w %s", "c1", 1200);
    said_tick(&said, 1000 + SAID_FOLD_MS - 1);
    assert_int_equal(nshown, 0);
    said_tick(&said, 1000 + SAID_FOLD_MS);
    assert_int_equal(nshown, 1);
    assert_string_equal(shown, "no server on node c1: muster-check -w c1; the same on 1 more node");
    assert_int_equal(said_next(&said), INT64_MAX);
    /* those that come later */
    say("no server on node %s: muster-check -w %s", "c3", 9000);
    say("no server on node %s: muster-check -w %s", "c4", 9100);
    said_tick(&said, 9000 + SAID_FOLD_MS);
    assert_int_equal(nshown, 2);
    assert_non_null(strstr(shown, "; the same on 2 more nodes"));
}

static void other_lines_are_not(void **state)
{
    (void)state;
    say("no server on node %s: %s is full", "c1", 0);
    say("no server on node %s: no memory on %s", "c2", 0);
    said_line(&said, "no server on node c1: c2 is full", "c1", 0);
    said_line(&said, "cannot be ended", "", 0);
    said_line(&said, "cannot be ended", "", 0);
    said_tick(&said, INT64_MAX);
    assert_int_equal(nshown, 4);
}

static void lines_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        char text[32];
        snprintf(text, sizeof text, "line %d", i);
        said_line(&said, text, "c1", 0);
    }
    said_tick(&said, INT64_MAX);
    assert_int_equal(nshown, SAID_LINES_MAX);
}

static void end_for(enum rm_cause cause, unsigned status, const char *why, int64_t now)
{
    said_ending(&said, &(struct rm_ending){.cause = cause, .status = (uint8_t)status, .why = why},
                now);
}

/* The reason of the weightiest cause is the only one that is shown, unless it comes late. */
static void the_weightiest_reason_is_shown(void **state)
{
    (void)state;
    end_for(RM_CAUSE_HOST, 137, "a server", 1);
    end_for(RM_CAUSE_TASK, 3, "a task", 2);
    end_for(RM_CAUSE_TASK, 4, "another task", 3);
    said_tick(&said, 2 + SAID_REASON_MS);
    assert_int_equal(nshown, 1);
    assert_string_equal(shown, "a task");
    assert_int_equal(said.ending.status, 3);
    end_for(RM_CAUSE_ABORT, 0, "an abort", 5000);
    said_tick(&said, INT64_MAX);
    assert_int_equal(nshown, 2);
    assert_string_equal(shown, "an abort");
    assert_int_equal(said.ending.status, 0);
}

/* A weightier cause whose reason the user is told otherwise. */
static void a_reason_that_is_told(void **state)
{
    (void)state;
    end_for(RM_CAUSE_HOST, 137, "a server", 1);
    end_for(RM_CAUSE_TASK, 3, NULL, 2);
    said_tick(&said, INT64_MAX);
    assert_int_equal(said.ending.status, 3);
    assert_string_equal(shown, "a server");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nodes_are_folded, begin),
        cmocka_unit_test_setup(other_lines_are_not, begin),
        cmocka_unit_test_setup(lines_are_bounded, begin),
        cmocka_unit_test_setup(the_weightiest_reason_is_shown, begin),
        cmocka_unit_test_setup(a_reason_that_is_told, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
