/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The settings that are in force in a server.
 */
#include "common/server/life/settings.h"

#include "common/conf/conf_step.h"
#include "common/util/log.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_file(struct server *server, struct err *err)
{
    const char *path = getenv("MUSTER_CONF");
    struct conf defaults;
    conf_defaults(&defaults);
    if (conf_load(&server->conf, path != NULL ? path : MUSTER_CONF_PATH,
                  path != NULL ? getuid() : 0, conf_keep_first, err) != 0)
        return -1;
    conf_mark(&server->sources, &defaults, &server->conf, CONF_FILE);
    return 0;
}

static int read_rm(struct server *server, struct err *err)
{
    const char *text = boot_setting(&server->boot, "conf");
    struct conf before = server->conf;
    if (text == NULL)
        return 0;
    if (conf_parse(&server->conf, "the resource manager's settings", text, strlen(text),
                   conf_keep_first, err) != 0)
        return -1;
    conf_mark(&server->sources, &before, &server->conf, CONF_RM);
    return 0;
}

/* The options that are no settings of muster.json: process sets, the user's own log, and whether
 * processes wait for a debugger. */
static const char *const own_options[][2] = {
    {"pset", BOOT_PSETS}, {"log", BOOT_LOG}, {"debug", BOOT_DEBUG}};

static int set_option(struct server *server, const char *group, const char *key, json_object *value,
                      struct err *err)
{
    char name[256];
    for (size_t i = 0; i < sizeof own_options / sizeof *own_options; i++)
        if (*group == '\0' && strcmp(key, own_options[i][0]) == 0 &&
            json_object_get_string(value) != NULL) {
            /* a spawned job has its parent's options */
            if (strcmp(key, "debug") != 0 || !boot_spawned(&server->boot))
                boot_replace(&server->boot, own_options[i][1], json_object_get_string(value));
            return 0;
        }
    snprintf(name, sizeof name, CONF_STEP_OPTION "%.100s%s%.100s", group, *group != '\0' ? "." : "",
             key);
    const char *text = json_object_get_string(value);
    return conf_step_set(&server->conf, name, text != NULL ? text : "null", err);
}

/* "-o muster.timeouts.fence=5" comes as {"timeouts": {"fence": 5}}. */
static int read_options(struct server *server, struct err *err)
{
    const char *text = boot_setting(&server->boot, "options");
    json_object *options = text != NULL ? json_tokener_parse(text) : NULL;
    int rc = 0;
    if (text == NULL)
        return 0;
    if (!json_object_is_type(options, json_type_object)) {
        json_object_put(options);
        return err_set(err,
                       "the options of the %s are no object: give " CONF_STEP_OPTION "KEY=VALUE",
                       log_unit());
    }
    json_object_object_foreach(options, key, value)
    {
        if (!json_object_is_type(value, json_type_object)) {
            rc = rc != 0 ? rc : set_option(server, "", key, value, err);
            continue;
        }
        json_object_object_foreach(value, leaf, inner)
        {
            rc = rc != 0 ? rc : set_option(server, key, leaf, inner, err);
        }
    }
    json_object_put(options);
    return rc;
}

/* Options win over variables. */
static int read_step(struct server *server, struct err *err)
{
    const struct conf before = server->conf;
    for (uint32_t i = 0; i < server->boot.nsettings; i++) {
        const struct boot_setting *given = &server->boot.settings[i];
        if (strncmp(given->key, CONF_STEP_ENV, strlen(CONF_STEP_ENV)) == 0 &&
            conf_step_set(&server->conf, given->key, given->value, err) != 0)
            return -1;
    }
    int rc = read_options(server, err);
    conf_mark(&server->sources, &before, &server->conf, CONF_STEP);
    return rc;
}

/* What a user asks for beyond the admin's level goes to the user's own log, if there is one.
 * Without one the log of all gets it up to info, and no line for each transition. */
static int choose_log(struct server *server, enum log_level admin, struct err *err)
{
    bool own = boot_setting(&server->boot, BOOT_LOG) != NULL;
    enum log_level asked = server->conf.log_level;
    server->log_level = own ? admin : asked;
    if (own && server->conf.step_settings == CONF_STEP_FORBID)
        return err_set(err,
                       BOOT_LOG_ENV
                       ": \"step_settings\": \"forbid\" in muster.json forbids settings "
                       "of a %s's own: start it without, or ask the admin",
                       log_unit());
    if (own && asked == admin && admin < LOG_LEVEL_INFO)
        server->conf.log_level = LOG_LEVEL_INFO;
    if (!own && asked > LOG_LEVEL_INFO && asked > admin)
        return err_set(
            err,
            "log_level \"debug\" of a %s's own needs a file of its own: set " BOOT_LOG_ENV
            ", for example " BOOT_LOG_ENV "=muster.%%n.log",
            log_unit());
    return 0;
}

int server_settings(struct server *server, struct err *err)
{
    if (read_file(server, err) != 0 || read_rm(server, err) != 0)
        return -1;
    enum log_level admin = server->conf.log_level;
    int rc = read_step(server, err) != 0 || choose_log(server, admin, err) != 0 ? -1 : 0;
    err->alike = rc != 0; /* all nodes get the same from the user */
    return rc;
}
