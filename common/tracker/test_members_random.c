/** @file
 * A random campaign over added members and bootstrap: each seed is one network with some groups,
 * each of them constructed several times in turn, as members, order and mishaps come.
 *
 *     test_members_random                 seeds 1 to 4000
 *     test_members_random FIRST [COUNT]   those seeds; MUSTER_SEED=FIRST does the same under meson
 *
 * Calm (delays, reordering, repetitions): all get one result, which holds exactly the leaders and
 * those whom any of them adds. Failing (statuses and leaders' deadlines too): all get one status,
 * also those that call late, and the next construct is not touched by it. Deadly and lossy: every
 * call has a deadline and meets it, and what succeeds holds everybody. Nothing is left anywhere.
 */
#include "common/tracker/test_party.h"

#include "common/util/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum climate { CALM, FAILING, DEADLY, LOSSY, CLIMATES };

enum {
    SEEDS = 4000,
    NODES_MAX = 12,
    GROUPS_MAX = 3,
    ROUNDS_MAX = 4,
    SPREAD_MS = 3000,
    TIMEOUT_MAX = 6,     /* s */
    SETTLE_MS = 400000,  /* all is over by then */
    LATENESS_MS = 30000, /* graces chain: a member's, its server's, the leaders' beside it */
};

static uint64_t first_seed = 1;
static unsigned count = SEEDS;
static bool verbose;

struct run {
    struct party_room room;
    struct loopback_random random;
    enum climate climate;
    uint32_t nnodes;
    bool nameless;
};

/* One construct of a group. */
struct round {
    struct run *run;
    uint32_t group, number, left, waiting; /* rounds after this one; calls without an answer */
    bool bootstrap;
    struct procset leaders, added, all;
    struct party_proc procs[2 * NODES_MAX];
    uint32_t nprocs, nleaders; /* the leaders first */
};

/* One call that will be made. */
struct plan {
    struct round *round;
    uint32_t proc;
};

static bool chance(struct run *run, uint32_t percent)
{
    return loopback_below(&run->random, 100) < percent;
}

static void next_round(struct run *run, uint32_t group, uint32_t number, uint32_t left);

static void free_round(struct round *round)
{
    procset_free(&round->leaders);
    procset_free(&round->added);
    procset_free(&round->all);
    free(round);
}

static void call_over(struct round *round)
{
    if (--round->waiting > 0)
        return;
    if (round->left > 0)
        next_round(round->run, round->group, round->number + 1, round->left - 1);
    free_round(round);
}

/* The calls of a round are known by its number. */
static void check_round(struct party *party)
{
    struct kit *kit = party->room->kit;
    for (const struct party *p = party->room->all; p != NULL; p = p->next)
        if (p->group == party->group && p->answers > 0 &&
            (p->status != party->status || p->context_id != party->context_id ||
             !procset_equal(&p->members, &party->members)))
            kit_fault(kit, "group %s, round %u: %c%u got %d and %c%u got %d", p->id, p->group % 100,
                      p->proc.ns, p->proc.rank, p->status, party->proc.ns, party->proc.rank,
                      party->status);
}

static struct round *round_of(const struct party *party);

static void answered(struct party *party)
{
    struct round *round = round_of(party);
    struct run *run = round->run;
    if (verbose)
        fprintf(stderr, "%8llu: %s, round %u: %c%u called at %llu (timeout %u): %d\n",
                (unsigned long long)party->answered_at, party->id, round->number, party->proc.ns,
                party->proc.rank, (unsigned long long)party->made_at, party->call.timeout,
                party->status);
    if (run->climate <= FAILING)
        check_round(party);
    if (run->climate == CALM && party->status != 0)
        kit_fault(run->room.kit, "group %s, round %u: %c%u got %d", party->id, round->number,
                  party->proc.ns, party->proc.rank, party->status);
    if (party->status == 0 && !procset_equal(&party->members, &round->all))
        kit_fault(run->room.kit, "group %s, round %u: other members than were added", party->id,
                  round->number);
    call_over(round);
}

/* Rounds of a group follow one another, so one is current. */
static struct round *current[GROUPS_MAX];

static struct round *round_of(const struct party *party)
{
    return current[party->group / 100];
}

/* What a leader adds: all, or in calm climates a part, which some other one completes. */
static void choose_added(struct round *round, uint32_t proc, struct procset *added)
{
    struct run *run = round->run;
    for (uint32_t i = round->nleaders; i < round->nprocs; i++)
        if (run->climate != CALM || i % round->nleaders == proc || chance(run, 30))
            party_add(added, round->procs[i]);
    if (chance(run, 30)) /* one that leads anyway */
        party_add(added, round->procs[0]);
}

static void make_call(struct loopback *net, void *arg)
{
    struct plan plan = *(struct plan *)arg;
    struct round *round = plan.round;
    struct run *run = round->run;
    struct party_proc proc = round->procs[plan.proc];
    bool leader = plan.proc < round->nleaders;
    struct procset added = {0};
    struct party_ask ask = {.then = answered, .group = round->group * 100 + round->number};
    char id[16];
    free(arg);
    snprintf(id, sizeof id, "g%u", round->group);
    if (loopback_dead(net, proc.rank)) {
        call_over(round);
        return;
    }
    if (run->climate >= DEADLY || (run->climate == FAILING && leader && chance(run, 20)))
        ask.timeout = 1 + loopback_below(&run->random, TIMEOUT_MAX);
    if (run->climate == FAILING && chance(run, 5))
        ask.status = -300 - (int32_t)proc.rank;
    ask.nameless = run->nameless && !leader;
    if (leader)
        choose_added(round, plan.proc, &added);
    ask.added = &added;
    if (!leader)
        party_join(&run->room, id, proc, ask);
    else if (round->bootstrap)
        party_bootstrap(&run->room, id, proc, round->nleaders, ask);
    else
        party_collective(&run->room, id, proc, &round->leaders, ask);
    procset_free(&added);
}

static void next_round(struct run *run, uint32_t group, uint32_t number, uint32_t left)
{
    struct loopback *net = run->room.kit->net;
    struct round *round = calloc(1, sizeof *round);
    if (round == NULL)
        abort();
    *round = (struct round){.run = run, .group = group, .number = number, .left = left};
    round->bootstrap = chance(run, 50);
    for (int members = 0; members < 2; members++)
        for (uint32_t rank = 0; rank < run->nnodes; rank++)
            for (char ns = 'a'; ns <= 'b'; ns++) {
                /* A nameless call stands for anybody of its server: one process there, then. */
                if ((ns == 'b' && (run->nameless || !members)) ||
                    procset_has(&round->leaders, ns == 'a' ? "a" : "b", rank) || !chance(run, 40))
                    continue;
                round->procs[round->nprocs++] = (struct party_proc){ns, rank};
                party_add(members ? &round->added : &round->leaders,
                          round->procs[round->nprocs - 1]);
                round->nleaders += !members;
            }
    if (round->nleaders == 0) {
        procset_free(&round->added);
        round->procs[0] = (struct party_proc){'a', 0};
        party_add(&round->leaders, round->procs[0]);
        round->nprocs = round->nleaders = 1;
    }
    procset_unite(&round->all, &round->leaders);
    procset_unite(&round->all, &round->added);
    round->waiting = round->nprocs;
    current[group] = round;
    if (verbose)
        fprintf(stderr, "%8llu: g%u, round %u: %s, %u leaders of %u\n",
                (unsigned long long)loopback_now(net), group, number,
                round->bootstrap ? "bootstrap" : "collective", round->nleaders, round->nprocs);
    for (uint32_t i = 0; i < round->nprocs; i++) {
        struct plan *plan = calloc(1, sizeof *plan);
        if (plan == NULL)
            abort();
        *plan = (struct plan){round, i};
        loopback_at(net, loopback_now(net) + loopback_below(&run->random, SPREAD_MS), make_call,
                    plan);
    }
}

static void kill_one(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint32_t node = loopback_below(&run->random, run->nnodes);
    if (!loopback_dead(net, node))
        loopback_kill(net, node, 0, 1000);
}

static void check_calls(struct run *run)
{
    struct kit *kit = run->room.kit;
    for (const struct party *p = run->room.all; p != NULL; p = p->next) {
        if (loopback_dead(kit->net, p->proc.rank))
            continue;
        if (p->answers != 1)
            kit_fault(kit, "%s, round %u: %c%u has %u answers", p->id, p->group % 100, p->proc.ns,
                      p->proc.rank, p->answers);
        else if (run->climate >= DEADLY &&
                 p->answered_at > p->made_at + p->call.timeout * 1000ull + LATENESS_MS)
            kit_fault(kit, "%s, round %u: %c%u was answered late", p->id, p->group % 100,
                      p->proc.ns, p->proc.rank);
    }
}

/* @return what was wrong, or an empty text */
static void run_seed(uint64_t seed)
{
    const uint32_t arities[] = {2, 3, 16};
    struct run run = {.random = {.state = seed * 977 + 5}};
    run.climate = (enum climate)(seed % CLIMATES);
    run.nnodes = 1 + loopback_below(&run.random, NODES_MAX);
    run.nameless = chance(&run, 30);
    struct loopback_conf conf = {
        .nnodes = run.nnodes,
        .arity = arities[loopback_below(&run.random, 3)],
        .seed = seed,
        .delay_max = 1 + loopback_below(&run.random, 100),
        .reorder = chance(&run, 70),
        .duplicate = loopback_below(&run.random, 100),
        .drop = run.climate == LOSSY ? loopback_below(&run.random, 100) : 0,
        .stall = chance(&run, 50) ? 3 : 0,
    };
    run.room.kit = kit_new(&conf);
    uint32_t groups = 1 + loopback_below(&run.random, GROUPS_MAX);
    for (uint32_t g = 0; g < groups; g++)
        next_round(&run, g, 0, loopback_below(&run.random, ROUNDS_MAX));
    for (uint32_t i = 0; run.climate == DEADLY && i < 2; i++)
        loopback_at(run.room.kit->net, 1000 + loopback_below(&run.random, 6000), kill_one, &run);
    loopback_run(run.room.kit->net, SETTLE_MS);
    check_calls(&run);
    if (run.room.kit->fault[0] != '\0')
        fprintf(stderr, "seed %llu: %s\n%s", (unsigned long long)seed, run.room.kit->fault,
                verbose ? run.room.kit->log : "");
    party_end(&run.room);
}

static void campaign(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + count; seed++)
        run_seed(seed);
}

int main(int argc, char **argv)
{
    const char *seed = argc > 1 ? argv[1] : getenv("MUSTER_SEED");
    const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};
    if (seed != NULL) {
        first_seed = strtoull(seed, NULL, 10);
        count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
        verbose = count == 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
