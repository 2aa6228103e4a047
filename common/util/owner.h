/** @file
 * Who is at the other end of a connection on the loopback interface.
 *
 * The kernel knows: a socket belongs to the uid that made it.
 */
#ifndef MUSTER_UTIL_OWNER_H
#define MUSTER_UTIL_OWNER_H

enum owner {
    OWNER_GONE,  /**< nobody's: it was closed, or its process has ended */
    OWNER_US,    /**< our own uid's */
    OWNER_OTHER, /**< another one's, or not on the loopback interface */
};

/** @return whose the other end of an accepted TCP connection is, by the kernel's table of sockets.
 * Where that cannot be opened, OWNER_GONE, and errno says why. @thread any */
enum owner owner_of(int fd);

#endif
