/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One collective request: what an upcall copied, the engine's call, and the answer.
 *
 * Some libpmix have several group requests of one id (LIBRARY_GROUP_SHARES): every added member and
 * every leader of a bootstrap is handed up by itself. libpmix answers all that it has of an id with
 * the first callback, and frees what the other callbacks would need: pending.c lets one request of
 * an id answer and drops those that it covers.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/nspace/built.h"
#include "common/nspace/library.h"
#include "common/server/steps/seek.h"
#include "common/upcall/upcall.h"

/** Which of the engine's calls a request is. */
enum collective_role {
    COLLECTIVE_PARTICIPANTS, /**< local participants that know each other */
    COLLECTIVE_LEADER,       /**< of a bootstrap: one process */
    COLLECTIVE_MEMBER,       /**< is added by a leader: one process */
};

/** How far a request has come. pending.c has the table of how it moves. */
enum collective_state {
    COLLECTIVE_NEW,     /**< libpmix has handed it up */
    COLLECTIVE_CANCELS, /**< no request: libpmix has ended a construct of the id. The word on a loss
                           is awaited */
    COLLECTIVE_SEEKS,   /**< its namespaces are looked for */
    COLLECTIVE_HELD,    /**< a local participant is lost, and the word on that is awaited */
    COLLECTIVE_CALLED,  /**< the engine has it */
    COLLECTIVE_COVERED, /**< another request of the id has answered for it; it is still with the
                           engine, held, or about to end */
    COLLECTIVE_ENDS,    /**< the result is here; libpmix may be storing the members' data */
    COLLECTIVE_ANSWERED, /**< libpmix has not said yet that it has done with the answer */
    COLLECTIVE_STATES,
};

/** What can happen to a request. */
enum collective_event {
    COLLECTIVE_CANCEL, /**< it says that libpmix has ended a construct */
    COLLECTIVE_SEEK,   /**< a namespace of it is unknown */
    COLLECTIVE_HOLD,   /**< a local participant is lost, and that was not told */
    COLLECTIVE_CALL,   /**< it is given to the engine */
    COLLECTIVE_COVER,  /**< libpmix answers it with another of its id */
    COLLECTIVE_RESULT, /**< the engine is done, or it never gets there */
    COLLECTIVE_ANSWER, /**< it is answered */
    COLLECTIVE_EVENTS,
};

/** Made on libpmix's thread, used and freed on the loop. */
struct collective {
    struct request request; /**< first */
    struct server *server;
    enum coll_kind kind;
    char *id; /**< group id, PMIX_CONNECT_ID, or "" */
    pmix_proc_t *procs;
    size_t nprocs;
    struct seek_wait seek; /**< for namespaces that are not known yet */
    bool lost;             /**< libpmix handed up that a local participant is lost */
    uint32_t ncalls;       /**< local participants that have called: LIBRARY_GROUP_COUNTS */
    bool apart;        /**< a participant here was lost, and libpmix does not know it any more */
    uint32_t lacking;  /**< local participants that have not, as they are lost */
    int64_t handed_up; /**< now_ms() when the loss was told */
    bool survives;     /**< PMIX_GROUP_FT_COLLECTIVE; of a connect PMIX_CONNECT_OPTIONAL */
    bool notify;       /**< PMIX_GROUP_NOTIFY_TERMINATION */
    bool notify_req;   /**< PMIX_CONNECT_NOTIFY_REQ */
    /* Sets; all are made on the loop. */
    struct procset all;      /**< procs, sorted and expanded */
    struct procset members;  /**< the same, without the lost, if it goes on without them */
    struct procset expanded; /**< added, without them */
    struct procset gone;     /**< whom it goes on without */
    struct procset sought;   /**< seek's: procs, as far as they are known */
    uint32_t timeout;        /**< of the whole, seconds; 0: none */
    int64_t started;         /**< now_ms() when it began; 0: it has not */
    char *payload;           /**< contribution: modex bytes, or packed pmix_info_t */
    size_t own_len;          /**< of payload, without what order_say() appends */
    size_t len;
    struct proclist order; /**< of a construct's members, at its success; empty: that of the set */
    struct engine_call call;
    enum collective_role role;
    pmix_proc_t *added; /**< processes that it adds */
    size_t nadded;
    pmix_proc_t caller; /**< of a member, when has_caller */
    bool has_caller;
    struct procset procs_of_caller; /**< the same or empty; set on the loop */
    enum collective_state state;
    struct collective *next; /**< pending.c's */
};

/** Reads the added members, the caller and how many leaders there are. A fault becomes the call's
 * status.
 * @thread PMIx's */
void members_read(struct collective *c, const pmix_info_t info[], size_t ninfo);

/** @return a request that has copies of @p id and @p procs. @thread PMIx's */
struct collective *collective_new(enum coll_kind kind, const char *id, const pmix_proc_t procs[],
                                  size_t nprocs);
/** Reads the directives that every collective has. Each of several local copies counts: the
 * shortest timeout, and the first status that is a failure. @thread PMIx's */
void collective_directives(struct collective *c, const pmix_info_t info[], size_t ninfo);
/** Has the engine do it; the run() of a request. */
void collective_run(struct handoff_item *item);

/** Makes the canonical participants: sorted, with wildcards expanded. @return 0, or -1 */
int collective_expand(struct collective *c);

/** Sets what the engine knows the operation by. @return 0, or -1: an added process is none */
int collective_prepare(struct collective *c);

/* survive.c */

/** Refuses directives about lost participants that libpmix does not have; a fault becomes the
 * call's status. @thread PMIx's */
void survive_check(struct collective *c);

/* The rest of survive.c; @thread the loop's */

/** Whether the operation is to go on without participants that are lost. */
bool survive_wants(const struct collective *c);
/** Tries again without the lost. @return whether it does; then the call is the engine's */
bool survive_again(struct collective *c, const struct engine_result *result);
/** Tells the members here without which processes the operation went on (PMIX_GROUP_MEMBER_FAILED),
 * unless they know. */
void survive_tell(const struct collective *c);
/** Tells the participants that a construct has failed for these, which are lost
 * (PMIX_GROUP_NOTIFY_TERMINATION). libpmix has ended the construct on their own nodes before any
 * host knew of it, so one server tells the participants there. */
void survive_failed(const struct collective *c, const struct procset *gone);

/** @return whether the call of a leader names its own process alone. */
bool members_leads_alone(const struct collective *c);

/** Sets the added members, and the caller. @return 0, or -1 */
int members_expand(struct collective *c);

/** Adds a process, or all that a wildcard means, to @p set. @return 0, or -1 */
int collective_add_proc(struct server *server, struct procset *set, const pmix_proc_t *proc);

/* order.c; @thread the loop's */

/** What all contributions to a construct say of its order. All zero: nothing. */
struct order {
    struct proclist leaders; /**< the leaders' array; empty: it is sorted */
    uint32_t nadded;
    struct proclist *added; /**< whom leaders add, a list for each contribution; owned */
    bool failed;            /**< one cannot be read */
};

/** Puts into the contribution what this server has to say of the order. @return 0, or -1: out of
 * memory */
int order_say(struct collective *c);
/** Reads it. @return whether @p info is that */
bool order_take(struct order *order, const pmix_info_t *info);
/** Makes @p list, all zero, the members in their order; left empty when that is the set's own.
 * @return 0, or -1: what was said does not fit the members */
int order_make(struct order *order, const struct procset *members, struct proclist *list);
void order_free(struct order *order);

/* pending.c; @thread the loop's */

/** Makes a request's next step, if the table in pending.c has one. */
void collective_move(struct collective *c, enum collective_event event);
/** Notes a group request. @return false: another request has answered for it */
bool pending_add(struct collective *c);
/** @return whether @p c gives the engine's result to libpmix; if not, @p c is only to be freed */
bool pending_answers(struct collective *c);
/** Gives the answer, and frees @p c later. @param info taken over */
void pending_answer(struct collective *c, pmix_status_t status, pmix_info_t *info, size_t ninfo);
/** Whether a request came after libpmix has ended a construct of its id, which is not done yet. */
bool pending_is_behind(const struct collective *c);
/** libpmix has ended a construct that it had not handed up, and with it all that it has of the id.
 */
void pending_cancelled(struct handoff_item *item);

/** Answers and frees the request. */
void collective_complete(struct collective *c, const struct engine_result *result);
/** Answers and frees the request of a connect or a disconnect: connect.c. */
void connect_complete(struct collective *c, const struct engine_result *result);

/** Looks into the book and tells of the call, once, before it is the engine's: connect.c. */
void connect_begin(struct collective *c);
/** Answers with the status that stands in the call, without asking another server; the run() of a
 * request that has no participants. */
void collective_refuse(struct handoff_item *item);

void collective_free(struct collective *c);
