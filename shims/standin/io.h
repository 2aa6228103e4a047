/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Standard input, output and error of the tasks, which are pipes to musterrun's first process.
 * A rank is one that the caller has checked.
 */
#pragma once

#include "common/util/err.h"
#include "shims/standin/standin.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    IO_INPUT_ALL = -1,
    IO_INPUT_NONE = -2,
    IO_ENDS = 3, /**< of a task's pipes, which the first process has */
};

struct io;

/** @param files for standard output and error, where %t is the rank; NULL: ours;
 * borrowed for the call @param input the rank that gets our standard input, or one of IO_INPUT_
 * @param label whether "RANK: " stands before each line @return NULL with @p err */
struct io *io_open(const struct standin_step *step, long input, bool label,
                   const char *const files[2], struct err *err);

/** In a node's process: leaves to the first process what is its own. */
void io_leave(struct io *io);

/** In a node's process, before it forks the task: makes the pipes. @return 0, or -1 and errno */
int io_make(struct io *io, uint32_t rank);

/** In a node's process, after io_make(): the ends for the first process, borrowed.
 * @return how many there are */
size_t io_ends(const struct io *io, uint32_t rank, int ends[IO_ENDS]);

/** In a task's process: makes the pipes of @p rank descriptors 0 to 2. @return 0, or -1 and errno
 */
int io_become(struct io *io, uint32_t rank);

/** In a node's process, once the task has been forked: closes the pipes. */
void io_shut(struct io *io, uint32_t rank);

/** In the first process: takes what a node's io_ends() gave. @param ends become ours */
void io_take(struct io *io, uint32_t rank, const int *ends, size_t n);

/** In the first process: no pipes of @p rank are to come any more. */
void io_lost(struct io *io, uint32_t rank);

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
