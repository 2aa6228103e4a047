/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a process ended that is no child of ours, and why a server may have died.
 * @thread any, unless said
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch;

/** Asks the kernel how a process ended that its parent has reaped, or whose parent others are.
 * @param status set to what wait(2) would say
 * @return whether the kernel remembers (Linux 6.15 and later), else errno is set: ESRCH, the
 * process has not ended, or not quite */
bool death_status(int pidfd, int *status);

/** @return how many processes the kernel of this node has killed since its start because memory was
 * used up, or -1: it does not tell. */
int64_t death_oom_kills(void);

/** Writes what is known of the end of a server that has died, as a part of a sentence: by which
 * signal, what its directory's file system lacks, whether memory was used up. "" when there is
 * nothing.
 * @thread that of launch_tell(); waits at most for 100 ms */
void launch_death(const struct launch *launch, char *buf, size_t cap);
