/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a job's user has set for muster: variables of the job's environment, and over them options
 * of the shell, -o muster.KEY=VALUE. They go to the server as text, which says what is wrong.
 */
#include "plugins/flux/options.h"

#include "common/conf/conf_step.h"
#include "common/launch/own_settings.h"

#include <stdio.h>
#include <stdlib.h>

/* The shell gives a variable by its whole name only. PWD goes along: see own_settings.c. */
static void take_variable(struct boot *boot, flux_shell_t *shell, const char *name)
{
    const char *value = flux_shell_getenv(shell, name), *dir = flux_shell_getenv(shell, "PWD");
    char *text = NULL, *pwd = NULL;
    if (value && asprintf(&text, "%s=%s", name, value) >= 0 &&
        asprintf(&pwd, "PWD=%s", dir ? dir : "") >= 0)
        own_settings(boot, (char *[]){text, pwd, NULL});
    free(text);
    free(pwd);
}

static void take_variables(struct boot *boot, flux_shell_t *shell)
{
    char name[CONF_STEP_NAME_SIZE];
    for (unsigned i = 0; conf_step_name(i, name); i++)
        take_variable(boot, shell, name);
    for (unsigned i = 0; own_settings_name(i); i++)
        take_variable(boot, shell, own_settings_name(i));
}

int options_take(struct boot *boot, flux_shell_t *shell, struct err *err)
{
    json_t *options = NULL;
    char *text;
    take_variables(boot, shell);
    switch (flux_shell_getopt_unpack(shell, "muster", "o", &options)) {
    case 0:
        return 0;
    case 1:
        text = json_string_value(options) ? NULL : json_dumps(options, 0);
        if (text)
            boot_set(boot, "options", text);
        free(text);
        if (text)
            return 0;
        return err_set(err, "-o muster: give a key and a value, for example -o "
                            "muster.on_task_loss=continue");
    default:
        return err_set(err, "the shell does not tell of its option muster");
    }
}
