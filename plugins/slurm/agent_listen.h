/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sockets of the agent in srun: where it listens, and how long it believes in a connection.
 * @thread any
 */
#ifndef MUSTER_SLURM_AGENT_LISTEN_H
#define MUSTER_SLURM_AGENT_LISTEN_H

/** Listens at a port of SrunPortRange, or at any where slurm.conf has none. @return 0 and a
 * non-blocking socket, or an error number */
int agent_listen(int *listener);

/** Has the kernel find out, within a minute, that the other end is gone without a word. */
void agent_keep_alive(int fd);

#endif
