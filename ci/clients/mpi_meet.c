/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_meet: two jobs of one user meet by MPI alone. Run in each of two jobs, with --part 0 and
 * --part 1, one --run number for both, and the --others' size.
 *
 * Part 0 opens a port and accepts, part 1 connects: first to the port of a published name, then to
 * one that stands in the file $MPI_MEET_FILE. Each time all talk over the intercommunicator and,
 * merged, to all, and disconnect.
 */
#include "mpi_client.h"

#include <time.h>

static void rest(void)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

/* Written at another name first, since the other job looks at any time. */
static void write_port(const char *path, const char *port)
{
    char draft[512];
    snprintf(draft, sizeof draft, "%s.new", path);
    FILE *f = fopen(draft, "w");
    CHECK_EQ(f != NULL && fputs(port, f) >= 0 && fclose(f) == 0 && rename(draft, path) == 0, 1,
             "the port's file is written");
}

static void read_port(const char *path, char *port)
{
    FILE *f;
    while ((f = fopen(path, "r")) == NULL)
        rest();
    CHECK_EQ(fgets(port, MPI_MAX_PORT_NAME, f) != NULL, 1, "the port's file is read");
    fclose(f);
}

/* @param name published; NULL: it goes by the file */
static MPI_Comm accept_others(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (my_rank == 0) {
        step("MPI_Open_port");
        CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS, "MPI_Open_port");
        if (name == NULL)
            write_port(getenv("MPI_MEET_FILE"), port);
        else
            CHECK_EQ(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS, "MPI_Publish_name");
    }
    step("MPI_Comm_accept");
    CHECK_EQ(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_SUCCESS,
             "MPI_Comm_accept");
    if (my_rank == 0 && name != NULL)
        CHECK_EQ(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS, "MPI_Unpublish_name");
    if (my_rank == 0)
        CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS, "MPI_Close_port");
    return inter;
}

static MPI_Comm connect_to_others(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    step("search for the port");
    if (my_rank == 0 && name == NULL)
        read_port(getenv("MPI_MEET_FILE"), port);
    while (my_rank == 0 && name != NULL &&
           MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
        rest();
    step("MPI_Comm_connect");
    CHECK_EQ(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_SUCCESS,
             "MPI_Comm_connect");
    return inter;
}

int main(int argc, char **argv)
{
    char name[64];
    int size, part = option_number(argv, "--part", 0), others = option_number(argv, "--others", 1);
    arm_watchdog((unsigned)option_number(argv, "--seconds", 80));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Where an error belongs to no communicator, MPI 4 takes that of MPI_COMM_SELF. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    snprintf(name, sizeof name, "mpi_meet.%d", option_number(argv, "--run", 0));
    for (int by_file = 0; by_file <= (getenv("MPI_MEET_FILE") != NULL); by_file++) {
        const char *by = by_file ? NULL : name;
        use_inter(part == 0 ? accept_others(by) : connect_to_others(by), part, size, others);
    }
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0)
        printf("PASS mpi_meet: %d met %d\n", size, others);
    return 0;
}
