/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_sessions: MPI without MPI_Init: a session, its process sets, and communicators made from
 * groups, several times; the whole world, a subset, two halves with one tag at once, SELF.
 * --sessions N does it in N sessions one after another, each of which ends before the next begins.
 *
 * Two halves with one tag at once are two PMIx groups with one id. A node's libpmix server mixes
 * those up if it hosts members of both (see groups_disjoint.c), so the halves are made of whole
 * nodes; on one node the halves take tags of their own. --shared 1 shows the fault.
 */
#include "mpi_client.h"

/* Open MPI 5.0 has sessions, though it says that it is MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

static int size, rounds, shared;

static MPI_Comm comm_from(MPI_Group group, const char *tag)
{
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQ(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
             MPI_SUCCESS, tag);
    return comm;
}

/* Each rank of the communicator has talked to all. @return its size */
static int use(MPI_Comm comm)
{
    int n, sum = 0, one = 1;
    MPI_Comm_size(comm, &n);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS, "MPI_Allreduce");
    CHECK_EQ(sum, n, "sum of ones");
    return n;
}

/* Node of each rank, as the lowest rank that has its processor's name. */
static void find_nodes(MPI_Comm world, int *node)
{
    int length;
    char name[MPI_MAX_PROCESSOR_NAME] = "", *names = malloc((size_t)size * sizeof name);
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, world);
    for (int r = 0; r < size; r++)
        for (node[r] = 0; strcmp(names + node[r] * (int)sizeof name, names + r * (int)sizeof name);)
            node[r]++;
    free(names);
}

/* The half that this rank is in: ranks that @p upper says so of, or the others. */
static MPI_Group half_of(MPI_Group world, const char *upper)
{
    int *ranks = malloc((size_t)size * sizeof *ranks), n = 0;
    MPI_Group half;
    for (int r = 0; r < size; r++)
        if (upper[r] == upper[my_rank])
            ranks[n++] = r;
    MPI_Group_incl(world, n, ranks, &half);
    free(ranks);
    return half;
}

static void check_halves(MPI_Group world, const int *node, int round)
{
    char *upper = calloc(1, (size_t)size), tag[64];
    int nodes = 0, index = 0;
    for (int r = 0; r < size; r++)
        nodes += node[r] == r;
    for (int r = 0; r < size; r++) {
        index = node[r] == r ? index + 1 : index;
        upper[r] = shared || nodes < 2 ? r % 2 : node[r] == r ? index > nodes / 2 : upper[node[r]];
    }
    snprintf(tag, sizeof tag, shared || nodes > 1 ? "muster.half" : "muster.half.%d",
             upper[my_rank]);
    step("round %d, %s", round, tag);
    MPI_Group half = half_of(world, upper);
    int expected;
    MPI_Group_size(half, &expected);
    MPI_Comm comm = comm_from(half, tag);
    CHECK_EQ(use(comm), expected, "size of my half");
    MPI_Comm_free(&comm);
    MPI_Group_free(&half);
    free(upper);
}

static void check_round(MPI_Session session, int round)
{
    MPI_Group world, self;
    MPI_Comm comm, other;
    char tag[64];
    step("round %d, groups of the process sets", round);
    CHECK_EQ(MPI_Group_from_session_pset(session, "mpi://WORLD", &world), MPI_SUCCESS, "world");
    CHECK_EQ(MPI_Group_from_session_pset(session, "mpi://SELF", &self), MPI_SUCCESS, "self");
    MPI_Group_rank(world, &my_rank);
    MPI_Group_size(world, &size);
    step("round %d, communicator of the world", round);
    comm = comm_from(world, "muster.world");
    CHECK_EQ(use(comm), size, "size of the world");
    snprintf(tag, sizeof tag, "muster.world.%d", round);
    step("round %d, a second communicator of the world", round);
    other = comm_from(world, tag);
    CHECK_EQ(use(other), size, "size of the world again");
    int *node = malloc((size_t)size * sizeof *node);
    find_nodes(comm, node);
    MPI_Comm_free(&other);
    if (size > 1)
        check_halves(world, node, round);
    free(node);
    step("round %d, communicator of myself", round);
    snprintf(tag, sizeof tag, "muster.self.%d", my_rank);
    other = comm_from(self, tag);
    CHECK_EQ(use(other), 1, "size of myself");
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
    MPI_Group_free(&world);
    MPI_Group_free(&self);
}

static void check_session(void)
{
    MPI_Session session;
    step("MPI_Session_init");
    CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS, "init");
    for (int round = 0; round < rounds; round++)
        check_round(session, round);
    step("MPI_Session_finalize");
    CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS, "finalize");
}

int main(int argc, char **argv)
{
    (void)argc;
    rounds = option_number(argv, "--rounds", 3);
    shared = option_number(argv, "--shared", 0);
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    for (int n = option_number(argv, "--sessions", 1); n > 0; n--)
        check_session();
    CHECK_EQ(size, option_number(argv, "--ranks", size), "size of the world");
    if (my_rank == 0)
        printf("PASS mpi_sessions: %d times four communicators of %d ranks from groups\n", rounds,
               size);
    return 0;
}

#else

int main(void)
{
    printf("SKIP mpi_sessions: MPI %d.%d has no sessions\n", MPI_VERSION, MPI_SUBVERSION);
    return EXIT_SKIP;
}

#endif
