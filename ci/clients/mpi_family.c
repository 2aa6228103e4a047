/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_family: parents spawn three children, both merge into one communicator and use it. They
 * disconnect from each other, and keep the merged communicator until MPI_Finalize. */
#include "mpi_client.h"

enum { CHILDREN = 3 };

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all;
    int size, parents = option_number(argv, "--parents", 0);
    char n[16], *args[] = {(char *)"--parents", n, NULL};
    arm_watchdog((unsigned)option_number(argv, "--seconds", 60));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    snprintf(n, sizeof n, "%d", size);
    inter = parent;
    if (parent == MPI_COMM_NULL) {
        parents = size;
        step("MPI_Comm_spawn");
        CHECK_EQ(MPI_Comm_spawn(argv[0], args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                MPI_ERRCODES_IGNORE),
                 MPI_SUCCESS, "MPI_Comm_spawn");
    }
    step("MPI_Intercomm_merge");
    CHECK_EQ(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all), MPI_SUCCESS,
             "MPI_Intercomm_merge");
    use_comm(all, parents + CHILDREN, "MPI_Allreduce of parents and children");
    step("MPI_Barrier of parents and children");
    CHECK_EQ(MPI_Barrier(all), MPI_SUCCESS, "MPI_Barrier");
    step("MPI_Comm_disconnect");
    CHECK_EQ(MPI_Comm_disconnect(&inter), MPI_SUCCESS, "MPI_Comm_disconnect");
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0 && parent == MPI_COMM_NULL)
        printf("PASS mpi_family: %d parents\n", size);
    return 0;
}
