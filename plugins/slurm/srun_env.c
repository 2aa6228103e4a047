/* SPDX-License-Identifier: BSD-3-Clause */
/* What is the user's stays, and what Slurm has said of the step goes. */
#include "plugins/slurm/srun_env.h"

#include "common/launch/boot.h"
#include "common/launch/plan.h"
#include "plugins/slurm/agent_wire.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Of Slurm's variables, those that are of the cluster or of the user's taste, not of a step. */
static const char *const kept[] = {
    "SLURM_CONF",         "SLURM_JWT",
    "SLURM_LABELIO",      "SLURM_UNBUFFEREDIO",
    "SLURM_DEBUG",        "SLURM_TASK_PROLOG",
    "SLURM_TASK_EPILOG",  "SLURM_KILL_BAD_EXIT",
    "SLURM_CLUSTER_NAME", "SLURM_PROFILE",
    "SLURM_ACCTG_FREQ",   "SLURM_CPU_FREQ_REQ",
    "SLURM_CONF_SERVER",  "SLURM_SRUN_REDUCE_TASK_EXIT_MSG",
};

/* Of this step, and not of the next one. */
static const char *const dropped[] = {
    "SLURM_",       "SLURMD_",      "SRUN_",         "SALLOC_",     "PMIX_",
    "PMI_",         PLAN_ENV,       PLAN_PARENT_ENV, PLAN_APPS_ENV, PLAN_CHANNEL_ENV,
    "MUSTER_AGENT", BOOT_PSETS_ENV, BOOT_DEBUG_ENV};

static bool is_of(const char *variable, const char *const *names, size_t n, bool whole)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(variable, names[i], len) == 0 && (!whole || variable[len] == '='))
            return true;
    }
    return false;
}

char **srun_env(char *const *env)
{
    size_t n = 0, count = 0;
    while (env != NULL && env[count] != NULL)
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count && copy != NULL; i++) {
        if (!is_of(env[i], kept, sizeof kept / sizeof *kept, true) &&
            is_of(env[i], dropped, sizeof dropped / sizeof *dropped, false))
            continue;
        if ((copy[n++] = strdup(env[i])) == NULL) {
            while (n-- > 0)
                free(copy[n]);
            free(copy);
            return NULL;
        }
    }
    return copy;
}
