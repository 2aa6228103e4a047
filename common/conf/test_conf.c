/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings: every key, defaults, overlay, broken input, the dump and the example file.
 */
#include "common/conf/conf.h"
#include "common/conf/conf_schema.h"
#include "common/util/test_cmocka.h"
#include <stdlib.h>
#include <string.h>

static const char sample[] =
    "// settings\n"
    "{ /* \"no_key\": 1 **/\n"
    "    \"log_level\": \"debug\", // {\n"
    "    \"log_sink\": \"syslog\", \"tmpdir\": \"/var/tmp\",\n"
    "    \"timeouts\": {\n"
    "        \"construct\": 1, \"destruct\": 2, /* \xc3\xa9 */ \"fence\": 3,\n"
    "        \"get\": 4, \"query\": 86400,\n"
    "        \"peer\": 3600\n"
    "    },\n"
    "    \"stall_report\": 0, \"stall_terminal\": \"never\",\n"
    "    \"step_settings\": \"forbid\",\n"
    "    \"tree_arity\": 1024, \"memory_max\": 512,\n"
    "    \"direct\": {\"mode\": \"off\", \"address\": \"fd00::/8\", \"port\": 60001, \"ports\": "
    "9},\n"
    "    \"on_task_loss\": \"continue\"\n"
    "} // end";

static int parse(struct conf *conf, const char *text, size_t len, struct err *err)
{
    *err = (struct err){0};
    return conf_parse(conf, "muster.json", text, len, conf_keep_first, err);
}

static void assert_same(const struct conf *a, const struct conf *b)
{
    assert_memory_equal(a, b, sizeof(*a)); /* ints and a path with its zeros: no padding */
}

static void test_defaults(void **state)
{
    struct conf conf, empty;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(conf.log_level, LOG_LEVEL_WARNING);
    assert_int_equal(conf.log_sink, CONF_LOG_STDERR);
    assert_string_equal(conf.tmpdir, "");
    assert_int_equal(conf.timeouts.construct, 0);
    assert_int_equal(conf.timeouts.destruct, 0);
    assert_int_equal(conf.timeouts.fence, 0);
    assert_int_equal(conf.timeouts.get, 120);
    assert_int_equal(conf.timeouts.query, 10);
    assert_int_equal(conf.timeouts.peer, 30);
    assert_int_equal(conf.stall_report, 60);
    assert_int_equal(conf.tree_arity, 16);
    assert_int_equal(conf.memory_max, 0);
    assert_int_equal(conf.direct.mode, CONF_DIRECT_ON);
    assert_string_equal(conf.direct.where, "");
    assert_int_equal(conf.direct.port, 0);
    assert_int_equal(conf.direct.ports, 1000);
    assert_int_equal(conf.on_task_loss, CONF_TASK_LOSS_END_STEP);
    assert_int_equal(conf.stall_terminal, CONF_STALL_ONCE);
    assert_int_equal(conf.step_settings, CONF_STEP_ALLOW);
    conf_defaults(&empty);
    assert_int_equal(parse(&empty, "{}", 2, &err), 0);
    assert_same(&conf, &empty);
}

static void test_every_key(void **state)
{
    struct conf conf;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(parse(&conf, sample, strlen(sample), &err), 0);
    assert_int_equal(conf.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(conf.log_sink, CONF_LOG_SYSLOG);
    assert_string_equal(conf.tmpdir, "/var/tmp");
    assert_int_equal(conf.timeouts.construct, 1);
    assert_int_equal(conf.timeouts.destruct, 2);
    assert_int_equal(conf.timeouts.fence, 3);
    assert_int_equal(conf.timeouts.get, 4);
    assert_int_equal(conf.timeouts.query, 86400);
    assert_int_equal(conf.timeouts.peer, 3600);
    assert_int_equal(conf.stall_report, 0);
    assert_int_equal(conf.tree_arity, 1024);
    assert_int_equal(conf.memory_max, 512);
    assert_int_equal(conf.direct.mode, CONF_DIRECT_OFF);
    assert_string_equal(conf.direct.where, "fd00::/8");
    assert_int_equal(conf.direct.port, 60001);
    assert_int_equal(conf.direct.ports, 9);
    assert_int_equal(conf.on_task_loss, CONF_TASK_LOSS_CONTINUE);
}

/* A setting of one key. */
static void write_setting(const struct conf_row *row, const char *value, char *text, size_t size)
{
    const char *leaf = conf_row_leaf(row);
    int section = (int)(leaf - row->key);
    if (section == 0)
        snprintf(text, size, "{\"%s\": %s}", leaf, value);
    else
        snprintf(text, size, "{\"%.*s\": {\"%s\": %s}}", section - 1, row->key, leaf, value);
}

/* Both ends of each range and each word are taken, what is beyond an end is not. */
static void test_every_row(void **state)
{
    (void)state;
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        char text[128], shown[32];
        struct conf conf;
        struct err err;
        conf_defaults(&conf);
        for (int i = -1; row->kind == CONF_NUMBER && i <= 2; i++) {
            int value = i < 1 ? row->min + i : row->max + i - 1;
            int rc = i == -1 || i == 2 ? -1 : 0;
            snprintf(shown, sizeof(shown), "%d", value);
            write_setting(row, shown, text, sizeof(text));
            assert_int_equal(parse(&conf, text, strlen(text), &err), rc);
            if (rc == 0)
                assert_int_equal(conf_row_get(row, &conf), value);
        }
        for (const struct conf_word *w = row->words; w && w->word; w++) {
            snprintf(shown, sizeof(shown), "\"%s\"", w->word);
            write_setting(row, shown, text, sizeof(text));
            assert_int_equal(parse(&conf, text, strlen(text), &err), 0);
            assert_int_equal(conf_row_get(row, &conf), w->value);
        }
        assert_true(strlen(row->help) <= 80);
    }
}

/* A second source changes only what it gives; a source that is wrong changes nothing. */
static void test_overlay(void **state)
{
    const char *wrong = "{\"tree_arity\": 8, \"stall_report\": -1}";
    struct conf conf, before;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(parse(&conf, sample, strlen(sample), &err), 0);
    assert_int_equal(parse(&conf, "{\"tree_arity\": 7}", 17, &err), 0);
    assert_int_equal(conf.tree_arity, 7);
    assert_int_equal(conf.timeouts.fence, 3);
    before = conf;
    assert_int_equal(parse(&conf, wrong, strlen(wrong), &err), -1);
    assert_same(&conf, &before);
}

/* Whatever comes, there is an answer: 0, or -1 with a text. The sanitizers watch the rest. */
static void try_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1); /* no NUL behind it: reading on is seen */
    struct conf conf;
    struct err err;
    assert_non_null(copy);
    memcpy(copy, text, len);
    conf_defaults(&conf);
    int rc = parse(&conf, copy, len, &err);
    assert_int_equal(rc, err.text[0] ? -1 : 0);
    free(copy);
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t len = 0; len <= strlen(sample); len++)
        try_copy(sample, len);
}

static void test_flipped(void **state)
{
    char text[sizeof(sample)];
    (void)state;
    for (size_t i = 0; i < strlen(sample); i++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, sample, sizeof(text));
            text[i] = (char)byte;
            try_copy(text, strlen(sample));
        }
    }
}

/* Several bytes at once, from a fixed seed; signs of JSON are more likely than others. */
static void test_garbled(void **state)
{
    static const char signs[] = "{}[]\"\\:,/*'\n\t 0-.";
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof(sample)];
        memcpy(text, sample, sizeof(text));
        for (int i = 0; i < 1 + round % 8; i++) {
            seed = seed * 1664525 + 1013904223;
            text[(seed >> 8) % strlen(sample)] = signs[(seed >> 24) % (sizeof(signs) - 1)];
        }
        try_copy(text, strlen(sample));
    }
}

static char *dump(const struct conf *conf)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    conf_dump(conf, NULL, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_dump_is_read_back(void **state)
{
    struct conf conf, again;
    struct err err;
    (void)state;
    conf_defaults(&conf);
    assert_int_equal(parse(&conf, sample, strlen(sample), &err), 0);
    char *text = dump(&conf);
    conf_defaults(&again);
    assert_int_equal(parse(&again, text, strlen(text), &err), 0);
    assert_same(&conf, &again);
    free(text);
}

/* Reads a file of the source tree, found from where we were compiled. */
static void read_source(const char *name, char *text, size_t size)
{
    static const char here[] = __FILE__, below[] = "common/conf/test_conf.c";
    char path[sizeof(here) + 64];
    snprintf(path, sizeof(path), "%.*s%s", (int)(strlen(here) - strlen(below)), here, name);
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("%s: cannot be opened; run the test where it was compiled", path);
    text[fread(text, 1, size - 1, in)] = '\0';
    fclose(in);
}

/* docs/muster.json.example is the dump of the defaults. */
static void test_example(void **state)
{
    struct conf conf;
    char text[8192], *expected;
    (void)state;
    read_source("docs/muster.json.example", text, sizeof(text));
    conf_defaults(&conf);
    expected = dump(&conf);
    assert_string_equal(text, expected);
    free(expected);
}

/* man/muster.json.5 has every key with its range and its default, and no others. */
static void test_man_page(void **state)
{
    char text[32768], *to = text;
    unsigned rows = 0, found = 0;
    (void)state;
    read_source("man/muster.json.5", text, sizeof(text));
    for (const char *from = text; *from != '\0'; from++) { /* roff's \- is a - */
        if (from[0] != '\\' || from[1] != '-')
            *to++ = *from;
    }
    *to = '\0';
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        char range[96], entry[256];
        conf_row_range(row, range, sizeof(range));
        if (row->kind == CONF_SECTION)
            continue;
        else if (row->kind == CONF_NUMBER)
            snprintf(entry, sizeof(entry), "\n.TP\n.B %s\n%s; default %d\n", row->key, range,
                     row->def);
        else {
            const char *word = row->kind == CONF_WORD ? conf_row_word(row, row->def) : "";
            const char *quote = conf_word_quote(word);
            snprintf(entry, sizeof(entry), "\n.TP\n.B %s\n%s; default %s%s%s\n", row->key, range,
                     quote, word, quote);
        }
        if (!strstr(text, entry))
            fail_msg("man/muster.json.5 lacks: %s", entry);
        rows++;
    }
    for (const char *p = text; (p = strstr(p, "; default ")); p++)
        found++;
    assert_int_equal(found, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_every_row), cmocka_unit_test(test_overlay),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_garbled),   cmocka_unit_test(test_dump_is_read_back),
        cmocka_unit_test(test_example),   cmocka_unit_test(test_man_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
