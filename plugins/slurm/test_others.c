/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the handles of other steps' servers: where bytes for them go, and what they are called.
 */
#include "plugins/slurm/rm_slurm.h"

#include "common/launch/boot.h"
#include "common/util/test_cmocka.h"

enum { BASE = 100 };

static struct rm rm;
static char address[] = "/spool/%n/muster.7.0.3e8";

/* What outbox_add() was given. */
static struct peer *peers;
static uint32_t base, npeers, calls;
static bool no_memory;

bool outbox_add(struct rm *to, struct peer *added, uint32_t first, uint32_t n)
{
    assert_ptr_equal(to, &rm);
    calls++;
    peers = added;
    base = first;
    npeers = n;
    return !no_memory;
}

static int open_rm(void **state)
{
    (void)state;
    rm = (struct rm){.address = address};
    pthread_mutex_init(&rm.lock, NULL);
    peers = NULL;
    calls = 0;
    no_memory = false;
    return 0;
}

static int close_rm(void **state)
{
    (void)state;
    others_free(&rm);
    assert_null(rm.others);
    return 0;
}

static void where_they_listen(void **state)
{
    static const char *const bad[] = {"slurm.5", "slurm.5.1x", "slurm.05.1", "slurm.5.1.2",
                                      "",        "flux.5.1",   "slurm.-5.1", "slurm.4294967301.1"};
    (void)state;
    others_attach(&rm, "slurm.5.1", 0x2a, BASE, 3, NULL);
    assert_int_equal(calls, 1);
    assert_int_equal(base, BASE);
    assert_int_equal(npeers, 3);
    for (uint32_t i = 0; i < npeers; i++) {
        assert_string_equal(peers[i].address, "/spool/%n/muster.5.1.2a");
        assert_true(peers[i].foreign);
        assert_null(peers[i].name);
    }
    /* Of another resource manager, or made up: nothing is sent anywhere. */
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        others_attach(&rm, bad[i], 1, BASE + 10 * (i + 1), 1, NULL);
        assert_null(peers[0].address);
    }
}

/* The nodes' names come with the attaching or later, from the registration or from the scout. */
static void what_they_are_called(void **state)
{
    const struct boot_node nodes[] = {{.name = (char *)"n1"}, {.name = (char *)"n2"}};
    char *names[] = {(char *)"m1", (char *)"m2"};
    struct place place = {.nspace = "slurm.6.0", .nnodes = 2, .names = names};
    (void)state;
    others_attach(&rm, "slurm.5.0", 1, BASE, 2, NULL);
    struct peer *first = peers;
    rm.offered = &place;
    others_attach(&rm, "slurm.5.0", 1, BASE, 2, NULL); /* the scout speaks of another one */
    assert_null(first[0].name);
    others_attach(&rm, "slurm.6.0", 1, BASE + 2, 2, NULL);
    assert_string_equal(peers[1].name, "m2");
    rm.offered = NULL;
    others_attach(&rm, "slurm.5.0", 1, BASE, 2, nodes);
    assert_string_equal(first[0].name, "n1");
    assert_string_equal(first[1].name, "n2");
    others_attach(&rm, "slurm.6.0", 1, BASE + 2, 2, nodes); /* it has names */
    assert_string_equal(peers[1].name, "m2");
    assert_int_equal(calls, 2);
}

static void without_memory(void **state)
{
    (void)state;
    no_memory = true;
    others_attach(&rm, "slurm.5.0", 1, BASE, 2, NULL);
    assert_null(rm.others);
    no_memory = false;
    others_attach(&rm, "slurm.5.0", 1, BASE, 2, NULL);
    assert_non_null(rm.others);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rm, close_rm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(where_they_listen),
        TEST(what_they_are_called),
        TEST(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
