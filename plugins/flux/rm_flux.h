/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The parts of the back end for Flux. @thread all of it: the loop's
 */
#pragma once

#include "common/transport/rm.h"
#include "plugins/flux/packet.h"
#include "shims/flux/flux_abi.h"

/** A message under way. */
struct message {
    struct message *next;
    uint32_t tag;    /**< of the request */
    uint64_t ticket; /**< for rm_host.arrived() */
    size_t len;      /**< bytes of frames */
};

/** Another server. */
struct peer {
    uint64_t job;
    uint32_t node;               /**< there */
    uint32_t broker;             /**< its rank, once it is placed */
    bool placed;                 /**< of other jobs the brokers have to be asked for first */
    struct other *other;         /**< the job that was attached; NULL: our own */
    const char *name;            /**< of its node, or of the other job's namespace; borrowed */
    bool more;                   /**< rm_host.next() may have something */
    struct message *sent, **end; /**< under way, in order */
    uint32_t messages;           /**< of these */
    uint64_t bytes;              /**< in them */
    int64_t answer_by, failing_since, not_before; /**< now_ms() */
    unsigned retry_ms;
    uint64_t retries;
    enum rm_peer_state state;
    bool reached; /**< as rm_peer::reached */
    bool tell;    /**< the server does not know yet that it is lost */
    char why[256];
};

/** A job that was attached. */
struct other {
    struct other *next;
    char *nspace;
    uint64_t job; /**< 0: the namespace is of no job of Flux */
    uint32_t base, nnodes;
    bool wanted;        /**< something is to be sent there */
    bool asked;         /**< for its brokers: a question is open, or they are known */
    struct peer *peers; /**< by node */
};

/** What the module was asked: another job's brokers, or which job that is, or where to meet. */
struct question {
    struct question *next;
    struct other *other; /**< whose brokers; NULL: where to meet, or a job by its number */
    uint64_t job;        /**< whose number of nodes, without other; 0: where to meet */
    rm_rendezvous_fn *done;
    void *arg;
    uint32_t tag; /**< of the request; 0: none is under way */
    int64_t give_up, not_before;
    unsigned retry_ms;
};

/** How far the job's end has come that the server asked for (rm_ending.c). */
struct rm_raise {
    enum {
        RAISE_NONE,
        RAISE_ASKED,  /**< whether the job has a fatal exception already */
        RAISE_FREE,   /**< it has none, as has just been said */
        RAISE_RAISED, /**< the exception is under way, or is to go again */
        RAISE_DONE,
    } state;
    char *text;         /**< the exception, owned; NULL: none is to be raised so far */
    rm_ending_fn *done; /**< the server has asked; NULL: it has not */
    void *arg;
    uint32_t tag;  /**< of the request; 0: none is under way */
    int64_t again; /**< when to try again, now_ms(); 0: not */
    unsigned ms;   /**< between the last two tries */
};

/** How this server stands with the module of its own broker. rm_broker.c has the table. */
enum broker_state {
    BROKER_APART, /**< it does not know us: not yet, or it refuses, or was unloaded */
    BROKER_BUSY,  /**< the same, since too many of the user's servers ask */
    BROKER_ASKED, /**< muster.register is under way */
    BROKER_KNOWS, /**< it has accepted us */
    BROKER_GONE,  /**< the connection is lost */
    BROKER_STATES,
};

enum broker_event {
    BROKER_ASK,
    BROKER_WELCOME,
    BROKER_REFUSE,
    BROKER_DELAY,
    BROKER_LOSE,
    BROKER_EVENTS
};

struct rm {
    const struct boot *boot;
    struct rm_host host;
    int64_t peer_ms;
    uint64_t job;
    uint32_t *brokers;   /**< rank by node of the own job */
    struct peer *own;    /**< its servers */
    struct peer **peers; /**< by handle */
    uint32_t npeers;
    struct other *others;
    struct question *questions;
    uint32_t *parents; /**< by node: the next one above it in the overlay; NULL: not told */

    flux_t *h;
    int fd; /**< its socket, borrowed */
    struct event *ready, *timer;
    enum broker_state broker; /**< how we stand with our own one */
    uint32_t last_tag;        /**< that was given to a request */
    uint32_t stream;          /**< tag of muster.register; 0: it was refused */
    uint32_t taken;           /**< messages since the last muster.took */
    uint64_t taken_bytes;
    uint64_t ticket; /**< of the last of them */
    int64_t took_at; /**< when to say so, now_ms(); 0: there are none */
    int64_t took_by; /**< at the latest */
    bool opening;    /**< the server takes nothing yet but the answer to muster.register */
    bool warned;     /**< the user was told that the module is away */
    int64_t silent_since, register_at;
    unsigned register_ms;
    struct rm_raise raise;
    struct call *calls; /**< of PMIx_Spawn: rm_spawn.c */
    bool closing;
    struct err refused; /**< the last answer to muster.register */
};

enum { RM_RETRY_FIRST_MS = 10, RM_RETRY_MAX_MS = 500 };

/** Has the loop do what is due, in a moment. Not by the timer: setting it undoes that, and what the
 * server asks for within lost() is asked for just before. */
static inline void rm_wake(struct rm *rm)
{
    if (!rm->closing)
        event_active(rm->ready, EV_READ, 0);
}

/** Connects to the broker at @p uri. @return 0, or -1 with the reason in @p err */
int broker_connect(struct rm *rm, const char *uri, struct err *err);

/**
 * Sends a request to the local broker. The socket takes it at once but when the broker hangs, and
 * then so does the node.
 * @param msg taken over; NULL: it could not be made
 * @param tag 0: it has no answer
 */
void broker_send(struct rm *rm, flux_msg_t *msg, uint32_t tag);

/** A request to muster's module of a broker.
 * @param out its bytes; emptied
 * @return the message, or NULL when out of memory; for broker_send() */
flux_msg_t *broker_request(const char *topic, uint32_t broker, struct wire_out *out);

/** Asks the module of our own broker, and no other: without a rank, the next broker above that has
 * the module would take what ours, while it has none, does not.
 * @param out, tag as for broker_request() and broker_send() */
void broker_ask(struct rm *rm, const char *topic, struct wire_out *out, uint32_t tag);

/** @return a tag that nothing under way has */
uint32_t broker_tag(struct rm *rm);

/** What to do where the module is not loaded in a broker. */
#define LOAD_MODULE "let \"flux module load " FLUX_MODULE "\" run there"

/** Sends muster.register. */
void broker_register(struct rm *rm);

/** Notes what has happened between us and the module. */
void broker_move(struct rm *rm, enum broker_event event);

/** The connection is lost: what is due then, peers_tick() and others_tick() do. */
void broker_lost(struct rm *rm);

/** Takes all that the broker has sent: rm_answers.c. */
void broker_receive(struct rm *rm);

/** Says what was taken, if that is due. @return when to come again, now_ms(); INT64_MAX: no need */
int64_t broker_tick(struct rm *rm, int64_t now);

/** Sends to @p node what waits for it, if it is its turn. */
void peer_push(struct rm *rm, uint32_t node);

/** The answer to what went to a peer, if @p tag is that of one. */
void peer_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg);

/** The module says that a server is gone, or with PACKET_ALL_NODES a job. */
void peer_gone(struct rm *rm, uint64_t job, uint32_t node, uint8_t loss);

/** A broker is lost. */
void peers_offline(struct rm *rm, uint32_t broker);

/** Gives up all peers but ourselves. */
void peers_lose(struct rm *rm, const char *why);

/** Gives a peer up; peers_tell() says so to the server. */
void peer_lose(struct rm *rm, uint32_t node, const char *why);

/** Tells the server of peers that were given up. */
void peers_tell(struct rm *rm);

/** What is due: peers that have not answered, and those to send to again; all are lost with the
 * broker.
 * @return when to come again, now_ms(); INT64_MAX: no need */
int64_t peers_tick(struct rm *rm, int64_t now);

/** Writes how many peers were reached, and their brokers' ranks. */
void peers_reached(const struct rm *rm, struct wire_out *out);

/** Whether nothing is to be sent, nor under way. */
bool peers_idle(const struct rm *rm);

void peers_free(struct rm *rm);

/* ---- the job's end: rm_ending.c ---- */

/** rm_ops.abort */
void raise_begin(struct rm *rm, const struct rm_ending *ending);

/** rm_ops.is_ending */
void raise_look(struct rm *rm, rm_ending_fn *done, void *arg);

/** Takes an answer of the job manager. @param rc 0, or an errno with @p why; @p data is borrowed
 * @return whether @p tag is that of one */
bool raise_answer(struct rm *rm, uint32_t tag, int rc, const char *why, const void *data,
                  size_t len);

/** Raises again what was refused, if that is due. @return as peers_tick() */
int64_t raise_tick(struct rm *rm, int64_t now);

/** Whether no end of the job is under way. */
bool raise_idle(const struct rm *rm);

/* ---- jobs that processes here start: rm_spawn.c ---- */

/** rm_ops.spawn and rm_ops.started */
void spawns_start(struct rm *rm, const struct rm_spawn *what, rm_spawn_fn *news, void *arg);
void spawns_started(struct rm *rm, const struct rm_spawn_news *news);

/** Takes an answer of the job's shell. @return whether @p tag is that of one */
bool spawns_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg);

/** Gives up what the shell does not answer. @return as peers_tick() */
int64_t spawns_tick(struct rm *rm, int64_t now);

void spawns_free(struct rm *rm);

/* ---- other jobs: others.c ---- */

/** rm_ops.rendezvous, rm_ops.resolve and rm_ops.attach */
void others_rendezvous(struct rm *rm, rm_rendezvous_fn *done, void *arg);
void others_resolve(struct rm *rm, const char *nspace, rm_rendezvous_fn *done, void *arg);
void others_attach(struct rm *rm, const char *nspace, uint64_t run, uint32_t base, uint32_t nnodes,
                   const struct boot_node *nodes);

/** Asks again for the brokers of all jobs that were found: the module was loaded anew, and is to
 * tell them when we are gone. */
void others_find_again(struct rm *rm);

/** Takes an answer to a question. @return whether @p tag is that of one */
bool others_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg);

/** Asks for the brokers of jobs that something is to be sent to, and what else is due, and gives up
 * what has waited too long, also when the broker is gone.
 * @return as peers_tick() */
int64_t others_tick(struct rm *rm, int64_t now);

void others_free(struct rm *rm);
