/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the job shell's plugin has to know of its job.
 */
#pragma once

#include "common/launch/boot.h"
#include "shims/flux/shell_abi.h"

/** A job on this node. */
struct job {
    uint64_t id;
    char *parent;         /**< where the server's directory is made */
    const char *siblings; /**< as scratch_make() has it */
    bool
        table_has_tmpdir; /**< Flux's settings have one, perhaps "": muster.json's does not count */
    const char *parent_key; /**< the setting that it is from, for messages */
    struct boot boot;       /**< for the server: all but tmpdir */
};

/**
 * Finds out all of it; takes one round trip to the local broker, at most seconds.
 * @param job filled in; job_free() it also after an error
 * @return 0, or -1 with the reason in @p err
 * @thread the shell's, in shell.init or later
 */
int job_read(struct job *job, flux_shell_t *shell, struct err *err);

void job_free(struct job *job);
