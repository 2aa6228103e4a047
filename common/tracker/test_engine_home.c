/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of bootstraps over steps, whose home is another one from some time on.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOME = 4, NEXT = 5 };

static uint32_t home_now;

static uint32_t one_home(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    return home_now;
}

static const struct loopback_conf steps = {.nnodes = 6,
                                           .arity = 2,
                                           .seed = 3,
                                           .delay_max = 20,
                                           .reorder = true,
                                           .stall = 2,
                                           .foreign = true,
                                           .home = one_home};

static struct party_proc a(uint32_t rank)
{
    return (struct party_proc){'a', rank};
}

/* Ranks 1 and 2 lead and add 0 and 3, of whom 0 has called, and a second process on 3's server. */
static void call_without_a_member(struct party_room *room, uint32_t timeout)
{
    party_joins(room, a(0), false);
    party_boots(room, 1, 2, "a0 a3", timeout);
    party_boots(room, 2, 2, "a3 b3", timeout);
    party_joins(room, (struct party_proc){'b', 3}, false);
    loopback_run(room->kit->net, 500);
}

static void begin_without_a_member(struct party_room *room, uint32_t timeout)
{
    *room = (struct party_room){.kit = kit_new(&steps)};
    home_now = HOME;
    call_without_a_member(room, timeout);
}

enum end { IN_ORDER, KILLED, ENDS };

/* What the home sends when it leaves in order arrives before the others know that it has left. */
static void end_home(struct party_room *room, enum end how)
{
    if (how == IN_ORDER) {
        engine_close(loopback_engine(room->kit->net, HOME));
        loopback_run(room->kit->net, 100);
    }
    loopback_kill(room->kit->net, HOME, 10, 2000);
}

static void assert_unanswered(const struct party_room *room)
{
    for (const struct party *p = room->all; p != NULL; p = p->next)
        assert_int_equal(p->answers, 0);
}

/* All make the next construct. */
static void again(struct party_room *room)
{
    const struct party *before = room->all;
    call_without_a_member(room, 0);
    party_joins(room, a(3), false);
    loopback_run(room->kit->net, 1000);
    for (const struct party *p = room->all; p != before; p = p->next)
        party_assert(p, 0);
}

/* The home ends while a member is awaited: the next home claims all members anew, however late the
 * last one is, before the others have heard of the end or long after. */
static void a_home_that_ends_before_a_member_calls(void **state)
{
    (void)state;
    for (int how = 0; how < ENDS; how++)
        for (uint32_t late = 0; late < 4; late++)
            for (uint32_t next = 0; next < 2; next++) {
                struct party_room room;
                begin_without_a_member(&room, 0);
                home_now = next == 0 ? NEXT : 3; /* the member's own */
                end_home(&room, how);
                loopback_run(room.kit->net, late == 3 ? 100000 : late * 400);
                assert_unanswered(&room);
                party_joins(&room, a(3), false);
                loopback_run(room.kit->net, 20000);
                party_assert_all(&room, 0, "a0 a1 a2 a3 b3");
                loopback_run(room.kit->net, ENGINE_HOME_MS);
                again(&room);
                party_end(&room);
            }
}

/* No home is left: leaders and members get an answer. */
static void no_home_after_that(void **state)
{
    (void)state;
    for (int how = 0; how < ENDS; how++) {
        struct party_room room;
        begin_without_a_member(&room, 0);
        end_home(&room, how);
        loopback_run(room.kit->net, ENGINE_HOME_MS + 3000);
        party_assert_all(&room, LOOPBACK_LOST, "");
        party_end(&room);
    }
}

/* The next home fails it: all get the same. */
static void the_next_home_fails(void **state)
{
    (void)state;
    for (int how = 0; how < ENDS; how++) {
        struct party_room room;
        begin_without_a_member(&room, 8);
        home_now = NEXT;
        end_home(&room, how);
        loopback_run(room.kit->net, 2 * ENGINE_HOME_MS);
        party_assert_all(&room, LOOPBACK_TIMEOUT, "");
        party_end(&room);
    }
}

static bool all_but_what_1_says(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    (void)arg, (void)to, (void)data, (void)len;
    return from != 1;
}

/* Ranks 1 and 2 of three lead, and 1 gives up: its call does not come to the home in time.
 * @param adds the members that 2 adds @param hears whether 1 hears the home's word before that */
static void give_up(struct party_room *room, const char *adds, bool hears)
{
    uint8_t sides[6] = {0, 1};
    struct loopback_conf conf = steps;
    conf.filter = hears ? all_but_what_1_says : NULL;
    *room = (struct party_room){.kit = kit_new(&conf)};
    home_now = HOME;
    if (!hears)
        loopback_partition(room->kit->net, sides, loopback_now(room->kit->net) + 10000);
    party_boots(room, 1, 3, "", 1);
    party_boots(room, 2, 3, adds, 1);
    loopback_run(room->kit->net, 12000);
    party_assert_all(room, LOOPBACK_TIMEOUT, "");
}

/* Another leader has added the leader that has given up: its next call is of the next construct. */
static void a_leader_that_gave_up(void **state)
{
    struct party_room room;
    (void)state;
    give_up(&room, "a1", false);
    const struct party *again[] = {party_joins(&room, a(1), false),
                                   party_boots(&room, 2, 1, "a1", 0)};
    loopback_run(room.kit->net, 1000);
    for (int i = 0; i < 2; i++)
        party_assert(again[i], 0);
    party_end(&room);
    give_up(&room, "a1", true);
    struct party *waits = party_joins(&room, a(1), false);
    assert_true(engine_withdraw(loopback_engine(room.kit->net, 1), &waits->call));
    party_end(&room);
}

/* A leader on the home itself does not call again: the others do not wait for it elsewhere. */
static void a_leader_on_the_home_that_leaves(void **state)
{
    (void)state;
    for (uint32_t leaders = 2; leaders <= 3; leaders++) { /* all are there, or one is missing */
        struct party_room room = {.kit = kit_new(&steps)};
        home_now = HOME;
        party_boots(&room, HOME, leaders, "a3", 0);
        party_boots(&room, 1, leaders, "a3", 0);
        loopback_run(room.kit->net, 500);
        assert_unanswered(&room);
        home_now = NEXT;
        end_home(&room, IN_ORDER);
        loopback_run(room.kit->net, 5000);
        party_assert_all(&room, LOOPBACK_CLOSING, "");
        party_end(&room);
    }
}

/* Leaders go on without the home, whoever else is lost. */
static void leaders_without_a_home(void **state)
{
    (void)state;
    for (int how = 0; how < ENDS; how++) {
        struct party_room room = {.kit = kit_new(&steps)};
        home_now = HOME;
        party_boots(&room, 1, 3, "", 0);
        party_boots(&room, 2, 3, "", 0);
        loopback_run(room.kit->net, 1000);
        home_now = NEXT;
        end_home(&room, how);
        loopback_run(room.kit->net, 3 * ENGINE_ASK_MS);
        loopback_kill(room.kit->net, 3, 10, 20); /* does not lead */
        loopback_run(room.kit->net, 500);
        assert_unanswered(&room);
        party_boots(&room, 0, 3, "", 0);
        loopback_run(room.kit->net, 500);
        party_assert_all(&room, 0, "a0 a1 a2");
        party_end(&room);
    }
}

/* Server 1 is told another home than the rest, until it is told the same. */
static uint32_t home_of_one;

static uint32_t two_homes(void *arg, uint32_t node)
{
    (void)arg;
    return node == 1 ? home_of_one : 4;
}

/* Leaders meet at two homes, as servers see different steps, and the second one ceases to be it:
 * those there come to the first one. A leader whose home has all is answered there. */
static void leaders_at_two_homes(void **state)
{
    struct loopback_conf conf = steps;
    (void)state;
    conf.home = two_homes;
    for (int own = 0; own < 2; own++)
        for (int all = 0; all < 2; all++) {
            struct party_room room = {.kit = kit_new(&conf)};
            home_of_one = own ? 1 : 5;
            party_boots(&room, 1, all ? 1 : 2, all ? "a3" : "", 0);
            loopback_run(room.kit->net, 1000);
            if (!all)
                party_boots(&room, 2, 2, "a3", 0);
            loopback_run(room.kit->net, ENGINE_ASK_MS);
            home_of_one = 4;
            loopback_run(room.kit->net, 2 * ENGINE_ASK_MS);
            assert_int_equal(room.all->answers, 0); /* the member is missing */
            party_joins(&room, a(3), false);
            loopback_run(room.kit->net, 1000);
            party_assert_all(&room, 0, all ? "a1 a3" : "a1 a2 a3");
            party_end(&room);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaders_at_two_homes),
        cmocka_unit_test(a_home_that_ends_before_a_member_calls),
        cmocka_unit_test(no_home_after_that),
        cmocka_unit_test(the_next_home_fails),
        cmocka_unit_test(a_leader_that_gave_up),
        cmocka_unit_test(a_leader_on_the_home_that_leaves),
        cmocka_unit_test(leaders_without_a_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
