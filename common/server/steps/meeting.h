/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The session's holder (holder.h) in this server: joins it with the questions between servers, the
 * namespaces and the resource manager.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/holder/holder.h"
#include "common/server/server.h"

/** Makes server::holder, once engine and asks are there. */
void meeting_open(struct server *server);

/** Serves ASK_DATA. @param arg the server */
void meeting_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

/** What an ASK_DATA asks for, for reports. */
void meeting_describe(const char *node, const void *body, size_t len, char *buf, size_t cap);

/** Has the session's publishers in @p set known to libpmix, as far as they are known here. */
void meeting_register(struct server *server, const struct procset *set);
