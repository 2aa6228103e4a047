/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the MPI test programs share: a watchdog and a check. They know MPI only, so that they show
 * what a user's program sees.
 */
#ifndef MUSTER_CLIENTS_MPI_CLIENT_H
#define MUSTER_CLIENTS_MPI_CLIENT_H

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

#endif
