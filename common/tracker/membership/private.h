/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the files of the engine's layer "membership" know of each other. Private to them.
 */
#pragma once

#include "common/tracker/membership/membership.h"

/** What one leader, or the added members on one server, contributed. */
struct assembly_part {
    uint32_t node;
    uint64_t number; /**< a leader's: its server's number of the call */
    bool have;
    struct procset procs;         /**< the leader, or the members on that server */
    struct procset added;         /**< a leader's: the members that it adds */
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

/** Where an assembly stands. */
enum assembly_state {
    ASSEMBLY_LEADERS, /**< leaders are awaited */
    ASSEMBLY_MEMBERS, /**< all leaders are there; added members are claimed, and awaited */
};

/** One operation, at the server that decides it. */
struct assembly {
    TAILQ_ENTRY(assembly) all;
    struct timer due;        /**< no later than the first of the times below: due_at() */
    uint64_t op;             /**< our number */
    struct tracker *tracker; /**< the leaders' rollup; NULL: a bootstrap */
    char id[PROCSET_NAME_MAX + 1];
    uint32_t count; /**< leaders of a bootstrap */
    enum assembly_state state;
    struct assembly_parts leaders, members;
    struct procset leading; /**< the distinct leaders */
    struct procset added;   /**< what they add */
    uint32_t timeout;       /**< the shortest one, seconds; 0: none */
    uint64_t opened;        /**< ms */
    uint64_t deadline;      /**< of a bootstrap, ms; 0: none */
    uint64_t report;        /**< its next stall report, ms; 0: none */
    uint64_t repeat;        /**< when the claims are repeated, ms; 0: never */
};

/** A local call of an added member or a bootstrap's leader. */
struct waiting {
    TAILQ_ENTRY(waiting) all;
    struct timer due; /**< no later than the first of the times below */
    struct engine_call *call;
    struct claim *claim; /**< a member's: its claim; NULL: none yet */
    uint64_t number;     /**< a leader's: of the call */
    uint32_t home;       /**< a leader's: the server that decides; or ENGINE_NO_HOME yet */
    uint32_t next_home;  /**< once home has given it back; ENGINE_NO_HOME: it stays */
    uint64_t ask;        /**< a leader's: when its home is asked whether it is there */
    uint64_t opened, deadline, report; /**< ms; 0: never */
};

/** Where a claim stands. claim.c has the table of how it moves. */
enum claim_state {
    CLAIM_OPEN,  /**< not all of its members have called */
    CLAIM_TOLD,  /**< they have, or cannot; the outcome is awaited */
    CLAIM_DOUBT, /**< the server that decides is lost: the leaders' servers are asked for the
                    outcome; of a bootstrap over steps: the next home's claim is awaited */
    CLAIM_OVER,  /**< a later try succeeded: failures of the tries before it, which may come after
                    it, are of no call that waits */
    CLAIM_STATES,
};

/** What can happen to a claim. */
enum claim_event {
    CLAIM_TELL, /**< all of its members have called, or one cannot */
    CLAIM_LOSS, /**< the server that decides is lost */
    CLAIM_DONE, /**< the success of a later try is here */
    CLAIM_EVENTS,
};

/** Members of this server that an operation awaits. */
struct claim {
    TAILQ_ENTRY(claim) all;
    struct timer due; /**< no later than the first of the times below */
    uint32_t decider;
    uint64_t op; /**< the decider's number */
    char id[PROCSET_NAME_MAX + 1];
    void *sig; /**< of the leaders' construct; owned; NULL: of a bootstrap that is not over */
    size_t siglen;
    enum claim_state state;
    struct procset members;
    uint64_t generation; /**< of the outcome; 0: it was not told */
    struct procset gone; /**< with the outcome: the lost, or those without which it has gone on */
    uint64_t at;         /**< when it was last heard of, ms */
    uint64_t ask;        /**< once told: when the decider is asked whether it is there, or, in
                            doubt, the leaders' servers for the outcome, or, of a bootstrap, when
                            no next home is awaited any more, ms */
};

/* parts.c: contributions of leaders and members, by server */

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
/** Whether @p node is one of @p n. */
bool nodes_have(const uint32_t *nodes, uint32_t n, uint32_t node);

/* outcome.c */

/** Asks a server for nothing: it answers nothing, but one that is gone is noticed by that. */
void assembly_ping(struct engine *engine, uint32_t node);
/** Tells servers of the outcome: those of leaders and members, but none in @p t's tree.
 * @param d a success that is kept: they are told once all of the tree have it; NULL: at once */
void assembly_tell(struct engine *engine, struct assembly *a, const struct tracker *t,
                   struct decided *d, struct tracker_release *release);

/* assembly.c */

/** @return a new assembly, or NULL when out of memory */
struct assembly *assembly_new(struct engine *engine, const char *id, struct tracker *t);
/** Takes it out of the list; nothing of it is due any more. */
void assembly_remove(struct engine *engine, struct assembly *a);
/** @param a removed before; may be NULL */
void assembly_free(struct assembly *a);
/** Finds out which servers have the added members. @return 0, or why it fails */
int32_t assembly_place(struct engine *engine, struct assembly *a);
/** Claims a bootstrap's added members, all leaders being there, or decides. @p a may be gone */
void assembly_progress(struct engine *engine, struct assembly *a);
/** Ends a bootstrap with @p status; 0 needs all leaders and members. Frees @p a. */
void assembly_decide(struct engine *engine, struct assembly *a, int32_t status);
/** Takes the earlier of two deadlines . */
void assembly_arm(struct engine *engine, struct assembly *a, uint32_t timeout, uint64_t left);
/** Ends it with a failure. Frees it. */
void assembly_fail(struct engine *engine, struct assembly *a, int32_t status);
/** Notes the added members of a lost server. */
void assembly_lose(struct assembly *a, uint32_t node);
/** Says to server @p node that there is no such operation any more. */
void assembly_unclaim(struct engine *engine, uint32_t node, uint64_t op);
/** Goes as far as the members that have joined allow. @p a may be gone */
void assembly_go_on(struct engine *engine, struct assembly *a);

/* home.c, leader.c: a bootstrap */

/** Takes back a call that libpmix has answered. Once members are claimed it is used: its server is
 * told of the result as ever. @param leader the leader whose call it was is added to it
 * @return whether it belonged to nothing yet */
bool home_take_back(struct engine *engine, uint32_t from, uint64_t number, struct procset *leader);
/** Takes the local call with that number, if @p home decides it. */
void leader_end(struct engine *engine, uint32_t home, uint64_t number, struct engine_call **ended);
/** Whether its home, where the others do not meet any more, gives the call with that number back:
 * then it goes to the next one, which may end it.
 * @param leading the leaders that the home has answered */
bool leader_moves(struct engine *engine, uint32_t home, uint64_t number,
                  const struct procset *leading);
/** Writes which leader waits for which home. */
void leader_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap);
bool leader_withdraw(struct engine *engine, struct engine_call *call);

/* claim.c: what other servers await of this one */

bool waiting_is_named(const struct waiting *w);
/** Takes a call out of those that wait for a claim, to the end of @p ended. */
void claim_release(struct engine *engine, struct waiting *w, struct engine_call **ended);
struct claim *claim_find(struct engine *engine, uint32_t decider, uint64_t op);
/** Frees the calls that a claim has. */
void claim_unfill(struct engine *engine, const struct claim *claim);
void claim_free(struct engine *engine, struct claim *claim);
/** Whether a call with that id may be one that @p claim awaits. @param caller empty: not known */
bool claim_wants(const struct claim *claim, const char *id, const struct procset *caller);
/** One of its times may be earlier now. */
void claim_due(struct engine *engine, struct claim *claim);
/** @return when something of it is due, ms */
uint64_t claim_due_at(const struct engine *engine, const struct claim *claim);
/** Whether the claim's next step is in its table; then it is made. */
bool claim_move(struct claim *claim, enum claim_event event);

/* joins.c: when all members here have called */

/** Gives a claim the calls that fit, besides those that it has. @return how many it has */
uint64_t joins_fill(struct engine *engine, struct claim *claim);
/** Joins when all have called, or says that one cannot. May end it all, this claim and others.
 * @return whether there was something to tell */
bool joins_try(struct engine *engine, struct claim *claim);
/** Tells the decider, with the calls' contributions when @p status is 0. May end it all. */
void joins_tell(struct engine *engine, struct claim *claim, int32_t status);
/** Tries the open claims of an id: each joins when all have called, or says that one cannot. */
void joins_try_all(struct engine *engine, const char *id);

/** @return why members of this server cannot join, or 0 */
int32_t joins_local_status(const struct engine *engine, const struct claim *claim);

/* claims.c */

/** Ends an operation on this server: takes its calls.
 * @param claim what it awaits of this server; NULL: nothing yet */
void claim_end(struct engine *engine, struct claim *claim, uint32_t decider, const char *id,
               const struct release_frame *frame, struct engine_call **ended);
/** @return the claim whose outcome node @p from tells, which decides, or answers for a server that
 * is lost; or NULL */
struct claim *claim_told(struct engine *engine, uint32_t from, const char *id, uint64_t op,
                         const void *sig, size_t siglen);

/* member.c */

/** Writes which caller waits that no leader has added. */
void member_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap);
