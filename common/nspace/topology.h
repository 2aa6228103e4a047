/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The node's hardware, found out once by the server instead of once by each client.
 *
 * From 5.0 on libpmix's clients look for it within PMIx_Init (hwloc), which takes two thirds of
 * their time there and reads some hundred files below /sys, unless their server names a file in
 * which it stands. PMIX_SERVER_SHARE_TOPOLOGY is not used: by it libpmix shares what the server
 * itself may use, from its start on. Tasks may be confined to less (cpusets), in cgroups that are
 * made later. So the file is written when the first task is there, by what that task may use: all
 * tasks of a step's node are in one cpuset, whatever processors each one is bound to.
 *
 * A client that cannot open the file or cannot map it where it has to be looks by itself.
 */
#pragma once

#include "common/launch/boot.h"

#include <pmix_common.h>
#include <sys/types.h>

struct topology;

/** Finds out the node's hardware as the server may use it. @return NULL where that cannot be found
 * out; it is logged. @thread the loop's; takes some 10 ms on a small node */
struct topology *topology_new(void);
/** @thread after libpmix ended, which has borrowed it */
void topology_free(struct topology *t);

/** Fills in a PMIX_TOPOLOGY2 for PMIx_server_init(), so that libpmix does not look again. The value
 * is borrowed: not to be freed with PMIX_INFO_FREE. */
void topology_info(struct topology *t, pmix_info_t *info);

/** Has this node's clients find the hardware that task @p pid may use, in a file in boot::tmpdir.
 * Where that cannot be, it is logged, and clients look by themselves.
 * @thread the loop's, before the first client connects */
void topology_share(const struct topology *t, const struct boot *boot, pid_t pid);
