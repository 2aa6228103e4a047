/* SPDX-License-Identifier: BSD-3-Clause */
/* subset: fences of part of the job, several at once, with data and without.
 *
 * A case says which ranks share a fence with this one, and in which order the list names them.
 * With data, what the others of the subset put is there afterwards without asking the host. Without
 * data it is a barrier of the subset: everybody's times are compared at the end.
 */
#include "client.h"

static long rounds = 2, barrier = 1;

/* Each fills @p procs with this rank's subset and returns how many; 0: this rank has none. */
typedef size_t subset_fn(pmix_proc_t *procs);

static size_t same_parity(pmix_proc_t *procs)
{
    size_t n = 0;
    for (pmix_rank_t r = client.me.rank % 2; r < client.size; r += 2)
        procs[n++] = proc_of(r);
    return n;
}

static size_t pair(pmix_proc_t *procs)
{
    size_t n = 0;
    for (pmix_rank_t r = client.me.rank & ~1u; r <= (client.me.rank | 1u) && r < client.size; r++)
        procs[n++] = proc_of(r);
    return n;
}

static size_t distant_pair(pmix_proc_t *procs)
{
    pmix_rank_t other = client.size - 1 - client.me.rank;
    procs[0] = proc_of(client.me.rank < other ? client.me.rank : other);
    procs[1] = proc_of(client.me.rank < other ? other : client.me.rank);
    return other == client.me.rank ? 1 : 2;
}

static size_t prefix(pmix_proc_t *procs)
{
    pmix_rank_t n = (client.size + 1) / 2 + (client.size > 2);
    for (pmix_rank_t r = 0; r < n; r++)
        procs[r] = proc_of(r);
    return client.me.rank < n ? n : 0;
}

static size_t alone(pmix_proc_t *procs)
{
    procs[0] = client.me;
    return 1;
}

static size_t whole(pmix_proc_t *procs)
{
    procs[0] = client.all;
    return 1;
}

/* Everybody names everybody, each in an order of its own: a fence's participants are a set. */
static size_t scrambled(pmix_proc_t *procs)
{
    for (pmix_rank_t r = 0; r < client.size; r++)
        procs[r] = proc_of((r + client.me.rank) % client.size);
    return client.size;
}

static const struct {
    const char *name;
    subset_fn *fill;
} cases[] = {{"parity", same_parity}, {"pair", pair},   {"distant", distant_pair},
             {"prefix", prefix},      {"alone", alone}, {"whole", whole},
             {"scrambled", scrambled}};

enum { CASES = sizeof cases / sizeof *cases };

struct times {
    uint64_t enter, leave;
};

/* What the others of the subset put is at hand: PMIX_IMMEDIATE forbids to ask the host for it. */
static void check_data(const pmix_proc_t *procs, size_t n, const char *key)
{
    pmix_info_t info;
    bool yes = true, everybody = procs[0].rank == PMIX_RANK_WILDCARD;
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    for (size_t i = 0; i < (everybody ? client.size : n); i++) {
        pmix_rank_t rank = everybody ? (pmix_rank_t)i : procs[i].rank;
        pmix_value_t *value = get_value_with(rank, &info, 1, key);
        CHECK_EQ(number_in(value, key), mix(rank), key);
        PMIX_VALUE_RELEASE(value);
    }
    PMIX_INFO_DESTRUCT(&info);
}

static struct times run_case(size_t c, long round, bool collect, pmix_proc_t *procs)
{
    struct times times = {0};
    char key[PMIX_MAX_KEYLEN];
    size_t n = cases[c].fill(procs);
    if (n == 0)
        return times;
    step("round %ld, fence %s %s data", round, cases[c].name, collect ? "with" : "without");
    snprintf(key, sizeof key, "s%ld.%s.%d", round, cases[c].name, collect);
    put_u64(PMIX_GLOBAL, mix(client.me.rank), "%s", key);
    commit();
    /* One rank of the job is late; its subsets wait for it and the others do not care. */
    if (client.me.rank == (pmix_rank_t)(mix(c + (uint64_t)round) % client.size))
        sleep_ms(20);
    times.enter = now_ns();
    fence_of(procs, n, collect);
    times.leave = now_ns();
    if (collect)
        check_data(procs, n, key);
    return times;
}

static void check_times(long round, const struct times *mine, pmix_proc_t *procs)
{
    step("round %ld, exchange of times", round);
    put_bytes(PMIX_GLOBAL, mine, CASES * sizeof *mine, "s%ld.times", round);
    commit();
    fence_all(true);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        struct times *theirs = get_bytes(r, CASES * sizeof *theirs, "s%ld.times", round);
        for (size_t c = 0; c < CASES; c++) {
            size_t n = cases[c].fill(procs);
            bool in = n && procs[0].rank == PMIX_RANK_WILDCARD;
            for (size_t i = 0; i < n; i++)
                in = in || procs[i].rank == r;
            CHECK(!in || mine[c].leave >= theirs[c].enter,
                  "fence %s without data: expected to leave after rank %u entered, found %.3f ms "
                  "before",
                  cases[c].name, r, (double)(theirs[c].enter - mine[c].leave) / 1e6);
        }
        free(theirs);
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"rounds", &rounds, "times that all cases are run", NULL},
        {"barrier", &barrier, "0: do not ask of a fence without data that it is a barrier", NULL},
        {0}};
    client_init("subset", options, argc, argv);
    pmix_proc_t *procs = calloc(client.size + 2, sizeof *procs);
    for (long round = 0; round < rounds; round++) {
        struct times times[CASES];
        for (size_t c = 0; c < CASES; c++)
            times[c] = run_case(c, round, false, procs);
        if (barrier)
            check_times(round, times, procs);
        for (size_t c = 0; c < CASES; c++)
            run_case(c, round, true, procs);
    }
    free(procs);
    step("last fence");
    fence_all(false);
    return client_pass("%d kinds of subset of %u ranks, %ld times with data and without", CASES,
                       client.size, rounds);
}
