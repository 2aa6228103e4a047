/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The other runs of the user on this machine. A cluster has one slurmctld, one slurmd a node and
 * one munged for all jobs; of musterrun each run plays them for itself. The runs find each other by
 * their directories, which lie side by side (rundir.h), and ask each other what their own processes
 * ask them (slurm_standin.h). Nothing is believed of a directory or a process of another user.
 * @thread any
 */
#pragma once

#include "shims/slurm/standin/slurm_standin.h"

#include <stdio.h>

/** Writes the lines of steps_list() of all other runs, each after a newline. One that does not
 * answer within 2 s is left out. @param step of our own run, as below */
void runs_list(const struct standin_step *step, FILE *out);

/** Looks for a socket of our own directory in those of other runs: a node's spool directory is one
 * for all. @param address its path, of @p cap bytes; names the socket that was found instead
 * @return whether one was found */
bool runs_find_socket(const struct standin_step *step, char *address, size_t cap);

/** Reads a credential that another run has made. @param node where it is read
 * @return 0 with @p found, or an error number: no run knows it, or it was read there before */
int runs_read_credential(const struct standin_step *step, uint32_t node, const unsigned char *token,
                         struct standin_credential *found);
