/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the loopback is made of. Private to ci/loopback/loopback*.c.
 */
#pragma once

#include "ci/loopback/loopback.h"
#include "common/view/view.h"

/** A frame under way when data is set, else a function to call. */
struct loopback_event {
    uint64_t at, number; /**< ms; sequence among those of one time */
    uint32_t from, to;
    void *data; /**< owned */
    size_t len;
    bool native; /**< it goes by no connection */
    bool lost;   /**< with its connection */
    void (*run)(struct loopback *net, void *arg);
    void *arg;
};

/** A binary heap, ordered by time and then by sequence; all zero is empty. */
struct loopback_events {
    struct loopback_event *heap;
    size_t n, cap;
    uint64_t numbers;
};

/** Adds an event, whose number is given here; aborts when out of memory. */
void loopback_push(struct loopback_events *events, struct loopback_event event);

/** @return the first event, which is taken out; there is one */
struct loopback_event loopback_pop(struct loopback_events *events);

/** @return @p p, unless it is NULL: tests do not go on without memory */
void *loopback_must(void *p);

/** One server. */
struct loopback_node {
    struct loopback *net;
    uint32_t index;
    char name[16];
    struct engine_env env;
    struct timers timers;
    struct engine *engine;
    struct link *link;
    struct asks *asks;
    struct view *view; /**< NULL: it hears of losses by itself */
    bool dead;         /**< it does nothing any more */
    bool gone;         /**< it is dead, leaves, or was left out */
    uint32_t runs;     /**< before this one: each has another step's number */
    int32_t local_status;
    bool *told;       /**< whom it has given up */
    bool *left;       /**< who has left in order, as it knows */
    bool *parted;     /**< from whom nothing comes, and to whom nothing goes */
    uint64_t *latest; /**< per sender: arrival of its last frame, ms */
    uint32_t *handle; /**< per server: what this one calls it */
    uint32_t *server; /**< and back; also those of runs before */
    uint32_t nhandles;
    bool *introduced; /**< per server: it has said who it is */
};

/** What a server learns of another one. */
struct loopback_loss {
    uint32_t node, lost;
    bool left; /* in order */
};

/** The network. */
struct loopback {
    struct loopback_conf conf;
    struct loopback_random random;
    uint64_t now, cut_until;
    struct loopback_node *nodes;
    uint8_t *sides;
    struct loopback_events events;
};

/** Makes server @p index. */
void loopback_open_node(struct loopback *net, uint32_t index);

/** Gives another server, which runs again, a new handle. */
void loopback_meet_again(struct loopback_node *node, uint32_t index);

void loopback_close_node(struct loopback_node *node);

/** Server @p node notices after between @p min and @p max ms that it cannot reach server @p lost.
 * @param left whether that has ended in order */
void loopback_notice(struct loopback *net, uint32_t node, uint32_t lost, bool left, uint32_t min,
                     uint32_t max);

/** Ends what server @p node does. */
void loopback_end_node(struct loopback_node *node);

/** Server @p arg leaves the view once all that it has sent is taken. */
void loopback_try_to_leave(struct loopback *net, void *arg);

/** Gives server @p node the agreed view. */
void loopback_open_view(struct loopback_node *node);

/** Sends a frame of server @p node. */
void loopback_send(struct loopback_node *node, uint32_t to, struct wire_out *frame);

/** Server @p node does not wait for server @p lost any more. @param left in order */
void loopback_tell(struct loopback_node *node, uint32_t lost, bool left);

/** @return what @p node calls server @p index */
uint32_t loopback_handle(const struct loopback_node *node, uint32_t index);
