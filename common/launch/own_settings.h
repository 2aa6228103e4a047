/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a step's user has set in its environment for muster, on its way to the server.
 */
#pragma once

#include "common/launch/boot.h"

/** Copies the variables that are meant as settings (conf_step.h) into the boot message, as text.
 * Whether they are right the server says, which has the user's rights only.
 * @param env of the step: the user's, in every byte; NULL or ended by NULL
 * @thread the launcher's main thread */
void own_settings(struct boot *boot, char *const *env);

/** The variables besides those of conf_step_name() that count. @return the @p i th; NULL: there are
 * no more @thread any */
const char *own_settings_name(unsigned i);
