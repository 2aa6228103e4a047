/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Credentials of the cluster's own authentication (AuthType, as a rule munge), by which a process
 * proves its uid to one on another node.
 * @thread any; waits for munged
 */
#pragma once

#include "common/transport/wire.h"

#include <sys/types.h>

/** Appends a credential of this process: u32 protocol, block. Only processes of @p reader can read
 * it. @param ms at most, in milliseconds @return whether it was made */
bool auth_write(struct wire_out *out, uid_t reader, const void *payload, size_t len, int ms);

/** auth_write() without a deadline: for a thread that nothing waits for. */
bool auth_seal(struct wire_out *out, uid_t reader, const void *payload, size_t len);

/** Appends what is in what auth_write() wrote, without a deadline. @return whether it is of a
 * process of @p writer, fresh, and was not seen on this node before */
bool auth_open(struct wire_in *in, uid_t writer, struct wire_out *payload);

/** auth_open() with a deadline. @param ms at most, in milliseconds */
bool auth_take(struct wire_in *in, uid_t writer, struct wire_out *payload, int ms);

/** Reads what auth_write() wrote. @return whether it is of a process of @p writer, fresh, was never
 * seen before, and holds @p payload. @param ms at most, in milliseconds */
bool auth_read(struct wire_in *in, uid_t writer, const void *payload, size_t len, int ms);
