/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the MPI test programs share: a watchdog and a check. They know MPI only, so that they show
 * what a user's program sees.
 */
#pragma once

#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_SKIP = 77, EXIT_WATCHDOG = 124 };

static char now_doing[256] = "starting\n";
static int my_rank = -1;

/** Names what comes next, for the watchdog and for a failed check. */
__attribute__((format(printf, 1, 2))) static inline void step(const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(now_doing, sizeof now_doing, "rank %d: watchdog: still in: %s\n", my_rank, what);
}

static inline void watchdog(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, now_doing, strnlen(now_doing, sizeof now_doing)) < 0)
        _exit(EXIT_WATCHDOG + 1);
    _exit(EXIT_WATCHDOG);
}

static inline void arm_watchdog(unsigned seconds)
{
    signal(SIGALRM, watchdog);
    alarm(seconds);
}

/** The number after @p option in @p argv, or @p otherwise. */
static inline int option_number(char **argv, const char *option, int otherwise)
{
    for (int i = 1; argv[i] && argv[i + 1]; i++)
        if (!strcmp(argv[i], option))
            return atoi(argv[i + 1]);
    return otherwise;
}

#define CHECK_EQ(found, expected, what)                                                            \
    do {                                                                                           \
        long found_ = (long)(found), expected_ = (long)(expected);                                 \
        if (found_ != expected_) {                                                                 \
            fprintf(stderr, "FAIL %s:%d: rank %d: %s: expected %ld, found %ld\n", __FILE__,        \
                    __LINE__, my_rank, what, expected_, found_);                                   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/** Checks that the sum of ones over a communicator is its size.
 * @param expected the size; of an intercommunicator, the other side's */
static inline void use_comm(MPI_Comm comm, int expected, const char *what)
{
    int sum = 0, one = 1;
    step("%s", what);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS, what);
    CHECK_EQ(sum, expected, what);
}

/** Checks that processes agree on which of them share a node: each finds as many there as say that
 * they are in its group. */
static inline void use_nodes(MPI_Comm all, int size)
{
    MPI_Comm node;
    int rank, first, here, n = 0, *firsts = malloc((size_t)size * sizeof *firsts);
    step("MPI_Comm_split_type");
    MPI_Comm_rank(all, &rank);
    CHECK_EQ(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), MPI_SUCCESS,
             "MPI_Comm_split_type");
    MPI_Comm_size(node, &here);
    CHECK_EQ(MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node), MPI_SUCCESS,
             "MPI_Allreduce on a node");
    CHECK_EQ(MPI_Allgather(&first, 1, MPI_INT, firsts, 1, MPI_INT, all), MPI_SUCCESS,
             "MPI_Allgather of both sides");
    for (int i = 0; i < size; i++)
        n += firsts[i] == first;
    CHECK_EQ(n, here, "processes that say they share this node");
    free(firsts);
    MPI_Comm_free(&node);
}

/** Talks to the other side, then, merged with it, to all, and disconnects. @param high 0 on one
 * side, 1 on the other @param here, there processes of our side and of theirs */
static inline void use_inter(MPI_Comm inter, int high, int here, int there)
{
    MPI_Comm all;
    int remote;
    MPI_Comm_remote_size(inter, &remote);
    CHECK_EQ(remote, there, "MPI_Comm_remote_size");
    use_comm(inter, there, "MPI_Allreduce with the other side");
    step("MPI_Intercomm_merge");
    CHECK_EQ(MPI_Intercomm_merge(inter, high, &all), MPI_SUCCESS, "MPI_Intercomm_merge");
    use_comm(all, here + there, "MPI_Allreduce of both sides");
    use_nodes(all, here + there);
    MPI_Comm_free(&all);
    step("MPI_Comm_disconnect");
    CHECK_EQ(MPI_Comm_disconnect(&inter), MPI_SUCCESS, "MPI_Comm_disconnect");
}
