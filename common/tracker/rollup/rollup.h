/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One operation over known participants: what goes up, the decision, what goes down. The face of
 * the engine's layer "rollup", for those above it.
 */
#pragma once

#include "common/tracker/rollup/tracker.h"

/* entries.c: contributions as all frames have them */

enum { ENTRY_BYTES = 12 /* besides its data and added members */ };

/** Appends entries. */
void entries_put(struct wire_out *out, const struct engine_entry *entries, uint32_t n);
/** Reads all entries before any is used: a frame counts as a whole or not at all.
 * @param slots the slots are less than that @param n how many there are; 0 with NULL
 * @return them, borrowing from the bytes; NULL: malformed, or something is left over */
struct engine_entry *entries_get(struct wire_in *in, uint32_t slots, uint32_t *n);
/** Adds the members that an entry adds to @p set. @return 0, or -1 when that makes no sense */
int entry_added(const struct engine_entry *entry, struct procset *set);
/** Has server @p node know where @p set's processes are before the next frame. */
void engine_acquaint(const struct engine *engine, uint32_t node, const struct procset *set);
/** The same for the members that an entry adds. */
void entry_acquaint(const struct engine *engine, uint32_t node, const struct engine_entry *entry);

/* release.c: results as all frames have them */

/** @return the bytes of a result, made when they are not there; the release's. NULL: out of memory
 * @param sig of the operation */
struct shared_bytes *release_bytes(struct tracker_release *release, const void *sig, size_t siglen);
/** Frees the bytes. */
void release_end(struct tracker_release *release);
/** Reads a result that came. release_frame_free() it also after an error.
 * @param frame all zero @param in from its begin to its end
 * @param whole as in engine_take_shared() @return whether it makes sense by itself */
bool release_read(struct release_frame *frame, struct wire_in *in, struct shared_bytes *whole);
void release_frame_free(struct release_frame *frame);
/** Unites the signature's members and @p added. @return false: no member was added */
bool release_members(const struct signature *sig, const struct procset *added,
                     struct procset *members);

/* decided.c: results that others may ask for */

/** Tells server @p node of a result. @param bytes as in release_bytes() */
typedef void decided_teller(struct engine *engine, uint32_t node, struct shared_bytes *bytes);

/** A success that is kept. */
struct decided {
    TAILQ_ENTRY(decided) all;
    struct timer due;           /**< to be forgotten */
    struct shared_bytes *bytes; /**< of the release */
    const void *sig;            /**< borrowed from them */
    size_t siglen;
    uint64_t generation;    /**< the root's number of the decision */
    uint64_t op;            /**< the root's number of its assembly */
    uint32_t nnodes, nwait; /**< where it was decided, while servers are to be told: */
    decided_teller *tell;
    uint32_t *nodes; /**< these; owned */
    uint32_t *wait;  /**< servers that have not said yet that they have it; owned */
};

/** Keeps a success. */
struct decided *decided_keep(struct engine *engine, const struct tracker *t,
                             struct tracker_release *release);
/** @return the last success of a signature, or NULL */
struct decided *decided_find(const struct engine *engine, const void *sig, size_t siglen);
/** Tells servers of added members of it, once all in @p t's tree have said that they have it.
 * @param nodes taken over @param tell tells one of them */
void decided_tell(struct engine *engine, struct decided *d, const struct tracker *t,
                  uint32_t *nodes, uint32_t n, decided_teller *tell);
/** Takes a FRAME_HAVE. */
void decided_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** A server is lost: it is not awaited any more. */
void decided_lost(struct engine *engine, uint32_t node);
void decided_close(struct engine *engine);
/** Forgets the successes of operations in which processes of a namespace took part. */
void decided_forget(struct engine *engine, const char *nspace);

/* send.c: frames about an operation to servers of its tree */

/** Sends the server in @p slot a frame about the operation, and before it where the participants
 * are. Frees @p out.
 * @param body as in engine_env::send */
void rollup_send(struct engine *engine, const struct tracker *t, uint32_t slot,
                 struct wire_out *out, struct shared_bytes *body);
/** Sends the server in @p slot a success that is kept.
 * @param number of the receiver's call; 0: it said none */
void rollup_kept(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct decided *d, uint64_t number);
/** Tells the server in @p slot of a failure. @param number as above */
void rollup_tell(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct tracker_past *past, uint64_t number);
/** Passes a result on to the children; the refusal of servers that do not fit together, from the
 * root to all. @param current whether it is for the current operation */
void rollup_down(struct engine *engine, struct tracker *t, struct tracker_release *release,
                 bool current);
/** Tells servers to which we hand pieces, and which rollup_down() does not reach, of a loss: no
 * more pieces come to us. */
void rollup_takers(struct engine *engine, struct tracker *t, struct tracker_release *release);
/** Asks @p slot for its contribution. */
void rollup_want(struct engine *engine, const struct tracker *t, uint32_t slot);
/** Tells the children whose contribution is missing that it is awaited: so a child that is gone is
 * noticed, and a child whose participants have ended says so. */
void rollup_ask(struct engine *engine, struct tracker *t);
/** Passes a question from above on to all children, of an operation that is not known here.
 * @param known the generation that it said @param later_try whether it is about a later try */
void rollup_ask_on(struct engine *engine, const struct tracker *t, uint64_t known, bool later_try);

/* tries.c: what is known of earlier tries of one operation, each with less participants */

/** Whether @p later can be a later try of what was tried under @p t's signature.
 * @param gone with it: the participants that are gone; then no other may be missing either */
bool tries_is_later(const struct tracker *later, const struct tracker *t,
                    const struct procset *gone);
/** Whether an operation ends only when all servers have contributed, although there may be a
 * failure: that of a call. So all are in step afterwards. A loss, servers that do not fit together,
 * and, but in a later try, a deadline and a server that leaves end it at once. */
bool failure_waits(const struct engine *engine, const struct tracker *t);
/** @return the first failure for good that is remembered after the generation @p known, or NULL */
const struct tracker_past *tries_for_good_after(const struct engine *engine,
                                                const struct tracker *t, uint64_t known);
/** @param lost all zero; gets the participants of @p t without which a call here has gone on;
 * procset_free() it
 * @return whether there are any: then no call here tries @p t, unless it is a first try */
bool tries_names_lost(const struct engine *engine, const struct tracker *t, struct procset *lost);
/** @param later its signature is that of a later try @param recent whether only failures count
 * after which a contribution may still be late
 * @return the generation of the last failure for good of a try before, or 0 */
uint64_t tries_known(const struct engine *engine, const struct tracker *later, bool recent);
/** Tells server @p node of recent failures for good of tries before, from the generation after
 * @p known on. */
void tries_tell(struct engine *engine, const struct tracker *later, uint32_t node, uint64_t known);

/* contribution.c: what is said upwards */

/** Takes our own contribution, unless it is here. @param status 0, or why it is a failure */
void rollup_own(struct tracker *t, int32_t status);
/** @param more places that are left free behind them
 * @return the contributions of our subtree that bring something, borrowed from the call and the
 * children, by free(); NULL: out of memory */
struct engine_entry *rollup_entries(const struct tracker *t, uint32_t more, uint32_t *n);
/** @return what the calls of our subtree ask for: ENGINE_WANT_… */
uint32_t rollup_flags(const struct tracker *t);
/** Adds the members that the contributions add to @p added. @return 0, or -1: they make no sense */
int rollup_added(const struct tracker *t, struct procset *added);
/** Says to the parent what stands here, when there is news. */
void rollup_up(struct engine *engine, struct tracker *t);
/** Counts who was last, at the root, when all servers have contributed. */
void rollup_note_last(struct engine *engine, const struct tracker *t);
/** Says to the root itself that a server cannot take part. @param known the last failure's
 * generation */
void rollup_tell_root(struct engine *engine, const struct tracker *t, int32_t status,
                      uint64_t known);

/* piece.c: data of a large result, in pieces */

/** A FRAME_PIECE that came. */
struct piece {
    const void *sig; /**< borrowed from the frame */
    size_t siglen;
    uint64_t generation;          /**< of the decision */
    struct engine_entry *entries; /**< ascending by slot; owned */
    uint32_t n;
};

/** Whether a success's data go in pieces. */
bool pieces_are_due(const struct engine *engine, const struct tracker *t,
                    const struct engine_entry *entries, uint32_t n);
/** Cuts the data of a success into its pieces. @return whether there was memory */
bool pieces_cut(const struct engine *engine, const struct tracker *t,
                struct tracker_release *release);
/** Adds a piece. @param bytes its body; held @return whether there was memory */
bool pieces_add(struct pieces *pieces, struct shared_bytes *bytes, const struct piece *piece);
/** @return the contributions of all pieces, borrowing from them, by free(); NULL: out of memory */
struct engine_entry *pieces_entries(const struct pieces *pieces);
/** Reads a piece. @return whether it makes sense by itself; then free piece->entries */
bool piece_read(const void *body, size_t len, struct piece *piece);
/** Hands a piece on. @param bytes its body */
void piece_pass(struct engine *engine, const struct tracker *t, struct shared_bytes *bytes);
/** If our contribution will make a large result, sees to it that the server that hands it to us has
 * a way to us by then. */
void pieces_expect(struct engine *engine, const struct tracker *t);

/* result.c: what a success brings */

/** Writes a success. Afterwards nothing of the result is in what came from the children, which is
 * freed before the call is answered. @return whether there was memory */
bool result_write(struct engine *engine, const struct tracker *t, const struct rollup_more *more,
                  struct tracker_release *release, struct release_frame *frame);

/* rollup.c: one operation, from its start to its end */

/** Opens the current operation. */
void tracker_open(struct engine *engine, struct tracker *t);
/** Serves @p call now; none is being served. */
void tracker_start(struct engine *engine, struct tracker *t, struct engine_call *call);
/** Contributes the failure of our own participants, when they will not call any more: one of them
 * has ended, or their call is of a later try. */
void tracker_local_loss(struct engine *engine, struct tracker *t);
/** Of an operation that a server above has asked for, and of which nothing is known here: says so
 * if it cannot come about, as participants or servers below are lost, or have gone on to a later
 * try.
 * @return whether it has; @p t may be gone */
bool rollup_refute(struct engine *engine, struct tracker *t);
/** Looks, in each operation that is under way or that others have asked for, whether it can still
 * come about. */
void rollup_local_loss(struct engine *engine);
/** Takes the earlier of two deadlines.
 * @param timeout seconds asked for; 0: none
 * @param left    milliseconds of them that are left */
void tracker_arm(struct engine *engine, struct tracker *t, uint32_t timeout, uint64_t left);
/** @return whether a success with that generation is of the call that is being served, as far as
 * can be told when it does not name the call */
bool tracker_succeeds(const struct tracker *t, uint64_t generation);
/** Goes as far as the contributions allow: sends up, or decides at the root. */
void rollup_progress(struct engine *engine, struct tracker *t);
/** Ends the operation by a success whose data were awaited, once all of them are here. */
void rollup_data(struct engine *engine, struct tracker *t);
/** Decides at the root: releases all and ends. @p status 0 needs every contribution. */
void rollup_decide(struct engine *engine, struct tracker *t, int32_t status);
/** Has the root fail the operation, since a server does not fit together with this one. Says so to
 * the root itself, which is the same in every tree; @p t may be gone afterwards.
 * @param known the generation that the refused contribution said */
void rollup_refuse(struct engine *engine, struct tracker *t, uint64_t known);
/** Ends the current operation here and below without the root's word. */
void tracker_give_up(struct engine *engine, struct tracker *t, int32_t status);
/** Forgets what came from below and says again what is ours; those below were told to, too. */
void tracker_restart(struct engine *engine, struct tracker *t);
/** Ends the current operation here: answers the local call, forgets the rest. */
void tracker_end(struct engine *engine, struct tracker *t, const struct engine_result *result);
