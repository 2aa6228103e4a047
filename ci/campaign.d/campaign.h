/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The fault campaign: a simulator that runs the engine through random schedules on the loopback
 * and checks what has to hold in each of them. All of a schedule follows from its seed.
 *
 * plan.c draws a schedule: the network, its weather, the groups and their operations.
 * calls.c  plays it: calls, withdrawals, deaths, cuts. Where the servers are of one step, and no
 *          frame is lost, they agree by the view on who is lost.
 * retry.c  plays the layer above the engine that tries again without the lost.
 * check.c  has the invariants; the head of each function says which one it is.
 * again.c  has all jobs end and run again, at the end of some seeds.
 * trace.c  tells what happens, for --verbose.
 * main.c   is the program: seeds, and how to run a failing one again.
 *
 * The engine is seen through engine.h only. Process r of the namespaces "a" and "b" lives on server
 * r, so a server has two. A contribution is bytes that tell whose call made it, or, of some callers
 * of a quiet operation, nothing.
 */
#pragma once

#include "ci/loopback/loopback.h"
#include "common/tracker/engine.h"
#include "common/tracker/values/tree.h"

enum {
    NODES_MAX = 1000, /**< by --servers; a seed draws NODES_DRAWN at most */
    NODES_DRAWN = 40,
    PAYLOAD_MAX = 96,
    TIMEOUT_MAX = 8,   /**< s */
    PATIENCE = 900,    /**< s; more than all tries of others take, also in slow weather */
    SPREAD_MS = 4000,  /**< calls of one round are made within it */
    NOTICE_MS = 1000,  /**< each has noticed by then that a server is lost */
    TOLD_MS = 20000,   /**< and all have agreed on it */
    GRACE_MS = 5000,   /**< the engine's, after a deadline, for the word of who decides */
    HOP_MS = 300,      /**< of it, for each server above, where they are many */
    LATENESS_MS = 100, /**< of a plain call: a timer fires at once on the virtual clock */
    LATENESS_ADDED_MS =
        30000,               /**< graces chain: a member's, its server's, the leaders' beside it */
    SETTLE_MS = 20000000,    /**< all is over by then: a chain of 40 servers in slow weather, too */
    FORGET_MS = 2 * 3600000, /**< and all that is remembered of failures is forgotten */
    STATUS_DEAD = -70,       /**< a participant has ended */
    STATUS_OWN = -200,       /**< minus the server: a contribution's own failure */
};

/** How an operation finds its members. */
enum method {
    METHOD_PLAIN,  /**< fence, collective construct, destruct: all are known, one call a server */
    METHOD_ADDING, /**< collective construct whose leaders add members */
    METHOD_BOOTSTRAP, /**< leaders know only how many they are */
    METHODS,
};

struct proc {
    char ns; /**< 'a' or 'b' */
    uint32_t rank;
};

/** One call of the engine. Kept until the end of the run. */
struct call {
    struct engine_call call;
    void *sig; /**< of a second try */
    struct op *op;
    struct caller *caller;
    uint32_t number;  /**< among all calls of the run; its contribution repeats it */
    uint32_t answers; /**< times that done() was called */
    bool taken_back;  /**< engine_withdraw() gave it back */
    int32_t status;
    uint64_t made_at, answered_at; /**< ms */
    uint64_t context_id;
    uint32_t timeout;                /**< of all tries, s; 0: none */
    uint32_t retries;                /**< after the first try */
    struct procset left, adds, gone; /**< of an operation that survives: who takes part, who is
                                        added, and without whom it goes on */
    struct procset members;          /**< of the result; empty after a failure */
    uint32_t *used, nused;   /**< the calls whose contributions are in the result, ascending */
    struct call *used_by;    /**< the first call that had a result with this one's contribution */
    struct procset identity; /**< engine_call.caller */
    unsigned char data[PAYLOAD_MAX];
};

/** The caller of an operation: a server for those of its processes that take part, or a process. */
struct caller {
    struct op *op;
    struct proc proc; /**< a plain one's: of the server */
    bool leader;
    struct procset adds;
    struct call *call; /**< NULL: not made */
    bool cancelled;    /**< its library has ended the construct by itself: engine_cancel() */
    bool missed;       /**< the operation has failed before the call was made; its processes go on
                          as if they had called */
};

/** One operation: what shall be one result for all its callers. */
struct op {
    struct op *next; /**< of the group, in order */
    struct group *group;
    enum coll_kind kind;
    enum method method;
    uint32_t instance; /**< among those of its group */
    void *sig;         /**< of the plain method and of leaders that add */
    size_t siglen;
    struct procset leaders; /**< the signature's, or those of a bootstrap */
    struct procset all;     /**< with those that are added */
    struct caller *callers; /**< leaders first */
    uint32_t ncallers, nleaders;
    bool survives; /**< goes on without the lost */
    bool quiet;    /**< some of its callers contribute no data */
    bool disagree; /**< the last leader of a bootstrap believes in one leader more */
    uint32_t over; /**< callers that were answered, or will not call */
};

/** Operations of one id, one after another. */
struct group {
    struct group *next;
    struct run *run;
    uint32_t number;
    char id[16];
    enum method method;
    bool pipelined; /**< a server does not wait for an answer before its next call */
    bool survives;  /**< constructs and destructs go on without the lost: PMIX_GROUP_FT_COLLECTIVE
                       and  PMIX_GROUP_NOTIFY_TERMINATION */
    bool alone;     /**< no other group has its id */
    struct op *ops;
};

/** What may befall the schedule. */
struct weather {
    bool lossy;     /**< frames vanish */
    bool slow;      /**< a frame may take longer than an engine waits for the server that
                       decides, or all frames on the way from there may */
    bool crashes;   /**< servers die, or leave */
    bool parts;     /**< two servers lose each other; the view leaves one of them out */
    bool deaths;    /**< processes die */
    bool hands_up;  /**< the library hands up an operation that a dead process takes part in */
    bool deadlines; /**< calls have a timeout; where calls could wait for ever they have one anyhow
                     */
    bool failures;  /**< contributions that are failures, numbers of leaders that differ */
    bool cancels;   /**< calls are taken back, and libraries end constructs by themselves */
    bool nameless;  /**< of an added member only the server is known */
};

/** One seed. */
struct run {
    uint64_t seed;
    bool verbose;
    bool foreign; /**< each server is of a step of its own */
    struct loopback_random random;
    struct loopback *net;
    struct weather weather;
    uint32_t nnodes, ncalls;
    uint32_t delay_max;          /**< of the network, ms */
    uint32_t parents[NODES_MAX]; /**< the shape of the trees; all zero: they follow none */
    struct group *groups;
    struct call **calls;            /**< by number */
    bool dead[2][NODES_MAX];        /**< processes, by namespace and rank */
    uint64_t died_at[2][NODES_MAX]; /**< ms */
    uint64_t lost_at[NODES_MAX];    /**< when a server died or left, ms; 0: it has not */
    bool again;                     /**< all run a second time, and nobody is dead */
    bool failed;                    /**< a call was answered with a failure */
    bool ending;                    /**< the engines are closed: nothing is called any more */
    char fault[512];                /**< the first invariant that was broken; empty: none */
};

/* plan.c */

/** Draws the network, the weather and the groups. @param servers of the network; 0: drawn, too */
void plan(struct run *run, uint32_t servers);
void plan_free(struct run *run);
bool chance(struct run *run, uint32_t percent);
uint32_t below(struct run *run, uint32_t n);
const char *ns_name(char ns);

/* calls.c */

/** Plays the schedule until it is over. */
void play(struct run *run);
/** The data that a call contributes. @return its length */
size_t payload(unsigned char *data, uint32_t number);
/** For loopback_conf.missed. */
void miss(void *arg, uint32_t node, const void *sig, size_t siglen,
          const struct engine_result *result);
/** Whether the process has ended. */
bool is_dead(const struct run *run, struct proc proc);

/* retry.c */

/** Whether the operation goes on without the lost; then the call is the engine's again. */
bool try_again(struct call *call, const struct engine_result *result);
/** Makes the call, by the caller's part in the operation. */
void hand_over(struct call *call);

/* facts.c */

/** Notes which invariant was broken how, unless another one was before. */
void fault(struct run *run, const char *invariant, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** @return "a3 of group 1 "g1" plain fence, instance 2"; a static text, one of two */
const char *call_name(const struct call *call);
struct run *run_of(const struct call *call);
/** Whether a process, or its server, has ended, or is about to. */
bool is_gone(const struct run *run, struct proc proc);
/** Whether it had by @p at, ms. */
bool was_gone(const struct run *run, struct proc proc, uint64_t at);
/** The server that decides an operation. */
uint32_t decider_of(const struct op *op);
/** Whether a call for the one may be used for the other at all. */
bool same_group(const struct op *a, const struct op *b);
/** Whether a member has ended by its own deadline, as no leader had added it so far. */
bool own_timeout(const struct call *call);
/** Whether an operation has failed for some caller whose server lives, for good, before @p at, ms.
 */
bool failed_before(const struct op *op, uint64_t at);
/** Whether a call was made when its operation may have failed already: then it waits for the next
 * one, and in vain, as the others call for that only when this call has ended. */
bool is_behind(const struct call *call);
/** Whether a member has not waited for the failure of an operation of the group before @p op. Then
 * that failure may be the answer to its call for @p op: the engine cannot tell for which of the two
 * the call is (docs/limits.md). */
bool is_shadowed(const struct op *op);
/** Whether a contribution may come when its caller has given up already, and has called for the
 * next operation of the group: frames take longer than an engine waits for the decider. */
bool is_overtaken(const struct op *op);
/** Whether all callers of an operation have to get the same answer. The engine cannot promise that
 * where frames vanish or are overtaken, or a caller takes back its call. */
bool must_agree(const struct op *op);

/* check.c */

/** What holds for a failure's list of the lost, also when the call is tried again. */
void check_gone(struct call *call, const struct engine_result *result);
/** What holds for one answer, when it is given. */
void check_answer(struct call *call, const struct engine_result *result);

/* end.c */

/** What holds for the schedule as a whole: at its end, and once failures are forgotten. */
void check_end(struct run *run);

/* again.c */

/** Once the schedule is over all jobs end, and run again if each server is of a step of its own:
 * the first run is nothing to the second. */
void check_again(struct run *run);

/* trace.c */

/** Prints a line with the time, if the run is verbose. */
void trace(const struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void trace_plan(const struct run *run);
/** How an operation is named: "g1 construct, instance 2". @return a static text */
const char *trace_op(const struct op *op);
/** Sees frames for loopback_conf.filter. */
bool trace_frame(void *arg, uint32_t from, uint32_t to, const void *data, size_t len);
