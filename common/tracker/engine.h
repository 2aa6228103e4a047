/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The one engine for collectives: fence, group construct and destruct, connect and disconnect.
 *
 * An operation is one rollup over the servers that host its participants. Each server makes one
 * local call when its own participants are complete. Contributions go up a tree (tree.h), each
 * identified by its sender's slot, so that a duplicate counts once; the root decides; the release
 * goes down the same tree, and every server answers its local call with the same result.
 *
 * A frame may arrive before the local call: it opens the tracker, the call completes it. Calls of
 * one signature on one server are served one after another, as the standard orders them.
 *
 * The success of a group operation is kept for a while, for servers that the release does not reach
 * because a server on the way is lost (recovery/doubt.c). Of a failure a record stays: it answers
 * the local call that comes late, and its generation, which every later contribution repeats, tells
 * stragglers from the next operation of the same signature.
 *
 * A group's construct may have members that are not known from the start: leaders add them, or a
 * bootstrap's leaders know only how many they are (membership/).
 *
 * docs/collectives.md explains all of it, with the states; docs/design.md has the order of the
 * files.
 *
 * The engine knows neither PMIx nor a resource manager; time, frames and places are injected.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/places.h"
#include "common/tracker/values/signature.h"
#include "common/tracker/values/tally.h"
#include "common/transport/frame.h"
#include "common/util/shared_bytes.h"
#include "common/util/timers.h"

/** What a call asks for: a context id, which the root gives; that members of the group are told of
 * lost ones, which is between the callers: each sees it in the result. */
enum {
    ENGINE_WANT_CONTEXT_ID = 1,
    ENGINE_WANT_NOTIFY = 2,
    ENGINE_WANT_OWN = 1u << 8, /**< from this bit on: the callers' own */
};

/** What one server contributed, when that is more than its presence. */
struct engine_entry {
    uint32_t slot;     /**< position of the server among the operation's servers */
    const void *data;  /**< borrowed */
    size_t len;        /**< bytes */
    const void *added; /**< members that it adds, as procset_write() writes them; NULL: none */
    size_t addedlen;   /**< bytes */
};

/** The outcome, the same on every server. */
struct engine_result {
    int32_t status;                     /**< 0, or the first failure */
    uint64_t context_id;                /**< 0 when none was asked for */
    uint32_t flags;                     /**< what any call asked for: ENGINE_WANT_… */
    uint32_t nentries;                  /**< 0 when status is not 0 */
    const struct engine_entry *entries; /**< the contributions that have data, ascending by slot;
                                           borrowed until done() returns */
    struct shared_bytes *whole;         /**< what their data are part of, for shared_bytes_part();
                                           NULL: nothing is; borrowed */
    const struct procset *gone;         /**< of a failure: participants and added members that are
                                           known to be lost; of a success: those without whom a
                                           later try has gone on; NULL: none; borrowed */
    const struct procset *members;      /**< all members when some were added or it was a
                                           bootstrap; NULL: those of the signature; borrowed */
};

/** @return the data of all contributions, one after another, by reference where they came so;
 * NULL: out of memory */
struct shared_bytes *engine_result_data(const struct engine_result *result);

/** One local call. The caller owns it, and keeps it until done() was called, exactly once. */
struct engine_call {
    struct engine_call *next; /**< the engine's */
    void *sig;                /**< signature_write(); the caller's, stays put */
    size_t siglen;
    int32_t status; /**< 0, or why its participants cannot take part */
    uint32_t flags;
    const void *data; /**< the caller's, stays put until done() */
    size_t len;
    uint32_t timeout;  /**< seconds from its turn until the operation fails; 0: none */
    const void *added; /**< members that a construct or a bootstrap's leader adds, as written by
                          procset_write(); NULL: none; the caller's, stays put */
    size_t addedlen;
    const struct procset *gone; /**< of a later try, as some are lost: without whom this one is, and
                                   those before; NULL: the first try; stays put until done() */
    uint64_t op;                /**< the engine's: it ties the tries of one operation together; the
                                   caller keeps it from one to the next */
    struct engine *engine;      /**< the engine's: which one has it */
    enum coll_kind kind;        /**< the engine's */
    uint64_t made;              /**< the engine's: when, µs */
    uint64_t generation;        /**< the engine's: of the decision that has answered it, or 0 */
    uint32_t last, late;        /**< the engine's: as in struct engine_ended */
    const char *id;             /**< engine_join(), engine_lead(): the group's; stays put */
    const struct procset *caller; /**< the same: the caller, one process; empty: not known, which
                                     only an added member may be; stays put */
    uint32_t leaders;             /**< engine_lead(): how many there are */
    /** Answers; may call the engine again and may free the call. */
    void (*done)(struct engine_call *call, const struct engine_result *result);
};

enum { ENGINE_NOBODY = 0xffffffff };

/** A call that is answered. */
struct engine_ended {
    enum coll_kind kind;
    const void *sig; /**< borrowed; of another kind, or none: it has none of its own */
    size_t siglen;
    uint64_t begin, end; /**< µs of the clock */
    uint64_t generation; /**< of the decision, the same on all servers; 0: there was none, or it is
                            not known */
    int32_t status;
    uint32_t last; /**< a server: where this one has decided, the last one; else ENGINE_NOBODY */
    uint32_t late; /**< µs, how much later than the last but one */
};

/** Status codes of the host's protocol that the engine itself gives. */
struct engine_codes {
    int32_t timeout; /**< the deadline passed */
    int32_t lost;    /**< a server that takes part is gone */
    int32_t invalid; /**< the participants are not known here */
    int32_t library; /**< servers that do not fit together: PMIx library or tree differ. The root
                        tells each server itself, past those between, so this may overtake the
                        result before it: no call's own failure has it, see ENGINE_MISFIT */
    int32_t closing; /**< this server is leaving */
    int32_t count;   /**< leaders of a bootstrap disagree on their number */
};

/** For engine_codes::library where calls may fail with any status of PMIx: none of them. */
enum { ENGINE_MISFIT = INT32_MIN };

/** What a server has as large, few and piece, where it has direct connections.
 * docs/performance.md says why. */
enum { ENGINE_LARGE = 4 << 20, ENGINE_FEW = 8, ENGINE_PIECE = 64 << 10 };

/** Everything that the engine needs of its surroundings. */
struct engine_env {
    void *arg;        /**< handed to every function below */
    uint32_t self;    /**< handle of this server (rm.h); another one on each server */
    uint32_t nnodes;  /**< servers of the step */
    uint32_t arity;   /**< of k-ary trees; must be the same on every server */
    uint32_t library; /**< the PMIx library's version; must be the same on every server */
    uint64_t ids;     /**< context ids start after this number */
    uint32_t id_step; /**< and are this far apart */
    uint32_t stall;   /**< seconds until an operation that waits is reported; 0: never */
    size_t large;     /**< a fence's data go in pieces when they are so many bytes; 0: never */
    uint32_t few;     /**< but not in operations of so many servers, at least 2, or fewer */
    size_t piece;     /**< bytes of a piece, or the whole of what one server has contributed */
    struct engine_codes codes;

    /** Deadlines, stall reports, partial contributions, forgetting: all that is done at a later
     * time. Borrowed */
    struct timers *timers;
    /** Takes a report of what waits; NULL: it is logged. @param s seconds @param text borrowed
     * @param nodes the @p n servers that are missing, borrowed; none where that is not known */
    void (*stalled)(void *arg, uint64_t s, const char *text, const uint32_t *nodes, uint32_t n);
    /** Takes a call that is answered in a moment. NULL: none is told. @param ended borrowed */
    void (*ended)(void *arg, const struct engine_ended *ended);
    /** The servers that host @p sig's participants, each once, everywhere in the same order.
     * @param places all zero; they are added to it, and the engine frees it
     * @return 0, or -1 when a participant is unknown */
    int (*servers)(void *arg, const struct signature *sig, struct places *places);
    /** @return 0 and the server of a process, or -1 when there is no such process */
    int (*node_of)(void *arg, const char *nspace, uint32_t rank, uint32_t *node);
    /** Adds those of @p set that are on server @p node to @p there. NULL: node_of() is asked for
     * each. @return 0, or -1: out of memory */
    int (*members_on)(void *arg, const struct procset *set, uint32_t node, struct procset *there);
    /** @return 0, or why @p sig cannot be done as far as this server's own participants go: one of
     * them has ended */
    int32_t (*local_status)(void *arg, const struct signature *sig);
    /** Adds this server's participants that have ended to @p gone. */
    void (*local_gone)(void *arg, const struct signature *sig, struct procset *gone);
    /** An operation has failed before this server called: its next call begins the next operation.
     * NULL: nobody is told. @param result borrowed */
    void (*missed)(void *arg, const void *sig, size_t siglen, const struct engine_result *result);
    /** @return why an operation of that kind fails whose participants on another server have all
     * ended, before that server left in order. NULL: engine_left() is not called */
    int32_t (*left_status)(void *arg, enum coll_kind kind);
    /** @return the name of server @p node, for messages; borrowed */
    const char *(*name)(void *arg, uint32_t node);
    /** Finds the home of a bootstrap's id, and says it by engine_home(), perhaps before this
     * returns. NULL: server hash(id) mod nnodes. @param call to be handed on */
    void (*home)(void *arg, const char *id, uint64_t call);
    /** Server @p node is to know where @p set's processes are before the frames that it is sent
     * after this. NULL: it does. */
    void (*acquaint)(void *arg, uint32_t node, const struct procset *set);
    /** Sends a frame; takes the bytes out of @p frame. Delivery is at most once.
     * @param body what follows them, the same for several servers, borrowed: the callee holds what
     *             it keeps; NULL: nothing follows */
    void (*send)(void *arg, uint32_t node, struct wire_out *frame, struct shared_bytes *body);
    /** Sends a frame to all other servers of the step; takes the bytes out of @p frame. NULL:
     * engine_cancel() is not called */
    void (*say)(void *arg, struct wire_out *frame);
    /** Writes which ranks of @p sig are on @p nodes: "ranks 0-4,9 on c07, rank 12 on c09".
     * @param some only some of a node's ranks are meant, which is not known: "one or more of ranks
     *             0-4,9 on c07" */
    void (*ranks)(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap);
};

struct engine;

/** @return a new engine, or NULL when out of memory; @p env is copied */
struct engine *engine_new(const struct engine_env *env);

/** Has operations of servers 0 to nnodes-1 alone follow a shape instead of a k-ary tree. It must be
 * the same on every server. Once, before the first operation.
 * @param parents of each of these servers, or TREE_NONE; borrowed until this returns
 * @return 0, or -1: these are no trees, or memory is out */
int engine_shape(struct engine *engine, const uint32_t *parents);

/** Makes a local call; it is answered through its done(), perhaps before this returns. */
void engine_call(struct engine *engine, struct engine_call *call);

/** Makes the call of an added member, which knows the group's id only: it waits until a leader adds
 * it and the construct ends. Its signature is not used. */
void engine_join(struct engine *engine, struct engine_call *call);

/** Makes the call of a leader of a bootstrap. Its signature is not used. */
void engine_lead(struct engine *engine, struct engine_call *call);

enum { ENGINE_NO_HOME = 0xffffffff };

/** Says the home that engine_env::home was asked for. @param node a handle, or ENGINE_NO_HOME:
 * there is none, and the call fails as with a home that is lost */
void engine_home(struct engine *engine, uint64_t call, uint32_t node);

/** Takes back a call of engine_join() or engine_lead() that belongs to no operation yet.
 * @return whether it is the caller's again; if not, done() is still called: with the result of its
 * operation, or, as only a leader's home on another server knows, with the closing code when it
 * belonged to none */
bool engine_withdraw(struct engine *engine, struct engine_call *call);

/** PMIx's library has ended a construct of this id on this server before it was handed up, since a
 * participant here is lost or is late: it fails everywhere.
 * @param lost whether one is lost: then it is a construct with one that has ended here */
void engine_cancel(struct engine *engine, const char *id, bool lost);

/** The same of an operation whose signature is known. @param sig borrowed */
void engine_cancel_known(struct engine *engine, const void *sig, size_t siglen, bool lost);

/** Takes a frame of server @p from, which may be anything. @param body without the type; borrowed
 * @return whether the type is one of the engine's */
bool engine_take(struct engine *engine, uint32_t from, enum frame_type type, const void *body,
                 size_t len);

/** The same. @param whole what @p body is part of: the engine holds it where it keeps most of it,
 * and copies nothing; NULL: nothing is */
bool engine_take_shared(struct engine *engine, uint32_t from, enum frame_type type,
                        const void *body, size_t len, struct shared_bytes *whole);

/** A participant of this server has ended: asks local_status() again for what still waits for it.
 */
void engine_local_loss(struct engine *engine);

/** @return the next context id of this server if @p flags have ENGINE_WANT_CONTEXT_ID, else 0 */
uint64_t engine_context_id(struct engine *engine, uint32_t flags);

/** Server @p node is gone for good: fails what waits for it, now and later. */
void engine_lost(struct engine *engine, uint32_t node);

/** The same of one that has left in order, as all of its processes have ended: what waits for it
 * fails with the status that it would have given itself. */
void engine_left(struct engine *engine, uint32_t node);

/** Namespace @p nspace has ended: ends what still waits for its processes, and forgets all that
 * names them. A job that is requeued uses its name again, for other processes on other servers. */
void engine_nspace_ended(struct engine *engine, const char *nspace);

/** @return whether server @p node is gone for good, as far as these two have said */
bool engine_is_lost(const struct engine *engine, uint32_t node);

/** An operation that is under way, as this server sees it. All of it is borrowed. */
struct engine_view {
    const void *sig;
    size_t siglen;
    const char *state;       /**< "early", "gather", "sent" or "doubt": see docs/collectives.md */
    uint64_t age, in_state;  /**< ms since it was first heard of, and since the state began */
    int64_t left;            /**< ms until it fails; -1: it has no deadline */
    bool called;             /**< our own call was made */
    uint32_t queued;         /**< calls that wait for their turn after it */
    uint32_t root;           /**< the server that decides */
    uint32_t nservers;       /**< that take part */
    uint32_t nmissing;       /**< length of missing */
    const uint32_t *missing; /**< servers, ours among them, whose contribution is awaited here */
};

/** What this server has seen the end of. */
struct engine_counts {
    uint64_t done[COLL_KIND_END], failed[COLL_KIND_END];
    uint32_t remembered; /**< records of failed operations that are kept */
    uint32_t trackers;   /**< these records, and operations under way */
};

/** @return how long calls waited here, and who was last in the operations that this server has
 * decided; the engine's */
const struct tally *engine_tally(const struct engine *engine);

/** Shows every operation that is under way. @p visit must not call the engine. */
void engine_walk(const struct engine *engine,
                 void (*visit)(void *arg, const struct engine_view *view), void *arg);

/** What waits without a tracker: a member that no leader has added yet, a leader of a bootstrap,
 * and the decider of a construct whose members are not known from the start. Borrowed. */
struct engine_wait {
    const char *about; /**< what waits, and for what; users have chosen some of it */
    uint64_t age;      /**< ms */
    int64_t left;      /**< ms until it fails; -1: it has no deadline */
};

/** Shows all of it. @p visit must not call the engine. */
void engine_walk_waits(struct engine *engine,
                       void (*visit)(void *arg, const struct engine_wait *wait), void *arg);

struct engine_counts engine_counts(const struct engine *engine);

/** Answers every call that waits, and all that come later, with the closing code. */
void engine_close(struct engine *engine);

/** Frees all; closed before. */
void engine_free(struct engine *engine);
