/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * From text to JSON values, with syntax errors that say what was expected. Internal to common/conf.
 */
#pragma once

#include "common/conf/conf_text.h"

struct json_object;

/** Parses a text that is one object and nothing else.
 * @return the object, for json_object_put(); NULL with @p err set */
struct json_object *conf_json_parse(const struct conf_text *t, struct err *err);
