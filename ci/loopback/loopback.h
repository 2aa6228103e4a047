/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers in one process, of one step or of as many, for tests: a seeded network and a virtual
 * clock.
 *
 * Every server is an engine, a link, its asks and perhaps the agreed view, wired as muster-server
 * wires them; the network between the links delays, reorders, repeats and loses frames, cuts
 * servers off and lets them die.
 * All of it follows from the seed. Time moves only in loopback_run(), from one event to the next.
 *
 * Ranks live where their numbers say: rank r of any namespace is on server r. A signature with a
 * rank beyond the last server has unknown participants.
 * @thread one
 */
#pragma once

#include "common/tracker/engine.h"
#include "common/transport/ask.h"
#include "common/transport/link.h"

/** The status codes of the servers' engines and asks. */
enum loopback_code {
    LOOPBACK_TIMEOUT = -24,
    LOOPBACK_LOST = -101,
    LOOPBACK_LEFT = -201, /**< of engine_left() */
    LOOPBACK_INVALID = -46,
    LOOPBACK_LIBRARY = -47,
    LOOPBACK_CLOSING = -25,
    LOOPBACK_UNSUPPORTED = -48,
    LOOPBACK_COUNT = -49,
};

/** splitmix64: the same numbers on every machine. */
struct loopback_random {
    uint64_t state; /**< the seed */
};

uint64_t loopback_random(struct loopback_random *random);

/** @return a number in 0..n-1; @p n is at least 1 */
uint32_t loopback_below(struct loopback_random *random, uint32_t n);

/** A network. */
struct loopback_conf {
    uint32_t nnodes, arity;
    const uint32_t
        *parents; /**< of each server, for engine_shape(); NULL: none; not when foreign */
    uint64_t seed;
    bool foreign; /**< each server is a step of its own, and calls the others by handles of its own
                       (rm.h), which say nothing to another one */
    bool agreed;  /**< the servers of the step agree on who is lost (view/view.h), and not each by
                       itself; not when foreign, nor where frames are lost */
    uint32_t delay_min, delay_max; /**< ms that a frame takes */
    bool reorder;                  /**< later frames of a pair may overtake earlier ones */
    uint32_t duplicate, drop;      /**< frames of 1000 that come twice, or never */
    /** Frames of 1000 that find the direct connection to their receiver cut. 0: all go natively */
    uint32_t cut;
    uint32_t
        unread; /**< frames of 1000 that go natively and stay for up to a second at the socket */
    uint32_t stall;        /**< the engines' stall report, seconds; 0: never */
    uint32_t large, piece; /**< engine_env::large, and piece */
    void *arg;             /**< of the functions */
    /** Sees the bytes of each frame that is sent; false loses it. May be NULL. */
    bool (*filter)(void *arg, uint32_t from, uint32_t to, const void *data, size_t len);
    /** The engine's local_status of server @p node; NULL: loopback_local_status() says it. */
    int32_t (*local_status)(void *arg, uint32_t node, const struct signature *sig);
    /** The engine's local_gone of server @p node; NULL: while its local_status is not 0, all that
     * take part. */
    void (*local_gone)(void *arg, uint32_t node, const struct signature *sig, struct procset *gone);
    /** The engine's missed of server @p node. NULL: nobody is told. */
    void (*missed)(void *arg, uint32_t node, const void *sig, size_t siglen,
                   const struct engine_result *result);
    /** The home of a bootstrap, as server @p node is told: a server. Only when foreign; NULL: by
     * the id. */
    uint32_t (*home)(void *arg, uint32_t node);
    /** Server @p node has been left out: of the servers that are not, the first goes on without it.
     * NULL: nobody is told. */
    void (*left_out)(void *arg, uint32_t node);
    /** A frame of server @p from that must arrive comes to server @p node, which counts @p from as
     * having left in order. NULL: nobody is told. */
    void (*too_late)(void *arg, uint32_t node, uint32_t from);
    /** Serves ASK_MODEX; may be NULL, and then the topic is unknown. @param node who is asked */
    void (*serve)(void *arg, uint32_t node, uint32_t from, uint64_t id, const void *body,
                  size_t len);
};

struct loopback;

/** @return a network with all its servers; aborts when out of memory */
struct loopback *loopback_new(const struct loopback_conf *conf);

/** Closes the servers that still live, which answers what waits, and frees all. */
void loopback_free(struct loopback *net);

struct engine *loopback_engine(struct loopback *net, uint32_t node);
struct link *loopback_link(struct loopback *net, uint32_t node);
struct asks *loopback_asks(struct loopback *net, uint32_t node);

/** @return the virtual clock, ms; starts at 1000 */
uint64_t loopback_now(const struct loopback *net);

/** @return ms until something is due on @p node; -1: nothing is */
int64_t loopback_wait(const struct loopback *net, uint32_t node);

/** @return whether @p node keeps nothing: all but a tracker and the view's words has a timer as
 * long as it is kept */
bool loopback_is_empty(const struct loopback *net, uint32_t node);

/** @return the network's random numbers, for decisions that shall follow from its seed */
struct loopback_random *loopback_numbers(struct loopback *net);

/** Calls @p run at @p at, which is not past. */
void loopback_at(struct loopback *net, uint64_t at, void (*run)(struct loopback *net, void *arg),
                 void *arg);

/** Lets @p ms pass: delivers and ticks whatever is due until then, in order of time and then of
 * sending. */
void loopback_run(struct loopback *net, uint64_t ms);

/** Server @p node is gone now: its engine is closed, frames to it are lost, and each other server
 * notices that after between @p min and @p max ms of its own. What it sent before may still arrive
 * until then. */
void loopback_kill(struct loopback *net, uint32_t node, uint32_t min, uint32_t max);

/** Server @p node ends in order: it closes its engine, and then leaves the view. Without a view it
 * is killed. */
void loopback_leave(struct loopback *net, uint32_t node, uint32_t min, uint32_t max);

/** Nothing comes from one of two servers to the other any more, which both notice like the end of a
 * server. One of them is left out of the view. */
void loopback_part(struct loopback *net, uint32_t a, uint32_t b, uint32_t min, uint32_t max);

/** Server @p node, which was killed, and whose loss is known, runs again in a foreign network: each
 * other one forgets namespace @p nspace, and knows the new server by a new handle. */
void loopback_rerun(struct loopback *net, uint32_t node, const char *nspace);

/** @return the number of servers */
uint32_t loopback_count(const struct loopback *net);

/** @return whether @p node was killed, leaves, or was left out */
bool loopback_dead(const struct loopback *net, uint32_t node);

/** Until @p until, frames between servers of different @p sides stay under way, as with a
 * transport that repeats what is not confirmed. @param sides one value a server; copied */
void loopback_partition(struct loopback *net, const uint8_t *sides, uint64_t until);

/** What the engine's local_status says on @p node from now on; tells the engine.
 * @param status 0, or the failure of the server's participants */
void loopback_local_status(struct loopback *net, uint32_t node, int32_t status);

/** Gives @p node a new engine with another version of the PMIx library. Before its first frame. */
void loopback_library(struct loopback *net, uint32_t node, uint32_t library);

/** Gives @p node a new engine with trees of another arity. Before its first frame. */
void loopback_arity(struct loopback *net, uint32_t node, uint32_t arity);

/** The same with trees of another shape. */
void loopback_shape(struct loopback *net, uint32_t node, const uint32_t *parents);
