/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For the test clients that call PMIx_Spawn: lists of an application, and the end of what was
 * spawned.
 */
#pragma once

#include "client.h"

/** Adds a copy of @p text to a list that libpmix frees, such as argv; libpmix's own names for it
 * differ between releases. */
void spawned_append(char ***list, const char *text);

/** The first argument of a program that prints, instead of what it else does. */
#define SPAWNED_PRINT "--print"

/**
 * Spawns this program @p n times; each process prints numbered lines, "OUT RANK LINE …" and
 * "ERR RANK LINE …".
 * @param go a file that they wait for; NULL: they begin at once
 * @param info borrowed
 */
pmix_status_t spawned_printers(const char *program, int n, long lines, const char *go,
                               pmix_info_t *info, size_t ninfo, char *nspace);

/** One of the lines. */
void spawned_line(FILE *out, const char *stream, int rank, long line);

/** Prints the lines, as a process that spawned_printers() has started.
 * @return the exit status */
int spawned_print(char **argv);

/** The first argument of a program that reads. */
#define SPAWNED_READ "--read"

/**
 * Spawns this program @p n times; the processes of rank @p target, or all, read what spawned_push()
 * says, and nothing else; the others find no input.
 * @param lines that they expect
 * @param info borrowed
 */
pmix_status_t spawned_readers(int n, long lines, pmix_rank_t target, pmix_info_t *info,
                              size_t ninfo, char *nspace);

/** Reads, as a process that spawned_readers() has started. @return the exit status: 0, or 7 */
int spawned_read(char **argv);

/** Pushes lines, and then the end of file. @param rank PMIX_RANK_WILDCARD: all */
void spawned_push(const char *nspace, pmix_rank_t rank, long lines);

/** Registers for PMIX_EVENT_JOB_END. To be called once, before the first spawn. */
void spawned_watch(void);

/** Waits for the end of @p nspace, spawned with PMIX_NOTIFY_COMPLETION; the watchdog bounds it.
 * @return its PMIX_EXIT_CODE */
int spawned_end(const char *nspace);
