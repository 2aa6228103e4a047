/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of traces that are put together.
 */
#include "common/status/trace_merge.h"
#include "common/util/test_cmocka.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/muster-trace.XXXXXX";
static char paths[3][64];

static void write_file(int i, const char *text)
{
    snprintf(paths[i], sizeof paths[i], "%s/%d", dir, i);
    FILE *out = fopen(paths[i], "we");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

#define HEAD(pid, node)                                                                            \
    "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"                                              \
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" #pid                                        \
    ",\"tid\":0,\"args\":{\"name\":\"" node "\"}}"
#define SLICE(pid, ts, dur, op, more)                                                              \
    ",\n{\"name\":\"a fence\",\"cat\":\"fence\",\"ph\":\"X\",\"pid\":" #pid                        \
    ",\"tid\":0,\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"op\":\"" op "\",\"status\":0" more     \
    "}}"
#define TAIL "\n]}\n"

static int merge(size_t n, char **text, char **notes, struct err *err)
{
    char *files[] = {paths[0], paths[1], paths[2], NULL};
    size_t len, notes_len;
    FILE *out = open_memstream(text, &len), *to = open_memstream(notes, &notes_len);
    int rc = trace_merge(out, to, files, n, err);
    fclose(out);
    fclose(to);
    return rc;
}

/* The second clock is 1 s ahead. Its node was late twice, once by too little for an arrow. */
static void clocks_are_aligned(void **state)
{
    char *text, *notes;
    struct err err = {0};
    (void)state;
    write_file(0,
               HEAD(0, "c01") SLICE(0, 5000, 50100, "ab.1", ",\"last\":\"c02\",\"late_us\":50000")
                   SLICE(0, 60000, 500, "ab.2", ",\"last\":\"c02\",\"late_us\":500")
                       SLICE(0, 70000, 10, "cd.0", "") TAIL);
    write_file(1, HEAD(1, "c02") SLICE(1, 1055000, 100, "ab.1", "")
                      SLICE(1, 1060400, 100, "ab.2", "") SLICE(1, 5000000, 10, "cd.0", "") TAIL);
    assert_int_equal(merge(2, &text, &notes, &err), 0);
    json_object *trace = json_tokener_parse(text), *events;
    assert_non_null(trace);
    assert_true(json_object_object_get_ex(trace, "traceEvents", &events));
    assert_int_equal(json_object_array_length(events), 2 + 6 + 2);
    assert_non_null(strstr(text, "\"name\":\"LAST, 50.0 ms late: a fence\",\"cat\":\"fence\","
                                 "\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":55000,"));
    assert_null(strstr(text, "LAST, 0"));
    assert_non_null(strstr(text, "\"ph\":\"s\",\"id\":0,\"pid\":1,\"tid\":0,\"ts\":55000}"));
    assert_non_null(
        strstr(text, "\"ph\":\"f\",\"bp\":\"e\",\"id\":0,\"pid\":0,\"tid\":0,\"ts\":55099}"));
    assert_null(strstr(text, "\"id\":1"));
    assert_string_equal(notes, "2 nodes; clocks aligned by the ends of operations: nine in ten "
                               "within 0.00 ms\n");
    json_object_put(trace);
    free(text);
    free(notes);
}

static void what_is_no_trace_is_refused(void **state)
{
    char *text, *notes;
    struct err err = {0};
    (void)state;
    write_file(0, HEAD(0, "c01") SLICE(0, 5000, 50000, "ab.1", "") TAIL);
    write_file(1, "{\"ph\":1}\n{,\n[]\n{\"ph\":\"X\",\"ts\":{},\"args\":7}\n");
    assert_int_equal(merge(2, &text, &notes, &err), -1);
    assert_non_null(strstr(err.text, "/1: this is no trace of a muster-server"));
    free(text);
    free(notes);
    err = (struct err){0};
    unlink(paths[1]);
    assert_int_equal(merge(2, &text, &notes, &err), -1);
    assert_non_null(strstr(err.text, "No such file"));
    free(text);
    free(notes);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_are_aligned),
        cmocka_unit_test(what_is_no_trace_is_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
