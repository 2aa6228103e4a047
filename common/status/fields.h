/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Fields of JSON: of what servers say, and of what is said. Servers are their user's, so nothing is
 * taken for granted: a field that is missing or of another type counts as absent.
 * @thread any
 */
#pragma once

#include <json-c/json.h>
#include <stdint.h>

/** Reads a text as JSON, of few levels. @return the caller's; NULL: it is none */
json_object *field_parse(const char *text);

/** @param o may be NULL, and of any type @return a member of that type, borrowed; NULL: there is
 * none */
json_object *field(json_object *o, const char *key, enum json_type type);

/** @return a member that is an array, borrowed; NULL: there is none */
json_object *field_list(json_object *o, const char *key);

/** @return how many elements an array has; 0 of what is none */
size_t field_length(json_object *array);

/** @return element @p i of an array; NULL of what is none */
json_object *field_at(json_object *array, size_t i);

/** @return a member that is a text, borrowed; NULL: there is none */
const char *field_text(json_object *o, const char *key);

/** @return a member that is a whole number; else @p none */
int64_t field_number(json_object *o, const char *key, int64_t none);

/** Sets a member to a text. Users choose some texts, so what would harm a terminal, and what is not
 * UTF-8, becomes "?". */
void field_put_text(json_object *o, const char *key, const char *text);

/** Sets a member to a number. */
void field_put_number(json_object *o, const char *key, uint64_t n);

/** @return a new element of an array, an object, borrowed */
json_object *field_add(json_object *array);

/** @return an object as one line, which is its own; NULL when out of memory */
const char *field_line(json_object *o);
