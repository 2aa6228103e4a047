/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The state of a step in words.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/**
 * Writes a line for each node, then one for each operation that waits and for whom.
 * @param state a server's answer (docs/wire.md), of which nothing is taken for granted: the server
 *              is its user's
 * @param owner name of the user whose server it is
 * @return 0, or -1 when it is no state of a step
 */
int words_write(FILE *out, json_object *state, const char *owner);

/** Writes the operations that wait, and below them what the ranks are doing: fold.h.
 * @param state with the stacks of tasks @param full the same as for fold_write()
 * @return 0, or -1 when it is no state of a step */
int words_write_stacks(FILE *out, json_object *state, const char *owner, bool full);
