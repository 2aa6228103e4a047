/** @file
 * What servers say to each other. docs/wire.md draws it.
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
    FRAME_EVENT,       /**< an event for the sender's peers: see common/notify/event.h */
    FRAME_CANCEL,      /**< a construct ended at the sender before it was known there, to all */
    FRAME_DOUBT,       /**< who would have told of a result is lost: does the receiver know it? */
    FRAME_HAVE,        /**< the sender has a success, to who decided it */
    FRAME_ABSENT,      /**< a server of the step leaves, as a task failed there before PMIx_Init */
    FRAME_NSPACE = 16, /**< a namespace's registration, to a server of another step */
    FRAME_LEAVING,     /**< the sender ends in order, to a server of another step */
};

#endif
