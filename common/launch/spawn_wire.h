/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A spawn, between muster-server and the process that starts the step for it (srun's agent, Flux's
 * job shell): what is asked for, and news of it.
 * @thread any
 */
#pragma once

#include "common/launch/plan.h"
#include "common/transport/rm_spawn.h"
#include "common/transport/wire.h"

enum {
    SPAWN_TEXT_MAX = 1024,     /**< bytes of a news' text, with NUL */
    SPAWN_HOSTS_MAX = 1 << 20, /**< bytes of the list of nodes */
    SPAWN_OUTPUT_MAX = 4096,
    SPAWN_PSETS_MAX = 65536,
    SPAWN_DEBUG_MAX = 320,  /**< bytes, with NUL */
    SPAWN_APPS_MAX = 65536, /**< bytes of the list of applications */
};

/** A spawn off the wire. */
struct spawn_order {
    struct rm_spawn what; /**< its strings are the ones below */
    bool free_cpus;       /**< the job may have processors that no other step of it uses */
    char parent[256];
    char debug[SPAWN_DEBUG_MAX];
    char *apps;                   /**< owned */
    char *hosts, *output, *psets; /**< owned; or NULL */
    struct plan plan;
};

/** Appends what is to be spawned.
 * @param free_cpus the job may have processors that no other step of it uses, as far as the server
 * knows: the process that starts the step may know more */
void spawn_put(struct wire_out *out, const struct rm_spawn *what, bool free_cpus);

/** Reads it. @param order all zero; spawn_order_free() it either way @return whether it is one */
bool spawn_get(struct wire_in *in, struct spawn_order *order);
void spawn_order_free(struct spawn_order *order);

/** Appends news. */
void spawn_put_news(struct wire_out *out, const struct rm_spawn_news *news);

/** Reads it. @param text SPAWN_TEXT_MAX bytes, to which news->text points afterwards
 * @param news its registration is borrowed from @p in @return whether it is one */
bool spawn_get_news(struct wire_in *in, struct rm_spawn_news *news, char *text);
