/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What was counted of waits and of late servers, as JSON: docs/wire.md, "collectives" of
 * a server's STATE.
 */
#pragma once

#include <json-c/json.h>

struct server;
struct tally;

/** @param tally of @p server's step @return an object, the caller's @thread the loop's */
json_object *tallied_json(const struct server *server, const struct tally *tally);
