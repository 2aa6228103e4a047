/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the processes of a spawned step print and read, where it comes from or goes to a process of
 * the step that has spawned them: joins outputs.h and inputs.h with the server.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

struct streams;

/** @return NULL: out of descriptors */
struct streams *streams_new(struct server *server);

/** A process is about to become its program.
 * @param home as launch/plan.h has it, or ""
 * @param input the last descriptor is for its input
 * @param fds as launch/plan.h has them; taken over either way
 * @return false: they make no sense */
bool streams_add(struct streams *streams, uint32_t rank, const char *home, bool input,
                 const int *fds, unsigned nfds);

/** Server @p node is gone: what is pushed from there ends with the end of file, and what was
 * printed for it goes to the own output. */
void streams_server_gone(struct server *server, uint32_t node);

/** Serves ASK_INPUT (ask.h). @param arg the server */
void streams_serve_input(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

/** @param home true: look only at output for the process that has spawned the step; false: at all
 * @return whether something that the processes here have printed has not arrived */
bool streams_print(const struct server *server, bool home);

/** @return whether streams of the processes here go to, or come from, a process of the step
 * @p nspace, or a tool there */
bool streams_join(const struct server *server, const char *nspace);

void streams_free(struct streams *streams);
