/** @file
 * Who is at the other end of the TCP connections that this process has on the loopback interface.
 *
 * libpmix's server listens there, and with psec native it believes the uid that a client claims.
 * The kernel knows better: a socket belongs to the uid that made it.
 */
#ifndef MUSTER_UTIL_OWNER_H
#define MUSTER_UTIL_OWNER_H

/** Shuts every loopback connection of this process whose other end belongs neither to our own uid
 * nor to root, with a line in the log for each.
 * @return how many there were
 * @thread any; reads /proc, takes some microseconds to milliseconds */
int owner_shut_foreign(void);

#endif
