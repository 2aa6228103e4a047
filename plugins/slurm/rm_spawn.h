/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Spawned steps and changes of the job's allocation, as muster-server's back end for Slurm has
 * them: srun's agent makes them.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/handoff/handoff.h"
#include "common/transport/rm.h"

struct slurm_spawns;

/** @param agent srun's, see agent_call.h; borrowed until spawns_close(); NULL: there is none
 * @return NULL: there are no descriptors left */
struct slurm_spawns *spawns_open(const char *agent, const struct boot *boot,
                                 struct event_base *base);

/* rm_ops.spawn, allocate, let_go and started. */
void spawns_start(struct slurm_spawns *s, const struct rm_spawn *what, rm_spawn_fn *news,
                  void *arg);
void spawns_allocate(struct slurm_spawns *s, const struct rm_alloc *what, rm_alloc_fn *done,
                     void *arg);
void spawns_let_go(struct slurm_spawns *s);
void spawns_started(struct slurm_spawns *s, const struct rm_spawn_news *news);

/** No news comes any more. @param by now_ms() until which threads may take to end
 * @return whether all have. NULL is fine */
bool spawns_close(struct slurm_spawns *s, int64_t by);
