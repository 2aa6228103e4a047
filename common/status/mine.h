/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The step that a user means who names none: the only one that runs.
 */
#pragma once

#include "common/status/find.h"

/** Finds it among those that have a server on this node; where there is none, among those of which
 * the resource manager knows. @param find its step is NULL @return 0 and the name in @p step; -1
 * with the reason in @p err: there is none, or there are several, which are named @thread any */
int mine_find(const struct find *find, char step[static FIND_STEP_MAX + 1], struct err *err);
