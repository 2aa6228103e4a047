/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * All bytes of a stream socket or a file, however many calls it takes.
 * @thread any
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Sends all bytes to a stream socket; a peer that has closed raises no signal. Blocks as long as
 * the socket does.
 * @return whether all were sent; else errno says why, and how many were is not known */
bool send_all(int fd, const void *data, size_t len);

/** Reads up to @p size bytes. Blocks as long as the file does. @return how many; fewer than @p
 * size: the file has ended; -1: errno says why. */
ssize_t read_all(int fd, void *data, size_t size);
