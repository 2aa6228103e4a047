/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what comes late for added members and bootstraps: claims after their operation, calls
 * that are taken back, results of others.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 7 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

static struct party_proc a(uint32_t rank)
{
    return (struct party_proc){'a', rank};
}

static struct party_proc b(uint32_t rank)
{
    return (struct party_proc){'b', rank};
}

static struct party_room room_of(void)
{
    return (struct party_room){.kit = kit_new(&seven)};
}

static struct party *leads(struct party_room *room, uint32_t rank, const char *leaders,
                           const char *adds, int32_t status)
{
    struct procset set = party_set(leaders), added = party_set(adds);
    struct party *party = party_collective(room, "g", a(rank), &set,
                                           (struct party_ask){.added = &added, .status = status});
    procset_free(&set);
    procset_free(&added);
    return party;
}

/* A request for members on server 3 comes, of an operation that server 1 knows of no more. */
static void claim_late(struct party_room *room, const char *names)
{
    struct wire_out out = {0};
    struct procset members = party_set(names);
    wire_put_u64(&out, 4711);
    wire_put_str(&out, "g");
    procset_write(&members, &out);
    wire_put_block(&out, NULL, 0);
    engine_take(loopback_engine(room->kit->net, 3), 1, FRAME_CLAIM, out.data, out.len);
    wire_out_free(&out);
    procset_free(&members);
}

/* A late claim does not touch the next construct. */
static void a_claim_that_comes_late(void **state)
{
    struct party_room room = room_of();
    (void)state;
    claim_late(&room, "a3");
    leads(&room, 0, "a0", "a3", 0);
    loopback_run(room.kit->net, 1000);
    party_joins(&room, a(3), false);
    loopback_run(room.kit->net, 1000);
    party_assert_all(&room, 0, "a0 a3");
    party_end(&room);
}

/* Two constructs of disjoint leaders use one id; the first claim misses one of its members. */
static void every_open_claim_is_tried(void **state)
{
    struct party_room room = room_of();
    (void)state;
    struct party *waits = leads(&room, 0, "a0", "a3 b3", 0);
    loopback_run(room.kit->net, 1000);
    struct party *other = leads(&room, 1, "a1", "b3", 0);
    loopback_run(room.kit->net, 1000);
    struct party *one = party_joins(&room, b(3), false);
    loopback_run(room.kit->net, 1000);
    party_assert(other, 0);
    party_assert(one, 0);
    assert_int_equal(waits->answers, 0);
    struct party *rest[] = {party_joins(&room, a(3), false), party_joins(&room, b(3), false)};
    loopback_run(room.kit->net, 1000);
    party_assert(waits, 0);
    party_assert(rest[0], 0);
    party_assert(rest[1], 0);
    party_end(&room);
}

/* A leader takes its call back: whom it alone added is not awaited, nor does its deadline count. */
static void what_a_leader_takes_back(void **state)
{
    struct party_room room = room_of();
    (void)state;
    struct party *back = party_boots(&room, 1, 3, "a5", 1);
    struct party *others[4] = {party_boots(&room, 2, 3, "a4", 0), party_joins(&room, a(4), false)};
    loopback_run(room.kit->net, 200);
    assert_false(engine_withdraw(loopback_engine(room.kit->net, 1), &back->call)); /* home knows */
    loopback_run(room.kit->net, 3000);
    party_assert(back, LOOPBACK_CLOSING);
    assert_int_equal(others[0]->answers, 0);
    others[2] = party_boots(&room, 3, 3, "", 0);
    others[3] = party_boots(&room, 6, 3, "", 0);
    loopback_run(room.kit->net, 1000);
    struct procset members = party_set("a2 a3 a4 a6");
    for (int i = 0; i < 4; i++) {
        party_assert(others[i], 0);
        assert_true(procset_equal(&others[i]->members, &members));
    }
    procset_free(&members);
    party_end(&room);
}

/* A leader takes its call back when members are claimed already: it belongs to the operation. */
static void what_a_leader_takes_back_too_late(void **state)
{
    struct party_room room = room_of();
    (void)state;
    struct party *late = party_boots(&room, 1, 2, "a4", 0),
                 *other = party_boots(&room, 2, 2, "", 0);
    loopback_run(room.kit->net, 200);
    assert_false(engine_withdraw(loopback_engine(room.kit->net, 1), &late->call));
    loopback_run(room.kit->net, 1000);
    assert_int_equal(late->answers, 0);
    struct party *member = party_joins(&room, a(4), false);
    loopback_run(room.kit->net, 1000);
    party_assert(late, 0);
    party_assert(other, 0);
    party_assert(member, 0);
    party_end(&room);
}

/* Gives @p node a failure of the construct that @p leaders lead.
 * @param number of @p node's call as a leader; 0: it is none */
static void give_outcome(struct party_room *room, uint32_t node, uint32_t from, uint64_t op,
                         const char *leaders, uint64_t number)
{
    struct wire_out out = {0}, sig = {0};
    struct procset set = party_set(leaders);
    struct tracker_release release = {.op = op, .result.status = -5};
    signature_write(&sig, COLL_CONSTRUCT, "g", &set);
    const struct shared_bytes *bytes = release_bytes(&release, sig.data, sig.len);
    wire_put_u32(&out, number != 0);
    if (number != 0)
        wire_put_u64(&out, number);
    wire_put_raw(&out, bytes->data, bytes->len);
    release_end(&release);
    engine_take(loopback_engine(room->kit->net, node), from, FRAME_OUTCOME, out.data, out.len);
    wire_out_free(&out);
    wire_out_free(&sig);
    procset_free(&set);
}

/* A result that the home of the id has not given is none. */
static void an_outcome_of_somebody_else(void **state)
{
    struct party_room room = room_of();
    uint32_t home = (uint32_t)(signature_hash("g", 1) % N);
    (void)state;
    struct party *party = party_boots(&room, 1, 2, "", 0);
    give_outcome(&room, 1, (home + 1) % N, 1, "a1",
                 TAILQ_FIRST(&loopback_engine(room.kit->net, 1)->membership->leads)->number);
    assert_int_equal(party->answers, 0);
    party_boots(&room, 2, 2, "", 0);
    loopback_run(room.kit->net, 1000);
    party_assert_all(&room, 0, "a1 a2");
    party_end(&room);
}

/* The server that decides answers for one that is lost, late, and the lost one had given its
 * operation the same number. */
static void an_outcome_of_another_number(void **state)
{
    struct party_room room = room_of();
    (void)state;
    leads(&room, 0, "a0 a1", "b3 b4", 0);
    leads(&room, 1, "a0 a1", "", 0);
    struct party *party = party_joins(&room, b(3), false);
    loopback_run(room.kit->net, 1000);
    const struct claim *claim = TAILQ_FIRST(&loopback_engine(room.kit->net, 3)->membership->claims);
    assert_int_equal(claim->state, CLAIM_TOLD);
    give_outcome(&room, 3, claim->decider, claim->op, "a0 a1 a2", 0);
    assert_int_equal(party->answers, 0);
    party_joins(&room, b(4), false);
    loopback_run(room.kit->net, 1000);
    party_assert_all(&room, 0, "a0 a1 b3 b4");
    party_end(&room);
}

/* A success reaches one of the leaders' servers when that has given up: it keeps none, but added
 * members do not wait for its word that it does. */
static void a_success_after_giving_up(void **state)
{
    struct party_room room = room_of();
    struct loopback *net = room.kit->net;
    struct procset leaders = party_set("a0 a1 a2"), added = party_set("a5");
    struct wire_out sig = {0};
    struct party *party[3];
    uint8_t sides[N] = {0};
    (void)state;
    signature_write(&sig, COLL_CONSTRUCT, "g", &leaders);
    uint32_t root = (uint32_t)(signature_hash(sig.data, sig.len) % 3), cut = (root + 1) % 3;
    for (uint32_t i = 0; i < 3; i++)
        party[i] = party_collective(&room, "g", a(i), &leaders,
                                    (struct party_ask){.added = &added, .timeout = 1});
    loopback_run(net, 100);
    sides[cut] = 1;
    loopback_partition(net, sides, loopback_now(net) + 3000 + ENGINE_GRACE_MS);
    struct party *member = party_joins(&room, a(5), false);
    loopback_run(net, 2000 + ENGINE_GRACE_MS);
    for (uint32_t i = 0; i < 3; i++)
        party_assert(party[i], i == cut ? LOOPBACK_TIMEOUT : 0);
    assert_int_equal(member->answers, 0);
    loopback_run(net, 2000);
    party_assert(member, 0);
    wire_out_free(&sig);
    procset_free(&leaders);
    procset_free(&added);
    party_end(&room);
}

/* Leader a1 of two does not come before the other's deadline of 2 s. */
static void fail_by_time(struct party_room *room, bool boots)
{
    struct procset set = party_set("a0 a1"), added = party_set("b3");
    struct party *first = boots
                              ? party_boots(room, 0, 2, "b3", 2)
                              : party_collective(room, "g", a(0), &set,
                                                 (struct party_ask){.added = &added, .timeout = 2});
    procset_free(&set);
    procset_free(&added);
    loopback_run(room->kit->net, 3000);
    party_assert(first, LOOPBACK_TIMEOUT);
}

/* The next construct has all of its participants. */
static void succeed(struct party_room *room, bool boots, bool nameless)
{
    struct party *all[] = {boots ? party_boots(room, 0, 2, "b3", 0)
                                 : leads(room, 0, "a0 a1", "b3", 0),
                           boots ? party_boots(room, 1, 2, "", 0) : leads(room, 1, "a0 a1", "", 0),
                           party_joins(room, b(3), nameless)};
    loopback_run(room->kit->net, 1000);
    for (int i = 0; i < 3; i++)
        party_assert(all[i], 0);
}

/* A member gives up by its own deadline, or its library has answered it with another's call, before
 * the construct fails by the leaders': its next call is of the next construct. */
static void a_failure_after_giving_up(void **state)
{
    (void)state;
    for (int how = 0; how < 8; how++) {
        bool boots = how & 1, nameless = how & 2, dropped = how & 4;
        struct party_room room = room_of();
        struct party *member =
            party_join(&room, "g", b(3), (struct party_ask){.nameless = nameless, .timeout = 1});
        if (dropped) {
            assert_true(engine_withdraw(loopback_engine(room.kit->net, 3), &member->call));
            member->answers = 1; /* by the library */
        }
        fail_by_time(&room, boots);
        assert_int_equal(member->answers, 1);
        assert_int_equal(member->status, dropped ? 0 : LOOPBACK_TIMEOUT);
        succeed(&room, boots, nameless);
        party_end(&room);
    }
}

/* A member calls beside a leader of its server, and home is not heard: its own deadline answers it
 * only when the leader has gone by its own, since libpmix answers both calls at once. */
static void a_member_that_outlives_a_leader(void **state)
{
    struct party_room room = room_of();
    struct loopback *net = room.kit->net;
    uint8_t sides[N] = {0};
    (void)state;
    sides[signature_hash("g", 1) % N] = 1;
    uint32_t rank = 3 + sides[3]; /* not home's */
    loopback_partition(net, sides, loopback_now(net) + 10000);
    struct party *leader = party_boots(&room, rank, 2, "", 2);
    struct party *member = party_join(&room, "g", b(rank), (struct party_ask){.timeout = 3});
    loopback_run(net, 1900 + ENGINE_GRACE_MS);
    assert_int_equal(leader->answers + member->answers, 0);
    loopback_run(net, 200);
    party_assert(leader, LOOPBACK_TIMEOUT);
    assert_int_equal(member->answers, 0);
    loopback_run(net, 1000);
    party_assert(member, LOOPBACK_TIMEOUT);
    party_end(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_that_comes_late),
        cmocka_unit_test(every_open_claim_is_tried),
        cmocka_unit_test(what_a_leader_takes_back),
        cmocka_unit_test(what_a_leader_takes_back_too_late),
        cmocka_unit_test(an_outcome_of_somebody_else),
        cmocka_unit_test(an_outcome_of_another_number),
        cmocka_unit_test(a_success_after_giving_up),
        cmocka_unit_test(a_failure_after_giving_up),
        cmocka_unit_test(a_member_that_outlives_a_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
