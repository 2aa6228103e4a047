/** @file
 * The resource manager's seam: all that muster-server needs of the RM that started it.
 *
 * A back end is a shared object that exports one `const struct rm_ops muster_rm`; plugins/ holds
 * them. Nothing above this line names an RM.
 */
#ifndef MUSTER_TRANSPORT_RM_H
#define MUSTER_TRANSPORT_RM_H

#include "common/conf/conf.h"
#include "common/server/boot.h"

#include <event2/event.h>

/** A back end's own state. */
struct rm;

/** What a back end tells the server. @thread the loop's */
struct rm_host {
    void *arg;
    /** A peer's bytes came, from a process that the RM vouches to be the job's user. They may be
     * a repetition. @param data borrowed */
    void (*receive)(void *arg, const void *data, size_t len);
    /** Server @p node cannot be reached any more. @param why one clause, borrowed */
    void (*lost)(void *arg, uint32_t node, const char *why);
};

/** How a back end gets on with one server. */
struct rm_peer {
    bool reached;          /**< something has arrived there */
    bool lost;             /**< it was given up */
    int64_t failing_since; /**< now_ms() of the first failure in a row; 0: it is not failing */
    uint32_t queued;       /**< frames that wait to be sent */
    uint64_t queued_bytes;
    uint64_t retries; /**< messages that had to be sent again */
};

/** What the server asks of a back end. @thread the loop's, none of them blocks */
struct rm_ops {
    const char *name;

    /**
     * Starts the back end.
     * @param boot,conf borrowed until close()
     * @param base the loop, to which the back end adds its events
     * @return its state, or NULL with the reason in @p err
     */
    struct rm *(*open)(const struct boot *boot, const struct conf *conf, struct event_base *base,
                       const struct rm_host *host, struct err *err);

    /** Sends bytes to server @p node: in order, repeated until they are there or the node is lost,
     * hence perhaps twice. @param data malloc()ed, taken over */
    void (*send)(struct rm *rm, uint32_t node, void *data, size_t len);

    /** Says how it stands with server @p node. */
    struct rm_peer (*peer)(struct rm *rm, uint32_t node);

    /** Ends the step with the rights of the job's user, and returns at once.
     * @param why one line for the RM's record where it keeps one; borrowed */
    void (*abort)(struct rm *rm, const char *why);

    /** Stops, at the latest after @p ms milliseconds that bytes under way may still take. */
    void (*close)(struct rm *rm, unsigned ms);
};

/** The symbol that a back end exports. */
#define RM_SYMBOL "muster_rm"

#endif
