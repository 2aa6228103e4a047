/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What servers say to each other. docs/wire.md draws it.
 */
#pragma once

/** What servers that talk to each other must agree on: it goes up by one with every change of what
 * they say. What stays for ever, so that servers of any two versions can tell each other: a frame's
 * header, and FRAME_GREETING. */
#define FRAME_PROTOCOL 20

/** The type of a frame, its first byte after the link's header. */
enum frame_type {
    FRAME_CONTRIB = 1, /**< a collective's contributions, towards the root */
    FRAME_RELEASE,     /**< its result, away from the root */
    FRAME_ASK,         /**< a question to one server */
    FRAME_ANSWER,      /**< its answer */
    FRAME_WANTED,      /**< a collective's contribution is awaited, away from the root */
    FRAME_ENDING,      /**< the sender has the RM end the step: tasks that now die are no news */
    FRAME_LEAD,        /**< a leader of a bootstrap has called, to its id's home */
    FRAME_CLAIM,       /**< added members are awaited, from the decider to their server */
    FRAME_JOINED,      /**< they have called, or cannot */
    FRAME_OUTCOME,     /**< the result, for servers that no release reaches */
    FRAME_EVENT,       /**< an event for the sender's peers: see common/notify/event.h */
    FRAME_CANCEL,      /**< a construct ended at the speaker before it was known there, to all */
    FRAME_DOUBT,    /**< the server that would have told of a result is lost: does the receiver know
                         it? */
    FRAME_HAVE,     /**< the sender has a success, to the server that decided it */
    FRAME_VIEW,     /**< who is in the step, and what is said to all: see view/view.h */
    FRAME_NSPACE,   /**< a namespace's registration, to a server of another step */
    FRAME_LEAVING,  /**< the sender, or all of its step, ends, to a server of another step */
    FRAME_GREETING, /**< ahead of the first frame to a server: what both must have alike */
    FRAME_SPREAD,   /**< a namespace that all are to know, to all: see server/steps/spread.h */
    FRAME_ANNOUNCE, /**< how to connect to the sender: see direct/announce.h */
    FRAME_OUTSIDE = 23, /**< the receiver was given up, or is not in the view: see view/view.h */
    FRAME_STARTED = 24, /**< processes of a spawned step have been started, or cannot be: see
                             server/spawned/execs.h */
    FRAME_PIECE = 26,   /**< a part of a result's data, from the server that hands them on */
    FRAME_EARLY = 28, /**< a task has failed before PMIx_Init, to all: see server/peers/agreed.h */
    FRAME_STATS = 29, /**< what servers that leave have counted: see server/totals.h */
    FRAME_STALLED = 32, /**< something waits, for the user to read: see server/status/stalled.h */
    FRAME_STOPPED = 33, /**< processes wait for a debugger, to the first server, and from it to all:
                             see server/status/stopped.h */
    FRAME_SIGNAL = 34,  /**< a signal for some processes of the step, to all: see
                             server/tasks/signals.h */
    FRAME_TAKEN = 35,   /**< what the sender has taken of the receiver: see link.h */
    FRAME_LAST = 36, /**< the sender leaves: has the receiver taken all before this? see link.h */
};

/** What it is worth that a frame arrives. */
enum frame_care {
    CARE_MUST,   /**< what succeeded here must do so there: a server stays until it is delivered */
    CARE_SHOULD, /**< no result of others hangs on it: a server that leaves stays for a moment */
    CARE_MAY,    /**< it is said again: sent once, in no order, and no server is lost for it */
};

static inline enum frame_care frame_care(enum frame_type type)
{
    switch (type) {
    case FRAME_ASK:
    case FRAME_WANTED:
    case FRAME_EVENT:
    case FRAME_CANCEL:
    case FRAME_VIEW:
    case FRAME_STATS:
    case FRAME_STALLED:
    case FRAME_LAST:
        return CARE_SHOULD;
    case FRAME_OUTSIDE:
    case FRAME_ANNOUNCE:
    case FRAME_TAKEN:
        return CARE_MAY;
    default:
        return CARE_MUST;
    }
}
