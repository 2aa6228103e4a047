/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The campaign of jobs that meet: a simulator of several steps of one user, whose servers publish,
 * look up, form groups and connect over steps, while holders of the session come and go. All of a
 * schedule follows from its seed.
 *
 * Each server is a real engine with its asks and its end of the holder, wired as muster-server does
 * it. The network keeps the order between two servers, takes its time, and may be cut for a while.
 *
 * | file | has |
 * | --- | --- |
 * | world.c | time, events, messages, who learns of a loss |
 * | rm.c | the resource manager: which step is the oldest one, as far as it can be reached |
 * | site.c | one server |
 * | plan.c | draws the steps, their ends and the mishaps |
 * | publish.c | processes that publish, look up and unpublish |
 * | meet.c | processes that form groups, connect and fence over steps |
 * | end.c | what has to hold at the end |
 */
#pragma once

#include "ci/campaign.d/holders/seed.h"
#include "ci/loopback/loopback.h"
#include "common/holder/holder.h"
#include "common/tracker/engine.h"

#include <sys/queue.h>

enum {
    STEPS_MAX = 10,
    SITES_MAX = 3, /**< servers of a step */
    SITES = STEPS_MAX * SITES_MAX,
    PLAY_MS = 60000,     /**< processes call and mishaps happen within it */
    SETTLE_MS = 400000,  /**< afterwards: holders look for older ones, silence is noticed */
    PEER_MS = 6000,      /**< a server that is cut off for so long is lost */
    PATIENCE_MS = 60000, /**< deadline of what a process asks of the holder */
    LATENESS_MS = 100,   /**< of its answer */
    IDS_SHIFT = 32,      /**< each step has that many context ids */
};

/** Status codes of the holder's end; those of the engine are loopback.h's. */
enum code {
    CODE_SUCCESS = 0,
    CODE_DUPLICATE = -2,
    CODE_FULL = -3,
    CODE_TIMEOUT = LOOPBACK_TIMEOUT,
    CODE_UNREACH = -26,
    CODE_BAD = -27,
    CODE_NOT_FOUND = -50,
    CODE_PARTIAL = -52,
    CODE_LOST = LOOPBACK_LOST,
};

struct world;
struct step;

/** One server, and the one process that it has. */
struct site {
    struct world *world;
    struct step *step;
    uint32_t node, index; /**< within its step, and among all */
    bool alive, leaves;   /**< it leaves: its process has ended */
    uint64_t cut_until;   /**< ms; its network is cut off before */
    struct timers timers;
    struct engine *engine;
    struct asks *asks;
    struct holder *holder;
    uint64_t latest[SITES];       /**< when the last message to each arrives, ms */
    bool met[SITES], told[SITES]; /**< with whom it has spoken; who is lost */
};

struct step {
    char nspace[16];
    uint32_t nsites;
    bool listed, over; /**< by the resource manager */
    uint64_t since,
        until;            /**< when its first server was there, and when it ended, ms; 0: not yet */
    bool seen[STEPS_MAX]; /**< what the resource manager has last told this step's servers */
    struct site sites[SITES_MAX];
};

struct event {
    TAILQ_ENTRY(event) link;
    uint64_t at; /**< ms */
    void (*run)(struct event *event);
    struct site *to, *from;
    void *data; /**< owned */
    size_t len;
    void *arg;
};
TAILQ_HEAD(events, event);

/** What may befall the schedule. */
struct holders_weather {
    bool ends;  /**< steps end in order */
    bool kills; /**< steps are killed, and single servers */
    bool cuts;  /**< nodes are cut off */
    bool wrong; /**< the resource manager's list is late: two servers take themselves for it */
    bool away;  /**< the resource manager does not answer for a while */
};

enum item_state {
    ITEM_ASKED,   /**< to be published */
    ITEM_THERE,   /**< published */
    ITEM_REFUSED, /**< not published */
    ITEM_LEAVES,  /**< to be unpublished */
    ITEM_GONE,    /**< unpublished */
};

/** Something published. */
struct item {
    TAILQ_ENTRY(item) link;
    struct site *site;
    char key[24], value[32];
    bool shared; /**< others publish that key, too */
    enum store_life life;
    enum item_state state;
    uint64_t since; /**< when the state began, ms */
};
TAILQ_HEAD(items, item);

/** A request of a process to the holder. */
struct request {
    TAILQ_ENTRY(request) link;
    struct site *site;
    enum holder_op op;
    struct item *item; /**< that is published, looked up or unpublished */
    bool waits;        /**< a lookup: for the item to be there */
    bool last;         /**< of the end, when all has settled */
    uint64_t made_at;  /**< ms */
    bool answered;
};
TAILQ_HEAD(requests, request);

/** An operation over several steps. */
struct meeting {
    TAILQ_ENTRY(meeting) link;
    struct world *world;
    uint32_t number;
    enum coll_kind kind;
    bool bootstrap;
    char id[16];
    struct procset members;
    void *sig;
    size_t siglen;
    void *added; /**< of a bootstrap: the processes that the leaders add; owned */
    size_t addedlen;
    uint32_t ncallers;
    struct caller *callers;
};
TAILQ_HEAD(meetings, meeting);

/** One participant of it. */
struct caller {
    struct engine_call call; /**< first */
    struct meeting *meeting;
    struct site *site;
    struct procset self;
    uint32_t number; /**< its contribution, with the meeting's number */
    bool made, answered;
    int32_t status;
    uint64_t made_at, context_id;
    unsigned char data[8];
};

struct world {
    uint64_t seed, now; /**< ms */
    bool verbose, ending;
    struct loopback_random random;
    struct holders_weather weather;
    uint32_t delay; /**< most ms that a message takes */
    uint64_t away;  /**< until when the resource manager does not answer, ms */
    uint32_t nsteps;
    struct step steps[STEPS_MAX];
    struct events events;
    struct items items;
    struct requests requests;
    struct meetings meetings;
    uint32_t nmeetings, nitems;
    char fault[512]; /**< the first invariant that was broken; empty: none */
};

/* world.c */

/** @return a world without steps; the caller frees it after world_end() */
struct world *world_new(uint64_t seed, bool verbose);
/** Ends all servers, and frees them and what is under way. */
void world_end(struct world *world);
/** Calls @p visit for each server that lives. */
void world_each(struct world *world, void (*visit)(struct site *site));
uint32_t dice(struct world *world, uint32_t n);
bool likely(struct world *world, uint32_t percent);
/** Calls @p run in @p ms. @return the event, whose fields are the caller's to fill */
struct event *later(struct world *world, uint64_t ms, void (*run)(struct event *event));
/** Sends bytes, which are taken over. */
void world_send(struct site *from, struct site *to, void *data, size_t len);
/** A server learns that another one is gone, in @p ms. */
void world_lose(struct site *site, struct site *gone, uint64_t ms);
void world_run(struct world *world, uint64_t ms);
void world_fault(struct world *world, const char *invariant, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void world_trace(const struct world *world, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool is_cut(const struct site *site);

/* rm.c */

/** holder_env::find and ::others. */
void rm_find(void *arg);
void rm_others(void *arg);
/** @return the first server of a step that lives, or NULL */
struct site *rm_first(struct step *step);

/* site.c */

/** Names a step and its servers, which are not there yet. */
void step_plan(struct world *world, uint32_t number, uint32_t nsites);
void site_open(struct step *step, uint32_t node);
/** It ends: in order, or it is killed. */
void site_end(struct site *site, bool in_order);
void site_free(struct site *site);
void site_receive(struct site *site, struct site *from, const void *data, size_t len);
void site_lost(struct site *site, struct site *gone);
/** @return milliseconds until something is due, or -1 */
int64_t site_next(const struct site *site);
void site_tick(struct site *site);
uint32_t site_handle(const struct site *from, const struct site *of);
struct site *site_of(struct site *from, uint32_t handle);
const char *site_name(const struct site *site);

/* plan.c */

void holders_plan(struct world *world);

/* publish.c */

void publish_some(struct event *event);
void publish_lookup(struct site *site, struct item *item, bool waits, bool last);
void publish_free(struct world *world);

/* meet.c */

void meet_some(struct event *event);
/** What holds for the operations once all is over. */
void meet_end(struct world *world);
void meet_free(struct world *world);

/* end.c */

/** What holds when all has settled. */
void holders_end(struct world *world);
