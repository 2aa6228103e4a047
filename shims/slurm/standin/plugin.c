/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster's plugin file, loaded and called as Slurm does.
 */
#include "shims/slurm/standin/plugin.h"

#include "shims/slurm/standin/slurm_standin.h"

#include <dlfcn.h>
#include <string.h>

static int look_up(struct plugin *plugin, void *file, const char *path, struct err *err)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"init", &plugin->init},
        {"fini", &plugin->fini},
        {"mpi_p_client_prelaunch", &plugin->prelaunch},
        {"mpi_p_client_fini", &plugin->client_fini},
        {"mpi_p_conf_options", &plugin->conf_options},
        {"mpi_p_conf_set", &plugin->conf_set},
        {"mpi_p_slurmstepd_prefork", &plugin->prefork},
        {"mpi_p_slurmstepd_task", &plugin->task},
    };

    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(file, symbols[i].name);
        if (!symbol)
            return err_set(err, "%s has no %s", path, symbols[i].name);
        memcpy(symbols[i].to, &symbol, sizeof(symbol));
    }
    return 0;
}

int plugin_load(struct plugin *plugin, const char *path, struct err *err)
{
    void *file = dlopen(path, RTLD_LAZY);
    if (!file)
        return err_set(err, "cannot load the plugin: %s", dlerror());
    const char *type = dlsym(file, "plugin_type");
    const uint32_t *version = dlsym(file, "plugin_version");
    if (!type || strncmp(type, "mpi/", 4) != 0 || !version)
        return err_set(err, "%s is no MPI plugin for Slurm", path);
    if (*version != STANDIN_VERSION)
        return err_set(err, "%s does not know Slurm %u.%02u, which this musterrun plays", path,
                       STANDIN_VERSION >> 16, STANDIN_VERSION >> 8 & 255);
    if (look_up(plugin, file, path, err) < 0)
        return -1;
    if (plugin->init() != SLURM_ABI_SUCCESS)
        return err_set(err, "%s does not start", path);
    return 0;
}
