/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the words that muster-status has for a state, and of a step's name.
 */
#include "common/status/find.h"
#include "common/status/words.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @return the words for a state, or NULL when it is none; the caller frees them */
static char *words(const char *text)
{
    char *buf = NULL;
    size_t len;
    json_object *state = json_tokener_parse(text);
    FILE *out = open_memstream(&buf, &len);
    int rc = words_write(out, state, "alice");
    fclose(out);
    json_object_put(state);
    assert_true(rc == 0 || len == 0);
    if (rc == 0)
        return buf;
    free(buf);
    return NULL;
}

static void assert_words(const char *state, const char *expected)
{
    char *found = words(state);
    assert_non_null(found);
    assert_string_equal(found, expected);
    free(found);
}

#define C07                                                                                        \
    "\"step\":\"4711.0\",\"node\":\"c07\",\"version\":\"1.0\",\"libpmix\":\"5.0.7\","              \
    "\"uptime\":70.25,\"tasks\":[{\"rank\":0,\"state\":\"connected\"},"                            \
    "{\"rank\":1,\"state\":\"connected\"},{\"rank\":2,\"state\":\"lost\"}]"
#define LINE "c07: muster 1.0, libpmix 5.0.7, up 70 s; tasks: 2 connected, 1 lost; "

static void nothing_waits(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07 ",\"trackers\":[],\"asks\":[],\"peers\":[]}],\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE
                 "0 waiting\nno PMIx operation waits\n");
}

static void where_tools_go(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{\"uri\":\"m.0;tcp4://127.0.0.1:4\\u001b\"," C07 "}],\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE
                 "0 waiting; for tools: \"m.0;tcp4://127.0.0.1:4?\"\nno PMIx operation waits\n");
}

/* As the resource manager's users call it. */
static void a_job(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{\"unit\":\"job\"," C07 "}],\"silent\":[]}",
                 "job 4711.0 of alice: 1 of 1 nodes answer\n" LINE
                 "0 waiting\nno PMIx operation waits\n");
    assert_words("{\"nodes\":[{\"unit\":\"\\u001b[31m\"," C07 "}],\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE
                 "0 waiting\nno PMIx operation waits\n");
}

static void settings_that_are_no_defaults(void **state)
{
    (void)state;
    assert_words(
        "{\"nodes\":[{" C07
        ",\"settings\":[{\"key\":\"on_task_loss\",\"value\":\"continue\",\"from\":\"step\"},"
        "{\"key\":\"timeouts.fence\",\"value\":\"5\",\"from\":\"muster.json\"}]}],"
        "\"silent\":[]}",
        "step 4711.0 of alice: 1 of 1 nodes answer\n"
        "settings: on_task_loss continue (by: step), timeouts.fence 5 (by: muster.json)\n" LINE
        "0 waiting\nno PMIx operation waits\n");
}

static void who_belongs_together(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07 ",\"psets\":[{\"name\":\"ocean\",\"size\":4},"
                 "{\"name\":\"ice\",\"size\":3}],\"psets_omitted\":2,"
                 "\"connections\":[{\"name\":\"\",\"size\":7}],\"connections_omitted\":1}],"
                 "\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n"
                 "process sets: ocean of 4, ice of 3, and 2 more\n"
                 "c07: muster 1.0, libpmix 5.0.7, up 70 s; tasks: 2 connected, 1 lost; "
                 "open connections: 2; 0 waiting\nno PMIx operation waits\n");
}

static void calls_that_belong_to_nothing_yet(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07
                 ",\"waits\":[{\"about\":\"group x\",\"age\":3.5,\"left\":null},"
                 "{\"about\":\"group y\",\"age\":4,\"left\":6}],\"waits_omitted\":2}],"
                 "\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE "4 waiting\n"
                 "c07 has waited for 3 s: group x\n"
                 "c07 has waited for 4 s, fails in 6 s: group y\n");
}

static void the_one_that_decides_is_believed(void **state)
{
    (void)state;
    assert_words(
        "{\"nodes\":[{" C07
        ",\"trackers\":[{\"id\":\"1\",\"operation\":\"fence of 8 processes\",\"age\":60.1,"
        "\"left\":null,\"root\":\"c08\",\"decides\":false,\"missing\":[]}]},"
        "{\"node\":\"c08\",\"version\":\"1.0\",\"libpmix\":\"5.0.7\",\"uptime\":70,"
        "\"trackers\":[{\"id\":\"1\",\"operation\":\"fence of 8 processes\",\"age\":61.9,"
        "\"left\":9.5,\"root\":\"c08\",\"decides\":true,\"missing\":["
        "{\"node\":\"c09\",\"nspace\":\"n\",\"ranks\":\"5,9\"},"
        "{\"node\":\"c10\",\"nspace\":\"n\",\"ranks\":\"12\"}],\"missing_omitted\":3}]}],"
        "\"silent\":[{\"node\":\"c10\",\"why\":\"no answer within 5 s\"}]}",
        "step 4711.0 of alice: 2 of 3 nodes answer\n" LINE "1 waiting\n"
        "c08: muster 1.0, libpmix 5.0.7, up 70 s; 1 waiting\n"
        "c10: no answer within 5 s\n"
        "fence of 8 processes has waited for 61 s, fails in 9 s: "
        "missing one or more of ranks 5,9 on c09, rank 12 on c10, and ranks on 3 more nodes\n");
}

static void without_the_one_that_decides(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07
                 ",\"trackers\":[{\"id\":\"1\",\"operation\":\"fence of 8 processes\",\"age\":60,"
                 "\"left\":null,\"root\":\"c08\",\"decides\":false,\"missing\":[]}]}],"
                 "\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE "1 waiting\n"
                 "fence of 8 processes has waited for 60 s: no word yet of c08, which decides\n");
}

static void in_the_order_of_names(void **state)
{
    (void)state;
    char *found = words("{\"nodes\":[{\"node\":\"c10\"},{\"node\":\"c9\"}],\"silent\":["
                        "{\"node\":\"c11\",\"why\":\"x\"},{\"node\":\"c2\",\"why\":\"y\"}]}");
    assert_non_null(found);
    const char *c9 = strstr(found, "\nc9: muster"), *c10 = strstr(found, "\nc10: muster"),
               *c2 = strstr(found, "\nc2: y\n"), *c11 = strstr(found, "\nc11: x\n");
    assert_true(c9 != NULL && c9 < c10 && c10 < c2 && c2 < c11);
    free(found);
}

static void questions_and_peers(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07
                 ",\"asks\":[{\"about\":\"direct modex of n rank 5\",\"age\":3}],\"peers\":["
                 "{\"node\":\"c08\",\"lost\":false,\"unreachable\":null},"
                 "{\"node\":\"c09\",\"lost\":false,\"unreachable\":12.5,\"queued\":4},"
                 "{\"node\":\"c10\",\"lost\":true,\"unreachable\":30}]}],\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n" LINE "1 waiting\n"
                 "c07 has waited for 3 s: direct modex of n rank 5\n"
                 "c07 has not reached c09 for 12 s, with 4 messages waiting\n"
                 "c07 has given up c10\n");
}

/* How messages go to other servers; an older server does not say. */
static void direct_and_native(void **state)
{
    (void)state;
    assert_words("{\"nodes\":[{" C07
                 ",\"peers\":[{\"node\":\"c08\",\"direct\":true},{\"node\":\"c09\"},"
                 "{\"node\":\"c10\",\"direct\":false},{\"node\":\"c11\",\"direct\":true}]}],"
                 "\"silent\":[]}",
                 "step 4711.0 of alice: 1 of 1 nodes answer\n"
                 "c07: muster 1.0, libpmix 5.0.7, up 70 s; tasks: 2 connected, 1 lost; other "
                 "servers: 2 direct, 1 native; "
                 "0 waiting\n"
                 "no PMIx operation waits\n");
}

static void what_is_no_state(void **state)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "7",
                                        "null",
                                        "{\"nodes\":[],\"silent\":[]}",
                                        "{\"nodes\":7,\"silent\":[]}",
                                        "{\"nodes\":[{}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(words(texts[i]));
}

/* A server is its user's, and may say anything. */
static void a_hostile_state(void **state)
{
    static const char *const texts[] = {
        "{\"nodes\":[7,null,[],{\"tasks\":[7],\"asks\":7,\"trackers\":[7,null,{\"missing\":[[]]}],"
        "\"peers\":[null]}],\"silent\":[7]}",
        "{\"nodes\":[{\"uptime\":1e300,\"node\":\"\\u001b[31m\\nroot\"}],\"silent\":[]}",
        "{\"nodes\":[{\"trackers_omitted\":-1,\"trackers\":[{\"operation\":\"%s%n\"}]}],"
        "\"silent\":[]}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *found = words(texts[i]);
        assert_non_null(found);
        assert_null(strchr(found, '\x1b'));
        assert_null(strstr(found, "\nroot"));
        free(found);
    }
}

static void names_of_steps(void **state)
{
    char name[FIND_STEP_MAX + 2];
    (void)state;
    assert_true(find_is_step("4711.0"));
    assert_true(find_is_step("job-7_a"));
    assert_false(find_is_step(""));
    assert_false(find_is_step(".."));
    assert_false(find_is_step("../4711.0"));
    assert_false(find_is_step("4711.0/"));
    assert_false(find_is_step("4711 .0"));
    memset(name, '1', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(find_is_step(name));
    assert_true(find_is_step(name + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits),
        cmocka_unit_test(where_tools_go),
        cmocka_unit_test(a_job),
        cmocka_unit_test(settings_that_are_no_defaults),
        cmocka_unit_test(who_belongs_together),
        cmocka_unit_test(calls_that_belong_to_nothing_yet),
        cmocka_unit_test(the_one_that_decides_is_believed),
        cmocka_unit_test(without_the_one_that_decides),
        cmocka_unit_test(in_the_order_of_names),
        cmocka_unit_test(questions_and_peers),
        cmocka_unit_test(direct_and_native),
        cmocka_unit_test(what_is_no_state),
        cmocka_unit_test(a_hostile_state),
        cmocka_unit_test(names_of_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
