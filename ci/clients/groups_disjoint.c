/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_disjoint: two disjoint sets of processes construct groups of one id at the same time, as
 * two halves of an MPI program may with one string tag.
 *
 * Each half gets a context id of its own and its own members. No node hosts members of both halves:
 * a node's libpmix server, of every release up to 7.0.0rc1, finds a construct by its id alone and
 * would make one group of the two, whatever the host does. --shared 1 shows that.
 */
#include "group.h"

static long rounds = 10, late_ms = 5, shared;

/* Node ids in ascending order, each once. */
static uint64_t *nodes, nnodes;

static void read_nodes(void)
{
    uint64_t *all = calloc(client.size, sizeof *all);
    for (pmix_rank_t r = 0; r < client.size; r++)
        all[r] = nodes_of_ranks()[r];
    qsort(all, client.size, sizeof *all, compare_u64);
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (r == 0 || all[r] != all[r - 1])
            all[nnodes++] = all[r];
    nodes = all;
}

/* In turn: every second node, and the first nodes against the last. */
static unsigned half_of(pmix_rank_t rank, long round)
{
    if (shared)
        return round % 2 ? rank % 2 : rank >= client.size / 2;
    uint64_t node = nodes_of_ranks()[rank], index = 0;
    while (nodes[index] != node)
        index++;
    return round % 2 ? index % 2 : index >= nnodes / 2;
}

static struct group_seen run_round(long round, pmix_proc_t *members)
{
    struct group_result result;
    struct group_seen seen;
    unsigned mine = half_of(client.me.rank, round);
    size_t n = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (half_of(r, round) == mine)
            members[n++] = proc_of(r);
    step("round %ld, start", round);
    fence_all(false);
    if (client.me.rank == (pmix_rank_t)(mix((uint64_t)round) % client.size))
        sleep_ms(late_ms); /* now the one half is first, now the other */
    step("round %ld, construct in half %u", round, mine);
    group_construct("twin", members, n, &result);
    group_check_members(&result, members, n);
    seen = (struct group_seen){result.context, group_order(&result)};
    group_result_free(&result);
    step("round %ld, destruct in half %u", round, mine);
    group_destruct("twin");
    return seen;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"rounds", &rounds, "constructs", NULL},
        {"late", &late_ms, "ms by which one rank is late", NULL},
        {"shared", &shared, "1: halves that share their nodes", NULL},
        {0}};
    client_init("groups_disjoint", options, argc, argv);
    read_nodes();
    if (client.size < 2 || (!shared && nnodes < 2))
        return client_skip("needs two nodes, found %u", (unsigned)nnodes);
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    struct group_seen *seen = calloc(2 * (size_t)rounds, sizeof *seen);
    uint64_t *contexts = calloc(2 * (size_t)rounds, sizeof *contexts);
    for (long round = 0; round < rounds; round++)
        seen[2 * round + half_of(client.me.rank, round)] = run_round(round, members);
    step("comparison");
    group_compare(seen, 2 * (size_t)rounds, contexts, "disjoint");
    group_check_distinct(contexts, 2 * (size_t)rounds);
    free(contexts);
    free(members);
    free(nodes);
    free(seen);
    return client_pass("%ld times two halves of %u ranks at once with one id, two context ids",
                       rounds, client.size);
}
