/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Says that the plugin is for another Slurm than the one that loads it.
 *
 * Slurm compares plugin_version as soon as a plugin is loaded, and if it differs only says, of the
 * plugin, which it is: "Incompatible Slurm plugin … version (22.05.8)". Constructors have run by
 * then, so this one says the other half and the remedy. Slurm tells no plugin its version; but the
 * plugins that the process has loaded before have passed the same comparison.
 */
#include "shims/slurm/slurm_abi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

/* Slurm's numbers, as in its version. */
#define PRINT_VERSION "%u.%02u.%u"
#define PRINTED(version) (version) >> 16 & 0xff, (version) >> 8 & 0xff, (version)&0xff

/* The version of a loaded object if it is a plugin of exactly the process's Slurm, else 0. */
static uint32_t plugin_version_of(const char *path)
{
    void *object = path[0] == '\0' ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    const char *type = object == NULL ? NULL : dlsym(object, "plugin_type");
    const uint32_t *version = type == NULL ? NULL : dlsym(object, "plugin_version");
    /* SPANK plugins need to match in the release only. */
    uint32_t found = version == NULL || strcmp(type, "spank") == 0 ? 0 : *version;

    if (object != NULL)
        dlclose(object);
    return found;
}

/* The version of the process's Slurm, or 0 when it has loaded no other plugin yet. */
static uint32_t running_version(const struct link_map *own)
{
    const struct link_map *map = own;

    while (map->l_prev != NULL)
        map = map->l_prev;
    for (; map != NULL; map = map->l_next) {
        uint32_t version = map == own ? 0 : plugin_version_of(map->l_name);

        if (version != 0)
            return version;
    }
    return 0;
}

/** @thread whichever loads the plugin */
static __attribute__((constructor)) void say_other_version(void)
{
    struct link_map *own;
    Dl_info info;
    uint32_t running;

    if (dladdr1(__extension__(void *) say_other_version, &info, (void **)&own, RTLD_DL_LINKMAP) ==
        0)
        return;
    running = running_version(own);
    if (running != 0 && running != MUSTER_SLURM_VERSION)
        slurm_abi_error(
            "mpi/muster: %s is built for Slurm " PRINT_VERSION " and this is Slurm " PRINT_VERSION
            ": build muster with -Dslurm_version=" PRINT_VERSION " and install it",
            info.dli_fname, PRINTED(MUSTER_SLURM_VERSION), PRINTED(running), PRINTED(running));
}
