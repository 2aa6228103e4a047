/** @file
 * What servers of one step say to each other. docs/wire.md draws it.
 */
#ifndef MUSTER_TRANSPORT_FRAME_H
#define MUSTER_TRANSPORT_FRAME_H

/** The type of a frame, its first byte after the link's header. */
enum frame_type {
    FRAME_CONTRIB = 1, /**< a collective's contributions, towards the root */
    FRAME_RELEASE,     /**< its result, away from the root */
    FRAME_ASK,         /**< a question to one server */
    FRAME_ANSWER,      /**< its answer */
    FRAME_WANTED,      /**< a collective's contribution is awaited, away from the root */
    FRAME_ENDING,      /**< the sender has the RM end the step: tasks that now die are no news */
    FRAME_LEAD,        /**< a leader of a bootstrap has called, to its id's home */
    FRAME_CLAIM,       /**< added members are awaited, from who decides to their server */
    FRAME_JOINED,      /**< they have called, or cannot */
    FRAME_OUTCOME,     /**< the result, for servers that no release reaches */
};

#endif
