/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Gives the plugin the version of the Slurm that loads it.
 *
 * Slurm compares plugin_version with its own version, micro release included, as soon as a plugin
 * is loaded. Constructors have run by then, so this one sets it. Slurm tells no plugin its version,
 * and libslurm only its release. But the plugins that the process has loaded before have passed the
 * same comparison; and Slurm's own lie beside libslurm. A release that muster does not know is left
 * without a version, with the reason in the log: then Slurm says "Incompatible Slurm plugin".
 */
#include "shims/slurm/release.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Slurm's numbers, as in its version. */
#define PRINTED(version) (version) >> 16 & 0xff, (version) >> 8 & 0xff, (version)&0xff

/* Only known here by its local name: the program may have a plugin_version, too. */
static uint32_t running;
extern uint32_t plugin_version __attribute__((visibility("default"), alias("running")));

uint32_t slurm_abi_version(void)
{
    return running;
}

/* The version of an object if it is a plugin of exactly the process's Slurm, else 0.
 * @param mode RTLD_NOLOAD: only if it is loaded */
static uint32_t plugin_version_of(const char *path, int mode)
{
    void *object = path[0] == '\0' ? NULL : dlopen(path, RTLD_LAZY | mode);
    const char *type = object == NULL ? NULL : dlsym(object, "plugin_type");
    const uint32_t *version = type == NULL ? NULL : dlsym(object, "plugin_version");
    /* SPANK plugins need to match in the release only. */
    uint32_t found = version == NULL || strcmp(type, "spank") == 0 ? 0 : *version;
    if (object != NULL)
        dlclose(object);
    return found;
}

/* @param release 0: any @return whether a version is of it */
static bool is_of(uint32_t version, uint32_t release)
{
    return version != 0 && (release == 0 || version >> 8 == release);
}

/* Of what the process has loaded before, or 0. */
static uint32_t loaded_version(const struct link_map *own, uint32_t release)
{
    const struct link_map *map = own;
    while (map->l_prev != NULL)
        map = map->l_prev;
    for (; map != NULL; map = map->l_next) {
        uint32_t version = map == own ? 0 : plugin_version_of(map->l_name, RTLD_NOLOAD);
        if (is_of(version, release))
            return version;
    }
    return 0;
}

/* Of a plugin file in a directory, or 0: some of these are in every Slurm. */
static uint32_t version_in(const char *dir, int len, uint32_t release)
{
    static const char *const names[] = {"select_cons_tres.so", "select_linear.so", "auth_munge.so",
                                        "cred_munge.so",       "mpi_pmi2.so",      "auth_none.so"};
    char path[4096];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (snprintf(path, sizeof(path), "%.*s/%s", len, dir, names[i]) >= (int)sizeof(path))
            continue;
        uint32_t version = plugin_version_of(path, RTLD_LOCAL);
        if (is_of(version, release))
            return version;
    }
    return 0;
}

static uint32_t beside_version(const char *file, uint32_t release)
{
    const char *slash = strrchr(file, '/');
    return slash == NULL ? 0 : version_in(file, (int)(slash - file), release);
}

/* The value in a line "PluginDir=/a:/b # ...", cut off at its end, or NULL: it is another line. */
static char *plugin_dirs(char *line)
{
    static const char key[] = "PluginDir";
    char *value = line + strspn(line, " \t");
    if (strncasecmp(value, key, strlen(key)) != 0)
        return NULL;
    value += strlen(key);
    value += strspn(value, " \t");
    if (*value != '=')
        return NULL;
    value++;
    value += strspn(value, " \t\"");
    value[strcspn(value, " \t\r\n\"#")] = '\0';
    return value;
}

/* Of a plugin file in PluginDir of the process's slurm.conf, or 0. The structure of what Slurm has
 * read of it differs between releases, and the file is as Slurm found it a moment ago. */
static uint32_t configured_version(uint32_t release)
{
    const char *named = getenv("SLURM_CONF");
    char *path = named == NULL ? slurm_abi_extra_conf_path("slurm.conf") : NULL, *line = NULL;
    FILE *in = named != NULL || path != NULL ? fopen(named != NULL ? named : path, "re") : NULL;
    uint32_t found = 0;
    size_t cap = 0;
    while (in != NULL && found == 0 && getline(&line, &cap, in) >= 0) {
        char *rest = plugin_dirs(line), *dir;
        while (found == 0 && rest != NULL && (dir = strsep(&rest, ":")) != NULL)
            found = dir[0] == '/' ? version_in(dir, (int)strlen(dir), release) : 0;
    }
    if (in != NULL)
        fclose(in);
    free(line);
    slurm_abi_xfree((void **)&path);
    return found;
}

static void list_known(char *text, size_t cap)
{
    const struct slurm_release *known;
    size_t at = 0;
    for (unsigned i = 0; at < cap && (known = slurm_release_known(i)) != NULL; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s%u.%02u", i == 0 ? "" : ", ",
                               known->number >> 8, known->number & 0xff);
}

static void say_unknown(const char *own, uint32_t version)
{
    char known[128] = "", this[64];
    list_known(known, sizeof(known));
    if (version != 0)
        snprintf(this, sizeof(this), "%u.%02u.%u", PRINTED(version));
    else
        snprintf(this, sizeof(this), "of the library version %ld", slurm_abi_api_version() >> 16);
    slurm_abi_error("mpi/muster: %s is built for Slurm %s and this is Slurm %s: install a muster "
                    "that knows it",
                    own, known, this);
}

/** @thread whichever loads the plugin */
static __attribute__((constructor)) void find_version(void)
{
    const struct slurm_release *release = slurm_release();
    uint32_t number = release == NULL ? 0 : release->number, found;
    struct link_map *own;
    Dl_info info, slurm;
    if (dladdr1(__extension__(void *) find_version, &info, (void **)&own, RTLD_DL_LINKMAP) == 0 ||
        dladdr((void *)(uintptr_t)slurm_abi_api_version, &slurm) == 0)
        return;
    found = loaded_version(own, number);
    if (found == 0)
        found = beside_version(slurm.dli_fname, number);
    if (found == 0)
        found = beside_version(info.dli_fname, number);
    if (found == 0)
        found = configured_version(number);
    if (release == NULL)
        say_unknown(info.dli_fname, found);
    else if (found == 0)
        slurm_abi_error("mpi/muster: the micro release of this Slurm %u.%02u is not known, as no "
                        "plugin of it lies beside %s, nor in PluginDir of slurm.conf: put %s where "
                        "Slurm's own plugins are",
                        number >> 8, number & 0xff, slurm.dli_fname, info.dli_fname);
    else
        running = found;
}
