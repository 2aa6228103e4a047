/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_hello: MPI starts, and all ranks are in one world: with --ranks N of N ranks. Without that
 * option a world of singletons, each of rank 0, would pass as well. */
#include "mpi_client.h"

int main(int argc, char **argv)
{
    int size, sum = 0, one = 1, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    step("MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    CHECK_EQ(size, option_number(argv, "--ranks", size), "size of the world");
    step("MPI_Allreduce");
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, size, "sum of ones");
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0)
        printf("PASS mpi_hello: a world of %d ranks, rank 0 on %s\n", size, host);
    return 0;
}
