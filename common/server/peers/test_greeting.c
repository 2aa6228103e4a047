/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what servers must have alike: what each says, and what becomes of one that differs.
 */
#include "common/server/peers/greeting.h"

#include "common/nspace/foreign.h"
#include "common/server/server.h"
#include "common/server/steps/steps.h"
#include "common/util/test_cmocka.h"
#include "muster_version.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 3, FOREIGN = NODES /* the handle of another step's first server */ };

static struct boot_node nodes[NODES] = {{.name = "c1"}, {.name = "c2"}, {.name = "c3"}};
static char ended[512], said[512];
static uint32_t refused;

void server_end_step(struct server *s, const struct rm_ending *ending, uint32_t teller)
{
    assert_int_equal(teller, s->boot.node);
    if (!s->ending)
        log_error("%s", ending->why);
    s->ending = true;
    snprintf(ended, sizeof ended, "%s", ending->why);
}

void steps_refuse(struct server *s, uint32_t from)
{
    (void)s;
    refused = from;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_ERROR)
        snprintf(said, sizeof said, "%s", text);
}

static struct server make(uint32_t node)
{
    struct server s = {
        .library = 0x50007,
        .conf = {.tree_arity = 16},
        .boot = {
            .nspace = "rm.1.0", .label = "1.0", .node = node, .nnodes = NODES, .nodes = nodes}};
    return s;
}

static int open_steps(void **state)
{
    (void)state;
    ended[0] = said[0] = '\0';
    refused = 0;
    log_open(sink, NULL, LOG_LEVEL_ERROR, NULL);
    return 0;
}

/* Whether server b takes what a says to it, which knows a by the handle @p from. */
static bool meet(struct server *a, struct server *b, uint32_t from)
{
    struct wire_out out = {0};
    struct err err = {0};
    b->nspace = nspace_new(&b->boot);
    assert_non_null(b->nspace);
    assert_non_null(foreign_attach(b->nspace, "rm.2.0", 0, 1, &err));
    greeting_write(a, from < NODES ? b->boot.node : FOREIGN, &out);
    bool fits = greeting_fits(b, from, out.data, out.len);
    wire_out_free(&out);
    nspaces_free(b->nspace);
    return fits;
}

static void alike(void **state)
{
    struct server a = make(0), b = make(1);
    (void)state;
    assert_true(meet(&a, &b, 0));
    assert_true(meet(&b, &a, 1));
    assert_true(meet(&a, &b, FOREIGN));
    assert_string_equal(said, "");
}

/* Both nodes and both values, the same on both nodes, and what to do. */
static void what_differs_ends_the_step(void **state)
{
    static const char sentence[] =
        "the servers of this step do not fit together: tree_arity is 8 on node c1 and 16 on node "
        "c3: set it to one value in muster.json on all nodes; ending the step";
    struct server a = make(0), b = make(2);
    (void)state;
    a.conf.tree_arity = 8;
    assert_false(meet(&a, &b, 0));
    assert_string_equal(ended, sentence);
    assert_string_equal(said, sentence);
    said[0] = '\0';
    assert_false(meet(&b, &a, 2));
    assert_string_equal(said, sentence);
    assert_int_equal(refused, 0);
}

static void all_that_has_to_be_alike(void **state)
{
    static const char *const words[] = {
        "libpmix is 5.0.7 on node c1 and 5.0.8 on node c2: install one release",
        "on_task_loss is end-step on node c1 and continue on node c2: set it",
        "the tree of brokers is 0000000000000000 on node c1 and 0000000000000007 on node c2: "
        "reload",
    };
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct server a = make(0), b = make(1);
        if (i == 0)
            b.library++;
        else if (i == 1)
            b.conf.on_task_loss = CONF_TASK_LOSS_CONTINUE;
        else
            b.tree = 7;
        assert_false(meet(&a, &b, 0));
        assert_non_null(strstr(said, words[i]));
    }
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* A server of another version, of which no more than the form of its greeting is known. */
static void another_muster(void **state)
{
    static const struct {
        const char *name, *value, *sentence;
    } cases[] = {
        {"muster", "9.9.9",
         "muster is 9.9.9 on node c1 and " MUSTER_VERSION " on node c2: install"},
        {"muster", MUSTER_VERSION,
         "muster's protocol is not told on node c1 and " TEXT(FRAME_PROTOCOL) " on node c2"},
        {"nothing that we know", "1", "muster is not told on node c1 and " MUSTER_VERSION},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server b = make(1);
        struct wire_out out = {0};
        b.nspace = nspace_new(&b.boot);
        wire_put_u32(&out, 1);
        wire_put_str(&out, cases[i].name);
        wire_put_str(&out, cases[i].value);
        assert_false(greeting_fits(&b, 0, out.data, out.len));
        assert_non_null(strstr(said, cases[i].sentence));
        for (size_t len = 0; len < out.len; len++)
            assert_false(greeting_fits(&b, 0, out.data, len));
        wire_out_free(&out);
        assert_false(greeting_fits(&b, 0, NULL, 0));
        nspaces_free(b.nspace);
    }
}

/* Jobs may differ in what is a job's own; otherwise the step goes on without the other one. */
static void a_server_of_another_step(void **state)
{
    struct server a = make(0), b = make(1);
    (void)state;
    b.conf.on_task_loss = CONF_TASK_LOSS_CONTINUE;
    b.tree = 7;
    b.library++;
    b.conf.tree_arity++;
    assert_true(meet(&a, &b, FOREIGN));
    struct wire_out out = {0};
    struct err err = {0};
    wire_put_u32(&out, 1);
    wire_put_str(&out, "muster");
    wire_put_str(&out, "9.9.9");
    b.nspace = nspace_new(&b.boot);
    assert_non_null(b.nspace);
    assert_non_null(foreign_attach(b.nspace, "rm.2.0", 0, 1, &err));
    assert_false(greeting_fits(&b, FOREIGN, out.data, out.len));
    assert_int_equal(refused, FOREIGN);
    assert_string_equal(ended, "");
    assert_non_null(
        strstr(said, "muster is " MUSTER_VERSION " on node c2 and 9.9.9 on node rm.2.0/0"));
    wire_out_free(&out);
    nspaces_free(b.nspace);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, open_steps)
    const struct CMUnitTest tests[] = {
        TEST(alike),          TEST(what_differs_ends_the_step), TEST(all_that_has_to_be_alike),
        TEST(another_muster), TEST(a_server_of_another_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
