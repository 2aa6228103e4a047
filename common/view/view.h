/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agreed view: which servers of the step are in, and what all of them are told, in one order.
 * docs/view.md is the protocol; words in italics there are the names here.
 *
 * A view begins with all servers of the step and becomes smaller. Its head is its lowest server.
 * What has to be said to all goes to the head, which numbers it; so all hear it in one order.
 *
 *       view_say()                                              hear()
 *      ───────────► WORD ──► head ── SAID ──► down the tree ──────────►
 *                             ▲                    │
 *                             └────── HEARD ───────┘ up the tree: who has heard how much
 *
 * view_gather() is a word that each server also answers; what a subtree has answered goes up the
 * same tree in one frame.
 *
 * A server that cannot reach another one says so (view_accuse()). The head checks it and changes
 * the view: PROPOSE goes down the tree of the servers that stay, STATE comes up with what not all
 * have heard, COMMIT goes down with the union of these. Then all enter the new view, and hear what
 * they lack, before anything else.
 *
 * @thread the loop's, all of it
 */
#pragma once

#include "common/tracker/values/ranges.h"
#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/timers.h"

/** The status of an answer that does not fit: all answers have 32 MiB. env.answer() gives others.
 */
enum { VIEW_TOO_LONG = 1 };

/** Takes answers: for each server that has answered u32 node, i32 status, block. @param answers
 * borrowed; NULL with @p len 0: there are none */
typedef void view_answers_fn(void *arg, const void *answers, size_t len);

/** How it ends with a server. */
enum view_over {
    VIEW_LET_GO,  /**< it wanted to leave, and may */
    VIEW_ALL_GO,  /**< so did all that were left */
    VIEW_LEFT_OUT /**< the others go on without it: it has to end with its tasks */
};

/** All that a view needs of its surroundings. Functions may call the view again. */
struct view_env {
    void *arg;                    /**< handed to every function below */
    uint32_t self, nnodes, arity; /**< of the own step; arity at least 2 */
    struct timers *timers;        /**< borrowed */
    /** Sends a frame to a server of the step: FRAME_VIEW in order and once, or never again, and
     * then this server is told so by view_accuse(); FRAME_OUTSIDE to one that may have been given
     * up, if that can be. @param body its bytes are taken */
    void (*send)(void *arg, uint32_t node, enum frame_type type, struct wire_out *body);
    /** Takes what a server, this one perhaps, has said to all. @param text borrowed */
    void (*hear)(void *arg, uint32_t origin, const void *text, size_t len);
    /** Answers what server @p origin, this one perhaps, asks all. It must not call the view.
     * @param text borrowed @param out all zero; its bytes are taken @return the answer's status */
    int32_t (*answer)(void *arg, uint32_t origin, const void *text, size_t len,
                      struct wire_out *out);
    /** All servers have heard more: view_settled() says how much. */
    void (*settled)(void *arg);
    /** A new view is entered. @param lost,left servers that are not in it any more: left out, or
     * let go; canonical, borrowed */
    void (*changed)(void *arg, const struct ranges *lost, const struct ranges *left);
    /** This server is in no view any more. Called once; nothing is heard afterwards. @param why one
     * clause */
    void (*over)(void *arg, enum view_over how, const char *why);
};

struct view;

/** @return NULL when out of memory; @p env is copied */
struct view *view_new(const struct view_env *env);

/** NULL is fine. */
void view_free(struct view *view);

/** Takes the body of a FRAME_VIEW or FRAME_OUTSIDE of server @p from of the own step. */
void view_take(struct view *view, uint32_t from, const void *body, size_t len);

/** Server @p node cannot be reached from here, for good. @param left it has ended in order */
void view_accuse(struct view *view, uint32_t node, bool left);

/** Says something to all servers, this one as well; it is heard once, unless this server is lost
 * before. @param text borrowed */
void view_say(struct view *view, const void *text, size_t len);

/** @return bytes of what this server has said and not heard yet, and what it takes to keep them.
 * Some server does not take them as fast; a server that says 64 MiB more than is heard is left out
 */
size_t view_unheard(const struct view *view);

/** Asks all servers of the view, this one as well. @p done is called once, perhaps at once: with
 * the answers of all, also when the view changes meanwhile; after @p ms with those that have come;
 * or with none when this server asks no more. @param text borrowed @param ms 0: no deadline */
void view_gather(struct view *view, const void *text, size_t len, uint32_t ms,
                 view_answers_fn *done, void *arg);

/** This server asks no more: what it waits for is ended. */
void view_mute(struct view *view);

/** This server wants to leave: over() says when it may. */
void view_leave(struct view *view);

/** A frame of another kind has come from server @p node of the own step.
 * @return whether it counts; if not, that server is told that it is not in the view */
bool view_admits(struct view *view, uint32_t node);

/** @return whether server @p node is in the view */
bool view_has(const struct view *view, uint32_t node);

/** @return the head: the lowest server of the view */
uint32_t view_head(const struct view *view);

/** @return the server that hears what this one alone knows, before this one may leave: that above
 * it in the tree; for the head, the next one; itself when it is alone */
uint32_t view_heir(const struct view *view);

/** @return how many words this server has heard, ever */
uint64_t view_heard(const struct view *view);

/** @return how many of these, from the first on, all servers of the view have heard */
uint64_t view_settled(const struct view *view);

/** @return what waits here: words that not all have heard, changes; 0 at rest. For tests */
uint32_t view_pending(const struct view *view);
