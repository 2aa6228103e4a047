/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a plugin of Flux's job shell uses, declared by hand as in flux_abi.h; shell_check.c has the
 * compiler compare it with the real headers. The functions are flux-shell's own and libflux-core's.
 */
#pragma once

#include "shims/flux/flux_abi.h"

#ifndef FLUX_ABI_REAL_HEADERS
typedef struct flux_plugin flux_plugin_t;
typedef struct flux_plugin_arg flux_plugin_arg_t;
typedef struct flux_shell flux_shell_t;
typedef struct shell_task flux_shell_task_t;
typedef struct flux_command flux_cmd_t;

typedef int (*flux_plugin_f)(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args,
                             void *data);

enum { FLUX_POLLIN = 1, FLUX_POLLOUT = 2 };
enum {
    FLUX_SHELL_ERROR = 3,
    FLUX_SHELL_WARN = 4,
    FLUX_SHELL_DEBUG = 6, /* seen with -o verbose */
    FLUX_SHELL_TRACE = 7, /* with -o verbose=2 */
};
#endif

/* The plugin. */
int flux_plugin_set_name(flux_plugin_t *p, const char *name);
int flux_plugin_add_handler(flux_plugin_t *p, const char *topic, flux_plugin_f cb, void *arg);
flux_shell_t *flux_plugin_get_shell(flux_plugin_t *p);

/* The shell and its job. */
flux_t *flux_shell_get_flux(flux_shell_t *shell);
int flux_shell_getopt_unpack(flux_shell_t *shell, const char *name, const char *fmt, ...);
int flux_shell_info_unpack(flux_shell_t *shell, const char *fmt, ...);
int flux_shell_rank_info_unpack(flux_shell_t *shell, int shell_rank, const char *fmt, ...);
const char *flux_shell_getenv(flux_shell_t *shell, const char *name);
void flux_shell_log(const char *component, int level, const char *file, int line, const char *fmt,
                    ...) __attribute__((format(printf, 5, 6)));
void flux_shell_fatal(const char *component, const char *file, int line, int errnum, int exit_code,
                      const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Its tasks. */
flux_shell_task_t *flux_shell_current_task(flux_shell_t *shell);
int flux_shell_task_info_unpack(flux_shell_task_t *task, const char *fmt, ...);
flux_cmd_t *flux_shell_task_cmd(flux_shell_task_t *task);
int flux_cmd_setenvf(flux_cmd_t *cmd, int overwrite, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Of jansson, which the shell has: format 'o' gives out a part of what is unpacked. */
size_t json_array_size(const json_t *array);
json_t *json_array_get(const json_t *array, size_t index);
const char *json_string_value(const json_t *string);

/* Of libflux-core. */
flux_future_t *flux_rpc(flux_t *h, const char *topic, const char *s, uint32_t nodeid, int flags);
int flux_rpc_get(flux_future_t *f, const char **s);
int flux_future_wait_for(flux_future_t *f, double timeout);
flux_watcher_t *flux_fd_watcher_create(flux_reactor_t *r, int fd, int events, flux_watcher_f cb,
                                       void *arg);
void flux_watcher_stop(flux_watcher_t *w);

/* What the shell calls. */
int flux_plugin_init(flux_plugin_t *p);

_Static_assert(FLUX_POLLIN == 1 && FLUX_POLLOUT == 2, "events of a watcher");
_Static_assert(FLUX_SHELL_ERROR == 3 && FLUX_SHELL_WARN == 4 && FLUX_SHELL_DEBUG == 6 &&
                   FLUX_SHELL_TRACE == 7,
               "levels of the shell's log");
