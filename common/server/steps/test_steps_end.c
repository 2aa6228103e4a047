/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what happens when all servers of another step are gone: what is told, how long its
 * namespace is kept, and what takes its place. The test plays the parts of the server that
 * steps_end.c and steps_known.c call.
 */
#include "common/holder/holder.h"
#include "common/nspace/foreign.h"
#include "common/nspace/registry.h"
#include "common/server/spawned/streams.h"
#include "common/server/steps/sets.h"
#include "common/server/steps/steps.h"
#include "common/util/clock.h"
#include "common/util/test_cmocka.h"
#include "common/view/view.h"

#include <stdio.h>
#include <string.h>

enum { OTHERS = 2 /* servers of the other step */ };

static uint32_t r0[] = {0}, r1[] = {1};
static struct boot_node own_nodes[] = {{"c01", 1, r0, 0}};
static struct boot_node other_nodes[OTHERS] = {{"c07", 1, r0, 0}, {"c08", 1, r1, 0}};
static const struct boot own_boot = {
    .nspace = "slurm.8.0", .nnodes = 1, .ntasks = 1, .nodes = own_nodes};
static struct boot other_boot = {
    .session = "9",
    .nspace = "slurm.9.0",
    .label = "9.0",
    .tmpdir = "",
    .nnodes = OTHERS,
    .ntasks = OTHERS,
    .nodes = other_nodes,
    .allocation = {.rm = "", .rm_version = "", .cluster = "", .nodes = ""}};

static struct server server;
static struct nspace *own, *other;
static unsigned nsets, ntold, nspreads, nends; /* that were ended */
static unsigned nforgotten, nregistered;
static char last_forgotten[PROCSET_NAME_MAX + 1];

void holder_lost(struct holder *holder, uint32_t node)
{
    (void)holder, (void)node;
}

void streams_server_gone(struct server *s, uint32_t node)
{
    (void)s, (void)node;
}

void spread_lost(struct server *s)
{
    (void)s;
}

void spread_forget(struct server *s, const char *name)
{
    (void)s;
    assert_non_null(nspace_find(own, name)); /* what waits for it may still find it */
    nspreads++;
}

void sets_delete(struct server *s, const struct nspace *ns)
{
    (void)s, (void)ns;
    nsets++;
}

int sets_register(struct server *s, const struct nspace *ns, struct registration **later,
                  struct err *err)
{
    (void)s, (void)ns, (void)later, (void)err;
    nregistered++;
    return 0;
}

static void nspace_ended(struct server *s, const char *nspace)
{
    (void)s, (void)nspace;
    ntold++;
}

static const struct server_hooks hooks = {.nspace_ended = nspace_ended};

/* libpmix is to forget it. */
void sets_end(struct server *s, const struct nspace *ns)
{
    (void)s;
    assert_non_null(ns->boot);
    nends++;
}

void server_say(struct server *to, struct wire_out *body)
{
    (void)to;
    wire_out_free(body);
}

void engine_nspace_ended(struct engine *engine, const char *nspace)
{
    (void)engine;
    snprintf(last_forgotten, sizeof last_forgotten, "%s", nspace);
    nforgotten++;
}

void engine_lost(struct engine *engine, uint32_t node)
{
    (void)engine, (void)node;
}

void asks_lost(struct asks *asks, uint32_t node)
{
    (void)asks, (void)node;
}

struct link_counts link_counts(const struct link *link, uint32_t node)
{
    (void)link, (void)node;
    return (struct link_counts){.frames_in = 1};
}

void seek_server_lost(struct server *s, uint32_t node)
{
    (void)s, (void)node;
}

void steps_tell(struct server *s, struct nspace *ns, uint32_t node)
{
    (void)s, (void)ns, (void)node;
}

void steps_send(struct server *s, uint32_t node, struct wire_out *frame, struct shared_bytes *body)
{
    (void)s, (void)node, (void)body;
    wire_out_free(frame);
}

uint32_t view_head(const struct view *view)
{
    (void)view;
    return 0;
}

/* @return the namespace of step 9.@p step, or NULL */
static struct nspace *learn(unsigned step, uint64_t run)
{
    char name[32];
    struct err err = {0};
    struct wire_out out = {0};
    struct boot boot;
    snprintf(name, sizeof name, "slurm.9.%u", step);
    other_boot.nspace = name;
    other_boot.run = run;
    boot_write_nspace(&other_boot, &out);
    assert_int_equal(boot_read_nspace(&boot, out.data, out.len, &err), 0);
    steps_replace(&server, name, run);
    struct nspace *ns = foreign_learn(own, 0, &boot, out.data, out.len, &err);
    boot_free(&boot);
    wire_out_free(&out);
    return ns;
}

static int64_t passed; /* of the time that the namespaces are kept */

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now_ms() + passed;
}

static int open_server(void **state)
{
    (void)state;
    server = (struct server){
        .hooks = &hooks, .timers = {.now = clock_of}, .boot = own_boot, .registry = registry_new()};
    server.nspace = own = nspace_new(&server.boot);
    assert_non_null(own);
    other = learn(0, 0);
    assert_non_null(other);
    nsets = ntold = nspreads = nends = nforgotten = nregistered = 0;
    return 0;
}

static int open_registered(void **state)
{
    open_server(state);
    foreign_move(other, FOREIGN_REGISTER);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    registry_free(server.registry);
    nspaces_free(own);
    return 0;
}

static void lose_of(const struct nspace *ns, uint32_t node)
{
    steps_lost(&server, ns->base + node);
    steps_tidy(&server, ns->base + node);
}

static void lose(uint32_t node)
{
    lose_of(other, node);
}

static void pass_time(void)
{
    passed += STEPS_KEEP_MS;
    timers_run(&server.timers);
    assert_int_equal(timers_wait(&server.timers), -1);
}

static int register_other(void)
{
    struct procset set = {0};
    assert_int_equal(procset_add(&set, "slurm.9.0", 1, 1), 0);
    int rc = steps_register(&server, &set);
    procset_free(&set);
    return rc;
}

/* What others are told comes at once; the namespace is forgotten when its time has passed. */
static void test_last_server(void **state)
{
    (void)state;
    lose(1);
    assert_int_equal(ntold + nsets + nspreads, 0);
    assert_int_equal(timers_wait(&server.timers), -1);
    assert_false(steps_has_ended(&server, "slurm.9.0"));
    lose(0);
    lose(0);
    assert_int_equal(nsets, 1);
    assert_int_equal(ntold, 1);
    assert_int_equal(nspreads, 1);
    assert_true(steps_has_ended(&server, "slurm.9.0"));
    assert_true(timers_wait(&server.timers) > STEPS_KEEP_MS / 2);
    timers_run(&server.timers);
    steps_group_ended(&server);
    assert_int_equal(nends + nforgotten, 0);
    pass_time();
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_null(nspace_find(own, "slurm.9.0"));
    assert_true(steps_has_ended(&server, "slurm.9.0"));
    steps_group_ended(&server);
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
}

/* The result of a construct or a connect comes after the goodbyes of participants' servers, or a
 * spawn is answered when the spawned step has ended. */
static void test_late_result(void **state)
{
    (void)state;
    lose(0);
    lose(1);
    assert_int_equal(nsets, 0); /* libpmix had not heard of it */
    assert_int_equal(register_other(), 0);
    assert_int_equal(register_other(), 0);
    assert_int_equal(nregistered, 1);
    assert_ptr_equal(nspace_find(own, "slurm.9.0"), other);
    pass_time();
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_int_not_equal(register_other(), 0);
}

/* No operation has needed it: libpmix has nothing to forget. */
static void test_not_registered(void **state)
{
    (void)state;
    lose(0);
    lose(1);
    pass_time();
    assert_int_equal(nforgotten, 1);
    assert_int_equal(nends, 0);
}

/* libpmix needs the namespace for the group's destruct. */
static void test_group(void **state)
{
    static const char *const ids[] = {"g", "another"};
    struct procset members = {0};
    (void)state;
    assert_int_equal(procset_add(&members, server.boot.nspace, 0, 0), 0);
    assert_int_equal(procset_add(&members, "slurm.9.0", 1, 1), 0);
    procset_canonical(&members);
    for (int i = 0; i < 2; i++)
        registry_add(server.registry, REGISTRY_GROUP, ids[i], &members);
    lose(0);
    lose(1);
    pass_time();
    for (int i = 0; i < 2; i++) {
        steps_group_ended(&server);
        assert_int_equal(nends, 0);
        assert_int_equal(nforgotten, 0);
        assert_ptr_equal(nspace_find(own, "slurm.9.0"), other);
        registry_remove(server.registry, REGISTRY_GROUP, ids[i], &members);
    }
    steps_group_ended(&server);
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_null(nspace_find(own, "slurm.9.0"));
    procset_free(&members);
}

/* A group's end is no end of a step that lives. */
static void test_lives(void **state)
{
    (void)state;
    lose(1);
    steps_group_ended(&server);
    pass_time();
    assert_int_equal(nends, 0);
    assert_int_equal(nforgotten, 0);
    assert_ptr_equal(nspace_find(own, "slurm.9.0"), other);
}

/* The last server of another step says so. All servers of it have gone then. */
static void test_last_word(void **state)
{
    const unsigned char all = 1;
    (void)state;
    steps_leaving(&server, other->base + 1, &all, 1);
    assert_true(foreign_gone(other, other->base + 1));
    assert_true(foreign_gone(other, other->base));
    assert_int_equal(ntold, 1);
}

/* Its job runs again, while the old run is kept, or held for a group. */
static void test_requeued(void **state)
{
    struct procset members = {0};
    (void)state;
    assert_int_equal(procset_add(&members, "slurm.9.0", 1, 1), 0);
    assert_null(learn(0, 1000)); /* the old run lives */
    lose(0);
    lose(1);
    assert_ptr_equal(learn(0, 0), other); /* a late word of the old run */
    assert_int_equal(nforgotten, 0);
    struct nspace *again = learn(0, 1000);
    assert_non_null(again);
    assert_ptr_not_equal(again, other);
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_string_equal(last_forgotten, "slurm.9.0");
    assert_false(steps_has_ended(&server, "slurm.9.0"));
    pass_time();
    assert_ptr_equal(nspace_find(own, "slurm.9.0"), again);
    assert_int_equal(register_other(), 0);
    registry_add(server.registry, REGISTRY_GROUP, "g", &members);
    lose_of(again, 0);
    lose_of(again, 1);
    pass_time();
    assert_int_equal(nforgotten, 1);
    assert_non_null(learn(0, 2000));
    assert_int_equal(nends, 2);
    assert_int_equal(nforgotten, 2);
    procset_free(&members);
}

/* Of many that end at once, those that have ended last are kept. */
static void test_many(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        char expected[32];
        struct nspace *ns = i == 0 ? other : learn(i, 0);
        assert_non_null(ns);
        lose_of(ns, 0);
        lose_of(ns, 1);
        assert_non_null(ns->boot);
        assert_int_equal(nforgotten, i < STEPS_KEEP_MAX ? 0 : i + 1 - STEPS_KEEP_MAX);
        snprintf(expected, sizeof expected, "slurm.9.%u", i - STEPS_KEEP_MAX);
        if (nforgotten > 0)
            assert_string_equal(last_forgotten, expected);
    }
    pass_time();
    assert_int_equal(own->next->foreign->state, FOREIGN_FORGOTTEN);
    assert_int_equal(timers_wait(&server.timers), -1);
}

int main(void)
{
#define TEST(name, open) cmocka_unit_test_setup_teardown(name, open, close_server)
    const struct CMUnitTest tests[] = {
        TEST(test_last_server, open_registered), TEST(test_late_result, open_server),
        TEST(test_not_registered, open_server),  TEST(test_group, open_registered),
        TEST(test_lives, open_registered),       TEST(test_last_word, open_registered),
        TEST(test_requeued, open_registered),    TEST(test_many, open_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
