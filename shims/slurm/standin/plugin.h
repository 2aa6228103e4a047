/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster's plugin file, loaded and called as Slurm does.
 */
#pragma once

#include "common/util/err.h"
#include "shims/slurm/slurm_raw.h"

/** What Slurm looks up by name. */
struct plugin {
    int (*init)(void);
    int (*fini)(void);
    void *(*prelaunch)(const struct slurm_raw_step_info *step, char ***env);
    int (*client_fini)(void *state);
    void (*conf_options)(void **options, int *count);
    void (*conf_set)(void *table);
    int (*prefork)(const void *step, char ***env);
    int (*task)(const struct slurm_raw_task_info *task, char ***env);
};

/** Loads @p path, checks type and release, and calls init(). @return 0, or -1 with @p err */
int plugin_load(struct plugin *plugin, const char *path, struct err *err);
