/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The resource manager's seam: all that muster-server needs of the RM that started it.
 *
 * A back end is a shared object that exports one `const struct rm_ops muster_rm`; plugins/ holds
 * them. Nothing above this line names an RM.
 */
#pragma once

#include "common/conf/conf.h"
#include "common/launch/boot.h"
#include "common/transport/frame.h"
#include "common/transport/rm_alloc.h"
#include "common/transport/rm_spawn.h"
#include "common/transport/wire.h"

#include <event2/event.h>

/** A back end's own state. */
struct rm;

/** What a back end tells the server. @thread the loop's */
struct rm_host {
    void *arg;
    /** A peer's bytes came, from a process that the RM vouches to be the job's user; with
     * rm_ops.attach also from servers of other steps, attached or not. They may be a repetition.
     * @param data borrowed */
    void (*receive)(void *arg, const void *data, size_t len);
    /** Takes the next frames for server @p node, a handle. They stay the server's until arrived()
     * or failed(), or until it sends them by another way meanwhile.
     * @param max bytes; one frame may have more @param out the frames' bytes are appended
     * @return a ticket for arrived(), higher than those before; 0: there is nothing, or no memory,
     * and then @p out says so */
    uint64_t (*next)(void *arg, uint32_t node, size_t max, struct wire_out *out);
    /** What next() gave with that ticket has arrived, and what it gave before and has not failed.
     */
    void (*arrived)(void *arg, uint32_t node, uint64_t ticket);
    /** Something that next() gave may not have arrived: it gives all again that has not.
     * @return whether there is something; not of frames that are worth one try, nor of frames that
     * go by another way meanwhile */
    bool (*failed)(void *arg, uint32_t node);
    /** Server @p node, a handle, cannot be reached any more. @param why one clause, borrowed */
    void (*lost)(void *arg, uint32_t node, const char *why);
    /** Shows this server's operations to the RM's admin.
     * @param max bytes that there is room for
     * @return JSON (docs/wire.md, "A server's operations"), malloc()ed for the caller, or NULL when
     * out of memory */
    char *(*state)(void *arg, size_t max, size_t *len);
};

/** Whether a back end sends to a server. rm.c has the table of how that moves. */
enum rm_peer_state {
    RM_PEER_OPEN, /**< what is sent goes there, or is tried again */
    RM_PEER_AWAY, /**< it has ended in order; as nothing was for it, rm_host.lost() has not said so
                   */
    RM_PEER_LEFT, /**< it was given up, because it has ended in order */
    RM_PEER_LOST, /**< it was given up for another reason */
    RM_PEER_DIED, /**< it was given up, because the RM saw its process end, not in order */
    RM_PEER_STATES,
};

/** What can happen to a server. */
enum rm_peer_event {
    RM_PEER_PART, /**< the RM, or the server itself, says that it has ended in order */
    RM_PEER_LOSE, /**< it is given up */
    RM_PEER_DIE,  /**< the RM says that its process has ended, not in order */
    RM_PEER_EVENTS,
};

/** How a back end gets on with one server. */
struct rm_peer {
    enum rm_peer_state state;
    /** Something has arrived there, or has come from there. No state: a server that never came may
     * be given up in each way, and what one has sent before may come afterwards. */
    bool reached;
    int64_t failing_since; /**< now_ms() of the first failure in a row; 0: it is not failing */
    uint64_t retries;      /**< messages that had to be sent again */
};

/** @return whether the server was given up */
static inline bool rm_peer_is_lost(enum rm_peer_state state)
{
    return state >= RM_PEER_LEFT;
}

/** Notes what has happened to a server. @param name for the log
 * @return whether it is given up by that: it was not before @thread any */
bool rm_peer_move(enum rm_peer_state *state, enum rm_peer_event event, const char *name);

/** What the server has learnt of another one by other ways than the back end's own. */
enum rm_fact {
    RM_HEARD, /**< something has come from it: it has been there */
    RM_LEFT,  /**< it has left in order: nothing arrives there any more */
};

/** A server of the session by name: of any step of the job's user that the RM counts to it. */
struct rm_server {
    const char *nspace; /**< its step's PMIx namespace, borrowed */
    uint64_t run;       /**< boot::run of that step */
    uint32_t node;      /**< its node's index in that step */
    uint32_t nnodes;    /**< nodes of that step */
};

/**
 * Takes the answer of rm_ops.rendezvous.
 * @param server borrowed until this returns; NULL: there is none, or it is not known
 * @param why    then one clause, borrowed
 * @thread the loop's
 */
typedef void rm_rendezvous_fn(void *arg, const struct rm_server *server, const char *why);

/** What a step ends for, the weightiest first: of two that are told for one step, the RM takes the
 * weightier one, and of two alike the first. */
enum rm_cause {
    RM_CAUSE_ABORT, /**< a process called PMIx_Abort */
    RM_CAUSE_TASK,  /**< a task was lost: it ended between PMIx_Init and PMIx_Finalize */
    RM_CAUSE_HOST,  /**< a server, or what watches it, was lost; of no task is known how it ended */
};

/** How a step ends that muster has ended (common/server/ending.h makes it). */
struct rm_ending {
    enum rm_cause cause;
    /** The exit status that the step is to have for the user, as a shell shows it: that
     * of the abort; else exit code, or 128 + signal, of the first lost task. Without this, the user
     * sees what the RM makes of tasks that it killed. 0 only after PMIx_Abort with status 0. */
    uint8_t status;
    const char *why; /**< one line, for the RM's record where it keeps one; borrowed */
    bool told;       /**< the user reads it without rm_ops.abort() */
};

/** Makes a credential that only processes of our own user can read, or reads one of a process of
 * our own user; both borrow @p data and append to @p out. They may wait for seconds, and are called
 * after the back end was closed, too. @return whether that worked @thread any */
struct vouch_ops {
    bool (*seal)(const void *data, size_t len, struct wire_out *out);
    bool (*open)(const void *data, size_t len, struct wire_out *out);
};

/** @param ending whether the RM has begun to end the step, for a reason of its own or because it
 * was told to */
typedef void rm_ending_fn(void *arg, bool ending);

/** @param seconds how long the job may still run; -1: it is not known
 * @param nodes the nodes that it has now and their processors, "c07=16,c08=16", borrowed; NULL:
 * those that it had when the step began, or it is not known
 * @param why one clause, borrowed, when the seconds are not known; else NULL */
typedef void rm_job_fn(void *arg, int64_t seconds, const char *nodes, const char *why);

/**
 * What the server asks of a back end. @thread the loop's, none of them blocks
 *
 * Servers are named by handles. 0 to nnodes-1 are the servers of the own step, in the order of the
 * boot message; those of other steps have what attach() gave them. Handles mean something in one
 * server only.
 */
struct rm_ops {
    const char *name;
    const char *native; /**< by what messages go, as admins call it: "slurmd" */

    /**
     * Starts the back end.
     * @param boot,conf borrowed until close()
     * @param base the loop, to which the back end adds its events
     * @return its state, or NULL with the reason in @p err
     */
    struct rm *(*open)(const struct boot *boot, const struct conf *conf, struct event_base *base,
                       const struct rm_host *host, struct err *err);

    /** rm_host.next() has something for server @p node. The back end takes it when it has room, and
     * sends it until it is there or the node is lost, hence perhaps twice, and perhaps behind what
     * was given later. It tries once what next() gives for a node that was given up, which may live
     * nevertheless. */
    void (*ready)(struct rm *rm, uint32_t node);

    /** Says how it stands with server @p node. */
    struct rm_peer (*peer)(struct rm *rm, uint32_t node);

    /** Takes a fact about server @p node of the own step. lost() is not called for it. NULL: the
     * back end knows as much by itself */
    void (*learn)(struct rm *rm, uint32_t node, enum rm_fact fact);

    /** How servers of the own step hand each other a secret natively. NULL: what goes natively
     * can be read by no process of another user, except root and the user that runs the RM
     */
    const struct vouch_ops *vouch;

    /**
     * Ends the step with the rights of the job's user, and returns at once. It may be called on
     * several servers of a step, within milliseconds.
     *
     * The back end first has the RM note ending->status as that of the step, where it can, and then
     * has the tasks killed; a status that cannot be brought home is logged, and the step ends
     * nevertheless, after a bounded time. When the RM does not take the order to end the step, the
     * back end tries again until the step has ended, also while close() waits.
     * @param ending borrowed until this returns
     */
    void (*abort)(struct rm *rm, const struct rm_ending *ending);

    /** abort() shows ending->why to the user, unless he is told. Where the back end cannot, it logs
     * that as an error. */
    bool shows_why;

    /** Shows the user a line at the end of the step. Where it cannot be brought to the terminal, it
     * is logged as an error.
     * @param line borrowed until this returns; "": there will be one, and what the user has started
     * waits for it for some seconds after the tasks' end. A NULL function: the user sees
     * what is logged as an error, as long as the server lives */
    void (*show)(struct rm *rm, const char *line);

    /** Asks whether the RM ends the step already: it tells the user why, and tasks that it kills
     * are not to blame. An abort() that is called within @p done needs no second question. Asked
     * again only after the answer. NULL: the RM cannot tell.
     * @param done called once, perhaps before this returns, unless close() comes first; no later
     *             than what the RM does to the tasks */
    void (*is_ending)(struct rm *rm, rm_ending_fn *done, void *arg);

    /** From now on nothing new comes to this server: its senders are told that it has left.
     * @return whether something that was sent before is still to come; it is received as ever, and
     * the caller runs the loop for a moment and asks again. NULL: what this server does not take
     * any more, its senders are told of */
    bool (*shut)(struct rm *rm);

    /** Stops, at the latest after @p ms milliseconds that bytes under way may still take. No answer
     * to rendezvous() comes afterwards. */
    void (*close)(struct rm *rm, unsigned ms);

    /**
     * Finds the server at which all servers of the session meet: the holder (holder.h). It is one
     * for all that ask while it lives; which one is the RM's choice. Asking is dear: one server of
     * a step asks, and the step keeps the answer until that server is lost.
     * NULL: the session has one step.
     * @param done called once, perhaps before this returns, unless close() comes first; a server of
     *             the own step is the one that asks, or has just ended
     */
    void (*rendezvous)(struct rm *rm, rm_rendezvous_fn *done, void *arg);

    /**
     * Finds a step of the job's user by its namespace's name, which may be from anywhere.
     * NULL exactly when rendezvous is.
     * @param nspace borrowed until this returns
     * @param done   as for rendezvous(): a server of that step that answers, or NULL: there is no
     *               such step, or it has no server
     */
    void (*resolve)(struct rm *rm, const char *nspace, rm_rendezvous_fn *done, void *arg);

    /**
     * Names one server of each other step of the session: the server that has become the place
     * where all meet asks them for what they had told the one before. NULL: a lost server is told
     * to all that had to do with it, and they come by themselves.
     * @param each called for each, and at last with NULL, unless close() comes first
     */
    void (*others)(struct rm *rm, rm_rendezvous_fn *each, void *arg);

    /**
     * From now on the handles @p base to @p base + @p nnodes - 1 are the servers of @p nspace, in
     * the order of its nodes, for ready(), peer() and lost(). Each base is the end of the handles
     * before it. Called once for a namespace, never for the own one; and a second time, when its
     * nodes' names become known that were not at first. Nothing is sent by it. The RM sees to it
     * that bytes reach only a server of the same user, and of that run; when there is no such step,
     * its servers are lost as soon as something is sent to them.
     * NULL exactly when rendezvous is.
     * @param nspace borrowed until this returns
     * @param run    boot::run of that step
     * @param nodes  its nodes in that order, borrowed until this returns; NULL: not known. They are
     *               the word of a process of the job's user
     */
    void (*attach)(struct rm *rm, const char *nspace, uint64_t run, uint32_t base, uint32_t nnodes,
                   const struct boot_node *nodes);

    /** Asks how long the job may still run, and which nodes it has. Asked again only after the
     * answer. NULL: the RM has no such bound, and changes no job that runs.
     * @param done called once, perhaps before this returns, unless close() comes first */
    void (*job_now)(struct rm *rm, rm_job_fn *done, void *arg);

    /** @return for each server of the own step, by handle, the server that its messages pass on
     * their way to most others, or UINT32_MAX for none: how trees of servers are to hang together.
     * The same on every server; borrowed until close(). NULL, or a NULL function: any tree will do.
     */
    const uint32_t *(*parents)(struct rm *rm);

    /** Starts a step. @param what borrowed until this returns
     * @param news perhaps called before this returns; not after close(). NULL, or a NULL function:
     * PMIx_Spawn is refused */
    void (*spawn)(struct rm *rm, const struct rm_spawn *what, rm_spawn_fn *news, void *arg);

    /** The steps that processes here have started may go on without this one, which ends in order.
     * Those of a server that ends without this are ended. NULL when spawn is, or where the RM sees
     * it. */
    void (*let_go)(struct rm *rm);

    /** This step is one that another step has started: tells that step's server what has become of
     * it. Called once at most. @param news borrowed until this returns. NULL when spawn is. */
    void (*started)(struct rm *rm, const struct rm_spawn_news *news);

    /** Changes the allocation of the job that this step is of. Of several requests, also of several
     * servers, the back end does one after another. One that fails changes nothing.
     * @param what borrowed until this returns
     * @param done called once, perhaps before this returns, unless close() comes first.
     * NULL: allocations do not change here */
    void (*allocate)(struct rm *rm, const struct rm_alloc *what, rm_alloc_fn *done, void *arg);
};

/** The symbol that a back end exports. */
#define RM_SYMBOL "muster_rm"
