/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange: what every rank puts, every rank gets after a fence that collects data; and what the
 * host says of the job agrees on all ranks.
 *
 * Each rank first publishes what it was told of itself (node, local rank, host name); the others
 * compare that with what the host tells them of it. Then come --rounds of new keys in the three
 * scopes: a number, a string and --bytes bytes.
 */
#include "client.h"

static long rounds = 5, bytes = 1000, strict = 1;
static char *peers; /* PMIX_LOCAL_PEERS */

/* PRRTE 5.0.0rc1 tells a universe of its slots, however many processes run, and a wrong number of
 * nodes. Slurm's mpi/pmix tells the node id, local rank, node rank and application right of local
 * ranks only. */
#define STRICT_HELP "0: leave out what PRRTE and mpi/pmix do not tell right"

/* What the host tells of one rank. */
struct place {
    uint64_t node, local_rank, node_rank, app;
    char *host;
};

static bool listed(const char *list, pmix_rank_t rank)
{
    char *copy = strdup(list), *save = NULL;
    bool found = false;
    for (char *s = strtok_r(copy, ",", &save); s; s = strtok_r(NULL, ",", &save))
        found = found || strtoul(s, NULL, 10) == rank;
    free(copy);
    return found;
}

/* Whether all that the host tells of @p rank is checked. */
static bool trusted(pmix_rank_t rank)
{
    return strict || listed(peers, rank);
}

static struct place place_of(pmix_rank_t rank)
{
    struct place place = {.host = get_string(rank, PMIX_HOSTNAME)};
    /* libpmix 4.2.2 does not find the node id of a rank on another node, under any host. */
    if (LIBPMIX >= 50000 || listed(peers, rank))
        place.node = get_u64(rank, PMIX_NODEID);
    else
        place.node = nodes_of_ranks()[rank];
    if (trusted(rank)) {
        place.local_rank = get_u64(rank, PMIX_LOCAL_RANK);
        place.node_rank = get_u64(rank, PMIX_NODE_RANK);
        place.app = get_u64(rank, PMIX_APPNUM);
    }
    return place;
}

static size_t count_listed(const char *list)
{
    size_t n = *list != '\0';
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static void publish_own_place(const struct place *mine)
{
    put_u64(PMIX_GLOBAL, mine->node, "own.node");
    put_u64(PMIX_GLOBAL, mine->local_rank, "own.local-rank");
    put_u64(PMIX_GLOBAL, mine->node_rank, "own.node-rank");
    put_u64(PMIX_GLOBAL, mine->app, "own.app");
    put_string(PMIX_GLOBAL, mine->host, "own.host");
    commit();
    fence_all(true);
}

/* The host's word on a rank is what that rank was told of itself. */
static void check_told_alike(const struct place *place, pmix_rank_t rank)
{
    step("the host's word on rank %u", rank);
    if (!trusted(rank))
        return;
    char *host = get_string(rank, "own.host");
    CHECK_EQ(place->node, get_u64(rank, "own.node"), "node id, told here and told there");
    CHECK(!strcmp(place->host, host), "host of rank %u: expected %s as it was told, found %s", rank,
          host, place->host);
    free(host);
    CHECK_EQ(place->local_rank, get_u64(rank, "own.local-rank"), "local rank, here and there");
    CHECK_EQ(place->node_rank, get_u64(rank, "own.node-rank"), "node rank, here and there");
    CHECK_EQ(place->app, get_u64(rank, "own.app"), "application, here and there");
}

static void check_local_peers(const struct place *places)
{
    const struct place *mine = &places[client.me.rank];
    size_t here = 0;
    for (pmix_rank_t r = 0; r < client.size; r++) {
        bool same = strict ? places[r].node == mine->node : listed(peers, r);
        here += same;
        CHECK(same == listed(peers, r), "local peers \"%s\": expected rank %u %s", peers, r,
              same ? "in it" : "not in it");
        CHECK(same == !strcmp(places[r].host, mine->host),
              "rank %u: node id %s mine, host %s and mine is %s", r, same ? "is" : "is not",
              places[r].host, mine->host);
        CHECK(!same || r == client.me.rank || places[r].local_rank != mine->local_rank,
              "local rank %u: expected once on a node, found on rank %u too",
              (unsigned)mine->local_rank, r);
    }
    CHECK_EQ(count_listed(peers), here, "length of the local peers");
    CHECK_EQ(get_u64(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE), here, "local size");
    CHECK(mine->local_rank < here, "local rank: expected less than %zu, found %u", here,
          (unsigned)mine->local_rank);
}

static void check_job(void)
{
    struct place *places = calloc(client.size, sizeof *places);
    uint64_t nodes = get_u64(PMIX_RANK_WILDCARD, PMIX_NUM_NODES), *ids;
    uint64_t universe = get_u64(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE);
    size_t distinct = 0;
    step("job info");
    CHECK(universe >= client.size || !strict, "universe: expected at least %u, found %llu",
          client.size, (unsigned long long)universe);
    nodes_of_ranks();
    places[client.me.rank] = place_of(client.me.rank);
    publish_own_place(&places[client.me.rank]);
    free(places[client.me.rank].host);
    ids = calloc(client.size, sizeof *ids);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        places[r] = place_of(r);
        check_told_alike(&places[r], r);
        ids[r] = places[r].node;
    }
    check_local_peers(places);
    qsort(ids, client.size, sizeof *ids, compare_u64);
    for (pmix_rank_t r = 0; r < client.size; r++)
        distinct += r == 0 || ids[r] != ids[r - 1];
    if (strict)
        CHECK_EQ(nodes, distinct, "number of nodes");
    for (pmix_rank_t r = 0; r < client.size; r++)
        free(places[r].host);
    free(places);
    free(ids);
}

static void fill(unsigned char *blob, pmix_rank_t rank, long round)
{
    for (long i = 0; i < bytes; i++)
        blob[i] = (unsigned char)mix((uint64_t)i + 1000003u * rank + 7919u * (uint64_t)round);
}

static void put_round(long round, unsigned char *blob)
{
    char text[100];
    snprintf(text, sizeof text, "rank %u in round %ld", client.me.rank, round);
    fill(blob, client.me.rank, round);
    put_u64(PMIX_GLOBAL, mix(client.me.rank + (uint64_t)round), "x%ld.number", round);
    put_string(PMIX_GLOBAL, text, "x%ld.text", round);
    put_bytes(PMIX_GLOBAL, blob, (size_t)bytes, "x%ld.blob", round);
    put_string(PMIX_LOCAL, text, "x%ld.local", round);
    put_string(PMIX_REMOTE, text, "x%ld.remote", round);
    commit();
}

static void check_text(pmix_rank_t rank, long round, const char *key)
{
    char expected[100], *found = get_string(rank, "x%ld.%s", round, key);
    snprintf(expected, sizeof expected, "rank %u in round %ld", rank, round);
    CHECK(!strcmp(found, expected), "%s: expected \"%s\", found \"%s\"", key, expected, found);
    free(found);
}

static void check_round(long round, unsigned char *blob)
{
    for (pmix_rank_t r = 0; r < client.size; r++) {
        step("round %ld, gets of rank %u", round, r);
        CHECK_EQ(get_u64(r, "x%ld.number", round), mix(r + (uint64_t)round), "number");
        check_text(r, round, "text");
        unsigned char *found = get_bytes(r, (size_t)bytes, "x%ld.blob", round);
        fill(blob, r, round);
        CHECK(!memcmp(found, blob, (size_t)bytes), "%ld bytes of rank %u: found others", bytes, r);
        free(found);
        /* A process may always see its own, so it is asked for neither scope. */
        if (r != client.me.rank)
            check_text(r, round, listed(peers, r) ? "local" : "remote");
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "fences, each with new keys", NULL},
                                            {"bytes", &bytes, "bytes of a rank's blob", NULL},
                                            {"strict", &strict, STRICT_HELP, NULL},
                                            {0}};
    client_init("exchange", options, argc, argv);
    peers = get_string(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
    check_job();
    unsigned char *blob = malloc((size_t)bytes + 1);
    for (long round = 0; round < rounds; round++) {
        step("round %ld, fence with data", round);
        put_round(round, blob);
        fence_all(true);
        check_round(round, blob);
    }
    free(blob);
    free(peers);
    uint64_t nodes = get_u64(PMIX_RANK_WILDCARD, PMIX_NUM_NODES);
    return client_pass("%u ranks on %u nodes agree on the job; %ld rounds of 5 keys, %ld bytes",
                       client.size, (unsigned)nodes, rounds, bytes);
}
