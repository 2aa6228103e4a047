/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What users of mpirun and srun are used to: hosts, several programs, and options that musterrun
 * has under another name, or has no use for.
 */
#pragma once

#include "shims/standin/run.h"

#include <getopt.h>

/** Nodes as --host and --hostfile name them: how many tasks each has. */
struct hosts {
    long slots[999]; /**< 0: not said */
    uint32_t n;
};

/** Reads "NAME[:TASKS],..." @return whether it is that */
bool hosts_read(struct hosts *hosts, const char *list);

/** Reads lines "NAME [slots=TASKS]" or "NAME:TASKS". @return 0, or -1 with @p err */
int hosts_read_file(struct hosts *hosts, const char *path, struct err *err);

/**
 * Places tasks: each host takes what it is said to, in order; all that is left over goes to the
 * last.
 * @param ntasks 0: as many as are said, one for each host that says nothing
 * @param list "0,0,1", as --distribution=arbitrary has it, malloc()ed @return 0, or -1: no memory
 */
int hosts_place(const struct hosts *hosts, uint32_t ntasks, char **list);

/**
 * Splits "A : -n 2 B" into programs, up to the end of @p argv, where ":" stands alone.
 * @param first of how many ranks the first one is; 0: as many as are left
 * @return 0, or -1 with @p err
 */
int programs_read(struct run *run, char **argv, long first, struct err *err);

/** The arguments of a rank's program. */
char **program_of(const struct run *run, uint32_t rank);

/** Says what is meant by an option that is none. @param given as it stands on the command line */
void option_unknown(const char *given, const struct option *known);
