/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * srun's, sbatch's and salloc's option --pset, for sites that name this SPANK plugin in
 * plugstack.conf.
 *
 * It sets MUSTER_PSETS in the environment of the command, from where steps get it: as if the user
 * had done so. What the text means, and whether it makes sense, is muster-server's to say. The
 * structure is that of Slurm's spank.h, the same in all releases; abi_check.c compares it.
 */
#include "common/launch/boot.h"
#include "shims/slurm/slurm_abi.h"
#include "shims/slurm/spank_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Called by name, in each command and daemon that loads the plugin. */
EXPORT int slurm_spank_init(struct spank_abi *spank, int argc, char **argv);

/* What every SPANK plugin has; plugin_version: abi_version.c */
EXPORT const char plugin_name[] = "muster process sets";
EXPORT const char plugin_type[] = "spank";
EXPORT const unsigned spank_plugin_version = 1;

/* @return whether @p name is one of the names in "a:b:c" */
static bool has_name(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = names; p != NULL; p = strchr(p, ':'), p += p != NULL)
        if (strncmp(p, name, len) == 0 && (p[len] == ':' || p[len] == '\0'))
            return true;
    return false;
}

/* Called in the order of the step's components. Bare names are those of components and are put
 * together; beside one that is a name no component has ranks. What the user has in the environment
 * counts no more.
 * @param remote in slurmstepd, which has the environment already
 * @return 0, or -1: Slurm refuses the option
 * @thread the command's first, before it starts others */
static int on_pset(int val, const char *text, int remote)
{
    static char names[BOOT_PSETS_MAX + 1];
    static bool ranks;
    (void)val;
    if (remote)
        return 0;
    size_t len = strlen(names);
    if (text == NULL || text[0] == '\0' || strlen(text) + len + 2 > sizeof names) {
        slurm_abi_error("--pset: the text is empty or longer than %d bytes; give for example "
                        "--pset=ocean=0-3:ice=4-7",
                        (int)BOOT_PSETS_MAX);
        return -1;
    }
    bool has_ranks = strpbrk(text, "=:") != NULL;
    if (has_ranks ? len > 0 : ranks) {
        slurm_abi_error(
            "--pset: one component has a name and another one ranks; give all a name, or "
            "give all sets with their ranks to one");
        return -1;
    }
    ranks = has_ranks;
    if (has_ranks)
        return setenv(BOOT_PSETS_ENV, text, 1);
    if (!has_name(names, text))
        snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? ":" : "", text);
    return setenv(BOOT_PSETS_ENV, names, 1);
}

/* @thread the process's first, before it starts others */
int slurm_spank_init(struct spank_abi *spank, int argc, char **argv)
{
    static const struct spank_abi_option option = {
        .name = "pset",
        .arginfo = "NAME=RANKS:...",
        .usage = "process sets, with --mpi=muster: ocean=0-3:ice=4-7, or the name of a component",
        .has_arg = 1,
        .cb = on_pset};
    (void)argc, (void)argv;
    return spank_abi_option_register(spank, &option);
}
