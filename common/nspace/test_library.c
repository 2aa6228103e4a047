/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the table of libpmix's releases. With "--table" it prints the table for docs/libpmix.md.
 */
#include "common/nspace/library.h"

#include "common/nspace/built.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

static uint32_t release(unsigned major, unsigned minor, unsigned micro)
{
    return major << 16 | minor << 8 | micro;
}

static void it_reads_what_runs(void **state)
{
    char version[64], text[LIBRARY_TEXT_SIZE];
    struct err err = {0};
    uint32_t library = 0;
    (void)state;
    snprintf(version, sizeof version, "OpenPMIx %d.2.13rc1, repo rev: v1", (int)PMIX_VERSION_MAJOR);
    assert_int_equal(library_read(version, &library, &err), 0);
    assert_int_equal(library, release(PMIX_VERSION_MAJOR, 2, 13));
    snprintf(version, sizeof version, "%d.2.13", (int)PMIX_VERSION_MAJOR);
    assert_string_equal(library_text(library, text), version);
    assert_int_equal(library_read("PMIx 3.1.5", &library, &err), -1);
    assert_int_equal(library, release(3, 1, 5));
    assert_non_null(strstr(err.text, "libpmix 3.1.5 is installed"));
    err.text[0] = '\0';
    assert_int_equal(library_read("unknown", &library, &err), -1);
    assert_string_equal(library_text(UINT32_MAX, text), "65535.255.255");
}

/* What is where its range begins and ends: each limit of the table once, by hand. */
static void each_is_in_its_releases(void **state)
{
    static const struct {
        enum library_trait trait;
        unsigned has[3], lacks[3]; /* neighbours */
    } limits[] = {
        {LIBRARY_GROUP_ADDS, {6, 1, 0}, {6, 0, 9}},
        {LIBRARY_GROUP_SHARES, {6, 1, 0}, {6, 0, 9}},
        {LIBRARY_GROUP_ORDER, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_GROUP_FT, {7, 0, 0}, {6, 255, 255}},
        {LIBRARY_GROUP_COUNTS, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_GROUP_ABORTS, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_HOST_STORES, {6, 0, 0}, {5, 0, 7}},
        {LIBRARY_APP_GROWS, {5, 0, 0}, {4, 2, 9}},
        {LIBRARY_LOG2, {6, 0, 0}, {5, 0, 7}},
        {LIBRARY_SESSION_CONTROL, {5, 0, 0}, {4, 2, 9}},
        {LIBRARY_RESOURCE_BLOCK, {6, 0, 0}, {5, 0, 9}},
        {LIBRARY_LOOKUP_PARTIAL, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_ASKS_FOR_KEYS, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_SLOTS_CHOSEN, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_STOPS_RANKS, {6, 1, 0}, {6, 0, 9}},
        {LIBRARY_GROUP_TIMER_CRASHES, {4, 2, 9}, {5, 0, 0}},
        {LIBRARY_CONNECT_TIMER_STAYS, {6, 1, 0}, {7, 0, 0}},
        {LIBRARY_CONNECT_TELLS_LOCAL, {5, 0, 0}, {4, 2, 9}},
        {LIBRARY_FENCE_MIXES_JOBS, {5, 0, 7}, {6, 0, 0}},
        {LIBRARY_WILDCARD_IS_LOCAL, {4, 2, 9}, {5, 0, 0}},
        {LIBRARY_LOCAL_DESTRUCT_TOLD, {6, 0, 9}, {6, 1, 0}},
        {LIBRARY_SET_STATUS_UNSET, {4, 2, 9}, {5, 0, 0}},
        {LIBRARY_EVENT_ANSWER_RACES, {5, 0, 7}, {6, 0, 0}},
        {LIBRARY_DATA_ANSWER_RACES, {6, 0, 0}, {6, 1, 0}},
        {LIBRARY_FINALIZE_RACES, {6, 1, 0}, {7, 0, 0}},
        {LIBRARY_CLOSING_LEAVES_ALL, {6, 1, 0}, {7, 0, 0}},
        {LIBRARY_LOSS_ENDS_TWICE, {6, 1, 0}, {7, 0, 0}},
        {LIBRARY_GONE_IS_AWAITED, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_SILENT_IS_CUT, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_UNLOADED_LEAKS, {7, 0, 0}, {6, 1, 0}},
        {LIBRARY_ARRAYS_LEAK, {4, 2, 9}, {5, 0, 0}},
    };
    (void)state;
    assert_int_equal(sizeof limits / sizeof *limits, LIBRARY_TRAITS);
    for (size_t i = 0; i < LIBRARY_TRAITS; i++) {
        const unsigned *has = limits[i].has, *lacks = limits[i].lacks;
        assert_int_equal(limits[i].trait, i);
        if (!library_has(release(has[0], has[1], has[2]), limits[i].trait) ||
            library_has(release(lacks[0], lacks[1], lacks[2]), limits[i].trait))
            fail_msg("%s", library_row(limits[i].trait)->name);
    }
}

/* "6.1", or "7" of 7.0 */
static const char *limit(uint32_t at, char text[16])
{
    snprintf(text, 16, (at >> 8 & 255) != 0 ? "%u.%u" : "%u", at >> 16, at >> 8 & 255);
    return text;
}

static void each_row_is_whole(void **state)
{
    (void)state;
    for (enum library_trait i = 0; i < LIBRARY_TRAITS; i++) {
        const struct library_row *row = library_row(i);
        char from[16], needs[64];
        assert_non_null(row->name);
        assert_non_null(row->meaning);
        assert_true(row->from != 0 || row->before != 0); /* else nobody need ask */
        assert_true(row->before == 0 || row->from < row->before);
        snprintf(needs, sizeof needs, "needs libpmix %s or newer on every node",
                 limit(row->from, from));
        if (row->advice != NULL && !row->fault)
            assert_string_equal(row->advice, needs);
    }
}

/* What #if decides is what the table says of the release that muster is built with. */
static void the_headers_agree(void **state)
{
    uint32_t built = release(PMIX_VERSION_MAJOR, 0, 0);
    (void)state;
    assert_int_equal(library_has(built, LIBRARY_LOG2), BUILT_WITH(LOG2));
    assert_int_equal(library_has(built, LIBRARY_HOST_STORES), BUILT_WITH(REGISTER_RESOURCES));
    assert_int_equal(library_has(built, LIBRARY_SESSION_CONTROL), BUILT_WITH(SESSION_CONTROL));
    assert_int_equal(library_has(built, LIBRARY_RESOURCE_BLOCK), BUILT_WITH(RESOURCE_BLOCK));
    assert_int_equal(library_has(built, LIBRARY_UNLOADED_LEAKS), BUILT_WITH(UNLOADED_LEAKS));
}

static void write_row(const struct library_row *row, char *text, size_t cap)
{
    char from[16], before[16];
    snprintf(text, cap, "| `%s` | %s | %s | %s | %s |\n", row->name,
             row->from != 0 ? limit(row->from, from) : "",
             row->before != 0 ? limit(row->before, before) : "", row->meaning,
             row->advice != NULL ? row->advice : "");
}

/* The rows of docs/libpmix.md are those of the code, in the same order, and no others. */
static void the_docs_have_the_same(void **state)
{
    char line[2048], expected[2048];
    unsigned next = 0;
    (void)state;
    FILE *in = fopen(LIBRARY_DOC, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, "| `", 3) != 0)
            continue;
        assert_true(next < LIBRARY_TRAITS);
        write_row(library_row(next++), expected, sizeof expected);
        assert_string_equal(line, expected);
    }
    fclose(in);
    assert_int_equal(next, LIBRARY_TRAITS);
}

static int print_table(void)
{
    char text[2048];
    for (enum library_trait i = 0; i < LIBRARY_TRAITS; i++) {
        const struct library_row *row = library_row(i);
        if (i == 0 || row->fault != library_row(i - 1)->fault)
            printf("\n## %s\n\n| name | from | before | meaning | what a user reads |\n"
                   "| --- | --- | --- | --- | --- |\n",
                   row->fault ? "Gets wrong" : "Has");
        write_row(row, text, sizeof text);
        fputs(text, stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_what_runs), cmocka_unit_test(each_is_in_its_releases),
        cmocka_unit_test(each_row_is_whole), cmocka_unit_test(the_headers_agree),
        cmocka_unit_test(the_docs_have_the_same)};
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        return print_table();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
