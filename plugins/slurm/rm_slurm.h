/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the back end for Slurm. Private to inbox.c, outbox.c, others.c, scout.c, ender.c and
 * rm_slurm.c, of which
 * each calls only those before it.
 */
#pragma once

#include "common/handoff/worker.h"
#include "common/transport/rm.h"
#include "shims/slurm/slurm_abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

enum { RM_SENDERS_MAX = 8 /**< threads that send, at most */ };

/** Reads what slurmd writes to our socket. */
struct inbox;

/** Listens on @p fd, which it takes over. @thread the loop's
 * @param host borrowed until inbox_close() */
struct inbox *inbox_open(int fd, struct event_base *base, const struct rm_host *host);
/** rm_ops.shut. The socket's name is to go first, so that senders see that we have left, and not a
 * dead server: the plugin removes it when we have said BOOT_SAYS_LEFT. @param path of the socket */
bool inbox_shut(struct inbox *inbox, const char *path);
void inbox_close(struct inbox *inbox);

/** Another server. One of the own step is made when there is something to send to it or to know of
 * it: most servers of a large step never meet. @thread the loop's */
struct peer {
    TAILQ_ENTRY(peer) busy; /**< in rm->busy while something is to be sent or is being sent */
    bool is_busy;
    bool sends;     /**< a message to it is under way */
    uint32_t node;  /**< its handle */
    char *name;     /**< of its node, borrowed; NULL: not known yet */
    char *address;  /**< of its socket there, borrowed */
    char *own_name; /**< of a server of another step: the name, owned */
    bool foreign;   /**< it is a server of another step */
    enum rm_peer_state state;
    bool reached;          /**< something has arrived there before, or has come from there */
    int64_t failing_since; /**< ms; 0: it is not failing */
    int64_t not_before;    /**< ms: when to try again */
    uint32_t retry_ms;
    uint64_t retries; /**< messages that failed */
};

/** How far the step's end is, when this server is to end it (ender.c). */
enum ender_state {
    ENDER_RESTS, /**< this server is not to end the step */
    ENDER_TELLS, /**< srun's agent is being told with what status the step ends */
    ENDER_WAITS, /**< what there is for other servers is being sent */
    ENDER_ASKS,  /**< slurmctld has not taken the order yet */
    ENDER_LOOKS, /**< slurmctld has taken the order; whether the step has ended is asked again */
    ENDER_DONE,  /**< the step is not known any more, or what is left is not this server's */
};

/** A line for the user, which srun's agent gets. */
enum ender_line {
    ENDER_NO_LINE,
    ENDER_LINE_COMES, /**< it is to be told that there will be one */
    ENDER_LINE_HERE,
};

/** The thread that ends the step; guarded by the lock. */
struct ender {
    enum ender_state state;
    struct rm_ending ending; /**< how the step is to end */
    char why[768];           /**< its reason */
    int64_t wait_until;      /**< ms: when ENDER_WAITS ends, whatever is still to be sent */
    pthread_cond_t wake;     /**< an order, the outbox is idle, or the server leaves */
    pthread_t thread;
    bool started;
    enum ender_line line; /**< what is to be said of one */
    char text[768];       /**< the line */
};

/** A step that the scout has found. */
struct place {
    char nspace[64];
    uint64_t run;
    uint32_t node;   /**< on which one a server answers */
    uint32_t nnodes; /**< length of names */
    char **names;    /**< owned, and each of them; NULL: it is the own step */
};

struct other;
struct scout_seen;

/** What finds other steps (scout.c). */
struct scout {
    struct worker *worker; /**< NULL before the first question */
    /* its own: */
    bool listed;             /**< slurmctld has answered once */
    struct scout_seen *seen; /**< the last list of this user's steps */
    uint32_t nseen;
    uint64_t now; /**< slurmctld's time then */
};

struct rm {
    const struct boot *boot;
    struct rm_host host;
    const char *jobs; /**< whose steps of that id are the step's components: "2,3" */
    const char *runs; /**< of each of them: which run it is, as step_run_next() reads it */
    uint32_t step;
    const char *agent;  /**< srun's, see agent_call.h; NULL: it has none */
    const char *socket; /**< this server's own */
    char *address;      /**< where servers listen; slurmd puts its node's name for %n */
    int64_t opened;     /**< ms: when we started */
    int64_t peer_ms;    /**< how long a node may fail until it is lost */
    struct handoff *handoff;
    struct inbox *inbox;
    struct slurm_spawns *spawns;

    pthread_mutex_t lock; /**< guards what follows, up to closing */
    struct ender ender;
    pthread_cond_t sent; /**< posted */
    bool posted;         /**< a message has been sent, or cannot be: the handoff has it */
    bool idle;           /**< nothing is to be sent, nor is being sent */
    bool closing;        /**< the server leaves; set by the loop */
    struct scout scout;

    /* of the loop alone */
    struct peer **peers; /**< by handle; NULL: it is not made */
    uint32_t npeers;
    TAILQ_HEAD(, peer) busy; /**< in the order of their turns */
    struct event *push;      /**< a turn has come */
    struct worker *senders[RM_SENDERS_MAX];
    bool sending[RM_SENDERS_MAX]; /**< that one is in the call */
    bool ended;                   /**< there are no threads any more */
    struct other *others;         /**< steps that have handles */
    const struct place *offered;  /**< what rendezvous() and the like are just naming, or NULL */
};

/** Waits for @p cond until @p when, a value of now_ms(); INT64_MAX: for ever. @thread any, locked
 */
void rm_wait(struct rm *rm, pthread_cond_t *cond, int64_t when);

/** rm_ops.ready, rm_ops.peer and rm_ops.learn. */
void outbox_ready(struct rm *rm, uint32_t node);
struct rm_peer outbox_peer(struct rm *rm, uint32_t node);
void outbox_learn(struct rm *rm, uint32_t node, enum rm_fact fact);
/** Sends what there is, without the loop, until @p by. After rm->closing was set. @thread the
 * loop's */
void outbox_drain(struct rm *rm, int64_t by);
/** Ends the threads. @return whether all have ended until @p by @thread the loop's */
bool outbox_close(struct rm *rm, int64_t by);
/** Adds peers of another step, which stay the caller's until outbox_free(). @return whether there
 * was memory. @thread the loop's */
bool outbox_add(struct rm *rm, struct peer *peers, uint32_t base, uint32_t n);
/** @return whether there was memory. @thread the loop's, before any other is there */
bool outbox_init(struct rm *rm, struct event_base *base);
/** @thread the loop's, when no other is left */
void outbox_free(struct rm *rm);

/** rm_ops.attach. */
void others_attach(struct rm *rm, const char *nspace, uint64_t run, uint32_t base, uint32_t nnodes,
                   const struct boot_node *nodes);
/** @thread the loop's, after outbox_free() */
void others_free(struct rm *rm);

/** rm_ops.rendezvous, rm_ops.resolve and rm_ops.others. */
void scout_rendezvous(struct rm *rm, rm_rendezvous_fn *done, void *arg);
void scout_resolve(struct rm *rm, const char *nspace, rm_rendezvous_fn *done, void *arg);
void scout_others(struct rm *rm, rm_rendezvous_fn *each, void *arg);
/** rm_ops.job_now */
void scout_job_now(struct rm *rm, rm_job_fn *done, void *arg);
/** @return whether the thread has ended until @p by, after rm->closing was set. @thread the loop's
 */
bool scout_join(struct rm *rm, int64_t by);
/** @thread the loop's, when no other is left */
void scout_free(struct rm *rm);

/** @return 0 or an error number. @thread the loop's */
int ender_start(struct rm *rm);
/** rm_ops.abort. The first order counts. */
void ender_order(struct rm *rm, const struct rm_ending *ending);
/** rm_ops.show. */
void ender_show(struct rm *rm, const char *line);
/**
 * Waits for the thread's end until @p by, a value of now_ms(), after rm->closing was set; ends the
 * process if it hangs. A step that is to end must end: while slurmctld has not taken the order,
 * this waits for longer. Then the other servers whose tasks live try. @thread the loop's
 */
void ender_join(struct rm *rm, int64_t by);
