/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The directory's state, for directory*.c alone.
 */
#pragma once

#include "plugins/flux/directory.h"
#include "plugins/flux/transfers.h"

#include <json-c/json.h>
#include <stdbool.h>

/** One server. */
struct server {
    struct server *next;
    struct registration reg;
    uint32_t owner; /**< uid */
    char *uuid;     /**< of its connection */
    const void *stream;
    bool *told;                /**< by broker: whether it is told when this server leaves */
    int64_t since;             /**< env.now() */
    uint64_t frames, bytes;    /**< that it was sent */
    bool asked;                /**< PACKET_STATE was sent, and no muster.state came since */
    bool awaited;              /**< by a request to see the directory */
    struct json_object *state; /**< what came, until that is answered; owned */
    const char *silent;        /**< why there is none */
    struct transfers in;       /**< messages that it has not said to have taken */
};

/** One that said muster.leave. */
struct left {
    uint64_t job;
    uint32_t owner;
};

/** Where all servers of a user meet: at the server that asked first, until it is gone. Rank 0's
 * module keeps it for all brokers. */
struct meeting {
    struct meeting *next;
    uint32_t owner; /**< uid */
    uint64_t job;
    uint32_t node, nnodes;
    uint32_t broker; /**< rank */
};

enum { STATS_ASKERS_MAX = 16, LEFT_MAX = 256 };

struct directory {
    struct directory_env env;
    struct server *servers;
    struct meeting *meetings;
    uint64_t ticket;
    struct left left[LEFT_MAX]; /**< the latest, of nleft, at n % LEFT_MAX */
    uint64_t nleft;
    struct tree_shape shape;              /**< of the overlay; n is 0: not known */
    const void *askers[STATS_ASKERS_MAX]; /**< requests of stats-get that wait */
    unsigned naskers;
};

/** @return the server of @p job, whoever's it is, or NULL */
struct server *directory_job(const struct directory *dir, uint64_t job);

/** @return the server of @p job that speaks by this connection, or NULL */
struct server *directory_client(const struct directory *dir, uint64_t job,
                                const struct client *client);

/** A server is gone. @param node PACKET_ALL_NODES: all of the job */
void meetings_gone(struct directory *dir, uint32_t owner, uint64_t job, uint32_t node);

/** A broker is not online any more. */
void meetings_offline(struct directory *dir, uint32_t broker);

void meetings_free(struct directory *dir);

/** Answers stats-get if that waits, and no server is awaited: one may have gone. */
void stats_conclude(struct directory *dir);

/** @return what stats-get is answered, JSON for free(), or NULL when out of memory */
char *directory_show(const struct directory *dir);
