/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawns as bytes. */
#include "common/launch/spawn_wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    FLAG_MERGE = 1,
    FLAG_TAG = 2,
    FLAG_OVERCOMMIT = 4,
    FLAG_FREE_CPUS = 8,
    FLAG_OUTPUT = 16,
    FLAG_HOSTS = 32,
    FLAG_PSETS = 64,
    FLAG_DEBUG = 128,
    TASKS_MAX = 1 << 24,
};

void spawn_put(struct wire_out *out, const struct rm_spawn *what, bool free_cpus)
{
    uint8_t flags = (what->merge ? FLAG_MERGE : 0) | (what->tag ? FLAG_TAG : 0) |
                    (what->overcommit ? FLAG_OVERCOMMIT : 0) | (free_cpus ? FLAG_FREE_CPUS : 0) |
                    (what->output != NULL ? FLAG_OUTPUT : 0) |
                    (what->hosts != NULL ? FLAG_HOSTS : 0) |
                    (what->psets != NULL ? FLAG_PSETS : 0) | (what->debug != NULL ? FLAG_DEBUG : 0);
    wire_put_str(out, what->parent);
    wire_put_u32(out, what->rank);
    wire_put_u32(out, what->ntasks);
    wire_put_u8(out, flags);
    wire_put_u8(out, (uint8_t)what->map);
    wire_put_u8(out, (uint8_t)what->bind);
    wire_put_u32(out, what->per_node);
    wire_put_u32(out, what->input);
    wire_put_u32(out, what->timeout);
    wire_put_u32(out, what->linger);
    wire_put_str(out, what->apps);
    wire_put_str(out, what->hosts);
    wire_put_str(out, what->output);
    wire_put_u32(out, what->nplan);
    for (uint32_t i = 0; i < what->nplan; i++)
        wire_put_str(out, what->plan[i]);
    if (what->psets != NULL)
        wire_put_str(out, what->psets);
    if (what->debug != NULL)
        wire_put_str(out, what->debug);
}

static bool get_plan(struct wire_in *in, struct plan *plan)
{
    uint32_t n = wire_get_count(in, 4);
    for (uint32_t i = 0; i < n && !in->bad && !plan->failed; i++) {
        char *text = wire_get_strdup(in, PLAN_STRING_MAX);
        if (text == NULL || strlen(text) > PLAN_STRING_MAX)
            plan->failed = true;
        else
            plan_add(plan, text);
        free(text);
    }
    return n > 0 && !plan->failed;
}

bool spawn_get(struct wire_in *in, struct spawn_order *order)
{
    struct rm_spawn *what = &order->what;
    wire_get_str(in, order->parent, sizeof order->parent);
    what->rank = wire_get_u32(in);
    what->ntasks = wire_get_u32(in);
    uint8_t flags = wire_get_u8(in);
    uint8_t map = wire_get_u8(in), bind = wire_get_u8(in);
    what->per_node = wire_get_u32(in);
    what->input = wire_get_u32(in);
    what->timeout = wire_get_u32(in);
    what->linger = wire_get_u32(in);
    order->apps = wire_get_strdup(in, SPAWN_APPS_MAX);
    order->hosts = wire_get_strdup(in, SPAWN_HOSTS_MAX);
    order->output = wire_get_strdup(in, SPAWN_OUTPUT_MAX);
    bool whole = get_plan(in, &order->plan);
    if (flags & FLAG_PSETS)
        order->psets = wire_get_strdup(in, SPAWN_PSETS_MAX);
    if (flags & FLAG_DEBUG)
        wire_get_str(in, order->debug, sizeof order->debug);
    if (!whole || in->bad || map > RM_MAP_NODES || bind > RM_BIND_SOCKET || what->ntasks == 0 ||
        what->ntasks > TASKS_MAX || what->per_node > TASKS_MAX || order->parent[0] == '\0')
        return false;
    what->map = (enum rm_map)map;
    what->bind = (enum rm_bind)bind;
    what->merge = (flags & FLAG_MERGE) != 0;
    what->tag = (flags & FLAG_TAG) != 0;
    what->overcommit = (flags & FLAG_OVERCOMMIT) != 0;
    order->free_cpus = (flags & FLAG_FREE_CPUS) != 0;
    what->parent = order->parent;
    what->apps = order->apps;
    what->hosts = (flags & FLAG_HOSTS) != 0 ? order->hosts : NULL;
    what->output = (flags & FLAG_OUTPUT) != 0 ? order->output : NULL;
    what->psets = (flags & FLAG_PSETS) != 0 ? order->psets : NULL;
    what->debug = (flags & FLAG_DEBUG) != 0 ? order->debug : NULL;
    what->plan = order->plan.strings;
    what->nplan = order->plan.n;
    return true;
}

void spawn_order_free(struct spawn_order *order)
{
    free(order->apps);
    free(order->hosts);
    free(order->output);
    free(order->psets);
    plan_free(&order->plan);
    *order = (struct spawn_order){0};
}

void spawn_put_news(struct wire_out *out, const struct rm_spawn_news *news)
{
    const char *text = news->text != NULL ? news->text : "";
    wire_put_u32(out, (uint32_t)news->result);
    wire_put_u32(out, news->status);
    wire_put_block(out, text, strnlen(text, SPAWN_TEXT_MAX - 1));
    wire_put_block(out, news->registration, news->registration != NULL ? news->len : 0);
}

bool spawn_get_news(struct wire_in *in, struct rm_spawn_news *news, char *text)
{
    uint32_t result = wire_get_u32(in);
    news->status = wire_get_u32(in);
    wire_get_str(in, text, SPAWN_TEXT_MAX);
    news->registration = wire_get_block(in, &news->len);
    news->text = text;
    news->result = result < RM_SPAWN_RESULTS ? (enum rm_spawn_result)result : RM_SPAWN_FAILED;
    return !in->bad && result < RM_SPAWN_RESULTS;
}
