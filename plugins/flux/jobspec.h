/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The jobspec of a job that a process has spawned (PMIx_Spawn), as RFC 25 of Flux has it.
 */
#pragma once

#include "common/transport/rm_spawn.h"
#include "common/util/err.h"
#include "shims/flux/shell_abi.h"

/** @param channel for the spawned job's server @param nnodes of this job
 * @return the jobspec, malloc()ed, or NULL with the reason in @p err @thread the shell's */
char *jobspec_make(flux_shell_t *shell, const struct rm_spawn *what, const char *channel,
                   uint32_t nnodes, struct err *err);
