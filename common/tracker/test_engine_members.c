/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of constructs with added members, and of bootstrap.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6 };

static const struct loopback_conf six = {
    .nnodes = N, .arity = 2, .seed = 3, .delay_max = 20, .reorder = true, .stall = 2};

static struct party_proc a(uint32_t rank)
{
    return (struct party_proc){'a', rank};
}

static struct party_proc b(uint32_t rank)
{
    return (struct party_proc){'b', rank};
}

static struct party_room room_of(const struct loopback_conf *conf)
{
    return (struct party_room){.kit = kit_new(conf)};
}

static void leads(struct party_room *room, uint32_t rank, const char *leaders, const char *adds,
                  uint32_t timeout)
{
    struct procset set = party_set(leaders), added = party_set(adds);
    party_collective(room, "g", a(rank), &set,
                     (struct party_ask){.added = &added, .timeout = timeout});
    procset_free(&set);
    procset_free(&added);
}

/* Before, between and after the leaders; one is added twice, one is a leader too. */
static void the_union_of_what_leaders_add(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++)
        for (int nameless = 0; nameless < 2; nameless++)
            for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
                struct party_room room = room_of(&six);
                for (int turn = 0; turn < 5; turn++) {
                    if (turn == 2 * when) {
                        party_joins(&room, a(3), nameless);
                        party_joins(&room, b(3), nameless);
                        party_joins(&room, b(0), nameless); /* beside a leader */
                        party_joins(&room, a(5), nameless);
                    }
                    if (turn == 1 && bootstrap)
                        party_boots(&room, 0, 2, "a3 b3 a1", 0);
                    else if (turn == 1)
                        leads(&room, 0, "a0 a1", "a3 b3 a1", 0);
                    if (turn == 3 && bootstrap)
                        party_boots(&room, 1, 2, "b0 a5 a3", 0);
                    else if (turn == 3)
                        leads(&room, 1, "a0 a1", "b0 a5 a3", 0);
                    loopback_run(room.kit->net, 1000);
                }
                party_assert_all(&room, 0, "a0 a1 a3 a5 b0 b3");
                party_end(&room);
            }
}

/* All fail at the deadline; the late call is of the next construct. */
static void one_that_never_calls(void **state)
{
    (void)state;
    for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
        struct party_room room = room_of(&six);
        party_joins(&room, a(3), false);
        if (bootstrap)
            party_boots(&room, 0, 1, "a3 b4 a5", 3);
        else
            leads(&room, 0, "a0", "a3 b4 a5", 3);
        party_joins(&room, b(4), true);
        loopback_run(room.kit->net, 2900);
        assert_int_equal(room.all->answers, 0);
        loopback_run(room.kit->net, 200);
        kit_assert_logged(room.kit, "group \"g\" construct: added members have not all called: "
                                    "rank 5");
        party_assert_all(&room, LOOPBACK_TIMEOUT, "");
        struct party *before = room.all;
        room.all = NULL;
        party_joins(&room, a(5), false);
        party_joins(&room, b(4), true);
        party_joins(&room, a(3), false);
        if (bootstrap)
            party_boots(&room, 0, 1, "a3 b4 a5", 3);
        else
            leads(&room, 0, "a0", "a3 b4 a5", 3);
        loopback_run(room.kit->net, 1000);
        party_assert_all(&room, 0, "a0 a3 a5 b4");
        struct party **end = &room.all;
        while (*end != NULL)
            end = &(*end)->next;
        *end = before;
        party_end(&room);
    }
}

static void one_that_nobody_adds(void **state)
{
    struct party_room room = room_of(&six);
    (void)state;
    party_join(&room, "g", a(2), (struct party_ask){.timeout = 5});
    loopback_run(room.kit->net, 2500);
    kit_assert_logged(room.kit,
                      "waiting for 2 s: group \"g\" construct: called as an added member, "
                      "and added by no leader: rank 2");
    loopback_run(room.kit->net, 2600);
    kit_assert_logged(room.kit, "timed out after 5 s: group \"g\" construct: called");
    party_assert_all(&room, LOOPBACK_TIMEOUT, "");
    party_end(&room);
}

/* Each loss before all have called fails it for all. */
static void a_loss_fails_it_for_all(void **state)
{
    (void)state;
    for (int bootstrap = 0; bootstrap < 2; bootstrap++)
        for (int what = 0; what < 2; what++) {
            struct party_room room = room_of(&six);
            party_joins(&room, a(3), false);
            if (bootstrap)
                party_boots(&room, 0, 1, "a3 a5", 0);
            else
                leads(&room, 0, "a0", "a3 a5", 0);
            loopback_run(room.kit->net, 1000);
            if (what == 0)
                loopback_local_status(room.kit->net, 5, -77);
            else
                loopback_kill(room.kit->net, 5, 10, 20);
            loopback_run(room.kit->net, 1000);
            party_assert_all(&room, what == 0 ? -77 : LOOPBACK_LOST, "");
            party_end(&room);
        }
}

/* The home of the id, which decides a bootstrap, is lost. */
static void a_lost_home(void **state)
{
    uint32_t home = (uint32_t)(signature_hash("g", 1) % N);
    (void)state;
    for (int after = 0; after < 2; after++) {
        struct party_room room = room_of(&six);
        char adds[16];
        snprintf(adds, sizeof adds, "a%u", (home + 2) % N);
        if (after)
            loopback_kill(room.kit->net, home, 10, 20), loopback_run(room.kit->net, 100);
        party_boots(&room, (home + 1) % N, 1, adds, 0);
        loopback_run(room.kit->net, 500);
        if (!after)
            loopback_kill(room.kit->net, home, 10, 20);
        loopback_run(room.kit->net, 500);
        party_assert_all(&room, LOOPBACK_LOST, "");
        party_end(&room);
    }
}

static void counts_that_disagree(void **state)
{
    struct party_room room = room_of(&six);
    (void)state;
    party_joins(&room, b(4), false);
    party_boots(&room, 0, 2, "b4", 0);
    party_joins(&room, b(5), false);
    loopback_run(room.kit->net, 500);
    party_boots(&room, 1, 3, "b5", 0);
    loopback_run(room.kit->net, 500);
    kit_assert_logged(room.kit, "group \"g\" bootstrap: rank 0 on node c00 says 2 leaders, and "
                                "rank 1 on node c01 says 3");
    party_assert_all(&room, LOOPBACK_COUNT, "");
    party_end(&room);
}

/* Leaders are counted, not calls; one more than the count belongs to the next construct. */
static void distinct_leaders_are_counted(void **state)
{
    struct party_room room = room_of(&six);
    (void)state;
    party_boots(&room, 0, 2, "", 0);
    party_boots(&room, 0, 2, "", 0);
    loopback_run(room.kit->net, 500);
    assert_int_equal(room.all->answers, 0);
    party_boots(&room, 1, 2, "", 0);
    loopback_run(room.kit->net, 500);
    party_assert_all(&room, 0, "a0 a1");
    struct party *first = room.all;
    room.all = NULL;
    party_boots(&room, 2, 2, "", 0);
    loopback_run(room.kit->net, 500);
    assert_int_equal(room.all->answers, 0);
    party_boots(&room, 0, 2, "", 0);
    loopback_run(room.kit->net, 500);
    party_assert_all(&room, 0, "a0 a2");
    room.all->next->next = first;
    party_end(&room);
}

static void one_leader_alone_and_sixty_four(void **state)
{
    struct loopback_conf conf = six;
    const uint32_t counts[] = {1, 64};
    (void)state;
    conf.nnodes = 64;
    for (int k = 0; k < 2; k++) {
        struct party_room room = room_of(&conf);
        char members[1024] = "";
        for (uint32_t i = 0; i < counts[k]; i++) {
            party_boots(&room, i, counts[k], "", 0);
            snprintf(members + strlen(members), 16, "%sa%u", i > 0 ? " " : "", i);
        }
        loopback_run(room.kit->net, 500);
        party_assert_all(&room, 0, members);
        party_end(&room);
    }
}

/* A leader that does not call: the others' deadline. The late call is of the next bootstrap. */
static void a_leader_that_never_calls(void **state)
{
    struct party_room room = room_of(&six);
    (void)state;
    party_boots(&room, 0, 2, "a4", 1);
    party_joins(&room, a(4), false);
    loopback_run(room.kit->net, 1500);
    kit_assert_logged(room.kit,
                      "group \"g\" bootstrap: 1 of 2 leaders missing; those here are rank "
                      "0");
    party_assert_all(&room, LOOPBACK_TIMEOUT, "");
    struct party *all[] = {party_boots(&room, 1, 2, "", 0), party_joins(&room, a(4), false),
                           party_boots(&room, 0, 2, "a4", 0)};
    loopback_run(room.kit->net, 500);
    for (int i = 0; i < 3; i++)
        party_assert(all[i], 0);
    party_end(&room);
}

static void an_added_member_that_does_not_exist(void **state)
{
    (void)state;
    for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
        struct party_room room = room_of(&six);
        party_joins(&room, a(2), false);
        if (bootstrap)
            party_boots(&room, 0, 1, "a2 a77", 0);
        else
            leads(&room, 0, "a0", "a2 a77", 0);
        loopback_run(room.kit->net, 500);
        party_assert_all(&room, LOOPBACK_INVALID, "");
        party_end(&room);
    }
}

/* A leader's server leaves after its call has come to the home: the others learn of it at once. */
static void a_leader_that_leaves(void **state)
{
    uint32_t home = (uint32_t)(signature_hash("g", 1) % N), leaves = (home + 1) % N;
    struct party_room room = room_of(&six);
    (void)state;
    party_boots(&room, leaves, 3, "", 0);
    party_boots(&room, (home + 2) % N, 3, "", 0);
    loopback_run(room.kit->net, 500);
    engine_close(loopback_engine(room.kit->net, leaves));
    loopback_run(room.kit->net, 100);
    party_assert_all(&room, LOOPBACK_CLOSING, "");
    loopback_kill(room.kit->net, leaves, 10, 20);
    party_end(&room);
}

/* Two leaders are on the server that leaves: that is one failure to the member that they add. */
static void two_leaders_that_leave(void **state)
{
    uint32_t home = (uint32_t)(signature_hash("g", 1) % N), leaves = (home + 1) % N;
    uint32_t member = (home + 2) % N, late = (home + 3) % N;
    struct procset added = {0};
    struct party_room room = room_of(&six);
    (void)state;
    party_add(&added, a(member));
    party_bootstrap(&room, "g", a(leaves), 3, (struct party_ask){.added = &added});
    party_bootstrap(&room, "g", (struct party_proc){'b', leaves}, 3,
                    (struct party_ask){.added = &added});
    party_joins(&room, a(member), false);
    loopback_run(room.kit->net, 500);
    engine_close(loopback_engine(room.kit->net, leaves));
    loopback_run(room.kit->net, 100);
    party_assert_all(&room, LOOPBACK_CLOSING, "");
    loopback_kill(room.kit->net, leaves, 10, 20);
    loopback_run(room.kit->net, 500);
    party_joins(&room, a(member), false);
    loopback_run(room.kit->net, 500);
    assert_int_equal(room.all->answers, 0);
    party_bootstrap(&room, "g", a(late), 1, (struct party_ask){.added = &added});
    loopback_run(room.kit->net, 500);
    party_assert(room.all, 0);
    party_assert(room.all->next, 0);
    party_end(&room);
    procset_free(&added);
}

/* A call is taken back when PMIx's library has answered it by itself. */
static void a_call_that_is_taken_back(void **state)
{
    struct party_room room = room_of(&six);
    (void)state;
    party_joins(&room, a(4), false);
    assert_true(engine_withdraw(loopback_engine(room.kit->net, 4), &room.all->call));
    assert_false(engine_withdraw(loopback_engine(room.kit->net, 4), &room.all->call));
    party_boots(&room, 1, 2, "", 0);
    loopback_run(room.kit->net, 500);
    assert_false(engine_withdraw(loopback_engine(room.kit->net, 1), &room.all->call));
    loopback_run(room.kit->net, 500);
    assert_int_equal(room.all->answers, 1); /* as its home has said */
    assert_int_equal(room.all->status, LOOPBACK_CLOSING);
    struct party *gone = room.all;
    room.all = NULL;
    party_boots(&room, 2, 2, "a4", 0);
    party_boots(&room, 3, 2, "", 0);
    loopback_run(room.kit->net, 500);
    assert_int_equal(room.all->answers, 0); /* a4's call is no more */
    party_joins(&room, a(4), false);
    loopback_run(room.kit->net, 500);
    party_assert_all(&room, 0, "a2 a3 a4");
    room.all->next->next->next = gone;
    party_end(&room);
}

/* What is cut off or runs on counts for nothing, and nothing is read past its end. */
static void malformed_frames(void **state)
{
    const enum frame_type types[] = {FRAME_LEAD, FRAME_CLAIM, FRAME_JOINED, FRAME_OUTCOME};
    struct loopback_random random = {.state = 11};
    struct party_room room = room_of(&six);
    (void)state;
    party_joins(&room, a(4), false);
    for (int i = 0; i < 20000; i++) {
        size_t len = loopback_below(&random, 90);
        unsigned char *bytes = malloc(len + 1);
        assert_non_null(bytes);
        for (size_t k = 0; k < len; k++)
            bytes[k] = loopback_below(&random, 3) ? 0 : (unsigned char)loopback_random(&random);
        unsigned char *exact = malloc(len > 0 ? len : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, len);
        engine_take(loopback_engine(room.kit->net, 4), i % 6, types[i % 4], exact, len);
        free(exact);
        free(bytes);
    }
    assert_int_equal(room.all->answers, 0);
    assert_true(engine_withdraw(loopback_engine(room.kit->net, 4), &room.all->call));
    party_end(&room);
}

enum { ASSEMBLY = 7 };

/* A frame of server 1 to server 4: rank 1 leads "g", and awaits @p members. */
static void claims(struct party_room *room, const struct procset *members)
{
    struct wire_out out = {0};
    wire_put_u64(&out, ASSEMBLY);
    wire_put_str(&out, "g");
    procset_write(members, &out);
    wire_put_block(&out, NULL, 0);
    engine_take(loopback_engine(room->kit->net, 4), 1, FRAME_CLAIM, out.data, out.len);
    wire_out_free(&out);
}

/* Its end, with a context id. */
static void tells(struct party_room *room, int32_t status, uint64_t context_id)
{
    struct procset leaders = party_set("a1");
    struct wire_out sig = {0}, out = {0};
    signature_write(&sig, COLL_CONSTRUCT, "g", &leaders);
    struct tracker_release release = {.op = ASSEMBLY,
                                      .result = {.status = status, .context_id = context_id}};
    const struct shared_bytes *bytes = release_bytes(&release, sig.data, sig.len);
    wire_put_u32(&out, 0); /* calls of leaders */
    wire_put_raw(&out, bytes->data, bytes->len);
    release_end(&release);
    engine_take(loopback_engine(room->kit->net, 4), 1, FRAME_OUTCOME, out.data, out.len);
    wire_out_free(&out);
    wire_out_free(&sig);
    procset_free(&leaders);
}

/* However many they are, and whether there are such, they are not even looked at. */
static void a_claim_for_processes_elsewhere(void **state)
{
    struct party_room room = room_of(&six);
    struct procset sets[] = {party_set("a3"), party_set("a3 a4"), {0}};
    (void)state;
    procset_add(&sets[2], "nobody", 0, UINT32_MAX - 1);
    procset_canonical(&sets[2]);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        claims(&room, &sets[i]);
        assert_true(loopback_is_empty(room.kit->net, 4));
        tells(&room, LOOPBACK_TIMEOUT, 0);
        procset_free(&sets[i]);
    }
    party_end(&room);
}

static void an_outcome_that_fails_and_succeeds(void **state)
{
    struct party_room room = room_of(&six);
    struct procset here = party_set("a4");
    (void)state;
    party_joins(&room, a(4), false);
    claims(&room, &here);
    tells(&room, LOOPBACK_TIMEOUT, 5);
    assert_int_equal(room.all->answers, 0);
    tells(&room, LOOPBACK_TIMEOUT, 0);
    assert_int_equal(room.all->answers, 1);
    assert_int_equal(room.all->status, LOOPBACK_TIMEOUT);
    procset_free(&here);
    party_end(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_for_processes_elsewhere),
        cmocka_unit_test(an_outcome_that_fails_and_succeeds),
        cmocka_unit_test(the_union_of_what_leaders_add),
        cmocka_unit_test(one_that_never_calls),
        cmocka_unit_test(one_that_nobody_adds),
        cmocka_unit_test(a_loss_fails_it_for_all),
        cmocka_unit_test(a_lost_home),
        cmocka_unit_test(counts_that_disagree),
        cmocka_unit_test(distinct_leaders_are_counted),
        cmocka_unit_test(one_leader_alone_and_sixty_four),
        cmocka_unit_test(a_leader_that_never_calls),
        cmocka_unit_test(an_added_member_that_does_not_exist),
        cmocka_unit_test(a_leader_that_leaves),
        cmocka_unit_test(two_leaders_that_leave),
        cmocka_unit_test(a_call_that_is_taken_back),
        cmocka_unit_test(malformed_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
