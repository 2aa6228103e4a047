/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The session's holder (holder.h) in this server: joins it with the questions between servers, the
 * namespaces, the resource manager and the engine's context ids.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_MEETING_H
#define MUSTER_SERVER_MEETING_H

#include "common/holder/holder.h"
#include "common/server/server.h"

/** Makes server::holder, once engine and asks are there. @return 0, or -1: out of memory */
int meeting_open(struct server *server);

/** Serves ASK_DATA. @param arg the server */
void meeting_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

/** What an ASK_DATA asks for, for reports. */
void meeting_describe(const char *node, const void *body, size_t len, char *buf, size_t cap);

/** Whether context ids of operations over several steps need a range that is not there yet. */
bool meeting_needs_range(const struct server *server);

/** Gets that range. @param done called once, also when there is none to be had: then ids are of
 * the own step alone */
void meeting_range(struct server *server, void (*done)(void *arg), void *arg);

/** Has the session's publishers in @p set known to libpmix, as far as they are known here. */
void meeting_register(struct server *server, const struct procset *set);

#endif
