/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The job that has spawned this one (PMIx_Spawn), the *parent*: this job ends when its parent has
 * failed or is gone, whatever has become of the parent's shells and servers.
 * @thread the shell's
 */
#pragma once

#include "common/launch/boot.h"
#include "shims/flux/shell_abi.h"

struct parent;

/** Takes from the job's environment which process has spawned it, into the settings "parent",
 * "apps" and "channel" of @p boot; it is the user's word. Begins to watch that job, on the first
 * node.
 * @return NULL: nothing is watched */
struct parent *parent_open(flux_shell_t *shell, struct boot *boot, uint64_t job);

/** NULL is fine. */
void parent_close(struct parent *parent);
