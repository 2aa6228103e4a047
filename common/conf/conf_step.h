/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings that a user gives for his own step, beside the launcher's command.
 *
 *     MUSTER_ON_TASK_LOSS=continue        a variable in the step's environment
 *     -o muster.on_task_loss=continue     an option of the launcher, where it has such
 *
 * Both name a key of muster.json. The rows of the table say which keys, and up to which value:
 * those that concern the user's own step alone. Needs nothing but the C library: launchers ask
 * which variables concern us, and copy these as text; the server, with the user's rights, reads
 * them.
 * @thread any
 */
#pragma once

#include "common/conf/conf.h"

#include <stdbool.h>

/** What the name of a variable begins with, and how an option is written. */
#define CONF_STEP_ENV "MUSTER_"
#define CONF_STEP_OPTION "-o muster."

/** Room for a name with its end: a longer one is no setting's. */
#define CONF_STEP_NAME_SIZE 64

/** Whether a variable of the environment is meant as a setting: its name is that of a key, or so
 * near to one that a user may well have meant one. Others may begin with "MUSTER_", too, and are
 * no business of ours.
 * @param name need not end at @p len */
bool conf_step_concerns(const char *name, size_t len);

/** The names of all variables that are keys, also of those that a user may not set.
 * @param i from 0
 * @return false: there are no more */
bool conf_step_name(unsigned i, char name[static CONF_STEP_NAME_SIZE]);

/** Sets one key in @p conf as the user has given it.
 * @param conf as the file and the resource manager have it; untouched on failure
 * @param name as the user has written it, CONF_STEP_ENV or CONF_STEP_OPTION in front
 * @param value what stands behind "="; "" of a variable: it is not given
 * @param err what is wrong and what to do
 * @return 0, or -1 with @p err set */
int conf_step_set(struct conf *conf, const char *name, const char *value, struct err *err);
