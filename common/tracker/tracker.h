/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A tracker: what one server knows of one signature. Private to common/tracker.
 */
#ifndef MUSTER_TRACKER_TRACKER_H
#define MUSTER_TRACKER_TRACKER_H

#include "common/tracker/engine.h"
#include "common/tracker/places.h"
#include "common/tracker/ranges.h"
#include "common/tracker/timers.h"
#include "common/tracker/tree.h"
#include "common/transport/frame.h"

#include <sys/queue.h>

/** Where the current operation of a signature stands on this server. */
enum tracker_state {
    TRACKER_IDLE,   /**< no operation; kept for the record of a failed one */
    TRACKER_EARLY,  /**< remote contributions are here, the local call is not */
    TRACKER_GATHER, /**< the local call is here, contributions from below are missing */
    TRACKER_SENT,   /**< all of our subtree went up; the release is awaited */
    TRACKER_DOUBT,  /**< who would have brought it is lost: others are asked what they know */
    TRACKER_STATES,
};

/** What can happen to a tracker. */
enum tracker_event {
    TRACKER_CALL,     /**< the local call */
    TRACKER_CHILD,    /**< a contribution from below that is new */
    TRACKER_COMPLETE, /**< the whole subtree has contributed */
    TRACKER_END,      /**< decided here or released from above */
    TRACKER_AGAIN,    /**< what was said counts no more and must be said again */
    TRACKER_LOSS,     /**< a server is lost that would have brought the release */
    TRACKER_EVENTS,
};

/** What a child has said of its subtree. */
enum child_said {
    CHILD_NOTHING,
    CHILD_PART, /**< who is missing there */
    CHILD_ALL,  /**< everybody there has contributed */
};

/** What came from a server that is directly below. The latest word counts, until it is all. */
struct tracker_child {
    uint32_t slot;
    enum child_said said;
    uint64_t call;         /**< number of the call that the child's server has last said; 0: none */
    uint64_t number;       /**< the same as it was when all was said: of its contribution */
    uint64_t over;         /**< number of its call in the last operation that has ended here */
    uint32_t flags;        /**< of all in its subtree: ENGINE_WANT_… */
    uint32_t nmissing;     /**< of a part: servers whose contribution is missing there */
    struct ranges missing; /**< their slots, perhaps not all */
    uint32_t nentries;     /**< contributions of its subtree that bring something */
    void *entries;         /**< their bytes; owned */
    size_t len;
};

/** A failure that a call will get which was not made yet. */
struct tracker_debt {
    uint64_t generation; /**< 0: given up without the root's word */
    int32_t status;
    struct procset gone;
};

/** The root's word on a failure, for others who ask for it. */
struct tracker_past {
    uint64_t generation;
    struct tracker_debt debt;
};

enum { TRACKER_PAST = 4 };

/** What is remembered of a signature's failures. */
struct tracker_failure {
    uint64_t generation;       /**< the root's number of the last one; 0: none is remembered */
    uint64_t at;               /**< when it was learnt, ms */
    bool given_up;             /**< one ended here without the root's word, which may still come */
    uint32_t nowed;            /**< local calls that were not made yet: they are answered at once */
    struct tracker_debt *owed; /**< with these, in this order */
    struct tracker_past past[TRACKER_PAST]; /**< the last ones, the oldest first */
    uint32_t npast;
};

/** A result on its way. */
struct tracker_release {
    uint64_t generation; /**< the root's number of its decision; 0: it is a failure, and not the
                            root's word */
    uint64_t op;         /**< the root's number of its assembly; 0: nobody was added */
    const struct procset *added;
    struct engine_result result;
    const void *raw; /**< the bytes of release_write() as they came, borrowed; NULL: none came */
    size_t len;      /**< of raw */
    struct shared_bytes *bytes; /**< the same, made when they are needed; release_end() */
};

/** A release that came, and what it points to. */
struct release_frame {
    struct tracker_release release;
    const void *sig; /**< borrowed from the frame */
    size_t siglen;
    struct procset added, gone, members;
    struct engine_entry *entries;
};

struct tracker {
    TAILQ_ENTRY(tracker) all;
    LIST_ENTRY(tracker) bucket;
    void *sig; /**< owned copy */
    size_t siglen;
    uint64_t hash;
    struct timer due;       /**< no later than the first of the times below: tracker_due() */
    uint64_t looked;        /**< the last round of tracker_each() that it was in */
    struct signature parts; /**< sig, taken apart */

    struct places places; /**< slot → server */
    struct tree tree;
    uint32_t self, parent; /**< slots; the root's parent is TREE_NONE */
    uint32_t nchildren;
    struct tracker_child *children;

    enum tracker_state state;
    bool own;           /**< our own contribution is here */
    int32_t own_status; /**< it is a failure, with that status; 0: it is none */
    int32_t status;     /**< the first failure of ours and below us; 0: there is none */
    bool news;          /**< there is something here that the parent was not told */
    bool urgent;        /**< it is to be told at once */
    struct ranges lost; /**< slots of servers that are lost to the current operation, as is known
                           here or by another's word */
    struct engine_call *call;  /**< the call that is served */
    struct engine_call *queue; /**< calls that wait for their turn */
    uint64_t number;           /**< our number of the current call */
    uint64_t floor;            /**< a success of it has a higher generation than this */
    uint32_t timeout;          /**< the shortest one asked for, seconds; 0: none */
    uint64_t opened;           /**< when the current operation was first heard of, ms */
    uint64_t since;            /**< when the state began, ms */
    uint64_t deadline;         /**< ms; 0: none */
    uint64_t report;           /**< next stall report, ms; 0: none */
    uint64_t flush;   /**< when what is here goes up although more is missing, and what is missing
                         is asked for, or whether the parent is still there; 0: never */
    uint64_t say;     /**< when the parent is told the news, ms; 0: not, or with flush */
    bool flushed;     /**< the parent was told a part: it is told what changes, too */
    bool again;       /**< the current operation is a later try (tries.c) */
    uint64_t settle;  /**< when its call ends with the failure of a try that it has skipped, ms; 0:
                         never */
    uint64_t tried;   /**< engine_call::op of the last call that was made here; 0: none */
    uint32_t asked;   /**< in doubt: lost servers when the others were asked; 0: not yet */
    uint32_t *doubts; /**< by slot: it does not know the result, and this many lost servers; 0:
                         unknown; NULL: nobody was asked */
    struct procset gone;       /**< processes of the current operation that are known to be lost */
    struct assembly *assembly; /**< at the root: added members are awaited; NULL: none are */
    struct tracker_failure failure;
};

TAILQ_HEAD(tracker_list, tracker);
LIST_HEAD(tracker_bucket, tracker);

enum {
    ENGINE_BUCKETS = 64,             /**< at first */
    ENGINE_FLUSH_MS = 500,           /**< so that the root can name single servers */
    ENGINE_ASK_MS = 5000,            /**< between two questions for what is missing */
    ENGINE_GRACE_MS = 5000,          /**< after the deadline, for the root's word to arrive */
    ENGINE_STRAGGLER_MS = 600000,    /**< a contribution may be this late */
    ENGINE_REMEMBER_MS = 6 * 600000, /**< must be longer than that: see is_straggler() */
};

TAILQ_HEAD(assembly_list, assembly);
TAILQ_HEAD(assembly_failures, assembly_failure);
TAILQ_HEAD(waiting_list, waiting);
TAILQ_HEAD(claim_list, claim);
TAILQ_HEAD(quit_list, quit);
TAILQ_HEAD(cancelled_list, cancelled);
TAILQ_HEAD(decided_list, decided);

/** A question (WANTED) that was not answered, and waits for a participant here to end. */
struct wanted {
    void *body; /**< owned; NULL: there is none */
    size_t len;
    uint32_t from;
    uint64_t at; /**< ms */
};

enum { ENGINE_WANTED_MAX = 16 /**< the oldest go first */ };

struct engine {
    struct engine_env env;
    struct tree_shape shape; /**< of the step's servers; n is 0: k-ary */
    struct tree whole;       /**< all of these */
    struct tracker_list all;
    struct timers timers;           /**< tracker::due */
    struct tracker_bucket *buckets; /**< owned; by hash */
    uint32_t nbuckets;
    uint32_t count;
    bool retries; /**< there has been a later try of some operation */
    struct engine_counts counts;
    uint64_t numbers, generations, next_id;
    struct wanted wanted[ENGINE_WANTED_MAX]; /**< wanted.c */
    struct ranges lost, left;                /**< servers that are gone, by how */
    uint64_t looks;                          /**< rounds of tracker_each() */
    struct assembly_list assemblies;         /**< assembly.c: what is decided here */
    struct assembly_failures failures;       /**< home.c: bootstraps that failed */
    struct waiting_list joins, leads;        /**< member.c, leader.c: local calls */
    struct claim_list claims;                /**< member.c: who is awaited, and by whom */
    struct quit_list quits;                  /**< quit.c: members' calls that ended unclaimed */
    struct cancelled_list cancelled;         /**< cancel.c: what was ended before it was known */
    struct decided_list decided;             /**< decided.c: results, the oldest first */
    uint32_t ndecided;
    size_t decided_bytes;
    bool closing;
};

/* tracker.c: the table of states, and what every operation needs */

/** Moves along the table; a missing row is an error of ours: it is logged and refused. */
bool tracker_move(struct engine *engine, struct tracker *t, enum tracker_event event);
const char *tracker_state_name(enum tracker_state state);
/** @return the tracker of a signature, made when there was none; NULL: not a signature whose
 * participants include this server */
struct tracker *tracker_get(struct engine *engine, const void *sig, size_t len);
struct tracker *tracker_find(struct engine *engine, const void *sig, size_t len);
void tracker_free(struct engine *engine, struct tracker *t);
/** Does something once to each tracker that is there; any tracker may be freed by that. */
void tracker_each(struct engine *engine,
                  void (*visit)(struct engine *engine, struct tracker *t, uint64_t arg),
                  uint64_t arg);
/** @return when something is due, ms, or UINT64_MAX */
uint64_t tracker_due_at(const struct tracker *t);
/** One of its times may be earlier now. */
void tracker_due(struct engine *engine, struct tracker *t);
/** Opens the current operation. */
void tracker_open(struct engine *engine, struct tracker *t);
/** Serves @p call now; none is being served. */
void tracker_start(struct engine *engine, struct tracker *t, struct engine_call *call);
/** Ends the current operation here: answers the local call or owes it, forgets the rest. */
void tracker_end(struct engine *engine, struct tracker *t, const struct engine_result *result);
/** Takes the earlier of two deadlines.
 * @param timeout seconds asked for; 0: none
 * @param left    milliseconds of them that are left */
void tracker_arm(struct engine *engine, struct tracker *t, uint32_t timeout, uint64_t left);
/** Ends the current operation here and below without the root's word. */
void tracker_give_up(struct engine *engine, struct tracker *t, int32_t status);
/** Forgets what came from below and says again what is ours; those below were told to, too. */
void tracker_again(struct engine *engine, struct tracker *t);
/** Notes what the last failure was, unless it is not the root's word. */
void tracker_remember(struct tracker *t, const struct engine_result *result);
/** @return the first failure that is remembered after the generation @p known, or NULL */
const struct tracker_past *tracker_past_after(const struct tracker *t, uint64_t known);
/** The next local call will be answered with this failure, after those owed before. */
void tracker_owe(struct tracker *t, const struct engine_result *result);
/** @return whether a call is owed; then it is owed no more, and the failure is in @p debt, whose
 * set the caller frees */
bool tracker_owed(struct tracker *t, struct tracker_debt *debt);
/** Answers @p call with what was owed; frees the set. */
void tracker_pay(struct engine_call *call, struct tracker_debt *debt);
/** @return why an operation of that kind fails that needs server @p node, which is gone */
int32_t tracker_loss(const struct engine *engine, enum coll_kind kind, uint32_t node);
/** The same of the server in @p slot. */
int32_t tracker_slot_loss(const struct engine *engine, const struct tracker *t, uint32_t slot);
/** @return whether @p status is one of these */
bool tracker_is_loss(const struct engine *engine, const struct tracker *t, int32_t status);
/** Notes that the operation's processes on server @p node are lost. */
void tracker_gone(struct engine *engine, struct tracker *t, uint32_t node);
/** Notes which processes of this server have ended. */
void tracker_gone_here(struct engine *engine, struct tracker *t);
/** Moves them to @p gone, for a failure's result. @return @p gone, or NULL: none are known */
const struct procset *tracker_take_gone(struct tracker *t, struct procset *gone);
/** Frees a tracker that has no operation and remembers nothing. */
void tracker_tidy(struct engine *engine, struct tracker *t);
/** Notes in an operation that the server in @p slot is lost, and with it what is below it when that
 * is ours to report. */
void tracker_lose(struct engine *engine, struct tracker *t, uint32_t slot);
/** Whether the server in @p slot is lost, as far as is known in this operation. */
bool tracker_slot_lost(const struct engine *engine, const struct tracker *t, uint32_t slot);
/** Contributes the failure of our own participants, who will not call any more. */
void tracker_local_loss(struct engine *engine, struct tracker *t);
/** @return the slot of server @p node, or TREE_NONE */
uint32_t tracker_slot_of(const struct tracker *t, uint32_t node);
/** @return the server in @p slot */
uint32_t tracker_node(const struct tracker *t, uint32_t slot);
/** @return the child in @p slot, or NULL: the server there is not directly below us */
struct tracker_child *tracker_child_of(const struct tracker *t, uint32_t slot);
/** Whether all of our subtree has contributed. */
bool tracker_is_complete(const struct tracker *t);
/** Notes a failure, unless another one was before. */
void tracker_fail(struct tracker *t, int32_t status);
/** Finds out who is missing here: whose contribution is awaited.
 * @param slots all zero; filled with those that are known; ranges_free() it
 * @return how many there are */
uint32_t tracker_awaited(const struct tracker *t, struct ranges *slots);
/** @return the servers in these slots, by free(); NULL, and none: out of memory */
uint32_t *tracker_nodes(const struct tracker *t, const struct ranges *slots, uint32_t *n);
/** Finds out which of its servers are lost, as far as is known. @param slots as above */
void tracker_lost_slots(const struct engine *engine, const struct tracker *t, struct ranges *slots);
/** @return whether a success with that generation is of the call that is being served, as far as
 * can be told when it does not name the call */
bool tracker_succeeds(const struct tracker *t, uint64_t generation);

/** @return what servers with the same tree of @p t have in common: the arity, or the shape's id */
uint32_t tracker_tree_id(const struct engine *engine, const struct tracker *t);
/** Writes the line about who is missing: "group "x" construct: 3 of 8 servers missing: …". */
void tracker_missing(struct engine *engine, struct tracker *t, char *buf, size_t cap);

/* entries.c: contributions as all frames have them */

enum { ENTRY_BYTES = 12 /* at least */ };

/** Appends one entry. */
void entry_put(struct wire_out *out, const struct engine_entry *entry);
/** Reads all entries before any is used: a frame counts as a whole or not at all.
 * @param count what wire_get_count() gave @param slots the slots are less than that
 * @return them, borrowing from the bytes; NULL: malformed, or something is left over */
struct engine_entry *entries_get(struct wire_in *in, uint32_t count, uint32_t slots);
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
 * @param frame all zero @return whether it makes sense by itself */
bool release_read(struct release_frame *frame, const void *raw, size_t len);
void release_frame_free(struct release_frame *frame);

/* rollup.c: up and down the tree */

/** Takes our own contribution, unless it is here. @param status 0, or why it is a failure */
void rollup_own(struct tracker *t, int32_t status);
/** @return the contributions of our subtree that bring something, borrowed from the call and the
 * children, by free(); NULL: out of memory */
struct engine_entry *rollup_entries(const struct tracker *t, uint32_t more, uint32_t *n);
/** Goes as far as the contributions allow: sends up, or decides at the root. */
void rollup_progress(struct engine *engine, struct tracker *t);
/** Decides at the root: releases everybody and ends. @p status 0 needs every contribution. */
void rollup_decide(struct engine *engine, struct tracker *t, int32_t status);
/** Adds the members that the contributions add to @p added. @return 0, or -1: they make no sense */
int rollup_added(const struct tracker *t, struct procset *added);
/** Tells the children whose contribution is missing that it is awaited: one that is gone is noticed
 * by that, and one whose participants have ended says so. */
void rollup_ask(struct engine *engine, struct tracker *t);
/** Passes a question from above on to all children, of an operation that is not known here.
 * @param known the generation that it said */
void rollup_ask_on(struct engine *engine, const struct tracker *t, uint64_t known);
/** Asks the parent for nothing: it answers nothing, but one that is gone is noticed by that. */
void rollup_ping(struct engine *engine, struct tracker *t);
/** Says to the parent what stands here, when there is news. */
void rollup_up(struct engine *engine, struct tracker *t);
/** Has the root fail the operation, since a server does not fit together with this one. Says so to
 * the root itself, which is the same in every tree; @p t may be gone afterwards.
 * @param known the generation that the refused contribution said */
void rollup_refuse(struct engine *engine, struct tracker *t, uint64_t known);
/** Passes a result on to the children; the refusal of servers that do not fit together, from the
 * root to all. @param current whether it is for the current operation */
void rollup_down(struct engine *engine, struct tracker *t, struct tracker_release *release,
                 bool current);

/** Sends the server in @p slot a release. @param number of the receiver's call; 0: it said none */
void rollup_release(struct engine *engine, const struct tracker *t, uint32_t slot,
                    struct tracker_release *release, uint64_t number);
/** Sends the server in @p slot a frame about the operation. Frees @p out.
 * @param body as in engine_env::send */
void rollup_send(struct engine *engine, const struct tracker *t, uint32_t slot,
                 struct wire_out *out, struct shared_bytes *body);

/** Tells the server in @p slot of a failure. */
void rollup_tell(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct tracker_past *past);

/** Asks @p slot for its contribution. */
void rollup_want(struct engine *engine, const struct tracker *t, uint32_t slot);

/* tries.c: several tries of one operation, each with less participants */

/** @param later its signature is that of a later try @param recent whether only failures count
 * after which a contribution may still be late
 * @return the generation of the last failure for good of a try before, or 0 */
uint64_t tries_known(const struct engine *engine, const struct tracker *later, bool recent);
/** Tells server @p node of recent failures for good of tries before, from the generation after
 * @p known on. */
void tries_tell(struct engine *engine, const struct tracker *later, uint32_t node, uint64_t known);
/** @return the tracker of a try that @p call has skipped, and whose failure for good is owed, the
 * first of several; or NULL: none is, or one of the later try itself is older */
struct tracker *tries_owing(const struct engine *engine, const struct tracker *later,
                            const struct engine_call *call);
/** A failure of @p t has been learnt: when it is for good it ends later tries here, at once or, by
 * tracker::settle, soon. Other trackers may be gone afterwards. */
void tries_end(struct engine *engine, struct tracker *t, const struct engine_result *result);
/** The same of a try that was given up here before. @return the later try whose call here has to be
 * answered with it, by tries_answer(); or NULL */
struct tracker *tries_end_given_up(struct engine *engine, struct tracker *t,
                                   const struct engine_result *result);
/** Answers the call of a later try with the failure of an earlier one. */
void tries_answer(struct engine *engine, struct tracker *own, const struct engine_result *result);
/** It is time to answer the call of a later try with the failure of one that it has skipped. */
void tries_settle(struct engine *engine, struct tracker *own);

/* doubt.c: what may have succeeded without our knowing */

/** Asks others for the result when who would have brought it is lost, or fails the operation once
 * nobody can know one. @p t may be gone afterwards. */
void doubt_progress(struct engine *engine, struct tracker *t);
/** Asks once more. */
void doubt_ask(struct engine *engine, struct tracker *t);
/** Writes the line about who has not answered. */
void doubt_missing(struct engine *engine, const struct tracker *t, char *buf, size_t cap);

/* decided.c: results that others may ask for */

struct decided;
/** Keeps a success. */
struct decided *decided_keep(struct engine *engine, const struct tracker *t,
                             struct tracker_release *release);
/** @return the last success of a signature, or NULL */
struct decided *decided_find(const struct engine *engine, const void *sig, size_t siglen);
/** @return the root's number of its assembly */
uint64_t decided_op(const struct decided *d);
/** @return the root's number of the decision */
uint64_t decided_generation(const struct decided *d);
/** Sends it to the server in @p slot as a release. @param number of the call that it is of; 0: the
 * receiver finds that out */
void decided_release(struct engine *engine, const struct decided *d, const struct tracker *t,
                     uint32_t slot, uint64_t number);
/** Sends it to server @p node as an outcome. */
void decided_outcome(struct engine *engine, const struct decided *d, uint32_t node);
/** Tells servers of added members of it, once all in @p t's tree have said that they have it.
 * @param nodes taken over */
void decided_tell(struct engine *engine, struct decided *d, const struct tracker *t,
                  uint32_t *nodes, uint32_t n);
/** Server @p node is lost, or has it. */
void decided_has(struct engine *engine, struct decided *d, uint32_t node);
void decided_lost(struct engine *engine, uint32_t node);
uint64_t decided_next(const struct engine *engine);
bool decided_tick(struct engine *engine, uint64_t now);
void decided_close(struct engine *engine);

/* cancel.c: constructs that ended here before they were handed up */

/** Fails our part of @p t when it is one that was cancelled.
 * @param local a local call of @p t comes: what was cancelled came before it, also when another
 *              call is still being served
 * @return whether it was; then @p t may be gone */
bool cancel_meets(struct engine *engine, struct tracker *t, bool local);
/** @return the number of those that are remembered */
uint32_t cancel_count(const struct engine *engine);
/** @return when a cancelled construct is forgotten, ms, or UINT64_MAX */
uint64_t cancel_next(const struct engine *engine);
/** Forgets one that is due. @return whether there was one */
bool cancel_tick(struct engine *engine, uint64_t now);
void cancel_close(struct engine *engine);

/** Reports that something waits. @param since when it began, ms @param text for whom */
void engine_stalled(const struct engine *engine, uint64_t since, uint64_t now, const char *text);

/* wanted.c: what others wait for, and nobody here has called */

/** Keeps the body of a FRAME_WANTED of server @p from. */
void wanted_keep(struct engine *engine, uint32_t from, const void *body, size_t len);
/** A call of that signature is made here. */
void wanted_forget(struct engine *engine, const void *sig, size_t siglen);
/** A participant of this server has ended: takes what is kept for questions that come now. */
void wanted_local_loss(struct engine *engine);
void wanted_close(struct engine *engine);

#endif
