/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_spawn: MPI_Comm_spawn and MPI_Comm_spawn_multiple by the whole world: the children find their
 * parents, talk to them over the intercommunicator and, merged with them, to all; then both
 * disconnect. */
#include "mpi_client.h"

enum { CHILDREN = 3 };

static void child(MPI_Comm parent, char **argv)
{
    int *number, found, nchildren = option_number(argv, "--children", 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
    CHECK_EQ(found, 1, "MPI_APPNUM is there");
    CHECK_EQ(*number, option_number(argv, "--number", 0), "MPI_APPNUM");
    use_inter(parent, 1, nchildren, option_number(argv, "--parents", 0));
}

static void one_program(char *self, int size)
{
    MPI_Comm inter;
    char n[16], *args[] = {(char *)"--parents", n, (char *)"--children", (char *)"3", NULL};
    int codes[CHILDREN];
    snprintf(n, sizeof n, "%d", size);
    step("MPI_Comm_spawn");
    CHECK_EQ(MPI_Comm_spawn(self, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes),
             MPI_SUCCESS, "MPI_Comm_spawn");
    use_inter(inter, 0, size, CHILDREN);
}

static void two_programs(char *self, int size)
{
    MPI_Comm inter;
    char n[16], *args[2][7] = {{(char *)"--parents", n, (char *)"--children", (char *)"3",
                                (char *)"--number", (char *)"0", NULL},
                               {(char *)"--parents", n, (char *)"--children", (char *)"3",
                                (char *)"--number", (char *)"1", NULL}};
    char **lists[] = {args[0], args[1]}, *programs[] = {self, self};
    int counts[] = {1, 2}, codes[CHILDREN];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    snprintf(n, sizeof n, "%d", size);
    step("MPI_Comm_spawn_multiple");
    CHECK_EQ(MPI_Comm_spawn_multiple(2, programs, lists, counts, infos, 0, MPI_COMM_WORLD, &inter,
                                     codes),
             MPI_SUCCESS, "MPI_Comm_spawn_multiple");
    use_inter(inter, 0, size, CHILDREN);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int size;
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent, argv);
    } else {
        one_program(argv[0], size);
        two_programs(argv[0], size);
    }
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0 && parent == MPI_COMM_NULL)
        printf("PASS mpi_spawn: %d parents\n", size);
    return 0;
}
