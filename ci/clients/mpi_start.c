/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_start: MPI_Init and MPI_Finalize and nothing between. Each rank prints what MPI_Init has
 * taken of time and of the processor, in µs.
 */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static long long wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long long cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

int main(int argc, char **argv)
{
    int rank, size;
    long long wall = wall_us(), cpu = cpu_us();
    MPI_Init(&argc, &argv);
    wall = wall_us() - wall;
    cpu = cpu_us() - cpu;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("MPI_START rank %d size %d init %lld cpu %lld\n", rank, size, wall, cpu);
    return MPI_Finalize();
}
