/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings: every mistake with its exact message.
 */
#include "common/conf/conf.h"
#include "common/util/test_cmocka.h"
#include <stdlib.h>
#include <string.h>

static int parse(struct conf *conf, const char *text, size_t len, struct err *err)
{
    *err = (struct err){0};
    return conf_parse(conf, "muster.json", text, len, conf_keep_first, err);
}

static void assert_same(const struct conf *a, const struct conf *b)
{
    assert_memory_equal(a, b, sizeof(*a)); /* ints and a path with its zeros: no padding */
}

#define NUMBER "for example \"tree_arity\": 16"
#define LEVELS                                                                                     \
    "\"error\", \"warning\", \"info\" or \"debug\", for example \"log_level\": \"warning\""
#define PATH                                                                                       \
    "an absolute path of at most 255 bytes without backslash, for example \"tmpdir\": \"/tmp\""
#define VALUE "expected a value: a number, a text in double quotes or an object"

static const struct {
    const char *text, *message; /* the message behind "muster.json" */
} mistakes[] = {
    /* keys */
    {"{\n \"tree_arty\": 4}", " line 2: key \"tree_arty\": unknown; did you mean \"tree_arity\"?"},
    {"{\"timeouts\": {\n\"Fense\": 4}}",
     " line 2: key \"timeouts.Fense\": unknown; did you mean \"timeouts.fence\"?"},
    {"{\"zebra\": 4}",
     " line 1: key \"zebra\": unknown; known here: log_level, log_sink, "
     "timeouts, stall_report, stall_terminal, stats, tree_arity, direct, memory_max, on_task_loss, "
     "spawn_overcommit, spawn_linger, step_settings, tmpdir"},
    {"{\"timeouts\": {\"zebra\": 4}}",
     " line 1: key \"timeouts.zebra\": unknown; known here: "
     "construct, destruct, fence, connect, get, query, spawn, peer"},
    {"{\"fence\": 4}",
     " line 1: key \"fence\": unknown here; write \"timeouts\": {\"fence\": ...}"},
    {"{\"timeouts.fence\": 4}",
     " line 1: key \"timeouts.fence\": unknown here; write \"timeouts\": {\"fence\": ...}"},
    {"{\"timeouts\": {\"tree_arity\": 4}}", " line 1: key \"timeouts.tree_arity\": unknown here; "
                                            "\"tree_arity\" belongs to the top level"},
    {"{\"tree\\u005farity\": 4}",
     " line 1: key \"tree\\u005farity\": unknown; keys are written without \\"},
    {"{\"\": 4}",
     " line 1: key \"\": unknown; known here: log_level, log_sink, timeouts, "
     "stall_report, stall_terminal, stats, tree_arity, direct, memory_max, on_task_loss, "
     "spawn_overcommit, spawn_linger, step_settings, tmpdir"},
    {"{\"\xc3\xa9zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\": 4}",
     " line 1: key \"\xc3\xa9zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz...\": unknown; known here: "
     "log_level, log_sink, timeouts, stall_report, stall_terminal, stats, tree_arity, direct, "
     "memory_max, "
     "on_task_loss, spawn_overcommit, spawn_linger, step_settings, tmpdir"},
    {"{\"tree_arity\": 4,\n// \"tree_arity\"\n\"tree_arity\": \"x\"}",
     " line 3: key \"tree_arity\": given twice, first on line 1; remove one of the two"},
    {"{\"timeouts\": {\"get\": 1,\n\"get\": 1}}",
     " line 2: key \"timeouts.get\": given twice, first on line 1; remove one of the two"},
    {"{\"timeouts\": {},\n\n\"timeouts\": {\"get\": 1}}",
     " line 3: key \"timeouts\": given twice, first on line 1; remove one of the two"},
    /* values */
    {"{\n\n\"timeouts\":\n{\n\"fence\": \"3\"}}",
     " line 5: key \"timeouts.fence\": found the text \"3\"; give a whole number, 0 to 86400 "
     "seconds, for example \"fence\": 60"},
    {"{\"timeouts\": {\"peer\": 0}}", " line 1: key \"timeouts.peer\": 0 is out of range; give 1 "
                                      "to 3600 seconds, for example \"peer\": 30"},
    {"{\"tree_arity\": 1025}",
     " line 1: key \"tree_arity\": 1025 is out of range; give 2 to 1024, " NUMBER},
    {"{\"memory_max\": 15}", " line 1: key \"memory_max\": 15 is out of range; give 0, or 16 to "
                             "16777216 MiB, for example \"memory_max\": 256"},
    {"{\"direct\": {\"address\": \"10.1.0.0/33\"}}",
     " line 1: key \"direct.address\": found the text \"10.1.0.0/33\"; give an interface, an IP "
     "address, or a network such as 10.1.0.0/16, for example \"address\": \"ib0\""},
    {"{\"direct\": {\"port\": 80}}", " line 1: key \"direct.port\": 80 is out of range; give 0, or "
                                     "1024 to 65535, for example \"port\": 16384"},
    {"{\"tree_arity\": -4294967290}",
     " line 1: key \"tree_arity\": -4294967290 is out of range; give 2 to 1024, " NUMBER},
    {"{\"tree_arity\": 18446744073709551615}",
     " line 1: key \"tree_arity\": 18446744073709551615 is out of range; give 2 to 1024, " NUMBER},
    {"{\"tree_arity\": 16.0 }",
     " line 1: key \"tree_arity\": found 16.0; give a whole number, 2 to 1024, " NUMBER},
    {"{\"tree_arity\": [16]}",
     " line 1: key \"tree_arity\": found an array; give a whole number, 2 to 1024, " NUMBER},
    {"{\"tree_arity\": {\"a\": {\"b\": 1}}}",
     " line 1: key \"tree_arity\": found an object; give a whole number, 2 to 1024, " NUMBER},
    {"{\"tree_arity\": true}",
     " line 1: key \"tree_arity\": found true; give a whole number, 2 to 1024, " NUMBER},
    {"{\"log_level\": null}", " line 1: key \"log_level\": found null; give " LEVELS},
    {"{\"log_level\": 3}", " line 1: key \"log_level\": found 3; give " LEVELS},
    {"{\"log_level\": \"loud\"}",
     " line 1: key \"log_level\": found the text \"loud\"; give " LEVELS},
    {"{\"log_level\": \"info\\u0000\"}",
     " line 1: key \"log_level\": found the text \"info\\u0000\"; give " LEVELS},
    {"{\"on_task_loss\": \"\"}",
     " line 1: key \"on_task_loss\": found the text \"\"; give \"end-step\" or \"continue\", for "
     "example \"on_task_loss\": \"end-step\""},
    {"{\"tmpdir\": \"tmp\"}", " line 1: key \"tmpdir\": found the text \"tmp\"; give " PATH},
    {"{\"tmpdir\": \"\\/tmp\"}", " line 1: key \"tmpdir\": found the text \"\\/tmp\"; give " PATH},
    {"{\"tmpdir\": \"/t\x7f\"}", " line 1: key \"tmpdir\": found the text \"/t?\"; give " PATH},
    {"{\"tmpdir\": null}", " line 1: key \"tmpdir\": found null; give " PATH},
    {"{\"timeouts\": 4}", " line 1: key \"timeouts\": found 4; give an object of settings, for "
                          "example \"timeouts\": {\"construct\": 60}"},
    {"{\"timeouts\": [{\"zebra\": 1}]}",
     " line 1: key \"timeouts\": found an array; give an object of settings, for example "
     "\"timeouts\": {\"construct\": 60}"},
    /* syntax */
    {"", ": holds no settings; write {} for the defaults, or remove the file"},
    {" // nothing\n", ": holds no settings; write {} for the defaults, or remove the file"},
    {"\n[]", " line 2 column 1: the settings are not an object; put them between '{' and '}'"},
    {"{", " line 1 column 2: the file ends too early; a closing '}' is missing"},
    {"{\"tree_arity\": 4,\n",
     " line 2 column 1: the file ends too early; a closing '}' is missing"},
    {"{\"log_level\": tru", " line 1 column 18: the file ends too early; a closing '}' is missing"},
    {"{\"tree_arity\": 4,\n}", " line 2 column 1: found '}', expected no comma before it"},
    {"{\"a\": [1,]}", " line 1 column 10: found ']', expected no comma before it"},
    {"{\"tree_arity\" 4}", " line 1 column 15: found '4', expected ':' after the key"},
    {"{\"tree_arity\": 4\n \"get\": 3}", " line 2 column 2: found '\"', expected ',' or '}'"},
    {"{\"a\": [1 2]}", " line 1 column 10: found '2', expected ',' or ']'"},
    {"{\"a\": [}", " line 1 column 8: found '}', " VALUE ", or ']'"},
    {"{\"a\": }", " line 1 column 7: found '}', " VALUE},
    {"{\"log_level\": info}", " line 1 column 15: found 'info', " VALUE},
    {"{/* \xc3\xa9 */\"log_level\": tru }", " line 1 column 22: found 'tru', " VALUE},
    {"{\"tree_arity\": 4x}", " line 1 column 16: found '4x', expected a whole number such as 60"},
    {"{\"tree_arity\": 04}", " line 1 column 16: found '04', expected a whole number such as 60"},
    {"{\"tree_arity\": 4, x: 1}", " line 1 column 19: found 'x', expected a key in double quotes"},
    {"{tree_arity: 4}",
     " line 1 column 2: found 'tree_arity', expected a key in double quotes or '}'"},
    {"{'tree_arity': 4}", " line 1 column 2: found ', expected double quotes"},
    {"{\xe2\x80\x9ctree_arity", " line 1 column 2: found a character that is not ASCII, expected "
                                "a key in double quotes or '}'"},
    {"{\v}", " line 1 column 2: found byte 0x0b, expected a key in double quotes or '}'"},
    {"{\"log_level\": \"a\\q\"}",
     " line 1 column 18: wrong escape in a text; write \\\\ for a backslash itself"},
    {"{\"log_level\": \"info}\n",
     " line 1 column 15: the text that begins here does not end on its line; close it by '\"'"},
    {"{\"log_level\": \"in\tfo\"}",
     " line 1 column 18: control character 0x09 in a text; remove it"},
    {"{}\n/* open\n", " line 2 column 1: the comment that begins here does not end; close it by "
                      "'*/'"},
    {"{} // end\n x", " line 2 column 2: something follows the closing '}'; remove it"},
    {"{}}", " line 1 column 3: something follows the closing '}'; remove it"},
    {"\xef\xbb\xbf{}", " line 1 column 1: byte order mark; save the file as UTF-8 without one"},
    {"{} // caf\xe9\n", " line 1 column 10: byte 0xe9 is not UTF-8; save the file as UTF-8"},
    {"{} \xc0\x80", " line 1 column 4: byte 0xc0 is not UTF-8; save the file as UTF-8"},
    {"{} \xed\xa0\x80", " line 1 column 4: byte 0xed is not UTF-8; save the file as UTF-8"},
    {"{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
     " line 1 column 38: objects and arrays are nested too deep; settings need two levels"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct conf conf, before;
        char expected[600];
        struct err err;
        conf_defaults(&conf);
        before = conf;
        snprintf(expected, sizeof(expected), "muster.json%s", mistakes[i].message);
        assert_int_equal(parse(&conf, mistakes[i].text, strlen(mistakes[i].text), &err), -1);
        assert_string_equal(err.text, expected);
        assert_same(&conf, &before);
    }
}

static void collect(void *arg, const char *mistake)
{
    char *all = arg;
    snprintf(all + strlen(all), 2000 - strlen(all), "%s\n", mistake);
}

/* Mistakes of keys come before those of values; what is right is not taken either. */
static void test_all_mistakes(void **state)
{
    static const char text[] =
        "{\"zebras\": {\"fence\": 1},\n\"tree_arity\": 1,\n"
        "\"timeouts\": {\"peer\": 0, \"fense\": 1, \"get\": 5},\n\"tmpdir\": 3}";
    char all[2000] = "";
    struct conf conf, before;
    (void)state;
    conf_defaults(&conf);
    before = conf;
    assert_int_equal(conf_parse(&conf, "muster.json", text, strlen(text), collect, all), -1);
    assert_string_equal(
        all, "muster.json line 1: key \"zebras\": unknown; known here: log_level, log_sink, "
             "timeouts, stall_report, stall_terminal, stats, tree_arity, direct, memory_max, "
             "on_task_loss, "
             "spawn_overcommit, spawn_linger, step_settings, tmpdir\n"
             "muster.json line 3: key \"timeouts.fense\": unknown; did you mean "
             "\"timeouts.fence\"?\n"
             "muster.json line 2: key \"tree_arity\": 1 is out of range; give 2 to 1024, " NUMBER
             "\nmuster.json line 3: key \"timeouts.peer\": 0 is out of range; give 1 to 3600 "
             "seconds, for example \"peer\": 30\n"
             "muster.json line 4: key \"tmpdir\": found 3; give " PATH "\n");
    assert_same(&conf, &before);
}

/* Of a key that stands twice, only that: which of its values the others would see is not said. */
static void test_twice_hides_values(void **state)
{
    static const char text[] = "{\"timeouts\": {\"get\": -1},\n\"timeouts\": {}, \"tmpdir\": 3}";
    char all[2000] = "";
    struct conf conf;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(conf_parse(&conf, "muster.json", text, strlen(text), collect, all), -1);
    assert_string_equal(all, "muster.json line 2: key \"timeouts\": given twice, first on line 1; "
                             "remove one of the two\n");
}

static void test_long_path(void **state)
{
    char text[400], path[CONF_PATH_SIZE + 1] = "/";
    struct conf conf;
    struct err err;
    (void)state;
    memset(path + 1, 'p', CONF_PATH_SIZE - 1);
    conf_defaults(&conf);
    for (int cut = 0; cut < 2; cut++) {
        path[CONF_PATH_SIZE - cut] = '\0';
        snprintf(text, sizeof(text), "{\"tmpdir\": \"%s\"}", path);
        assert_int_equal(parse(&conf, text, strlen(text), &err), cut - 1);
    }
    assert_string_equal(conf.tmpdir, path);
}

static void test_bytes(void **state)
{
    char name[1000], *large = calloc(1, CONF_FILE_MAX + 1);
    struct conf conf;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(parse(&conf, "{}\n\0", 4, &err), -1);
    assert_string_equal(err.text,
                        "muster.json line 2 column 1: NUL byte; save the file as UTF-8 text");
    assert_non_null(large);
    memset(large, ' ', CONF_FILE_MAX + 1);
    memcpy(large, "{}", 2);
    assert_int_equal(parse(&conf, large, CONF_FILE_MAX, &err), 0);
    assert_int_equal(parse(&conf, large, CONF_FILE_MAX + 1, &err), -1);
    assert_string_equal(err.text, "muster.json: larger than 1048576 bytes, the most that settings "
                                  "may take; is it the right file?");
    free(large);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    err = (struct err){0};
    assert_int_equal(conf_parse(&conf, name, "{\"tree_arity\": 1}", 17, conf_keep_first, &err), -1);
    assert_non_null(strstr(err.text, "n line 1: key \"tree_arity\": 1 is out of range; give 2 to "
                                     "1024, for example \"tree_arity\": 16"));
}

/* A number that no integer holds is refused by some releases of json-c and cut by others. */
static void test_huge_number(void **state)
{
    const char *text = "{\"tree_arity\": 99999999999999999999999}";
    struct conf conf;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(parse(&conf, text, strlen(text), &err), -1);
    assert_non_null(strstr(err.text, "muster.json line 1"));
    assert_non_null(strstr(err.text, "99999999999999999999999"));
    assert_null(strstr(err.text, "18446744073709551615"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_all_mistakes),
        cmocka_unit_test(test_twice_hides_values),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_huge_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
