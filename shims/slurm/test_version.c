/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the version that mpi_muster.so takes on when a Slurm loads it. This program is the
 * Slurm: libslurm's functions are its own, a plugin of 24.11.99 lies beside it, and one of 26.05.3
 * in another directory.
 */
#include "shims/slurm/slurm_abi.h"

#include "common/util/test_cmocka.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { API_24_11 = 42, API_26_05 = 45, API_UNKNOWN = 99 };

EXPORT long slurm_abi_api_version(void);
EXPORT void slurm_abi_error(const char *fmt, ...);
/* Its address is taken, so it has to be there. */
EXPORT int slurm_abi_forward_data(char **nodelist, char *address, uint32_t len, const char *data);
/* The plugin's own is another one, also where the program has one. */
extern uint32_t plugin_version;
EXPORT uint32_t plugin_version = 7;

const char *__asan_default_options(void);

/* Several objects with a plugin_version are what is tested. */
EXPORT const char *__asan_default_options(void)
{
    return "detect_odr_violation=0";
}

EXPORT char *slurm_abi_extra_conf_path(const char *name);
EXPORT void slurm_abi_xfree(void **p);

static const char *directory; /* where the plugins are */
static long api;
static char said[1024];

long slurm_abi_api_version(void)
{
    return api << 16;
}

void slurm_abi_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(said, sizeof(said), fmt, ap);
    va_end(ap);
}

int slurm_abi_forward_data(char **nodelist, char *address, uint32_t len, const char *data)
{
    (void)nodelist;
    (void)address;
    (void)len;
    (void)data;
    return SLURM_ABI_ERROR;
}

/* Where no slurm.conf is. */
char *slurm_abi_extra_conf_path(const char *name)
{
    char *path;
    assert_true(asprintf(&path, "%s/none/%s", directory, name) > 0);
    return path;
}

void slurm_abi_xfree(void **p)
{
    free(*p);
    *p = NULL;
}

static void *load(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    assert_null(dlopen(path, RTLD_LAZY | RTLD_NOLOAD));
    void *file = dlopen(path, RTLD_LAZY);
    if (!file)
        fail_msg("%s", dlerror());
    return file;
}

/* As Slurm of that libslurm does it. @return the version that the plugin says */
static uint32_t version_under(long number)
{
    api = number;
    said[0] = '\0';
    void *file = load("mpi_muster.so");
    uint32_t found = *(const uint32_t *)dlsym(file, "plugin_version");
    dlclose(file);
    return found;
}

static void test_beside(void **state)
{
    (void)state;
    assert_int_equal(version_under(API_24_11), 0x180b63);
    assert_string_equal(said, "");
    assert_int_equal(plugin_version, 7);
}

static void test_loaded_before(void **state)
{
    void *file = load("test_plugin.so");
    (void)state;
    assert_int_equal(version_under(API_24_11), 0x180b04);
    assert_string_equal(said, "");
    dlclose(file);
}

/* A SPANK plugin of another micro release, which Slurm takes, says nothing of the Slurm that runs.
 */
static void test_spank_loaded_before(void **state)
{
    void *spank = load("test_spank.so"), *file;
    (void)state;
    assert_int_equal(version_under(API_24_11), 0x180b63);
    file = load("test_plugin.so");
    assert_int_equal(version_under(API_24_11), 0x180b04);
    dlclose(file);
    dlclose(spank);
}

static void test_micro_not_found(void **state)
{
    (void)state;
    assert_int_equal(version_under(API_26_05), 0);
    assert_non_null(strstr(said, "the micro release of this Slurm 26.05 is not known"));
}

/* slurm.conf has a line, in which %s is a directory with a plugin of 26.05.3 alone. */
static void configured(const char *dir, const char *line, uint32_t expected)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/slurm.conf", dir);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "ClusterName=x\n#PluginDir=/nowhere\nPluginDirs=/nowhere\n");
    fprintf(out, line, dir);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(setenv("SLURM_CONF", path, 1), 0);
    assert_int_equal(version_under(API_26_05), expected);
    unsetenv("SLURM_CONF");
    unlink(path);
    assert_true((said[0] == '\0') == (expected != 0));
}

static void test_plugin_dir(void **state)
{
    char dir[] = "/tmp/muster-test-version.XXXXXX", plugin[PATH_MAX], target[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(plugin, sizeof(plugin), "%s/auth_munge.so", dir);
    snprintf(target, sizeof(target), "%s/test_plugin_newer.so", directory);
    assert_int_equal(symlink(target, plugin), 0);
    configured(dir, "PluginDir=/nowhere:%s\n", 0x1a0503);
    configured(dir, " plugindir = \"%s\" # ours\n", 0x1a0503);
    configured(dir, "#PluginDir=%s\n", 0);
    assert_int_equal(unlink(plugin), 0);
    configured(dir, "PluginDir=%s\n", 0);
    assert_int_equal(rmdir(dir), 0);
}

static void test_unknown_release(void **state)
{
    (void)state;
    assert_int_equal(version_under(API_UNKNOWN), 0);
    assert_non_null(strstr(said, "is built for Slurm 22.05, 23.02, "));
    assert_non_null(strstr(said, " and this is Slurm 24.11.99: install a muster that knows it"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_loaded_before),
        cmocka_unit_test(test_spank_loaded_before),
        cmocka_unit_test(test_micro_not_found),
        cmocka_unit_test(test_plugin_dir),
        cmocka_unit_test(test_unknown_release),
    };

    if (argc != 2)
        return 2;
    directory = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
