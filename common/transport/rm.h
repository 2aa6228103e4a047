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

    /** Ends the step with the rights of the job's user, and returns at once.
     * @param why one line for the RM's record where it keeps one; borrowed */
    void (*abort)(struct rm *rm, const char *why);

    /** Stops, at the latest after @p ms milliseconds that bytes under way may still take. */
    void (*close)(struct rm *rm, unsigned ms);
};

/** The symbol that a back end exports. */
#define RM_SYMBOL "muster_rm"

#endif
