/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * srun's command line, environment and descriptors for a spawned step.
 */
#pragma once

#include "common/launch/spawn_wire.h"

#include <sys/types.h>

enum {
    SPAWN_FD_CHANNEL = 3, /**< a socket to the agent that started this srun */
    SPAWN_FD_ERRORS = 4,  /**< what is to be its standard error once the step exists */
};

/** How the step gets its processors. */
enum spawn_cpus {
    SPAWN_FREE_CPUS,   /**< those that no other step uses; there may be none */
    SPAWN_SHARED_CPUS, /**< also those of the other steps */
};

/** Where a step is started. */
struct spawn_place {
    const char *program; /**< srun */
    uint32_t job;
    char *const *env; /**< srun's own */
    int channel;      /**< becomes SPAWN_FD_CHANNEL */
    int errors;       /**< becomes standard error until the step exists */
    const char *idle; /**< nodes for the step where the order does not say which, or NULL */
    uint32_t nidle;   /**< how many */
};

/** Starts srun. @return 0 with its process, or an error number. @thread any */
int spawn_srun(const struct spawn_place *place, const struct spawn_order *order,
               enum spawn_cpus cpus, pid_t *pid);

/** The same without starting: for tests. @return both ended by NULL, or NULL without memory; each
 * freed by spawn_list_free() */
char **spawn_argv(const struct spawn_place *place, const struct spawn_order *order,
                  enum spawn_cpus cpus);
char **spawn_env(const struct spawn_place *place, const struct spawn_order *order);
void spawn_list_free(char **list);
