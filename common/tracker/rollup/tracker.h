/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A tracker: what one server knows of one signature. Private to the engine's layers.
 *
 * `struct engine` stands here because every layer hands it on. What an upper layer keeps in it is
 * opaque to this one, and what this layer has to say upwards goes through struct engine_hooks.
 */
#pragma once

#include "common/tracker/engine.h"
#include "common/tracker/values/places.h"
#include "common/tracker/values/ranges.h"
#include "common/tracker/values/tree.h"
#include "common/transport/frame.h"

#include <sys/queue.h>

/** Where the current operation of a signature stands on this server. */
enum tracker_state {
    TRACKER_IDLE,   /**< no operation; kept for the record of a failed one, or for a question */
    TRACKER_EARLY,  /**< remote contributions are here, the local call is not */
    TRACKER_GATHER, /**< the local call is here, contributions from below are missing */
    TRACKER_SENT,   /**< all of our subtree went up; the release is awaited */
    TRACKER_DOUBT,  /**< the server that would have brought it is lost: others are asked */
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
    CHILD_PART, /**< which servers are missing there */
    CHILD_ALL,  /**< all servers there have contributed */
};

/** What there is here that the parent was not told. */
enum tracker_news {
    NEWS_NONE,
    NEWS_SOME,   /**< it is told when it is its time: tracker::say, tracker::flush */
    NEWS_URGENT, /**< it is told at once */
};

/** The last of some servers to contribute to an operation. */
struct tracker_who {
    uint32_t slot;
    uint32_t us; /**< after the last but one; TRACKER_ALONE: there is no other one */
};

#define TRACKER_ALONE UINT32_MAX

/** What came from a server that is directly below. The latest word counts, until it is all. */
struct tracker_child {
    uint32_t slot;
    enum child_said said;
    uint64_t call;   /**< number of the call that the child's server has last said; 0: none */
    uint64_t number; /**< the same as it was when all was said: of its contribution */
    uint64_t over;   /**< number of its call in the last operation that has ended here */
    uint64_t came;   /**< when all was said, µs */
    struct tracker_who last;      /**< of its subtree, once all was said */
    uint32_t flags;               /**< of all in its subtree: ENGINE_WANT_… */
    uint32_t nmissing;            /**< of a part: servers whose contribution is missing there */
    struct ranges missing;        /**< their slots, perhaps not all */
    uint32_t nentries;            /**< contributions of its subtree that bring something */
    struct shared_bytes *entries; /**< their bytes; held; NULL: there are none */
};

/** A failure that is remembered, for servers that ask. */
struct tracker_past {
    uint64_t generation; /**< the root's number of it */
    uint64_t heard;      /**< our number of the last call then: engine_call::op */
    int32_t status;
    struct procset gone;
};

enum { TRACKER_PAST = 4 };

/** What is remembered of a signature's failures. */
struct tracker_failure {
    uint64_t generation; /**< the root's number of the last one; 0: none is remembered */
    uint64_t for_good;   /**< that of the last one after which no server tries again; 0: none */
    uint64_t at;         /**< when it was learnt, or a later try has ended here, ms; 0: never */
    bool given_up;       /**< one ended here without the root's word, which may still come */
    uint32_t uncalled;   /**< heard of before our call, and none was made since */
    struct tracker_past past[TRACKER_PAST]; /**< the root's last words, the oldest first */
    uint32_t npast;
};

/** Parts of a result's data: each has whole contributions. All zero: there are none. */
struct pieces {
    uint32_t n, cap;
    uint32_t nentries;       /**< contributions in all of them */
    uint32_t last;           /**< slot of the last one */
    struct shared_bytes **v; /**< bodies of FRAME_PIECE, in order; owned */
};

/** A failure of a later operation, which waits until the current one has got its data. */
struct later {
    struct later *next;
    uint32_t from;
    size_t len;
    unsigned char body[]; /**< of FRAME_RELEASE */
};

/** A fence's success whose data come in pieces. All zero: nothing of it is here. */
struct tracker_data {
    uint64_t generation;  /**< of the pieces; 0: none came */
    struct pieces pieces; /**< that have come */
    uint64_t decided;     /**< generation of the root's word; 0: it has not come */
    uint64_t context_id;  /**< of it, as the rest */
    uint32_t flags;
    uint32_t nentries;   /**< contributions that come in pieces */
    struct later *later; /**< in order; owned */
};

/** A result on its way. */
struct tracker_release {
    uint64_t generation; /**< the root's number of its decision; 0: it is a failure, and not the
                            root's word */
    uint64_t op;         /**< the root's number of its assembly; 0: no member was added */
    const struct procset *added;
    struct engine_result result;
    const void *raw;            /**< the bytes as they came, borrowed; NULL: none came */
    size_t len;                 /**< of raw */
    struct shared_bytes *bytes; /**< the same, made when they are needed; release_end() */
    uint32_t npieced;           /**< contributions that come in pieces; then no others are in raw */
    struct pieces pieces;       /**< these, where they are cut; release_end() */
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
    uint64_t grace;        /**< ms after the deadline until we give up by ourselves */
    uint32_t nchildren;
    struct tracker_child *children;

    enum tracker_state state;
    int32_t own_status; /**< our own contribution is a failure, with that status; 0: it is none, or
                           is not here */
    int32_t status;     /**< the first failure of ours and below us; 0: there is none */
    enum tracker_news news;
    struct ranges lost; /**< slots of servers that are lost to the current operation, as is known
                           here or by another's word */
    struct engine_call *call;  /**< the call that is served */
    struct engine_call *queue; /**< calls that wait for their turn */
    uint64_t number;           /**< our number of the current call */
    uint64_t called;           /**< when it was made, µs */
    uint64_t floor;            /**< a success of it has a higher generation than this */
    uint32_t timeout;          /**< the shortest one asked for, seconds; 0: none */
    uint64_t opened;           /**< when the current operation was first heard of, ms */
    uint64_t since;            /**< when the state began, ms */
    uint64_t deadline;         /**< ms of engine_clock(); 0: none */
    uint64_t report;           /**< next stall report, ms; 0: none */
    uint64_t flush;    /**< when what is here goes up although more is missing, and what is missing
                          is asked for, or whether the parent is still there; 0: never */
    uint64_t say;      /**< when the parent is told the news, ms; 0: not, or with flush */
    bool flushed;      /**< the parent was told a part: it is told what changes, too */
    bool later_try;    /**< the current operation is a later try (tries.c) */
    uint64_t settle;   /**< when its call ends with the failure of a try that it has skipped, ms; 0:
                          never */
    uint64_t wanted;   /**< idle: when a server above asks again for the operation, and this server
                          forgets that it was asked, ms; 0: it was not */
    bool wanted_later; /**< with it: for a later try */
    uint64_t tried;    /**< engine_call::op of the last call that was made here; 0: none */
    uint32_t asked;    /**< in doubt: lost servers when the others were asked; 0: not yet */
    uint32_t *doubts;  /**< by slot: it does not know the result, and this many lost servers; 0:
                          unknown; NULL: no server was asked */
    struct tracker_data data;  /**< of the current operation's result */
    struct procset gone;       /**< processes of the current operation that are known to be lost */
    struct assembly *assembly; /**< at the root: added members are awaited; NULL: none are */
    struct tracker_failure failure;
};

TAILQ_HEAD(tracker_list, tracker);
LIST_HEAD(tracker_bucket, tracker);
TAILQ_HEAD(decided_list, decided);

enum {
    ENGINE_BUCKETS = 64,             /**< at first */
    ENGINE_FLUSH_MS = 500,           /**< so that the root can name single servers */
    ENGINE_ASK_MS = 5000,            /**< between two questions for what is missing */
    ENGINE_HOME_MS = 40000,          /**< leaders look for another home for 30 s (holder.h) */
    ENGINE_GRACE_MS = 5000,          /**< after the deadline, for the root's word to arrive */
    ENGINE_HOP_MS = 300,             /**< of it, for each server above, where they are many */
    ENGINE_STRAGGLER_MS = 600000,    /**< a contribution may be this late */
    ENGINE_REMEMBER_MS = 6 * 600000, /**< must be longer than that: see tracker_is_late() */
};

/** What the added members bring, which are no participants. All zero: there are none. */
struct rollup_more {
    struct assembly *assembly; /**< membership's; NULL: there are none */
    uint64_t op;               /**< its number */
    const struct procset *added;
    struct engine_entry *entries; /**< of a success; owned; their slots come after the tree's */
    uint32_t nentries;
    uint32_t flags;
    bool failed; /**< memory is out */
};

/** What the layers above do. engine.c fills it; this is the only way upwards. */
struct engine_hooks {
    timer_fire *due; /**< tracker::due */
    /** Takes a frame that this server sends to itself. */
    bool (*take)(struct engine *engine, uint32_t from, enum frame_type type, const void *body,
                 size_t len);
    /** At the root, all servers have contributed: whether all added members have joined, too.
     * @param status set when it fails; then true is returned
     * @return false: they are awaited; @p t may be gone */
    bool (*ready)(struct engine *engine, struct tracker *t, int32_t *status);
    /** The root decides: takes what the added members have brought from the operation. */
    void (*detach)(struct engine *engine, struct tracker *t, bool fails, struct rollup_more *more);
    /** It has decided, and the servers of the tree are told: tells those of added members, and
     * frees the assembly. @param d where the success is kept, or NULL
     * @param ended gets the local calls that it ends */
    void (*told)(struct engine *engine, struct tracker *t, struct assembly *a, struct decided *d,
                 struct tracker_release *release, struct engine_call **ended);
    /** A group operation's parent is lost, or all of the subtree went up and a server is lost. */
    void (*orphan)(struct engine *engine, struct tracker *t);
    /** The current operation has failed here. */
    void (*failed)(struct engine *engine, struct tracker *t, const struct engine_result *result);
    /** It has failed before the local call was made. */
    void (*missed)(struct engine *engine, struct tracker *t, const struct engine_result *result);
    /** Asks the servers of an operation for the outcome of its assembly. May end it all.
     * @return whether there is a server to ask */
    bool (*ask)(struct engine *engine, uint64_t op, const void *sig, size_t siglen);
};

struct engine {
    struct engine_env env;
    const struct engine_hooks *up;
    struct tree_shape shape; /**< of the step's servers; n is 0: k-ary */
    struct tree whole;       /**< all of these */
    struct tracker_list all;
    struct tracker_bucket *buckets; /**< owned; by hash */
    uint32_t nbuckets;
    uint32_t count; /**< trackers, records of failed operations included */
    bool retries;   /**< there has been a later try of some operation */
    struct engine_counts counts;
    struct tally tally;
    uint64_t numbers, generations, next_id;
    struct ranges lost, left; /**< servers that are gone, by how */
    struct procset without;   /**< calls here have gone on without these: they are lost for good */
    struct ranges met;        /**< servers that a frame went to so that they can be reached */
    uint64_t looks;           /**< rounds of tracker_each() */
    struct decided_list decided; /**< decided.c: results, the oldest first */
    uint32_t ndecided;
    size_t decided_bytes;
    struct membership *membership; /**< that layer's */
    struct recovery *recovery;     /**< that layer's */
    bool closing;
};

/** A frame that came. */
struct frame_in {
    uint32_t from;
    const void *body; /**< without the type; borrowed */
    size_t len;
    struct shared_bytes *whole; /**< as in engine_take_shared() */
    const void *sig;            /**< of the operation that it is about, borrowed; NULL: of none */
    size_t siglen;
    struct wire_in in; /**< the rest of the body */
};

/* slots.c: which server is where in an operation, and which are missing */

/** Computes the operation's tree, and the servers above and below us there. @return 0, or -1: out
 * of memory */
int tracker_place(const struct engine *engine, struct tracker *t);
/** @return the slot of server @p node, or TREE_NONE */
uint32_t tracker_slot_of(const struct tracker *t, uint32_t node);
/** @return the server in @p slot */
uint32_t tracker_node(const struct tracker *t, uint32_t slot);
/** @return the child in @p slot, or NULL: the server there is not directly below us */
struct tracker_child *tracker_child_of(const struct tracker *t, uint32_t slot);
/** @return the slot of the server that is to send what a call waits for: the root's word, or the
 * rest of its data; TREE_NONE: none, at the root */
uint32_t tracker_bringer(const struct tracker *t);
/** Whether all of our subtree has contributed. */
bool tracker_is_complete(const struct tracker *t);
/** Finds out which servers are missing here: whose contribution is awaited.
 * @param slots all zero; filled with the slots that are known; ranges_free() it
 * @return how many there are */
uint32_t tracker_awaited(const struct tracker *t, struct ranges *slots);
/** @return the servers in these slots, by free(); NULL, and none: out of memory */
uint32_t *tracker_nodes(const struct tracker *t, const struct ranges *slots, uint32_t *n);
/** Writes the line about what is missing: "group "x" construct: 3 of 8 servers missing: …". */
void tracker_missing(struct engine *engine, struct tracker *t, char *buf, size_t cap);
/** @return what servers with the same tree of @p t have in common: the arity, or the shape's id */
uint32_t tracker_tree_id(const struct engine *engine, const struct tracker *t);

/* tracker.c: the table of states, and the life of a tracker */

/** Moves along the table; a missing row is an error of ours: it is logged and refused. */
bool tracker_move(struct engine *engine, struct tracker *t, enum tracker_event event);
const char *tracker_state_name(enum tracker_state state);
/** @return the tracker of a signature, made when there was none; NULL: not a signature whose
 * participants include this server */
struct tracker *tracker_get(struct engine *engine, const void *sig, size_t len);
struct tracker *tracker_find(struct engine *engine, const void *sig, size_t len);
void tracker_free(struct engine *engine, struct tracker *t);
/** Frees a tracker that has no operation and remembers nothing. */
void tracker_tidy(struct engine *engine, struct tracker *t);
/** Does something once to each tracker that is there; any tracker may be freed by that. */
void tracker_each(struct engine *engine,
                  void (*visit)(struct engine *engine, struct tracker *t, uint64_t arg),
                  uint64_t arg);
/** @return ms of the clock */
uint64_t engine_now(const struct engine *engine);
/** The clock of deadlines, which stands still while processes of the step are stopped. */
uint64_t engine_clock(const struct engine *engine);
/** @return µs of the clock */
uint64_t engine_now_us(const struct engine *engine);
/** @param due a timer that is due @param at when the next thing of what it is for is, ms; 0: never
 * @return whether that is now: then the timer will be called again; else it is set to @p at */
bool engine_is_due(const struct engine *engine, struct timer *due, uint64_t at);
/** @return when something is due, ms; 0: never */
uint64_t tracker_due_at(const struct tracker *t);
/** One of its times may be earlier now. */
void tracker_due(struct tracker *t);
void pieces_free(struct pieces *pieces);
/** Forgets what is here of a result's data. */
void data_clear(struct tracker_data *data);
/** Forgets what belongs to the current operation. */
void tracker_clear(struct tracker *t);
/** Forgets what a child has said, but not the number of its call. */
void tracker_clear_child(struct tracker_child *child);
/** Reports that something waits. @param since when it began, ms @param text for which server */
void engine_stalled(const struct engine *engine, uint64_t since, uint64_t now, const char *text,
                    const uint32_t *nodes, uint32_t n);
/** Notes a generation of another server: those of one's own decisions are higher than all that were
 * heard of, so that those of several tries can be compared. */
void engine_hear(struct engine *engine, uint64_t generation);

/* losses.c: servers and processes that are lost to an operation */

/** Adds the processes of @p set on server @p node to @p there. @return 0, or -1: one is unknown */
int members_on(const struct engine *engine, const struct procset *set, uint32_t node,
               struct procset *there);
/** @return why an operation of that kind fails that needs server @p node, which is gone */
int32_t tracker_loss(const struct engine *engine, enum coll_kind kind, uint32_t node);
/** The same of the server in @p slot. */
int32_t tracker_slot_loss(const struct engine *engine, const struct tracker *t, uint32_t slot);
/** @return whether @p status is one of these */
bool tracker_is_loss(const struct engine *engine, const struct tracker *t, int32_t status);
/** Whether the server in @p slot is lost, as far as is known in this operation. */
bool tracker_slot_lost(const struct engine *engine, const struct tracker *t, uint32_t slot);
/** Finds out which of its servers are lost, as far as is known. @param slots as above */
void tracker_lost_slots(const struct engine *engine, const struct tracker *t, struct ranges *slots);
/** Notes a failure, unless another one was before. */
void tracker_fail(struct tracker *t, int32_t status);
/** Notes in an operation that the server in @p slot is lost, and with it what is below it when that
 * is ours to report. */
void tracker_lose(struct engine *engine, struct tracker *t, uint32_t slot);
/** Notes all servers that are known to be lost in an operation. */
void tracker_lose_known(struct engine *engine, struct tracker *t);
/** Notes that the operation's processes on server @p node are lost. */
void tracker_gone(struct engine *engine, struct tracker *t, uint32_t node);
/** Notes which processes of this server have ended. */
void tracker_gone_here(struct engine *engine, struct tracker *t);
/** Moves them to @p gone, for a failure's result. @return @p gone, or NULL: none are known */
const struct procset *tracker_take_gone(struct tracker *t, struct procset *gone);

/* failures.c: failures that are remembered; answers to calls */

/** Whether no server tries again after this failure. */
bool failure_is_for_good(const struct engine *engine, int32_t status, const struct procset *gone);
/** Notes what the last failure was, unless it is not the root's word. */
void tracker_remember(const struct engine *engine, struct tracker *t,
                      const struct engine_result *result);
/** @return the first failure that is remembered after the generation @p known, or NULL */
const struct tracker_past *tracker_past_after(const struct tracker *t, uint64_t known);
/** A participant that is lost stays so: what is of this signature fails like that for ever, unless
 * it is a later try.
 * @param lost all zero; gets the participants that the last such failure names; procset_free() it
 * @return its status, or 0: none is remembered */
int32_t tracker_past_loss(const struct engine *engine, const struct tracker *t,
                          struct procset *lost);
/** Whether what its sender says belongs to an operation that has failed here already.
 * @param known generation of the last failure that the sender knows */
bool tracker_is_late(const struct engine *engine, const struct tracker *t, uint64_t known);
/** @return it as a result, which borrows from it */
struct engine_result past_result(const struct tracker_past *past);
/** Copies a failure; procset_free() its set. */
void past_copy(struct tracker_past *to, const struct tracker_past *from);
/** Notes when a call was made. */
void call_begin(struct engine *engine, struct engine_call *call, enum coll_kind kind);
/** Answers a call. */
void call_end(struct engine_call *call, const struct engine_result *result);
/** Answers a call with a failure that names the lost; frees the set. */
void call_fail(struct engine_call *call, struct tracker_past *past);
/** Answers a call with a failure. */
void call_refuse(struct engine_call *call, int32_t status);
/** Appends a call to a list; NULL is an empty one. */
void calls_add(struct engine_call **calls, struct engine_call *call);
/** Answers all, and empties the list. */
void calls_done(struct engine_call **calls, const struct engine_result *result);
