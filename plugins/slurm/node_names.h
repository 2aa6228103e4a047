/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Names of nodes as one text.
 * @thread any
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** @return whether @p name is one: letters, digits and "._-", of at most @p max bytes */
bool node_names_is_one(const char *name, size_t max);

/** Writes "c07-c31, login1", in the order of prefixes and numbers, and "..." where it is too long.
 * @param names put into that order */
void node_names_text(char **names, size_t n, char *buf, size_t cap);
