/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Constructs whose members are not all known from the start. Private to common/tracker.
 *
 * An added member calls on its own server and waits there (member.c). Who decides an operation, the
 * root of the leaders' rollup, or for a bootstrap the home of its id (home.c), gathers the rest
 * in an assembly (assembly.c): once all leaders are there it claims the added members from their
 * servers, each of which says so when all of its own have called, and tells every server that no
 * release reaches of the outcome.
 */
#ifndef MUSTER_TRACKER_ASSEMBLY_H
#define MUSTER_TRACKER_ASSEMBLY_H

#include "common/tracker/tracker.h"

/** What one leader, or the added members on one server, contributed. */
struct assembly_part {
    uint32_t node;
    uint64_t number; /**< a leader's: its server's number of the call */
    bool have;
    struct procset procs;         /**< the leader, or the members on that server */
    struct procset added;         /**< a leader's: whom it adds */
    uint32_t timeout;             /**< a leader's, seconds; 0: none */
    uint64_t deadline;            /**< a leader's, ms */
    uint32_t flags;               /**< what its calls ask for: ENGINE_WANT_… */
    void *bytes;                  /**< owned; the entries point into it */
    struct engine_entry *entries; /**< those that have data */
    uint32_t nentries;
};

struct assembly_parts {
    uint32_t n;
    struct assembly_part *v; /**< owned */
};

/** One operation, at who decides it. */
struct assembly {
    TAILQ_ENTRY(assembly) all;
    uint64_t op;             /**< our number */
    struct tracker *tracker; /**< the leaders' rollup; NULL: a bootstrap */
    char id[PROCSET_NAME_MAX + 1];
    uint32_t count; /**< leaders of a bootstrap */
    bool asked;     /**< all leaders are there, and the members are claimed */
    struct assembly_parts leaders, members;
    struct procset leading; /**< the distinct leaders */
    struct procset added;   /**< what they add */
    uint32_t timeout;       /**< the shortest one, seconds; 0: none */
    uint64_t opened;        /**< ms */
    uint64_t deadline;      /**< of a bootstrap, ms; 0: none */
    uint64_t report;        /**< its next stall report, ms; 0: none */
    uint64_t again;         /**< when the claims are repeated, ms; 0: never */
};

/** A bootstrap that failed: its leaders that had not called yet get the same status. */
struct assembly_failure {
    TAILQ_ENTRY(assembly_failure) all;
    char id[PROCSET_NAME_MAX + 1];
    int32_t status;
    uint64_t at;             /**< ms */
    uint64_t left;           /**< leaders that had not called */
    struct procset answered; /**< those that had */
    struct procset told;     /**< added members whose servers know */
};

/** A local call of an added member or a bootstrap's leader. */
struct waiting {
    TAILQ_ENTRY(waiting) all;
    struct engine_call *call;
    struct claim *claim; /**< a member's: whose; NULL: nobody's yet */
    bool indebted;       /**< a member's: a failure is owed for it, see is_busy() */
    uint64_t number;     /**< a leader's: of the call */
    uint32_t home;       /**< a leader's: who decides; or ENGINE_NO_HOME yet */
    uint64_t ask;        /**< a leader's: when its home is asked whether it is there */
    uint64_t opened, deadline, report; /**< ms; 0: never */
};

enum claim_state {
    CLAIM_OPEN,  /**< not all of its members have called */
    CLAIM_TOLD,  /**< they have, or cannot; the outcome is awaited */
    CLAIM_DOUBT, /**< who decides is lost: the leaders' servers are asked for the outcome */
    CLAIM_OWED,  /**< it failed, and calls that were not made yet are answered with its status */
};

/** Members of this server that an operation awaits. */
struct claim {
    TAILQ_ENTRY(claim) all;
    uint32_t decider;
    uint64_t op; /**< the decider's number */
    char id[PROCSET_NAME_MAX + 1];
    void *sig; /**< of the leaders' construct; owned; NULL: of a bootstrap */
    size_t siglen;
    enum claim_state state;
    struct procset members;
    struct procset answered; /**< those, known by name, whose call was answered already */
    uint64_t left;           /**< members whose call was not */
    int32_t status;
    struct procset gone; /**< with the status: who is lost */
    uint64_t at;         /**< when it was last heard of, or failed, ms */
    uint64_t ask;        /**< once told: when who decides is asked whether it is there, or, in
                            doubt, the leaders' servers for the outcome, ms */
};

/* parts.c */

/** Adds a part without processes. @return it, or NULL */
struct assembly_part *parts_add(struct assembly_parts *parts, uint32_t node);
void parts_remove(struct assembly_parts *parts, uint32_t i);
void parts_free(struct assembly_parts *parts);
/** Copies the entries that have data into a part. @return whether there was memory */
bool part_fill(struct assembly_part *part, uint32_t flags, const struct engine_entry *entries,
               uint32_t n);
/** Adds the processes of @p set by server. @return 0, or -1: a process is unknown */
int parts_split(const struct engine *engine, const struct procset *set,
                struct assembly_parts *parts);
/** The processes of @p set on server @p node. @return 0, or -1: a process is unknown */
int parts_local(const struct engine *engine, const struct procset *set, uint32_t node,
                struct procset *local);
/** Whether @p node is one of @p n. */
bool nodes_have(const uint32_t *nodes, uint32_t n, uint32_t node);

/* assembly.c: who decides; outcome.c has assembly_tell() and member_outcome() */

/** @return a new assembly, or NULL when out of memory */
struct assembly *assembly_new(struct engine *engine, const char *id, struct tracker *t);
/** @param a not in the list any more; may be NULL */
void assembly_free(struct assembly *a);
/** Whether all of a rollup's added members have joined; claims them when that was not done yet.
 * @param status set when it fails; then true is returned
 * @return false: they are awaited; @p t may be gone */
bool assembly_ready(struct engine *engine, struct tracker *t, int32_t *status);
/** Claims a bootstrap's added members, all leaders being there, or decides. @p a may be gone */
void assembly_progress(struct engine *engine, struct assembly *a);
/** Ends a bootstrap with @p status, which 0 needs everybody for. Frees @p a. */
void assembly_decide(struct engine *engine, struct assembly *a, int32_t status);
/** Takes the assembly from the rollup, which ends. A failed one has one now when anybody is known
 * to be added. Sets op and added of @p release. */
struct assembly *assembly_detach(struct engine *engine, struct tracker *t, bool fails,
                                 struct tracker_release *release);
/** Finds out which servers have the added members. @return 0, or why it fails */
int32_t assembly_place(struct engine *engine, struct assembly *a);
/** Tells servers of the outcome: those of leaders and members, but none in @p t's tree.
 * @param d a success that is kept: they are told once all of the tree have it; NULL: at once */
void assembly_tell(struct engine *engine, struct assembly *a, const struct tracker *t,
                   struct decided *d, struct tracker_release *release);
/** Sends an outcome. @param numbers of the receiver's calls as leaders @param bytes of the release;
 * borrowed */
void outcome_send(struct engine *engine, uint32_t node, const uint64_t *numbers, uint32_t n,
                  struct shared_bytes *bytes);
/** @return the number of contributions of leaders and members that have data */
uint32_t assembly_count(const struct assembly *a);
/** Writes them, numbered from @p slot on. */
void assembly_entries(const struct assembly *a, struct engine_entry *entries, uint32_t slot);
/** @return what the calls of leaders and members ask for */
uint32_t assembly_flags(const struct assembly *a);
/** Unites the signature's members and @p added. @return false: nobody was added */
bool assembly_members(const struct signature *sig, const struct procset *added,
                      struct procset *members);
/** Writes who is missing. */
void assembly_missing(struct engine *engine, const struct assembly *a, char *buf, size_t cap);
void assembly_joined(struct engine *engine, uint32_t from, struct wire_in *in);
/** Sends a frame, also to ourselves: then the frame is taken before this returns. To no home yet:
 * not at all. */
void assembly_send(struct engine *engine, uint32_t node, struct wire_out *frame);
/** The same of one that ends in bytes for several servers. @param body as in engine_env::send */
void assembly_send_shared(struct engine *engine, uint32_t node, struct wire_out *frame,
                          struct shared_bytes *body);
/** Asks a server for nothing: it answers nothing, but one that is gone is noticed by that. */
void assembly_ping(struct engine *engine, uint32_t node);
void assembly_lost(struct engine *engine, uint32_t node);
/** @return when something here is due, ms, or UINT64_MAX */
uint64_t assembly_next(const struct engine *engine);
/** Does one thing that is due. @return whether there was one */
bool assembly_tick(struct engine *engine, uint64_t now);
void assembly_close(struct engine *engine);

/* home.c: leaders of a bootstrap at the home of the id */

void home_take(struct engine *engine, uint32_t from, struct wire_in *in);
/** Remembers that @p a failed. */
void home_failed(struct engine *engine, struct assembly *a, int32_t status);
/** Forgets failures of this id: one has succeeded. */
void home_forget(struct engine *engine, const char *id);
/** Takes the earlier of two deadlines of a bootstrap. */
void home_arm(struct engine *engine, struct assembly *a, uint32_t timeout, uint64_t left);
/** Takes back a call that libpmix has answered. Once members are claimed it is used: its server is
 * told of the result as ever. @param leader whose it was, is added
 * @return whether it belonged to nothing yet */
bool home_take_back(struct engine *engine, uint32_t from, uint64_t number, struct procset *leader);
uint64_t home_next(const struct engine *engine);
bool home_tick(struct engine *engine, uint64_t now);
void home_close(struct engine *engine);

/* leader.c: the same on their own server */

/** Takes the local call with that number, whose fate is @p home's to say. */
void leader_end(struct engine *engine, uint32_t home, uint64_t number, struct waiting_list *ended);
/** Writes who waits for which home. */
void leader_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap);
bool leader_withdraw(struct engine *engine, struct engine_call *call);
void leader_lost(struct engine *engine, uint32_t node);
uint64_t leader_next(const struct engine *engine);
bool leader_tick(struct engine *engine, uint64_t now);
void leader_close(struct engine *engine);

/* doubt.c has the questions of servers in the tree, too */

/** Asks the leaders' servers for the outcome of what claimed members here. May end it all.
 * @return whether there is anybody to ask */
bool doubt_claim(struct engine *engine, const struct claim *claim);

/* claim.c: who of this server is awaited */

bool waiting_is_named(const struct waiting *w);
struct claim *claim_find(struct engine *engine, uint32_t decider, uint64_t op);
void claim_free(struct engine *engine, struct claim *claim);
/** Whether @p w may be one that @p claim awaits, as far as is known. */
bool claim_wants(const struct claim *claim, const struct waiting *w);
/** Tells who decides, with the calls' contributions when @p status is 0. May end it all. */
void claim_tell(struct engine *engine, struct claim *claim, int32_t status);
/** Tries the open claims of an id: each joins when all have called, or says that one cannot. */
void claim_try(struct engine *engine, const char *id);
/** Ends an operation on this server: takes its calls. What failed is owed to those to come. */
void claim_end(struct engine *engine, uint32_t decider, const char *id,
               const struct tracker_release *release, struct waiting_list *ended);
/** @return who decides the operation whose outcome node @p from tells: itself, or one that is lost
 */
uint32_t claim_decider(const struct engine *engine, uint32_t from, uint64_t op, const void *sig,
                       size_t siglen);
/** Asks for the outcome, who decides being lost. May end it all. */
void claim_ask(struct engine *engine, struct claim *claim);
/** Nothing is owed to one that was added and has called as a leader. */
void claim_forgive(struct engine *engine, uint32_t decider, struct engine_call *leader);

/* quit.c: calls of added members that ended unclaimed */

/** Notes that a member's call has ended, of which nothing is owed for a construct that fails. */
void quit_note(struct engine *engine, const struct engine_call *call);
/** A member calls again, for another construct: what it had quit is forgotten. */
void quit_returns(struct engine *engine, const struct engine_call *call);
/** Takes from what a construct that has ended owes the members that had quit. */
void quit_settle(struct engine *engine, struct claim *claim);
uint32_t quit_count(const struct engine *engine);
uint64_t quit_next(const struct engine *engine);
bool quit_tick(struct engine *engine, uint64_t now);
void quit_close(struct engine *engine);

/* member.c: added members, on their own server */

void member_claim(struct engine *engine, uint32_t from, struct wire_in *in);
void member_outcome(struct engine *engine, uint32_t from, struct wire_in *in);
/** Takes the calls that an operation's release ends; what failed is owed to those to come. */
void member_take(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 struct waiting_list *ended);
/** Answers them, and empties the list. */
void member_done(struct waiting_list *ended, const struct engine_result *result);
/** Nothing is owed any more for a call that is answered otherwise. @param all whether it may have
 * been late for several tries: a success settles them all */
void member_pay(struct engine *engine, const struct waiting *w, bool all);
/** Writes who waits, added by nobody. */
void member_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap);
bool member_withdraw(struct engine *engine, struct engine_call *call);
void member_local_loss(struct engine *engine);
void member_lost(struct engine *engine, uint32_t node);
uint64_t member_next(const struct engine *engine);
bool member_tick(struct engine *engine, uint64_t now);
void member_close(struct engine *engine);

#endif
