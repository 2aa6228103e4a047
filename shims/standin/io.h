/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Standard input, output and error of the tasks, which are pipes to musterrun's first process.
 */
#ifndef MUSTER_STANDIN_IO_H
#define MUSTER_STANDIN_IO_H

#include "common/util/err.h"
#include "shims/standin/standin.h"

#include <poll.h>
#include <stdbool.h>

enum { IO_INPUT_ALL = -1, IO_INPUT_NONE = -2 };

struct io;

/** Makes the pipes. @param files for standard output and error, where %t is the rank; NULL: ours;
 * borrowed for the call @param input the rank that gets our standard input, or one of IO_INPUT_
 * @param label whether "RANK: " stands before each line @return NULL with @p err */
struct io *io_open(const struct standin_step *step, long input, bool label,
                   const char *const files[2], struct err *err);

/** In a node's process: keeps what its tasks need and closes the rest. */
void io_keep(struct io *io, const struct standin_node *node);

/** In a task's process: makes the pipes of @p rank descriptors 0 to 2. @return 0, or -1 and errno
 */
int io_become(struct io *io, uint32_t rank);

/** In a node's process, when its tasks are running: they alone hold the pipes. */
void io_pass(struct io *io, const struct standin_node *node);

/** In the first process, when the nodes' are running. */
void io_parent(struct io *io);

/** @return the most that io_poll() fills in */
nfds_t io_max(const struct io *io);

/** Fills in what is to be polled. @return how many */
nfds_t io_poll(struct io *io, struct pollfd *fds);

/** Moves bytes. @param fds as io_poll() filled them in */
void io_ready(struct io *io, const struct pollfd *fds, nfds_t n);

/** @return when to call io_ready() at the latest, ms; 0: no need */
int64_t io_wait(const struct io *io);

/** @return whether all tasks have closed their outputs */
bool io_done(const struct io *io);

/** Writes what is still in buffers, and lets go who else prints it. */
void io_finish(struct io *io);

/** A program of its own: prints what the tasks of a run print from now on, each line with "RANK: "
 * in front. @param path printers.h @return its status */
int io_print(const char *path);

#endif
