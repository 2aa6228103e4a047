/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sending bytes to a stream socket.
 */
#ifndef MUSTER_UTIL_SEND_ALL_H
#define MUSTER_UTIL_SEND_ALL_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Sends all bytes, however many calls it takes; a peer that has closed raises no signal. Blocks as
 * long as the socket does.
 * @return whether all were sent; else errno says why, and how many were is not known
 * @thread any
 */
bool send_all(int fd, const void *data, size_t len);

#endif
