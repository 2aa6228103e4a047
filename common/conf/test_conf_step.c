/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings of one step: names, values, bounds, and what the admin forbids.
 */
#include "common/conf/conf_step.h"
#include "common/launch/own_settings.h"
#include "common/util/test_cmocka.h"
#include <string.h>

static void test_right(void **state)
{
    static const struct {
        const char *name, *value;
    } given[] = {
        {"MUSTER_ON_TASK_LOSS", "continue"}, {"-o muster.timeouts.fence", "5"},
        {"MUSTER_TIMEOUTS_PEER", "7"},       {"MUSTER_STALL_TERMINAL", "never"},
        {"MUSTER_LOG_LEVEL", "debug"},       {"MUSTER_STALL_REPORT", ""},
    };
    struct conf conf;

    (void)state;
    conf_defaults(&conf);
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        struct err err = {0};
        assert_int_equal(conf_step_set(&conf, given[i].name, given[i].value, &err), 0);
        assert_string_equal(err.text, "");
    }
    assert_int_equal(conf.on_task_loss, CONF_TASK_LOSS_CONTINUE);
    assert_int_equal(conf.timeouts.fence, 5);
    assert_int_equal(conf.timeouts.peer, 7);
    assert_int_equal(conf.stall_terminal, CONF_STALL_NEVER);
    assert_int_equal(conf.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(conf.stall_report, 60);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *name, *value, *message;
    } mistakes[] = {
        {"MUSTER_ON_TASK_LOSS", "contine",
         "MUSTER_ON_TASK_LOSS: found \"contine\"; give \"end-step\" or \"continue\", for example "
         "MUSTER_ON_TASK_LOSS=end-step"},
        {"MUSTER_ON_TASK_LOS", "continue",
         "MUSTER_ON_TASK_LOS: unknown; did you mean MUSTER_ON_TASK_LOSS?"},
        {"-o muster.timeouts.fenze", "5",
         "-o muster.timeouts.fenze: unknown; did you mean -o muster.timeouts.fence?"},
        {"-o muster.zebra", "5",
         "-o muster.zebra: unknown; a step can have its own log_level, timeouts.construct, "
         "timeouts.destruct, timeouts.fence, timeouts.connect, timeouts.get, timeouts.query, "
         "timeouts.spawn, "
         "timeouts.peer, stall_report, stall_terminal, stats, on_task_loss, spawn_overcommit, "
         "spawn_linger"},
        {"MUSTER_TIMEOUTS_FENCE", "-1",
         "MUSTER_TIMEOUTS_FENCE: found \"-1\"; give a whole number, 0 to 86400 seconds, for "
         "example "
         "MUSTER_TIMEOUTS_FENCE=60"},
        {"MUSTER_TIMEOUTS_PEER", "18446744073709551616",
         "MUSTER_TIMEOUTS_PEER: found \"18446744073709551616\"; give a whole number, 1 to 3600 "
         "seconds, for example MUSTER_TIMEOUTS_PEER=30"},
        {"MUSTER_TIMEOUTS_FENCE", "5\033[2J",
         "MUSTER_TIMEOUTS_FENCE: found \"5?[2J\"; give a whole number, 0 to 86400 seconds, for "
         "example MUSTER_TIMEOUTS_FENCE=60"},
        {"MUSTER_TREE_ARITY", "4",
         "MUSTER_TREE_ARITY: only an admin can set \"tree_arity\", in muster.json; start the step "
         "without MUSTER_TREE_ARITY"},
        {"MUSTER_TIMEOUTS", "4",
         "MUSTER_TIMEOUTS: this is a group of keys; give one of them, for example "
         "MUSTER_TIMEOUTS_FENCE=60"},
    };
    struct conf conf, before;

    (void)state;
    conf_defaults(&conf);
    before = conf;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct err err = {0};
        assert_int_equal(conf_step_set(&conf, mistakes[i].name, mistakes[i].value, &err), -1);
        assert_string_equal(err.text, mistakes[i].message);
        assert_memory_equal(&conf, &before, sizeof(conf));
    }
}

/* A number, and what has more. */
static void test_stats(void **state)
{
    struct conf conf;
    struct err err = {0};
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(conf.stats, CONF_STATS_NONE);
    assert_int_equal(conf_step_set(&conf, "MUSTER_STATS", "1", &err), 0);
    assert_int_equal(conf.stats, CONF_STATS_LINE);
    assert_int_equal(conf_step_set(&conf, "-o muster.stats", "keep", &err), 0);
    assert_int_equal(conf.stats, CONF_STATS_KEEP);
    assert_int_equal(conf_step_set(&conf, "MUSTER_STATS", "2", &err), -1);
    assert_string_equal(err.text, "MUSTER_STATS: found \"2\"; give 0, 1 or \"keep\", for example "
                                  "MUSTER_STATS=0");
    err = (struct err){0};
    assert_int_equal(conf_parse(&conf, "muster.json", "{\"stats\": 1}", 12, conf_keep_first, &err),
                     0);
    assert_int_equal(conf.stats, CONF_STATS_LINE);
    assert_int_equal(
        conf_parse(&conf, "muster.json", "{\"stats\": \"keep\"}", 17, conf_keep_first, &err), 0);
    assert_int_equal(conf.stats, CONF_STATS_KEEP);
    assert_int_equal(
        conf_parse(&conf, "muster.json", "{\"stats\": true}", 15, conf_keep_first, &err), -1);
    assert_string_equal(err.text, "muster.json line 1: key \"stats\": found true; give 0, 1 or "
                                  "\"keep\", for example \"stats\": 0");
}

static void test_admin(void **state)
{
    struct conf conf;
    struct err err = {0};
    (void)state;
    conf_defaults(&conf);
    conf.log_level = LOG_LEVEL_DEBUG; /* what all have */
    assert_int_equal(conf_step_set(&conf, "MUSTER_LOG_LEVEL", "debug", &err), 0);
    conf.step_settings = CONF_STEP_FORBID;
    assert_int_equal(conf_step_set(&conf, "MUSTER_ON_TASK_LOSS", "continue", &err), -1);
    assert_string_equal(err.text, "MUSTER_ON_TASK_LOSS=continue: \"step_settings\": \"forbid\" in "
                                  "muster.json forbids settings of a step's own: start it without, "
                                  "or ask the admin");
    assert_int_equal(conf.on_task_loss, CONF_TASK_LOSS_END_STEP);
}

static void test_concerns(void **state)
{
    static const char *const ours[] = {"MUSTER_ON_TASK_LOSS", "MUSTER_ON_TASK_LOS",
                                       "MUSTER_TIMEOUTS_GET", "MUSTER_TMPDIR"};
    static const char *const others[] = {
        "MUSTER_CONF", "MUSTER_ROOT", "MUSTER_HOME", "MUSTER_", "MUSTERRUN", "", "MUSTER_CI_DIR"};

    (void)state;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        assert_true(conf_step_concerns(ours[i], strlen(ours[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(conf_step_concerns(others[i], strlen(others[i])));
}

/* What the launcher, which may be root, takes of an environment that is a user's. */
static void test_environment(void **state)
{
    static char wide[4096] = "MUSTER_STALL_REPORT=";
    static char *env[] = {"PATH=/",
                          "MUSTER_ON_TASK_LOSS=continue",
                          "MUSTER_ON_TASK_LOSS",
                          "=x",
                          "MUSTER_ROOT=/",
                          wide,
                          NULL};
    static char *many[1000];
    struct boot boot = {0};
    (void)state;
    memset(wide + strlen(wide), '9', sizeof(wide) - strlen(wide) - 1);
    own_settings(&boot, NULL);
    own_settings(&boot, env);
    assert_int_equal(boot.nsettings, 2);
    assert_string_equal(boot_setting(&boot, "MUSTER_ON_TASK_LOSS"), "continue");
    assert_int_equal(strlen(boot_setting(&boot, "MUSTER_STALL_REPORT")), 63);
    for (size_t i = 0; i < 999; i++)
        many[i] = "MUSTER_STALL_REPORTS=1";
    own_settings(&boot, many);
    assert_int_equal(boot.nsettings, 2 + CONF_KEYS_MAX);
    boot_free(&boot);
}

static void keep(void *arg, const char *key, const char *value, enum conf_source from)
{
    char *text = arg;
    strcat(strcat(strcat(text, key), "="), value);
    strcat(strcat(strcat(text, " "), conf_source_name(from)), ";");
}

static void test_sources(void **state)
{
    struct conf conf, before;
    struct conf_sources sources = {0};
    static const char file[] = "{\"tree_arity\": 4, \"on_task_loss\": \"continue\"}";
    char text[256] = "";
    struct err err = {0};
    (void)state;
    conf_defaults(&conf);
    before = conf;
    assert_int_equal(conf_parse(&conf, "f", file, strlen(file), conf_keep_first, &err), 0);
    conf_mark(&sources, &before, &conf, CONF_FILE);
    before = conf;
    assert_int_equal(conf_step_set(&conf, "MUSTER_ON_TASK_LOSS", "end-step", &err), 0);
    conf_mark(&sources, &before, &conf, CONF_STEP);
    conf_walk(&conf, &sources, keep, text);
    assert_string_equal(text, "tree_arity=4 muster.json;on_task_loss=end-step step;");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),    cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_admin),    cmocka_unit_test(test_stats),
        cmocka_unit_test(test_concerns), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_sources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
