/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_collectives: how long fences and groups take.
 *
 * Each round an empty fence, a fence with --bytes of each rank, a construct and a destruct of the
 * whole job with a context id; each after an empty fence that aligns the ranks. A round counts with
 * its slowest rank. Rank 0 prints one line: median and 90th percentile in µs.
 */
#include "group.h"

static long rounds = 100, bytes = 1024, warmup = 5, groups = 1;

enum op { EMPTY, DATA, CONSTRUCT, DESTRUCT, OPS };
static const char *const names[OPS] = {"fence", "fence+data", "construct", "destruct"};

static uint64_t run_op(enum op op, long round, const pmix_proc_t *members, const char *blob)
{
    struct group_result result;
    char id[32];
    snprintf(id, sizeof id, "bench.%ld", round);
    step("round %ld, %s", round, names[op]);
    if (op == DATA) {
        put_bytes(PMIX_GLOBAL, blob, (size_t)bytes, "bench");
        commit();
    }
    fence_all(false);
    uint64_t begin = now_ns();
    switch (op) {
    case CONSTRUCT:
        group_construct(id, members, client.size, &result);
        begin = now_ns() - begin;
        group_result_free(&result);
        return begin;
    case DESTRUCT:
        group_destruct(id);
        break;
    default:
        fence_all(op == DATA);
    }
    return now_ns() - begin;
}

/* Replaces each of rank 0's times by the slowest rank's. */
static void gather_slowest(uint64_t *times, size_t n)
{
    step("gathering of the times");
    put_bytes(PMIX_GLOBAL, times, n * sizeof *times, "bench.times");
    commit();
    fence_all(true);
    for (pmix_rank_t r = 0; client.me.rank == 0 && r < client.size; r++) {
        uint64_t *theirs = get_bytes(r, n * sizeof *theirs, "bench.times");
        for (size_t i = 0; i < n; i++)
            times[i] = theirs[i] > times[i] ? theirs[i] : times[i];
        free(theirs);
    }
}

static void print_line(uint64_t *times, int ops)
{
    printf("BENCH ranks %u nodes %u bytes %ld rounds %ld µs median/p90:", client.size,
           (unsigned)get_u64(PMIX_RANK_WILDCARD, PMIX_NUM_NODES), bytes, rounds);
    for (int op = 0; op < ops; op++) {
        uint64_t *row = times + op * rounds;
        qsort(row, (size_t)rounds, sizeof *row, compare_u64);
        printf(" %s %.0f/%.0f", names[op], (double)row[rounds / 2] / 1e3,
               (double)row[rounds * 9 / 10] / 1e3);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "rounds that count", NULL},
                                            {"bytes", &bytes, "of each rank in a fence", NULL},
                                            {"warmup", &warmup, "rounds before", NULL},
                                            {"groups", &groups, "0: fences only", NULL},
                                            {0}};
    client_init("bench_collectives", options, argc, argv);
    CHECK(rounds > 0 && bytes >= 0 && warmup >= 0, "options: expected no negative ones");
    const int ops = groups ? OPS : CONSTRUCT;
    uint64_t *times = calloc((size_t)(rounds * ops), sizeof *times);
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    char *blob = calloc(1, (size_t)bytes + 1);
    for (pmix_rank_t r = 0; r < client.size; r++)
        members[r] = proc_of(r);
    for (long round = -warmup; round < rounds; round++)
        for (int op = 0; op < ops; op++) {
            uint64_t time = run_op((enum op)op, round, members, blob);
            if (round >= 0)
                times[op * rounds + round] = time;
        }
    gather_slowest(times, (size_t)(rounds * ops));
    if (client.me.rank == 0)
        print_line(times, ops);
    free(times);
    free(members);
    free(blob);
    return client_pass("%ld rounds", rounds);
}
