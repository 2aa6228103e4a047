/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the lines that many nodes may have alike: which are the same, when the nodes are named,
 * and how much a hostile caller can have written.
 */
#include "plugins/slurm/agent_causes.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/node_names.h"

#include <stdio.h>
#include <string.h>

static struct causes causes;
static char shown[2048];
static unsigned nshown;
static int64_t now = 1000;

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    assert_int_equal(level, LOG_LEVEL_ERROR);
    nshown++;
    snprintf(shown, sizeof shown, "%s", text);
}

static int begin(void **state)
{
    (void)state;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    nshown = 0;
    shown[0] = '\0';
    return 0;
}

static bool say_as(const char *node, const char *text)
{
    struct wire_out out = {0};
    struct wire_in in;
    wire_put_str(&out, node);
    wire_put_str(&out, text);
    wire_in_init(&in, out.data, out.len);
    bool taken = causes_take(&causes, &in, now);
    wire_out_free(&out);
    return taken;
}

/* A node says a line in which %s is its name. */
static void say(const char *node, const char *format, unsigned number)
{
    char text[1024];
    snprintf(text, sizeof text, format, node, number);
    assert_true(say_as(node, text));
}

static void the_first_at_once_and_the_others_in_one(void **state)
{
    char node[16];
    (void)state;
    assert_true(causes_next(&causes) == INT64_MAX);
    say("c07", "7.0 %s: no server, for lack of %u bytes", 12);
    assert_string_equal(shown, "7.0 c07: no server, for lack of 12 bytes");
    assert_true(causes_next(&causes) == INT64_MAX);
    for (unsigned i = 31; i > 7; i--) {
        snprintf(node, sizeof node, "c%02u", i);
        say(node, "7.0 %s: no server, for lack of %u bytes", i);
        say(node, "7.0 %s: no server, for lack of %u bytes", i + 1);
    }
    assert_int_equal(nshown, 1);
    int64_t until = causes_next(&causes);
    assert_in_range(until, now + 1000, now + 2000);
    causes_tick(&causes, until - 1);
    assert_int_equal(nshown, 1);
    causes_tick(&causes, until);
    assert_string_equal(
        shown, "24 more nodes say the same as c07: c08-c31 (no server, for lack of 12 bytes)");
    assert_true(causes_next(&causes) == INT64_MAX);
    say("c32", "7.0 %s: no server, for lack of %u bytes", 1); /* late: the wait is twice as long */
    assert_true(causes_next(&causes) - now == 2 * (until - 1000));
    causes_end(&causes);
    assert_int_equal(nshown, 3);
    assert_string_equal(shown,
                        "1 more node says the same as c07: c32 (no server, for lack of 12 bytes)");
}

static void what_is_the_same(void **state)
{
    (void)state;
    say("node1", "%s: no directory /tmp/muster.7.0.aXbY%u here", 3);
    say("node2", "%s: no directory /tmp/muster.7.0.Qrst here", 0);
    assert_int_equal(nshown, 1);
    say("node2", "%s: no directory /var/muster.7.0.Qrst here", 0); /* another place */
    assert_int_equal(nshown, 2);
    say("alpha", "no file /log/%s", 0);
    say("beta", "no file /log/%s", 0);
    say("beta", "no file /log/%s.txt: try another", 0);
    say("alpha", "no file /log/%s.out: try another", 0);
    assert_int_equal(nshown, 4);
    say("node1", "the server on %s has gone", 0);
    say("node3", "the server on %s has gone", 0);
    assert_int_equal(nshown, 5);
    say("node3", "the server on node1 and %s has gone", 0); /* it names a node of its own besides */
    assert_int_equal(nshown, 6);
    causes_end(&causes);
    assert_int_equal(nshown, 10);
}

static void what_is_no_cause(void **state)
{
    struct wire_in in;
    char name[CAUSE_NODE_MAX + 2];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(say_as("", "text"));
    assert_false(say_as("c07", ""));
    assert_false(say_as("c07\033[2J", "text"));
    assert_false(say_as("c[1-999999999]", "text"));
    assert_false(say_as("c07\n", "text"));
    assert_false(say_as(name, "text"));
    wire_in_init(&in, "\0\0\0\3c0", 6);
    assert_false(causes_take(&causes, &in, now));
    assert_int_equal(nshown, 0);
    assert_true(say_as("c07", "a \033[2J line\nof two"));
    assert_string_equal(shown, "a ?[2J line?of two");
    causes_end(&causes);
}

/* As many causes as he likes, from as many nodes as he likes. */
static void a_hostile_user_is_bounded(void **state)
{
    char node[32], text[32];
    (void)state;
    for (unsigned i = 0; i < 3 * CAUSES_MAX; i++) {
        snprintf(text, sizeof text, "cause %c%c", 'a' + i / 26, 'a' + i % 26);
        assert_true(say_as("c1", text));
    }
    assert_int_equal(nshown, CAUSES_MAX + 1);
    assert_string_equal(
        shown, "c1: there are more causes than are shown; slurmd's log has those of a node");
    for (unsigned i = 0; i < CAUSE_NODES_MAX + 100; i++) {
        snprintf(node, sizeof node, "x%uy", i);
        assert_true(say_as(node, "cause aa"));
    }
    assert_int_equal(causes.all[0].n, CAUSE_NODES_MAX);
    causes_tick(&causes, now + 10000);
    assert_int_equal(nshown, CAUSES_MAX + 2);
    assert_int_equal(strncmp(shown, "8292 more nodes say the same as c1: x0y, ", 41), 0);
    assert_true(strlen(shown) < 800);
    causes_end(&causes);
    assert_int_equal(nshown, CAUSES_MAX + 2);
}

static void names_in_order(void **state)
{
    char *names[] = {(char *)"c10",  (char *)"login", (char *)"c8",   (char *)"c9",
                     (char *)"c11",  (char *)"d1",    (char *)"c010", (char *)"c1n2",
                     (char *)"c1n1", (char *)"7",     (char *)"c13"};
    char text[128], few[12];
    (void)state;
    node_names_text(names, sizeof names / sizeof *names, text, sizeof text);
    assert_string_equal(text, "7, c8-c9, c010, c10-c11, c13, c1n1-c1n2, d1, login");
    node_names_text(names, sizeof names / sizeof *names, few, sizeof few);
    assert_string_equal(few, "7, c8-c9...");
    node_names_text(names, 0, text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_at_once_and_the_others_in_one, begin),
        cmocka_unit_test_setup(what_is_the_same, begin),
        cmocka_unit_test_setup(what_is_no_cause, begin),
        cmocka_unit_test_setup(a_hostile_user_is_bounded, begin),
        cmocka_unit_test_setup(names_in_order, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
