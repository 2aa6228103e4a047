/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the test clients share: options, checks, a watchdog, puts, gets and fences.
 *
 * The clients are written to the PMIx standard and run under any host. Each rank checks what it
 * sees; a check that fails prints where, which rank, what was expected and what was found, and ends
 * the process with status 1. Rank 0 prints one PASS line at the end. A client that is not done
 * after --seconds ends itself with status 124 and says in which step it was, so nothing hangs.
 *
 * Everything here is called from the main thread; check_failed() from any.
 */
#pragma once

#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The libpmix that the client is compiled with, as 40202, 50007, 70000. */
#define LIBPMIX (PMIX_VERSION_MAJOR * 10000 + PMIX_VERSION_MINOR * 100 + PMIX_VERSION_RELEASE)

enum {
    EXIT_SKIP = 77,     /**< meson's and automake's status for a test that does not apply */
    EXIT_WATCHDOG = 124 /**< as of timeout(1) */
};

/** This process and its job. */
extern struct client {
    const char *name;
    pmix_proc_t me;
    pmix_proc_t all; /**< my namespace, wildcard rank */
    uint32_t size;   /**< PMIX_JOB_SIZE */
} client;

/** One option "--NAME NUMBER" or "--NAME WORD"; the value comes with its default in it. */
struct option_number {
    const char *name; /**< without the dashes; NULL ends the table */
    long *value;
    const char *help;
    const char *words; /**< "none|fence|…" instead of 0, 1, …; or NULL */
};

/** Reads the options, arms the watchdog, calls PMIx_Init and asks for the job's size. */
void client_init(const char *name, const struct option_number *options, int argc, char **argv);

/** PMIx_Finalize; then rank 0 prints "PASS name: …". @return the exit status, 0 */
int client_pass(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** PMIx_Finalize; then rank 0 prints "SKIP name: …". @return the exit status, EXIT_SKIP */
int client_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Ends the process by a signal, but not by SIGKILL or SIGTERM: of a step with such an end srun may
 * throw the last output away. */
_Noreturn void client_die(void);

/** Names what comes next, for the watchdog's message and that of a failed check. */
void step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Prints the failure and ends the process. */
_Noreturn void check_failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A condition, with a text that says what was expected and what was found. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, __VA_ARGS__);                                         \
    } while (0)

/** Two integers that must be equal. */
#define CHECK_EQ(found, expected, what)                                                            \
    do {                                                                                           \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                  \
        if (found_ != expected_)                                                                   \
            check_failed(__FILE__, __LINE__, "%s: expected %lld, found %lld", what, expected_,     \
                         found_);                                                                  \
    } while (0)

/** A PMIx status that must be @p expected. */
#define CHECK_STATUS(found, expected, what)                                                        \
    do {                                                                                           \
        pmix_status_t found_ = (found), expected_ = (expected);                                    \
        if (found_ != expected_)                                                                   \
            check_failed(__FILE__, __LINE__, "%s: expected %s, found %s (%d)", what,               \
                         PMIx_Error_string(expected_), PMIx_Error_string(found_), found_);         \
    } while (0)

#define CHECK_OK(found, what) CHECK_STATUS(found, PMIX_SUCCESS, what)

/** @return CLOCK_MONOTONIC in nanoseconds: comparable between processes of one machine */
uint64_t now_ns(void);
void sleep_ms(long ms);

/** @return the process with that rank in my namespace */
pmix_proc_t proc_of(pmix_rank_t rank);

/** A fixed hash: the same numbers on every rank, without a message. */
uint64_t mix(uint64_t x);

/** PMIx_Put, checked. The key is a printf format. */
void put_u64(pmix_scope_t scope, uint64_t number, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void put_string(pmix_scope_t scope, const char *text, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void put_bytes(pmix_scope_t scope, const void *bytes, size_t size, const char *key, ...)
    __attribute__((format(printf, 4, 5)));
void commit(void);

/** PMIx_Get of a process's key, checked. The caller releases the value. */
pmix_value_t *get_value(pmix_rank_t rank, const char *key, ...)
    __attribute__((format(printf, 2, 3)));

/** The same with directives. */
pmix_value_t *get_value_with(pmix_rank_t rank, const pmix_info_t *info, size_t ninfo,
                             const char *key);

/** The same, converted; any of PMIx's unsigned integers, int and rank. */
uint64_t get_u64(pmix_rank_t rank, const char *key, ...) __attribute__((format(printf, 2, 3)));

/** The same; the caller frees the string. */
char *get_string(pmix_rank_t rank, const char *key, ...) __attribute__((format(printf, 2, 3)));

/** A byte object of exactly @p size bytes; the caller frees it. */
void *get_bytes(pmix_rank_t rank, size_t size, const char *key, ...)
    __attribute__((format(printf, 3, 4)));

/** @return the number in @p value; @p what is for the message if there is none */
uint64_t number_in(const pmix_value_t *value, const char *what);

/** PMIx_Fence of the whole job, checked, with PMIX_COLLECT_DATA or without. */
void fence_all(bool collect);
void fence_of(const pmix_proc_t *procs, size_t nprocs, bool collect);

/** PMIx_Get whose status the caller judges. @return that status; a value is released */
pmix_status_t try_get(pmix_rank_t rank, const char *key, const pmix_info_t *info, size_t ninfo);

/**
 * Which node a rank is on, from what each rank was told of itself: the first call is a fence of the
 * whole job. The host's own word on other ranks is for exchange.c to check, as libpmix 4.2.2 does
 * not find the PMIX_NODEID of a rank on another node.
 * @return a node id, allocated for all ranks once
 */
const uint64_t *nodes_of_ranks(void);

/** Orders uint64_t for qsort(). */
int compare_u64(const void *a, const void *b);
