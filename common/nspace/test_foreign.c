/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of namespaces of other steps: learning, refusing and forgetting them, and what has to be
 * the same on all servers although each has handles of its own.
 */
#include "common/nspace/foreign.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, NODES = 2 };

/* Three steps of two nodes, "s.1" to "s.3"; rank r is on node r mod 2. */
static struct boot boots[STEPS];
static struct wire_out told[STEPS];
static struct nspace *own[STEPS]; /* as a server of each step sees it */

static void fill(struct boot *boot, const char *name, uint32_t ntasks)
{
    *boot = (struct boot){.session = strdup("9"),
                          .nspace = strdup(name),
                          .label = strdup(name),
                          .tmpdir = strdup("/secret"),
                          .node = 1,
                          .nnodes = NODES,
                          .ntasks = ntasks,
                          .nodes = calloc(NODES, sizeof *boot->nodes)};
    boot->allocation.rm = strdup("rm");
    boot->allocation.rm_version = strdup("1");
    boot->allocation.cluster = strdup("");
    boot->allocation.nodes = strdup("");
    boot_set(boot, "secret", "of the back end");
    for (uint32_t n = 0; n < NODES; n++) {
        struct boot_node *node = &boot->nodes[n];
        node->name = strdup(n == 0 ? "c1" : "c2");
        node->ranks = calloc(ntasks, sizeof *node->ranks);
        for (uint32_t r = n; r < ntasks; r += NODES)
            node->ranks[node->ntasks++] = r;
    }
}

static int open_steps(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        char name[8];
        snprintf(name, sizeof name, "s.%d", i + 1);
        fill(&boots[i], name, 4);
        told[i] = (struct wire_out){0};
        boot_write_nspace(&boots[i], &told[i]);
        own[i] = nspace_new(&boots[i]);
    }
    return 0;
}

static int close_steps(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        nspaces_free(own[i]);
        wire_out_free(&told[i]);
        boot_free(&boots[i]);
    }
    return 0;
}

static struct nspace *learn_bytes(int who, uint64_t step, const void *data, size_t len,
                                  struct err *err)
{
    struct boot boot;
    struct nspace *ns = NULL;
    if (boot_read_nspace(&boot, data, len, err) == 0)
        ns = foreign_learn(own[who], step, &boot, data, len, err);
    boot_free(&boot);
    return ns;
}

static struct nspace *learn(int who, int what)
{
    struct err err = {0};
    return learn_bytes(who, 0, told[what].data, told[what].len, &err);
}

static void assert_refused(int who, uint64_t step, const void *data, size_t len, const char *why)
{
    struct err err = {0};
    assert_null(learn_bytes(who, step, data, len, &err));
    assert_non_null(strstr(err.text, why));
}

/* A registration says nothing that is the server's own, and is the same on all its nodes. */
static void what_is_told(void **state)
{
    struct wire_out other = {0};
    (void)state;
    assert_null(memmem(told[0].data, told[0].len, "secret", 6));
    boots[0].node = 0;
    boot_write_nspace(&boots[0], &other);
    assert_int_equal(other.len, told[0].len);
    assert_memory_equal(other.data, told[0].data, other.len);
    wire_out_free(&other);
}

static void a_step_is_learnt(void **state)
{
    uint32_t node;
    (void)state;
    assert_int_equal(nspace_node(own[0], "s.2", 3, &node), -1);
    struct nspace *ns = learn(0, 1);
    assert_non_null(ns);
    assert_int_equal(ns->base, NODES);
    assert_ptr_equal(learn(0, 1), ns); /* again: nothing new */
    const struct nspace *next = learn(0, 2);
    assert_ptr_equal(next, ns->next);
    assert_int_equal(nspace_handles(own[0]), 3 * NODES);
    assert_int_equal(nspace_node(own[0], "s.2", 3, &node), 0);
    assert_int_equal(node, NODES + 1);
    assert_int_equal(nspace_node(own[0], "s.2", 4, &node), -1);
    assert_string_equal(nspace_name(own[0], 1), "c2");
    assert_string_equal(nspace_name(own[0], NODES + 1), "s.2/c2");
    assert_string_equal(nspace_name(own[0], 99), "an unknown server");
    assert_ptr_equal(nspace_of(own[0], NODES), ns);
    assert_null(nspace_of(own[0], 3 * NODES));
    assert_int_equal(ns->boot->node, BOOT_NO_NODE);
}

static void what_is_refused(void **state)
{
    struct boot other;
    struct wire_out out = {0};
    (void)state;
    assert_refused(0, 77, told[1].data, told[1].len, "has the registration of namespace s.2");
    assert_refused(0, 0, told[0].data, told[0].len, "is known, and is another one"); /* our own */
    for (size_t len = 0; len < told[1].len; len++)
        assert_refused(0, 0, told[1].data, len, "boot message");
    assert_int_equal(nspace_handles(own[0]), NODES);
    assert_non_null(learn(0, 1));
    fill(&other, "s.2", 3);
    boot_write_nspace(&other, &out);
    assert_refused(0, 0, out.data, out.len, "known with other contents");
    wire_out_free(&out);
    boot_free(&other);
}

/* The home of a bootstrap is known by its size before it says who it is. */
static void a_step_of_which_the_size_is_known(void **state)
{
    struct err err = {0}, no = {0};
    uint32_t node;
    (void)state;
    struct nspace *ns = foreign_attach(own[0], "s.2", 0, NODES, &err);
    assert_non_null(ns);
    assert_ptr_equal(foreign_attach(own[0], "s.2", 0, NODES, &err), ns);
    assert_null(foreign_attach(own[0], "s.2", 0, NODES + 1, &no));
    assert_int_equal(nspace_node(own[0], "s.2", 0, &node), -1);
    assert_string_equal(nspace_name(own[0], NODES + 1), "s.2/1");
    assert_int_equal(foreign_server(own[0], nspace_hash("s.2", 0), 1, &node), 0);
    assert_int_equal(node, NODES + 1);
    assert_int_equal(foreign_server(own[0], nspace_hash("s.2", 0), NODES, &node), -1);
    assert_int_equal(foreign_server(own[0], nspace_hash("s.3", 0), 0, &node), -1);
    assert_ptr_equal(learn(0, 1), ns);
    assert_int_equal(nspace_node(own[0], "s.2", 0, &node), 0);
}

/* The same step again, as of a job that was requeued: another one. */
static void another_run_is_another_step(void **state)
{
    struct boot again;
    struct wire_out out = {0};
    uint32_t node;
    (void)state;
    assert_true(nspace_hash("s.2", 0) != nspace_hash("s.2", 1000));
    assert_true(nspace_hash("s.2", 1000) != nspace_hash("s.2", 1001));
    assert_non_null(learn(0, 1));
    fill(&again, "s.2", 4);
    again.run = 1000;
    boot_write_nspace(&again, &out);
    assert_refused(0, nspace_hash("s.2", 0), out.data, out.len,
                   "the registration of namespace s.2");
    assert_refused(0, nspace_hash("s.2", 1000), out.data, out.len, "is known, and is another one");
    assert_int_equal(foreign_server(own[0], nspace_hash("s.2", 1000), 0, &node), -1);
    wire_out_free(&out);
    boot_free(&again);
}

/* Slots and roots are places in this list: by namespace and node, whatever the handles are. */
static void the_order_of_servers(void **state)
{
    struct signature sig = {.kind = COLL_FENCE};
    (void)state;
    learn(0, 2);
    learn(0, 1);
    learn(1, 0);
    learn(1, 2);
    learn(2, 1);
    learn(2, 0);
    procset_add(&sig.members, "s.2", 0, 3);
    procset_add(&sig.members, "s.1", 1, 1);
    procset_add(&sig.members, "s.3", 0, 0);
    procset_canonical(&sig.members);
    for (int who = 0; who < STEPS; who++) {
        static const struct {
            int step;
            uint32_t index;
        } expected[] = {{0, 1}, {1, 0}, {1, 1}, {2, 0}};
        struct places places = {0};
        assert_int_equal(nspace_servers(own[who], &sig, &places), 0);
        assert_int_equal(places.n, 4);
        for (uint32_t i = 0; i < places.n; i++) {
            uint32_t node = places_node(&places, i);
            const struct nspace *ns = nspace_of(own[who], node);
            assert_string_equal(ns->boot->nspace, boots[expected[i].step].nspace);
            assert_int_equal(node - ns->base, expected[i].index);
            assert_int_equal(places_slot(&places, node), i);
        }
        assert_int_equal(places_slot(&places, 99), PLACES_NONE);
        places_free(&places);
    }
    char text[200];
    const uint32_t missing[] = {1, NODES};
    nspace_ranks(own[0], &sig, missing, 2, true, text, sizeof text);
    assert_string_equal(text, "rank 1 on c2, rank 0 on s.3/c1");
    signature_free(&sig);
}

static void each_is_told_once(void **state)
{
    (void)state;
    struct nspace *ns = learn(0, 1);
    assert_true(foreign_tell(ns, 1)); /* of our own step, which may not know it either */
    assert_false(foreign_tell(ns, 1));
    assert_true(foreign_tell(ns, 2 * NODES));
    assert_false(foreign_tell(ns, 2 * NODES));
    assert_false(foreign_tell(ns, NODES)); /* itself */
    assert_true(foreign_tell(own[0], NODES));
    assert_false(foreign_tell(own[0], 0));
}

/* What has ended is not found any more; its handles are not given away again. */
static void a_step_is_forgotten(void **state)
{
    uint32_t node;
    (void)state;
    struct nspace *ns = learn(0, 1);
    assert_false(foreign_gone(ns, NODES));
    foreign_forget(ns);
    foreign_forget(ns);
    assert_true(foreign_gone(ns, NODES));
    assert_null(nspace_find(own[0], "s.2"));
    assert_int_equal(nspace_node(own[0], "s.2", 0, &node), -1);
    assert_int_equal(foreign_server(own[0], nspace_hash("s.2", 0), 0, &node), 1);
    assert_string_equal(nspace_name(own[0], NODES), "s.2/c1");
    assert_int_equal(learn(0, 2)->base, 2 * NODES);
    assert_int_equal(learn(0, 1)->base, 3 * NODES);
}

/* Its servers have gone: processes there are known until it is forgotten, to libpmix, too. */
static void a_step_has_ended(void **state)
{
    uint32_t node;
    (void)state;
    struct nspace *ns = learn(0, 1), *other = learn(0, 2);
    assert_false(foreign_has_ended(own[0]));
    assert_false(foreign_has_ended(ns));
    foreign_move(ns, FOREIGN_END);
    assert_int_equal(ns->foreign->state, FOREIGN_LEFT);
    assert_true(foreign_has_ended(ns));
    assert_int_equal(nspace_node(own[0], "s.2", 3, &node), 0);
    foreign_move(ns, FOREIGN_REGISTER);
    assert_int_equal(ns->foreign->state, FOREIGN_OVER);
    foreign_move(ns, FOREIGN_HOLD);
    assert_true(foreign_has_ended(ns));
    assert_ptr_equal(learn(0, 1), ns); /* a late word of it begins no new life */
    foreign_forget(ns);
    assert_false(foreign_has_ended(ns));
    foreign_move(other, FOREIGN_REGISTER);
    assert_false(foreign_has_ended(other));
    foreign_move(other, FOREIGN_END);
    assert_int_equal(other->foreign->state, FOREIGN_OVER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_steps, close_steps)
    const struct CMUnitTest tests[] = {
        TEST(what_is_told),         TEST(a_step_is_learnt),
        TEST(what_is_refused),      TEST(a_step_of_which_the_size_is_known),
        TEST(the_order_of_servers), TEST(each_is_told_once),
        TEST(a_step_is_forgotten),  TEST(another_run_is_another_step),
        TEST(a_step_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
