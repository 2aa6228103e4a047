/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sockets of the agent in srun: where it listens, and how long it believes in a connection.
 * @thread any
 */
#pragma once

#include <poll.h>
#include <stdint.h>

/** Listens at a port of SrunPortRange, or at any where slurm.conf has none. @return 0 and a
 * non-blocking socket, or an error number */
int agent_listen(int *listener);

/** @return 0 with the port of agent_listen()'s socket, or -1 with errno */
int agent_listen_port(int listener, uint16_t *port);

/** As poll(), but for entries without a descriptor, which poll() counts against the limit of open
 * files: with "ulimit -n" below their number it would fail at once, for ever.
 * @param open room for @p n */
int agent_poll(struct pollfd *fds, struct pollfd *open, unsigned n, int ms);

/** Has the kernel find out, within a minute, that the other end is gone without a word. */
void agent_keep_alive(int fd);
