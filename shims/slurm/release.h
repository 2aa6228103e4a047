/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What differs between Slurm's releases, behind one interface: release.c makes a struct for each.
 */
#pragma once

#include "shims/slurm/slurm_abi.h"

/** A release of Slurm. The functions do what slurm_abi_…() does; where they fill in a structure
 * they return 0 with its member raw set, or -1 with errno set. */
struct slurm_release {
    uint32_t number; /**< 0x1605 is 22.05 */
    uint16_t api;    /**< of its libslurm and its messages: see SLURM_ABI_API */
    struct slurm_abi_step_id (*step_of)(const struct slurm_abi_step_info *info);
    int (*stepd_connect)(const char *directory, const char *node,
                         const struct slurm_abi_step_id *id, uint16_t *protocol);
    char *(*cluster_name)(void);
    char *(*auth_info)(void);
    void (*free_conf)(void *conf);
    int (*layout_get)(const struct slurm_abi_step_id *id, struct slurm_abi_step_layout *layout);
    void (*layout_free)(void *raw);
    int (*get_step)(uint32_t job, uint32_t step, struct slurm_abi_step_records *records);
    void (*steps_free)(void *raw);
    int (*allocation_lookup)(uint32_t job, struct slurm_abi_allocation *allocation);
    void (*allocation_free)(void *raw);
    long (*time_left)(uint32_t job);
    int (*kill_step)(uint32_t job, uint32_t step, uint16_t sig, bool fails);
};

/** Of the libslurm that the process has. @return NULL: one that this muster does not know */
const struct slurm_release *slurm_release(void);

/** @return one that this muster knows, the oldest first, or NULL behind the last */
const struct slurm_release *slurm_release_known(unsigned i);
