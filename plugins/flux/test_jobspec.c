/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobspec of a spawned job: its shape on nodes, its environment, what it takes over. */
#include "plugins/flux/jobspec.h"

#include "common/util/test_cmocka.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *plan[] = {"1", "3", "", "1", "/bin/\"x\"\n", "x", "0"};

static const struct jobspec_member env[] = {{"HOME", "\"/h\""},
                                            {"PMIX_RANK", "\"3\""},
                                            {"MUSTER_EXEC_7", "\"old\""},
                                            {"MUSTER_PSETS", "\"a=0\""}};
static const struct jobspec_member options[] = {
    {"pmi", "\"simple,muster\""}, {"output", "{}"}, {"exit-timeout", "\"none\""}};

static struct rm_spawn order(uint32_t ntasks)
{
    return (struct rm_spawn){.parent = "flux.f1",
                             .rank = 2,
                             .ntasks = ntasks,
                             .plan = plan,
                             .nplan = sizeof plan / sizeof *plan,
                             .apps = "3"};
}

static const struct jobspec_parent parent = {.env = env,
                                             .nenv = 4,
                                             .options = options,
                                             .noptions = 3,
                                             .cwd = "/w",
                                             .queue = "q",
                                             .duration = 60,
                                             .channel = "0 1 t",
                                             .nnodes = 2};

static struct json_object *make(const struct rm_spawn *what)
{
    struct err err = {0};
    char *text = jobspec_make(&parent, what, &err);
    assert_non_null(text);
    struct json_object *spec = json_tokener_parse(text);
    assert_non_null(spec);
    free(text);
    return spec;
}

/* The value at a path of keys and indices, as text; "" for none. */
static const char *at(struct json_object *spec, const char *path)
{
    struct json_object *value = NULL;
    return json_pointer_get(spec, path, &value) == 0 ? json_object_get_string(value) : "";
}

static void test_env(void **state)
{
    (void)state;
    struct rm_spawn what = order(3);
    struct json_object *spec = make(&what);
    const char *system = "/attributes/system/environment/";
    static const struct {
        const char *name, *value;
    } due[] = {{"HOME", "/h"},
               {"PMIX_RANK", ""},
               {"MUSTER_EXEC_7", ""},
               {"MUSTER_PSETS", ""},
               {"MUSTER_EXEC_4", "/bin/\"x\"\n"},
               {"MUSTER_APPS", "3"},
               {"MUSTER_PARENT", "2 flux.f1"},
               {"MUSTER_CHANNEL", "0 1 t"}};
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", system, due[i].name);
        assert_string_equal(at(spec, path), due[i].value);
    }
    assert_string_equal(at(spec, "/attributes/system/cwd"), "/w");
    assert_string_equal(at(spec, "/attributes/system/queue"), "q");
    assert_string_equal(at(spec, "/attributes/system/bank"), "");
    assert_string_equal(at(spec, "/attributes/system/shell/options/pmi"), "simple,muster");
    assert_string_equal(at(spec, "/attributes/system/shell/options/exit-timeout"), "none");
    assert_string_equal(at(spec, "/attributes/system/shell/options/output"), "");
    assert_string_equal(at(spec, "/attributes/system/shell/options/input/stdin/path"), "/dev/null");
    assert_string_equal(at(spec, "/tasks/0/command/0"), MUSTER_EXEC_PATH);
    json_object_put(spec);
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        uint32_t ntasks, per_node;
        enum rm_map map;
        const char *hosts;
        const char *nodes, *slots, *total, *taskmap;
    } rows[] = {
        {5, 0, RM_MAP_ANY, NULL, "", "5", "", ""},
        {5, 2, RM_MAP_BLOCK, NULL, "3", "2", "5", ""},
        {4, 0, RM_MAP_NODES, NULL, "2", "2", "", "cyclic"},
        {1, 0, RM_MAP_NODES, NULL, "1", "1", "", "cyclic"},
        {4, 0, RM_MAP_ANY, "a,a,b,b", "2", "2", "", ""},
        {4, 0, RM_MAP_ANY, "a,b,a,b", "2", "2", "", "cyclic"},
        {3, 0, RM_MAP_ANY, "a,ab,b", "3", "1", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rm_spawn what = order(rows[i].ntasks);
        what.per_node = rows[i].per_node;
        what.map = rows[i].map;
        what.hosts = rows[i].hosts;
        struct json_object *spec = make(&what);
        bool nodes = rows[i].nodes[0] != '\0';
        assert_string_equal(at(spec, "/resources/0/type"), nodes ? "node" : "slot");
        if (nodes)
            assert_string_equal(at(spec, "/resources/0/count"), rows[i].nodes);
        assert_string_equal(at(spec, nodes ? "/resources/0/with/0/count" : "/resources/0/count"),
                            rows[i].slots);
        assert_string_equal(at(spec, "/tasks/0/count/total"), rows[i].total);
        assert_string_equal(at(spec, "/attributes/system/shell/options/taskmap/scheme"),
                            rows[i].taskmap);
        assert_string_equal(at(spec, "/attributes/system/constraints/hostlist/0"),
                            rows[i].hosts != NULL ? "a" : "");
        json_object_put(spec);
    }
}

static void test_uneven(void **state)
{
    (void)state;
    struct err err = {0};
    struct rm_spawn what = order(3);
    what.hosts = "a,a,b";
    assert_null(jobspec_make(&parent, &what, &err));
    assert_non_null(strstr(err.text, "different numbers"));
}

/* What is done for each pair of nodes takes minutes. */
static void test_many(void **state)
{
    (void)state;
    enum { NODES = 200000, NAME = 12 };
    char *hosts = malloc((size_t)NODES * NAME + 1), *end = hosts;
    struct rm_spawn what = order(NODES);
    assert_non_null(hosts);
    for (int i = 0; i < NODES; i++)
        end += sprintf(end, "%sn%d", i > 0 ? "," : "", i);
    what.hosts = hosts;
    struct json_object *spec = make(&what);
    assert_string_equal(at(spec, "/resources/0/count"), "200000");
    assert_string_equal(at(spec, "/attributes/system/constraints/hostlist/199999"), "n199999");
    json_object_put(spec);
    free(hosts);
}

static void test_output(void **state)
{
    (void)state;
    struct rm_spawn what = order(3);
    what.output = "f";
    what.bind = RM_BIND_CORE;
    struct json_object *spec = make(&what);
    const char *of_shell = "/attributes/system/shell/options/";
    char path[128];
    snprintf(path, sizeof path, "%soutput/stderr/path", of_shell);
    assert_string_equal(at(spec, path), "f.{{taskid}}.err");
    snprintf(path, sizeof path, "%scpu-affinity", of_shell);
    assert_string_equal(at(spec, path), "per-task");
    json_object_put(spec);
    what.merge = true;
    spec = make(&what);
    snprintf(path, sizeof path, "%soutput/stdout/path", of_shell);
    assert_string_equal(at(spec, path), "f.{{taskid}}");
    snprintf(path, sizeof path, "%soutput/stderr/path", of_shell);
    assert_string_equal(at(spec, path), "");
    json_object_put(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_env), cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_uneven), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_output)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
