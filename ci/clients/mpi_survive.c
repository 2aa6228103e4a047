/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_survive: MPI that outlives ranks (ULFM). Rank --victim, and --second if given, end without
 * MPI_Finalize, with exit code 0, so that srun's status is that of the survivors. They see the loss
 * in a barrier, or have it told by one that saw it, shrink the world, and use what is left. */
#include "mpi_client.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

static int victims[2], nvictims;

static bool is_victim(int rank)
{
    return rank == victims[0] || (nvictims == 2 && rank == victims[1]);
}

/* The victims end when all others have said that the world works; before that, their end would fail
 * what these begin with. No collective operation comes before: what an MPI prepares in its first
 * one, it prepares in a world that lacks ranks. */
static void lose(int size)
{
    int word = 0;
    step("the victims' end");
    for (int i = 0; i < nvictims && !is_victim(my_rank); i++)
        MPI_Send(&word, 1, MPI_INT, victims[i], 0, MPI_COMM_WORLD);
    if (!is_victim(my_rank))
        return;
    for (int i = 0; i < size - nvictims; i++)
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    _exit(0);
}

/* Barriers until one fails: the first may be over before the loss is known. */
static void await_loss(void)
{
    int status = MPI_SUCCESS, kind;
    step("barriers until one fails");
    while (status == MPI_SUCCESS)
        status = MPI_Barrier(MPI_COMM_WORLD);
    MPI_Error_class(status, &kind);
    if (kind != MPIX_ERR_REVOKED)
        CHECK_EQ(kind, MPIX_ERR_PROC_FAILED, "class of the barrier's error");
}

int main(int argc, char **argv)
{
    int size, left, ranks = option_number(argv, "--ranks", 0), first = 0;
    victims[0] = option_number(argv, "--victim", 0);
    victims[1] = option_number(argv, "--second", -1);
    nvictims = victims[1] < 0 ? 1 : 2;
    MPI_Comm world;
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    signal(SIGPIPE, SIG_IGN); /* Open MPI writes to connections of the lost rank */
    step("MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(size, ranks, "size of the world");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    lose(size);
    await_loss();
    step("MPIX_Comm_revoke");
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    step("MPIX_Comm_shrink");
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &world), MPI_SUCCESS, "MPIX_Comm_shrink");
    MPI_Comm_size(world, &left);
    CHECK_EQ(left, size - nvictims, "size of what is left");
    use_comm(world, left, "MPI_Allreduce of those left");
    MPI_Comm_free(&world);
    step("MPI_Finalize");
    MPI_Finalize();
    while (is_victim(first))
        first++;
    if (my_rank == first)
        printf("PASS mpi_survive: %d of %d ranks go on\n", left, size);
    return 0;
}

#else

int main(void)
{
    puts("SKIP mpi_survive: this MPI cannot outlive a rank");
    return EXIT_SKIP;
}

#endif
