/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The end of a server that has used up its memory or its descriptors.
 *
 * Nothing of the step would go on as it should: what cannot be kept is missing elsewhere, and tasks
 * that cannot connect are waited for. So the server says what is used up and by whose word, and
 * ends; the launcher's plugin shows that to the user and ends the step, as for any server that
 * dies.
 *
 * So in a server malloc(), calloc(), realloc() and what calls them, such as strdup(), never return
 * NULL, and no code of the server alone looks whether they do.
 * @thread any, unless said
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { LIMITS_HELD_MAX = 1024 };

/** Has malloc() keep memory that was freed, up to 16 MiB, instead of giving it back: the data of
 * one large fence are in the same places as those of the last one, and the kernel need not clear
 * pages for each. All threads share one heap, which grows by 4 MiB. @thread the first, before
 * others begin */
void limits_keep_memory(void);

/**
 * Bounds the memory that this process may write to, for good, and has it end when that is used up,
 * whatever asked for more, a thread's stack as well: libpmix does not look whether it got any. Not
 * in a sanitized build, which takes memory of its own. Memory that processes share is not counted
 * (setrlimit(2), RLIMIT_DATA).
 *
 * All servers of a user on a node together have the same bound: one that has grown by 16 MiB looks
 * at the others (share.h), and ends when they would have more.
 * @param mib  MiB beyond what it has now; 0: an eighth of the node's memory, at least 1024
 * @param besides bytes that libpmix may take for the step itself, which do not count
 * @param who  the step and the node, for the message
 * @return 0, or -1 with the reason in @p err
 * @thread the loop's, before any byte of a task or of another server was read
 */
int limits_memory(int mib, uint64_t besides, const char *who, struct err *err);

/** Looks whether the node has so much memory left.
 * @param bytes that libpmix needs for a step of @p nnodes nodes and @p ntasks tasks
 * @return 0, or -1 with the reason in @p err. */
int limits_step(uint64_t bytes, uint32_t nnodes, uint32_t ntasks, struct err *err);

/** Looks whether there may be descriptors enough for so many tasks of this node.
 * @param spawned another step has started this one, so the tasks' output may go through the server
 * @return 0, or -1 with the reason in @p err. */
int limits_descriptors(uint32_t ntasks, bool spawned, struct err *err);

/** @return how many direct connections to other servers there may be: four for each child in a tree
 * of servers, as long as that is no more than half of the descriptors that limits_descriptors()
 * does not count for @p ntasks tasks of this node. */
unsigned limits_connections(unsigned arity, uint32_t ntasks, bool spawned);

/** @return how many connections of processes that have ended may be kept open: a quarter of the
 * same descriptors, and no more than LIMITS_HELD_MAX */
unsigned limits_held(uint32_t ntasks, bool spawned);

/** Ends the process, as no descriptor is left for a connection. */
void limits_no_descriptors(void) __attribute__((noreturn));
