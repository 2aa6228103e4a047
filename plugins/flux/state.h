/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server says of its operations, to its broker's module. The text comes from a process of a
 * job's user, so the module believes nothing in it. @thread all of it: the module's
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

/**
 * Reads rm_host.state's text. It leaves out fields that docs/wire.md does not name or that have
 * another type, cuts long texts and lists, and masks control characters in texts.
 * @param why set to a literal where it returns NULL
 * @return a new object, or NULL: the text is not such an object
 */
struct json_object *state_read(const char *text, size_t len, const char **why);

/** Adds the numbers of operations of @p state, which state_read() gave, to those in @p sum. */
void state_add(struct json_object *sum, struct json_object *state);
