/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What agent_resize.c says to Slurm's commands, and what these say.
 * @thread any
 */
#pragma once

#include "plugins/slurm/alloc_wire.h"
#include "plugins/slurm/job_nodes.h"

enum { RESIZE_WORD_MAX = 256 };

/** Of the job, what its expander has to have alike; a text is empty where Slurm knows none. */
struct resize_job {
    char partition[RESIZE_WORD_MAX], qos[RESIZE_WORD_MAX], account[RESIZE_WORD_MAX];
    uint32_t minutes; /**< that it may still run; 0: it has no limit */
    bool whole;       /**< its nodes are its alone (--exclusive) */
};

/* Command lines, ended by NULL, for spawn_list_free(); NULL: out of memory. */

/** scontrol's, which prints a line for resize_learn(). */
char **resize_learn_argv(uint32_t job);
/** salloc's. @param directory of Slurm's commands @param before the job's nodes
 * @param seconds how long it may wait for nodes */
char **resize_extend_argv(uint32_t job, const char *directory, const struct rm_alloc *what,
                          const struct resize_job *like, const struct job_nodes *before,
                          unsigned seconds);
/** scontrol's: the job keeps these nodes. @param nodes NULL: out of memory */
char **resize_keep_argv(uint32_t job, const char *nodes);
/** scontrol's: the job's limit, from its start on. */
char **resize_time_argv(uint32_t job, uint32_t seconds);
/** scancel's. */
char **resize_cancel_argv(uint32_t job);

/** Reads what scontrol has printed. @return whether it was a line about a job */
bool resize_learn(const char *text, struct resize_job *job);

/** @return the number of the job that salloc has made, or 0: it says none */
uint32_t resize_expander(const char *text);

/** Why there is no change, by what a command has printed. @param late its time was over
 * @param why becomes a clause */
enum rm_alloc_result resize_reason(const char *text, bool late, char *why, size_t cap);
