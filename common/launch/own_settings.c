/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a step's user has set in its environment for muster, on its way to the server.
 */
#include "common/launch/own_settings.h"

#include "common/conf/conf_step.h"
#include "common/util/log_own.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = CONF_KEYS_MAX, /* more are not all right, and one mistake is enough */
    VALUE_SIZE = 64,      /* with its end; what is longer is wrong when it is cut, too */
};

/* Variables that are no settings of muster.json. */
static const struct {
    const char *env, *key;
    bool path;
} taken[] = {{BOOT_PSETS_ENV, BOOT_PSETS, false}, {BOOT_DEBUG_ENV, BOOT_DEBUG, false},
             {BOOT_LOG_ENV, BOOT_LOG, true},      {BOOT_TRACE_ENV, BOOT_TRACE, true},
             {"HOME", BOOT_HOME, true},           {BOOT_STATS_DIR_ENV, BOOT_STATS_DIR, true}};

/* What is too long is cut, and is too long for the server, too. */
static void take_text(struct boot *boot, const char *key, const char *value)
{
    char text[BOOT_PSETS_MAX + 2];
    snprintf(text, sizeof(text), "%s", value);
    if (text[0] != '\0')
        boot_replace(boot, key, text);
}

static const char *value_of(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (char *const *e = env; e && *e; e++)
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
            return *e + len + 1;
    return NULL;
}

/* A name without a directory is below the one in which the user has started the step. */
static void take_path(struct boot *boot, char *const *env, const char *key, const char *value)
{
    char path[LOG_OWN_PATH_SIZE + 1];
    const char *dir = value_of(env, "PWD");
    bool below = value[0] != '/' && dir && dir[0] == '/';
    snprintf(path, sizeof(path), "%s%s%s", below ? dir : "", below ? "/" : "", value);
    if (value[0] != '\0')
        boot_replace(boot, key, path);
}

const char *own_settings_name(unsigned i)
{
    return i < sizeof(taken) / sizeof(*taken) ? taken[i].env : NULL;
}

void own_settings(struct boot *boot, char *const *env)
{
    char name[CONF_STEP_NAME_SIZE], value[VALUE_SIZE];
    unsigned n = 0;
    for (char *const *e = env; e && *e && n < MOST; e++) {
        size_t len = strcspn(*e, "=");
        for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
            if (strlen(taken[i].env) != len || strncmp(*e, taken[i].env, len) != 0 ||
                (*e)[len] != '=')
                continue;
            if (taken[i].path)
                take_path(boot, env, taken[i].key, *e + len + 1);
            else
                take_text(boot, taken[i].key, *e + len + 1);
        }
        if ((*e)[len] != '=' || !conf_step_concerns(*e, len))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len, *e);
        snprintf(value, sizeof(value), "%s", *e + len + 1);
        boot_set(boot, name, value);
        n++;
    }
}
