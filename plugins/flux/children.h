/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The jobs that processes of this node have spawned (PMIx_Spawn). Flux starts them beside this one,
 * for the same user; the shell asks for them, since libflux-core signs what it submits, and writes
 * what they print to its own job's output.
 *
 *     state     meaning                          what may come
 *
 *     SUBMITS   the job is submitted             its id, or a refusal
 *     QUEUED    it waits for processors          alloc; after QUEUED_S it is given up
 *     BEGINS    it has them                      from its server: every process runs, or one cannot
 *     RUNS      every process runs               its end
 *     ENDS      it was told to end               its end
 *     OVER      it has ended                     its output, its server's late word; or OUTPUT_S
 *     SAID      the server knows its end         the rest of its output, which counts no more
 *
 * The server asks by a request to the shell's service "muster-spawn", which is answered by news
 * (spawn_wire.h), and by an error when no more will come. The spawned job's server says how it gets
 * on by a request "muster-started": u32 number of the child, news.
 *
 * The shell does not end before its children have. When this job fails they end by themselves
 * (parent.h).
 * @thread the shell's, all of it
 */
#pragma once

#include "common/launch/boot.h"
#include "shims/flux/shell_abi.h"

struct children;

/** Offers the service, and says so in @p boot: the setting "spawn" is its topic.
 * @return NULL: this shell starts no jobs, or out of memory; no service is offered then */
struct children *children_open(flux_shell_t *shell, struct boot *boot, uint64_t job);

/** All tasks of this node have ended: children may go on as long as they were told. */
void children_tasks_ended(struct children *c);

/** NULL is fine. */
void children_close(struct children *c);
