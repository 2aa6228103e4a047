/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how stacks of many ranks become few lines, and of answers that come in pieces.
 */
#include "common/status/fold.h"
#include "common/status/pieces.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

static void expect(json_object *nodes, const char *lines)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    fold_write(out, nodes, false);
    fclose(out);
    assert_string_equal(text, lines);
    free(text);
}

static json_object *parse(const char *text)
{
    json_object *o = json_tokener_parse(text);
    assert_non_null(o);
    return o;
}

#define SOLVE "\"stack\":[\"main\",\"solve\",\"MPI_Barrier\",\"inside\"]"

static void two_groups(void **state)
{
    (void)state;
    json_object *nodes = parse(
        "[{\"node\":\"c05\",\"tasks\":[{\"rank\":0," SOLVE "},{\"rank\":1," SOLVE "},"
        "{\"rank\":2," SOLVE "}]},{\"node\":\"c07\",\"tasks\":[{\"rank\":4," SOLVE "},"
        "{\"rank\":3,\"stack\":[\"main\",\"read_input\",\"read\"]},{\"rank\":5,\"state\":\"lost\"},"
        "{\"rank\":6,\"state\":\"started\",\"no_stack\":\"gone\"}]}]");
    expect(nodes, "4 ranks  main > solve > MPI_Barrier  (0-2,4 on c05,c07)\n"
                  "1 rank   main > read_input > read  (3 on c07)\n"
                  "1 rank   lost  (5 on c07)\n"
                  "1 rank   no stack: gone  (6 on c07)\n");
    json_object_put(nodes);
}

static void many_nodes(void **state)
{
    (void)state;
    json_object *nodes = json_object_new_array();
    for (int i = 0; i < 12; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"node\":\"c%d\",\"tasks\":[{\"rank\":%d," SOLVE "}]}", i,
                 2 * i);
        json_object_array_add(nodes, parse(text));
    }
    expect(nodes, "12 ranks  main > solve > MPI_Barrier  (0,2,4,6,8,10,12,14,16,18,20,22 on 12 "
                  "nodes)\n");
    json_object_put(nodes);
}

static void nonsense(void **state)
{
    (void)state;
    json_object *nodes = parse("[3,{},{\"tasks\":{}},{\"tasks\":[1,{},{\"rank\":\"1\"},"
                               "{\"rank\":1,\"stack\":7,\"no_stack\":8}]},"
                               "{\"node\":\"\\u001b[2J\",\"tasks\":[{\"rank\":-1,\"stack\":[]}]}]");
    expect(nodes, "2 ranks  ?  (-1,1 on ?[2J,?)\n");
    json_object_put(nodes);
    expect(NULL, "");
}

/* ---- pieces ---- */

static void take_all(struct pieces *pieces, char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL;)
        assert_int_equal(pieces_take(pieces, line), 0);
}

static void in_pieces(void **state)
{
    struct pieces pieces = {0};
    char *text = NULL, *longest, answer[4000];
    size_t len;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    snprintf(answer, sizeof answer, "{\"nodes\":[{\"node\":\"c1\",\"fill\":\"%02000d\"}]}", 7);
    assert_int_equal(pieces_write(out, "c1", answer), 0);
    assert_int_equal(pieces_write(out, "c2", "{\"silent\":[{\"node\":\"c2\",\"why\":\"w\"}]}"), 0);
    fprintf(out, "srun: words of others\nmuster c3 + {\"nodes\":\nmuster c4 . no JSON\n"
                 "muster\nmuster c\nmuster c5 x\nmuster  . {}\n");
    fclose(out);
    for (char *line = text; (longest = strchr(line, '\n')) != NULL; line = longest + 1)
        assert_true(longest - line < 1023); /* Slurm keeps such lines together */
    take_all(&pieces, text);
    json_object *all = pieces_end(&pieces), *o;
    assert_true(json_object_object_get_ex(all, "nodes", &o));
    assert_int_equal(json_object_array_length(o), 1);
    assert_true(json_object_object_get_ex(all, "silent", &o));
    assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
                        "[{\"node\":\"c2\",\"why\":\"w\"},{\"node\":\"c3\",\"why\":\"it broke "
                        "off\"},{\"node\":\"c4\",\"why\":\"its answer makes no sense\"}]");
    json_object_put(all);
    free(text);
}

/* Two command lines: one's node answers, and the other says nothing of one node. */
static void commands(void **state)
{
    struct err err = {0};
    char *one[] = {(char *)"echo", (char *)"muster a . {\"nodes\":[{\"node\":\"a\"}]}", NULL},
         *two[] = {(char *)"false", NULL}, *a[] = {(char *)"a", NULL}, *b[] = {(char *)"b", NULL};
    struct reach_line lines[] = {{.argv = one, .nodes = a}, {.argv = two, .nodes = b}};
    const struct reach reach = {.lines = lines, .n = 2};
    (void)state;
    json_object *all = pieces_run(&reach, 60000, NULL, &err);
    assert_string_equal(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN),
                        "{\"nodes\":[{\"node\":\"a\"}],\"silent\":[{\"node\":\"b\",\"why\":\"no "
                        "answer came from there\"}]}");
    json_object_put(all);
}

static void no_command(void **state)
{
    struct err err = {0};
    char *argv[] = {(char *)"/nonexistent/srun", NULL};
    struct reach_line line = {.argv = argv};
    const struct reach reach = {.lines = &line, .n = 1};
    (void)state;
    assert_null(pieces_run(&reach, 60000, NULL, &err));
    assert_string_equal(err.text, "cannot start /nonexistent/srun: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_groups), cmocka_unit_test(many_nodes), cmocka_unit_test(nonsense),
        cmocka_unit_test(in_pieces),  cmocka_unit_test(commands),   cmocka_unit_test(no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
