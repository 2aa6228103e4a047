/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_ring: a token goes round the world --rounds times and each rank adds to it; then large
 * messages to a neighbour and a reduction of an array. */
#include "mpi_client.h"

enum { LARGE = 1 << 20, WIDTH = 1000 };

static int size;

static void pass_token(int rounds)
{
    int next = (my_rank + 1) % size, previous = (my_rank + size - 1) % size, token = 0;
    for (int round = 0; round < rounds; round++) {
        step("round %d of the token", round);
        if (my_rank != 0)
            MPI_Recv(&token, 1, MPI_INT, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(token, round * size + my_rank, "token");
        token++;
        MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        if (my_rank == 0)
            MPI_Recv(&token, 1, MPI_INT, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void pass_large(void)
{
    int next = (my_rank + 1) % size, previous = (my_rank + size - 1) % size;
    char *out = malloc(LARGE), *in = malloc(LARGE);
    step("exchange of %d bytes", LARGE);
    memset(out, my_rank + 1, LARGE);
    MPI_Sendrecv(out, LARGE, MPI_CHAR, next, 99, in, LARGE, MPI_CHAR, previous, 99, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < LARGE; i++)
        CHECK_EQ(in[i], (char)(previous + 1), "byte of the previous rank");
    free(out);
    free(in);
}

static void reduce(void)
{
    long mine[WIDTH], sums[WIDTH];
    step("MPI_Allreduce");
    for (int i = 0; i < WIDTH; i++)
        mine[i] = (long)i * (my_rank + 1);
    MPI_Allreduce(mine, sums, WIDTH, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < WIDTH; i++)
        CHECK_EQ(sums[i], (long)i * size * (size + 1) / 2, "sum over the ranks");
}

int main(int argc, char **argv)
{
    int rounds = option_number(argv, "--rounds", 10);
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    step("MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(size, option_number(argv, "--ranks", size), "size of the world");
    if (size > 1)
        pass_token(rounds);
    pass_large();
    reduce();
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0)
        printf("PASS mpi_ring: token %d times round %d ranks, large messages, Allreduce\n", rounds,
               size);
    return 0;
}
