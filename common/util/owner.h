/** @file
 * Who is at the other end of the connections that this process has accepted on the loopback
 * interface.
 *
 * libpmix's server listens there, and with psec native it believes the uid that a client claims.
 * The kernel knows better: a socket belongs to the uid that made it.
 */
#ifndef MUSTER_UTIL_OWNER_H
#define MUSTER_UTIL_OWNER_H

#include <sys/types.h>

/** What has been checked already: the inode of each descriptor. All zero is an empty one. */
struct owner_cache {
    ino_t *checked; /**< by descriptor; owned */
    int n;
};

/**
 * Looks at the connections that were accepted since the last call. Those whose other end does not
 * belong to our own uid, or to nobody any more, are cut at once, what they have sent unread, and
 * there is a line in the log for each: their descriptors then lead to a dead socket.
 * @return how many there were
 * @thread the one that reads these connections, so that nothing is read in between; one at a time
 */
int owner_cut_foreign(struct owner_cache *cache);

void owner_cache_free(struct owner_cache *cache);

#endif
