/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the muster-servers of one user on this node have together.
 *
 * Each step has a server of its own, and a user may have many steps on a node. The kernel's word
 * counts alone: whose a process is (so no other user can use up the bound of this one), what it is
 * called and what memory it has. Nothing is kept, so a server that dies leaves nothing behind.
 *
 * Nothing here allocates by itself but opendir(), and nothing takes a lock of stdio's: it is called
 * within a call that asks for memory.
 * @thread any
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What was seen of the others. */
struct share {
    uint32_t servers; /**< how many there are beside this process */
    uint64_t bytes;   /**< what they have beyond @p base each */
};

/** Adds up the servers of a user on this node but this process.
 * @param name what the kernel calls a server: 15 bytes at most
 * @param base bytes that a server has at its start */
struct share share_look(uid_t uid, const char *name, uint64_t base);

/** @return bytes that this process may write to and does not share, 0: not known. */
uint64_t share_own(void);
