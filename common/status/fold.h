/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What all ranks of a step are doing, folded: a line for all that do the same.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/**
 * Writes a line for each stack that tasks have, the most frequent first, with how many and which
 * ranks have it: " 2 ranks  main > read_input > read  (5,9 on c07)".
 * @param nodes states of servers, an array, with "stack" or "no_stack" in their tasks; nothing is
 *              taken for granted
 * @param full  also what MPI and PMIx do inside (stack.h)
 * @thread any
 */
void fold_write(FILE *out, json_object *nodes, bool full);
