/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what happens when all servers of another step are gone: what is told, and when its
 * namespace is forgotten. The test plays the parts of the server that steps_end.c calls.
 */
#include "common/holder/holder.h"
#include "common/notify/connection.h"
#include "common/nspace/foreign.h"
#include "common/nspace/registry.h"
#include "common/server/broadcast.h"
#include "common/server/sets.h"
#include "common/server/steps.h"
#include "common/server/strangers.h"
#include "common/server/streams.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OTHERS = 2 /* servers of the other step */ };

static uint32_t r0[] = {0}, r1[] = {1};
static struct boot_node own_nodes[] = {{"c01", 1, r0, 0, 0}};
static struct boot_node other_nodes[OTHERS] = {{"c07", 1, r0, 0, 0}, {"c08", 1, r1, 0, 0}};
static const struct boot own_boot = {
    .nspace = "slurm.8.0", .nnodes = 1, .ntasks = 1, .nodes = own_nodes};
static const struct boot other_boot = {
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
static unsigned nsets, nconnections, noutputs, ninputs, nspreads, nends; /* that were ended */
static unsigned nforgotten;

void holder_lost(struct holder *holder, uint32_t node)
{
    (void)holder, (void)node;
}

void streams_server_gone(struct server *s, uint32_t node)
{
    (void)s, (void)node;
}

void spread_lost(struct spreads *spreads, uint32_t node)
{
    (void)spreads, (void)node;
}

void spread_forget(struct spreads *spreads, const char *name)
{
    (void)spreads;
    assert_string_equal(name, other_boot.nspace);
    nspreads++;
}

void sets_delete(struct server *s, const struct nspace *ns)
{
    (void)s;
    assert_ptr_equal(ns, other);
    nsets++;
}

void connection_nspace_ended(struct server *s, const char *nspace)
{
    (void)s;
    assert_string_equal(nspace, other_boot.nspace);
    nconnections++;
}

void forwards_nspace_ended(struct forwards *forwards, const char *nspace)
{
    (void)forwards;
    assert_string_equal(nspace, other_boot.nspace);
    noutputs++;
}

void pushes_nspace_ended(struct server *s, const char *nspace)
{
    (void)s;
    assert_string_equal(nspace, other_boot.nspace);
    ninputs++;
}

/* libpmix is to forget it. */
void sets_end(struct server *s, const struct nspace *ns)
{
    (void)s;
    assert_string_equal(ns->boot->nspace, other_boot.nspace);
    nends++;
}

void broadcast_say(struct broadcasts *broadcasts, struct wire_out *body)
{
    (void)broadcasts;
    wire_out_free(body);
}

void engine_nspace_ended(struct engine *engine, const char *nspace)
{
    (void)engine;
    assert_string_equal(nspace, other_boot.nspace);
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

void strangers_lost(struct server *s, uint32_t node)
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

bool server_has_left(const struct server *s, uint32_t node)
{
    (void)s, (void)node;
    return false;
}

static int open_server(void **state)
{
    struct err err = {0};
    struct wire_out out = {0};
    (void)state;
    server = (struct server){.boot = own_boot, .registry = registry_new()};
    server.nspace = own = nspace_new(&server.boot);
    assert_non_null(own);
    boot_write_nspace(&other_boot, &out);
    other = foreign_learn(own, 0, out.data, out.len, &err);
    wire_out_free(&out);
    assert_non_null(other);
    foreign_move(other, FOREIGN_REGISTER);
    nsets = nconnections = noutputs = ninputs = nspreads = nends = nforgotten = 0;
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    registry_free(server.registry);
    nspace_free(own);
    return 0;
}

static void lose(uint32_t node)
{
    steps_lost(&server, other->base + node);
    steps_tidy(&server, other->base + node);
}

static void test_last_server(void **state)
{
    (void)state;
    lose(1);
    assert_int_equal(nconnections + noutputs + ninputs + nsets + nends + nforgotten, 0);
    lose(0);
    assert_int_equal(nsets, 1);
    assert_int_equal(nconnections, 1);
    assert_int_equal(noutputs, 1);
    assert_int_equal(ninputs, 1);
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_int_equal(nspreads, 1);
    assert_null(nspace_find(own, other_boot.nspace));
    steps_group_ended(&server);
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
}

/* libpmix needs the namespace for the group's destruct. That the step has ended is told at once. */
static void test_group(void **state)
{
    static const char *const ids[] = {"g", "another"};
    struct procset members = {0};
    (void)state;
    assert_int_equal(procset_add(&members, server.boot.nspace, 0, 0), 0);
    assert_int_equal(procset_add(&members, other_boot.nspace, 1, 1), 0);
    procset_canonical(&members);
    for (int i = 0; i < 2; i++)
        registry_add(server.registry, REGISTRY_GROUP, ids[i], &members);
    lose(0);
    lose(1);
    assert_int_equal(nsets, 1);
    assert_int_equal(nconnections, 1);
    assert_int_equal(noutputs, 1);
    assert_int_equal(ninputs, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nends, 0);
        assert_int_equal(nforgotten, 0);
        assert_ptr_equal(nspace_find(own, other_boot.nspace), other);
        registry_remove(server.registry, REGISTRY_GROUP, ids[i], &members);
        steps_group_ended(&server);
    }
    assert_int_equal(nends, 1);
    assert_int_equal(nforgotten, 1);
    assert_null(nspace_find(own, other_boot.nspace));
    procset_free(&members);
}

/* A group's end is no end of a step that lives. */
static void test_lives(void **state)
{
    (void)state;
    lose(1);
    steps_group_ended(&server);
    assert_int_equal(nends, 0);
    assert_int_equal(nforgotten, 0);
    assert_ptr_equal(nspace_find(own, other_boot.nspace), other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_last_server, open_server, close_server),
        cmocka_unit_test_setup_teardown(test_group, open_server, close_server),
        cmocka_unit_test_setup_teardown(test_lives, open_server, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
