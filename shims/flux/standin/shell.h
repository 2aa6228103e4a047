/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of a job shell's process. Private to shell.c, which runs it, and shell_api.c, the functions
 * that its plugin calls. @thread its only one
 */
#pragma once

#include "shims/flux/standin/flux.h"
#include "shims/flux/standin/play.h"

enum { HANDLERS_MAX = 16 };

struct flux_command {
    char **env; /**< owned, with its strings */
};

struct shell_task {
    uint32_t slot, rank;
    pid_t pid;
    bool ended;
    int status; /**< ended: as of wait(2) */
    struct flux_command cmd;
};

struct flux_plugin {
    char name[32];
    struct {
        char topic[32];
        flux_plugin_f call;
        void *arg;
    } handlers[HANDLERS_MAX];
    unsigned n;
    struct flux_shell *shell;
};

struct flux_shell {
    struct node node;
    flux_t *h;
    struct flux_plugin plugin;
    struct shell_task *tasks;   /**< by slot */
    struct shell_task *current; /**< whom a handler is called for */
    struct json_object *pmi;    /**< the job's option of that name */
    struct json_object *muster; /**< likewise; NULL: it has none */
    struct json_object *info;   /**< of the job */
    struct json_object *ranks;  /**< an array: of each node */
    struct json_object *asked;  /**< of the task that was asked of last */
    char tmpdir[128];
};

/** The one shell of this process. */
extern struct flux_shell the_shell;

/** Calls the plugin's handler of a topic. @return 0, or what it returned */
int shell_call(const char *topic, struct shell_task *task);
