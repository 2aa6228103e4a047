/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long the operations of a step have waited, and which node was last, put together from what
 * its servers say (docs/wire.md, "collectives"). docs/late.md says what the numbers mean.
 */
#pragma once

#include "common/util/times.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    STATS_KIND_SIZE = 16,
    STATS_NAME_SIZE = 96,
    STATS_KINDS_MAX = 8,    /**< fence, construct, … */
    STATS_LAST_MAX = 16384, /**< pairs of a node and a kind */
    STATS_USED_MAX = 1024   /**< operations that are told apart */
};

/** All operations of one kind. */
struct stats_kind {
    char kind[STATS_KIND_SIZE];
    uint64_t decided;   /**< how many operations were done */
    struct times waits; /**< of all calls of all servers */
    struct times late;  /**< how late the last server was, of those that are in stats::last */
};

/** A node that was last in operations of a kind; or all operations of one signature. */
struct stats_named {
    char name[STATS_NAME_SIZE], kind[STATS_KIND_SIZE], id[24];
    struct times times;
};

/** All zero is an empty one. */
struct stats {
    unsigned nodes;  /**< servers that have answered */
    unsigned silent; /**< servers that have not */
    bool ended;      /**< what was kept of a step that has ended */
    double uptime;   /**< of the oldest server, seconds */
    char step[80], unit[8];
    size_t nkinds, nlast, nused, nworst;
    struct stats_kind kinds[STATS_KINDS_MAX];
    struct stats_named *last;  /**< owned; the latest first */
    struct stats_named *used;  /**< owned; the most used first */
    struct stats_named *worst; /**< owned; nodes, over all kinds, the latest first; kind is "" */
};

/** Takes one server's STATE, of which nothing is taken for granted. */
void stats_add(struct stats *stats, json_object *state);

/** Takes an answer to "all". @return 0, or -1: it is no state of a step. stats_free() it either way
 */
int stats_read(struct stats *stats, json_object *answer);

/** Puts all in order, after the last stats_add(). */
void stats_end(struct stats *stats);

void stats_free(struct stats *stats);

/** @return of the kind @p kind the @p i-th latest node, or NULL */
const struct stats_named *stats_latest(const struct stats *stats, const char *kind, size_t i);

/* stats_text.c */

/** Writes tables for people. @param owner name of the user whose step it is */
void stats_write(FILE *out, const struct stats *stats, const char *owner);

/** @return the same as JSON, the caller's: docs/muster-status.schema.json, "stats" */
json_object *stats_json(const struct stats *stats, const char *owner);

/* stats_metrics.c */

/** Writes the same as OpenMetrics, or Prometheus's text format: of each kind the 16 latest nodes.
 */
void stats_metrics(FILE *out, const struct stats *stats, const char *owner);

/* stats_text.c */

/** A time as people read it, "48 ms". @param text 24 bytes @return @p text */
const char *stats_time(uint64_t us, char *text);
