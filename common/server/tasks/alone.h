/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A program whose MPI knows no PMIx does not find the other tasks of its step: each task runs by
 * itself, as rank 0 of 1, and ends with status 0. MPICH of Debian is one. The server of the first
 * node looks which MPI its first task has mapped, as long as that task has not called PMIx_Init,
 * and tells the user when the first task of the node ends, and none has.
 *
 * An MPI of a program that the task itself starts is not seen.
 * @thread all of it: the loop's
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct server;
struct alone;
struct task;

/** Begins to look, if this server is the one that does. All tasks of this node have started. */
void alone_watch(struct server *server);

/** A task of this node has ended. Says what was found, if the task has ended well and none had
 * called PMIx_Init. That is as late as the user may be told: once all have ended, the launcher may
 * have shut the way to the terminal. */
void alone_ended(struct server *server, const struct task *task);

void alone_free(struct server *server);

/** Looks for an MPI among the files that a process has mapped. Open MPI does not count: it asks for
 * PMIx.
 * @param maps a file such as /proc/PID/maps
 * @param name gets the name of its library, such as "libmpich.so.12"; "" for none */
void alone_find_mpi(const char *maps, char *name, size_t cap);
