/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Everything that one muster-server owns: the loop, and what lives on it.
 * @thread the loop's
 */
#pragma once

#include "common/conf/conf.h"
#include "common/handoff/handoff.h"
#include "common/nspace/nspace.h"
#include "common/nspace/psets.h"
#include "common/nspace/registry.h"
#include "common/nspace/stop.h"
#include "common/server/steps/book.h"
#include "common/server/tasks/task.h"
#include "common/tracker/engine.h"
#include "common/tracker/values/ranges.h"
#include "common/transport/ask.h"
#include "common/transport/direct/direct.h"
#include "common/transport/link.h"
#include "common/transport/rm.h"
#include "common/util/names.h"
#include "common/util/timers.h"

#include <sys/queue.h>

struct server;

/** Events since the start. */
struct event_counts {
    uint64_t out, in; /**< handed up by libpmix here, and given to it for other nodes */
    uint64_t dropped; /**< of other nodes, that could not be given to libpmix */
    uint64_t refused; /**< not sent to all, as some server does not take what it is sent */
};

/** What was lost first outside of this node: tasks here that end afterwards most likely do so for
 * it. What moves it, where * stands for "if that was on the same node, else –":
 *
 *              an operation     an operation     a server died,     a server left before its
 *              fails: a task    fails: a server  or is gone and     tasks called PMIx, and
 *              has ended        is lost          is waited for      nothing waits for it
 *     none     task             server           server             unsaid
 *     task     –                –                server *           unsaid *
 *     server   –                –                server *           unsaid *
 *     unsaid   server *         server *         server *           unsaid *
 */
enum first_loss {
    LOSS_NONE,
    LOSS_TASK,   /**< a task, whose server lives */
    LOSS_SERVER, /**< a server */
    LOSS_UNSAID, /**< a server, and the user has not been told, as nothing waited for it */
};

/** Whether lost tasks here were killed because the RM ends the step (tasks.c). Asked before a loss
 * is told, and forgotten once it is told. */
enum whose_end {
    END_UNASKED,
    END_ASKED,  /**< the RM has not answered yet */
    END_OF_RM,  /**< it ends the step: no task is to blame */
    END_OF_TASK /**< it does not: they ended by themselves */
};

/** job_now.h: questions that wait for the RM's answer. */
struct job_now {
    LIST_HEAD(, job_wait) waits;
    bool asked; /**< there is one to come */
};

/** What stands behind the folders that say it: above all what tells libpmix's clients (notify/,
 * upcall/). */
struct server_hooks {
    /** The task in @p slot of this node counts as ended, as if the launcher had said so. */
    void (*task_gone)(struct server *server, uint32_t slot);
    /** The task in @p slot of this node is lost, and the step goes on. @param text for people */
    void (*task_lost)(struct server *server, uint32_t slot, const char *text);
    /** So are the tasks of node @p node, with its server. @param why one clause */
    void (*server_lost)(struct server *server, uint32_t node, const char *why);
    /** Server @p from of the step, this one perhaps, has said something to all. @param message type
     * byte and body of a frame, borrowed */
    void (*said)(struct server *server, uint32_t from, const void *message, size_t len);
    /** Answers a question at once. @param topic of those that all servers may be asked
     * @param out all zero; gets the answer @return PMIX_SUCCESS, or why there is none */
    int32_t (*answer)(struct server *server, enum ask_topic topic, const void *body, size_t len,
                      struct wire_out *out);
    /** The step of another namespace has ended. */
    void (*nspace_ended)(struct server *server, const char *nspace);
    /** All processes of the step that are to wait for a debugger do: debug_ready(). */
    void (*ready)(struct server *server);
    /** A process of this node waits for a debugger: stopped_ready(). */
    void (*stopped)(struct server *server, uint32_t rank, const char *where);
    /** Servers are not in the view any more: stopped_view_changed(). */
    void (*view_changed)(struct server *server, const struct ranges *lost,
                         const struct ranges *left);
};

enum { STOPPED_WHERE_SIZE = 64 /**< bytes of a PMIX_BREAKPOINT, with its end */ };

/** Processes of the step that wait for a debugger: status/stopped.h. */
struct stopped {
    struct stop stop;               /**< what was asked for */
    uint32_t n;                     /**< how many wait, as the head has last said */
    bool ready;                     /**< all that are to */
    char where[STOPPED_WHERE_SIZE]; /**< PMIX_BREAKPOINT; "": none waits */
};

/** A program beside a task that has ended without PMIx_Finalize: cut.h. */
enum beside {
    BESIDE_NONE,
    BESIDE_SEEN, /**< the user is to be told */
    BESIDE_TOLD,
};

enum { SERVER_KILL_MS = 10000 /**< for the RM to kill the tasks of a step that is to end */ };

struct server {
    const struct server_hooks *hooks; /**< life/core.c's; called on the loop */
    struct conf conf;
    enum log_level log_level;    /**< of the log that is not the user's own: see settings.c */
    struct conf_sources sources; /**< of conf */
    struct boot boot;
    struct event_base *base;
    struct event *control; /**< the launcher's socket */
    struct timers timers;  /**< all that is done at a later time */
    struct timer settle;   /**< upcall/settle.c: memory goes back */
    struct event *timer;   /**< the first of these */
    struct handoff *handoff;
    struct nspace *nspace;
    struct topology *topology;  /**< NULL: not known */
    char *uri;                  /**< where tools reach libpmix's server; NULL: no task is here */
    struct task *tasks;         /**< slot → task */
    uint32_t ntold;             /**< tasks whose start the launcher has told of */
    bool argv_sought;           /**< @thread PMIx's: the command line was looked for */
    struct handoff_item *held;  /**< requests that wait for tasks_loss_is_told() */
    struct timer report_losses; /**< of losses that are told then; it runs while there are any */
    enum whose_end whose_end;   /**< of these */
    struct procset paused;      /**< signals.c: those of the step that job control has stopped */
    bool stall_told;            /**< the user has been shown that something waits */
    bool told_to_leave;         /**< the launcher shuts the control socket in order */
    bool leaving;               /**< what waited was answered: frames are of no use any more */
    bool ending;                /**< the step is being ended: more deaths are no news */
    struct timer kill_rest;     /**< kills tasks that outlive the step's end: tasks.c */
    struct timer end_bereft;    /**< when it has it ended for a server that died, if no other has */
    enum first_loss loss;       /**< what was lost first, and has tasks end afterwards */
    char lost[256];             /**< the same for the user; "" for none */
    uint32_t lost_on;           /**< its node */
    int64_t bereft_at;          /**< when an operation last failed for a task of another node, ms */
    struct psets psets;         /**< sets.c: of the own step */
    struct name_set registered; /**< sets.c: other steps' namespaces that libpmix knows */
    struct registry *registry;
    struct book book;           /**< connections of processes here */
    LIST_HEAD(, served) served; /**< upcall/modex.c: what other servers ask about processes here */
    uint64_t nserved;           /**< such questions that libpmix was handed, ever */
    struct collective *groups;  /**< upcall/pending.c: group operations that libpmix waits for */
    uint32_t refused;           /**< upcall/refused.c: a bit for each kind that was told of */
    bool told_unawaited;        /**< upcall/collective.c: of a group that libpmix made by itself */
    uint32_t ntools;            /**< tools that were given a name */
    struct event_counts events;
    struct engine *engine;
    struct asks *asks;
    struct link *link;
    struct ranges in_order;    /**< departed.c: all of the step that have */
    struct view *view;         /**< who is in the step, and what is said to all: view/view.h */
    struct agreed *agreed;     /**< agreed.c: what is known here of those who are not any more */
    enum beside beside;        /**< cut.c: the user's word of a program beside a task */
    uint32_t beside_slot;      /**< cut.c: of that task */
    struct timer beside_due;   /**< cut.c: when the user is told */
    struct alone *alone;       /**< alone.c: an MPI without PMIx in the program, or NULL */
    struct stranded *stranded; /**< stranded.c: tasks that libpmix keeps waiting, or NULL */
    LIST_HEAD(, spawn) spawns; /**< upcall/spawn.c: steps that processes here have asked for */
    LIST_HEAD(, allocation)
    allocations;               /**< upcall/allocate.c: changes of the allocation, the same */
    struct forwards *forwards; /**< upcall/forward.c: what those print */
    struct shown_wait *shown;  /**< shown.h: the first one asked first */
    LIST_HEAD(, inlet) inlets; /**< upcall/push.c: what those read */
    struct printer *printer;   /**< upcall/printer.c: what the step's own print; NULL: none can */
    LIST_HEAD(, checkpoint_part)
    checkpoints; /**< upcall/checkpoint.c: what processes here are asked for */
    LIST_HEAD(, checkpoint)
    checkpoint_calls;      /**< the same: calls here that wait */
    uint64_t ncheckpoints; /**< such calls, ever */
    LIST_HEAD(, control_answer)
    control_answers;    /**< upcall/control.c: to questions that may come again */
    uint64_t ncontrols; /**< the same: such questions of this server, ever */
    struct stopped stopped;
    struct stops *stops;             /**< status/stopped.c: who of the step is stopped */
    LIST_HEAD(, debug_tool) tools;   /**< notify/debug.c: those that are connected here */
    struct credentials *credentials; /**< upcall/credential.c; NULL: none was asked for */
    struct execs *execs;             /**< execs.c; NULL: no other step has started this one */
    struct streams *streams;         /**< streams.c; the same */
    struct holder *holder;           /**< holder.h: the session's, and the way to it */
    uint64_t published;              /**< upcall/data.c: numbers of requests so far */
    struct spreads *spreads;         /**< spread.h; NULL: the session has no other step */
    struct seeks *seeks;             /**< seek.h; the same */
    struct job_now job_now;
    struct timer kept; /**< steps_known.c: when it looks for what to forget */
    const struct rm_ops *rm_ops;
    struct rm_ops own_step; /**< core.c: the same without what other steps need */
    struct rm *rm;
    struct direct *direct;       /**< NULL: there are no direct connections */
    struct status *status;       /**< shows all this */
    struct trace *trace;         /**< trace.h; NULL: none is written */
    struct totals *totals;       /**< totals.h; NULL: no line at the end of the step */
    int64_t started;             /**< now_ms() */
    struct evbuffer *control_in; /**< bytes of the launcher that make no message yet */
    uint32_t library;            /**< libpmix at run time, 0xMMmmrr */
    uint64_t tree; /**< hash of how the back end would have servers hang together; 0: as
                      tree_arity says */
};

/** Has @p item run once a loss of tasks was told. */
void server_hold(struct server *server, struct handoff_item *item);

/** Runs what was held. */
void server_resume(struct server *server);

/** Runs the loop until something has happened, a timer included. @param ms the most; -1: no limit
 * @return whether the loop can go on */
bool server_turn(struct server *server, int64_t ms);

/** @param what BOOT_SAYS_… (boot.h) @return whether the launcher takes it */
bool server_tell_launcher(unsigned char what);

/** Has the RM end the step, and tells the other servers that it does. The user reads ending->why
 * once: from the RM (rm_ops.shows_why), unless ending->told, or in an error that a server logs.
 * Tasks that live some seconds later are killed, by each server on its own node.
 * @param ending why, and with which status; borrowed
 * @param teller the node of the server that tells the user, where the RM does not: this one, as a
 * rule; or ENDING_… */
void server_end_step(struct server *server, const struct rm_ending *ending, uint32_t teller);

/** The step is to end: deaths of its tasks are no news any more, and tasks that live on for
 * SERVER_KILL_MS are killed. */
void server_is_to_end(struct server *server);

/** Has deadlines of operations stand still while processes of the step are stopped, by job control
 * or for a debugger, and go on afterwards: these are not late. Called when that may change. */
void server_stand_still(struct server *server);

/** @return whether the server of another node is not there any more, as far as this one knows */
bool server_has_left(const struct server *server, uint32_t node);

/** Says something to all servers of the step, which hear it in the order of all such words.
 * @param message type byte and body of a frame; its bytes are taken */
void server_say(struct server *server, struct wire_out *message);

/** Tells the RM's back end what this server has learnt of another one, where it asks for that. Of
 * one that has left nothing is kept any more. */
void server_learn(struct server *server, uint32_t node, enum rm_fact fact);

/** @return how many processes of this node are in a set */
uint32_t server_members_here(const struct server *server, const struct procset *set);

/* Entries of the environments that parts of a server are given; @p arg is the server. @thread the
 * loop's */

/** @return 0 and the server of a process, or -1 when there is no such process */
int server_node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node);
