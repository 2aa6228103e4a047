/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The jobspec of a job that a process has spawned (PMIx_Spawn), as RFC 25 of Flux has it.
 */
#pragma once

#include "common/launch/spawn_wire.h"
#include "common/util/err.h"

/** A member of a JSON object that is taken over as it is. */
struct jobspec_member {
    const char *key;
    const char *text; /**< JSON */
};

/** What a spawned job takes over of the job that spawns it; all of it is borrowed. */
struct jobspec_parent {
    const struct jobspec_member *env; /**< of its environment */
    size_t nenv;
    const struct jobspec_member *options; /**< of the shell */
    size_t noptions;
    const char *cwd;
    const char *queue, *bank; /**< NULL: it has none */
    double duration;          /**< seconds; 0: without limit */
    const char *channel;      /**< for PLAN_CHANNEL_ENV */
    uint32_t nnodes;          /**< that it has */
};

/** @return the jobspec, malloc()ed, or NULL with the reason in @p err @thread any */
char *jobspec_make(const struct jobspec_parent *parent, const struct rm_spawn *what,
                   struct err *err);
