/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts as JSON. common/status/stats.c reads it. */
#include "common/server/tallied.h"

#include "common/server/server.h"
#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(json_object *to, const char *key, uint64_t n)
{
    json_object_object_add(to, key, json_object_new_int64((int64_t)n));
}

static void put_text(json_object *to, const char *key, const char *text)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    log_mask(copy); /* users choose some of it, and JSON has to be UTF-8 */
    json_object_object_add(to, key, json_object_new_string(copy));
}

static void put_times(json_object *to, const struct times *times)
{
    json_object *buckets = json_object_new_array();
    put(to, "count", times->count);
    put(to, "total_us", times->total_us);
    put(to, "max_us", times->max_us);
    for (unsigned i = 0; i < TIMES_BUCKETS; i++) {
        if (times->n[i] == 0)
            continue;
        json_object *bucket = json_object_new_object();
        put(bucket, "from_us", i == 0 ? 0 : UINT64_C(1) << i);
        put(bucket, "count", times->n[i]);
        put(bucket, "total_us", times->us[i]);
        json_object_array_add(buckets, bucket);
    }
    json_object_object_add(to, "buckets", buckets);
}

json_object *tallied_json(const struct server *server, const struct tally *tally)
{
    json_object *o = json_object_new_object(), *waits = json_object_new_array(),
                *used = json_object_new_array(), *late = json_object_new_array();
    for (int kind = COLL_FENCE; kind < COLL_KIND_END; kind++) {
        if (tally->waits[kind].count == 0 && tally->decided[kind] == 0)
            continue;
        json_object *wait = json_object_new_object();
        put_text(wait, "kind", coll_traits(kind)->name);
        put(wait, "decided", tally->decided[kind]);
        put_times(wait, &tally->waits[kind]);
        json_object_array_add(waits, wait);
    }
    for (uint32_t i = 0; i < tally->noperations; i++) {
        const struct tally_operation *operation = &tally->operations[i];
        char id[24];
        json_object *one = json_object_new_object();
        snprintf(id, sizeof id, "%016" PRIx64, operation->hash);
        put_text(one, "operation",
                 operation->name[0] != '\0' ? operation->name : coll_traits(operation->kind)->name);
        put_text(one, "kind", coll_traits(operation->kind)->name);
        put_text(one, "id", id);
        put_times(one, &operation->waits);
        json_object_array_add(used, one);
    }
    for (uint32_t i = 0; i < tally->nservers; i++) {
        const struct tally_late *last = &tally->servers[i];
        json_object *one = json_object_new_object();
        put_text(one, "node", nspace_name(server->nspace, last->node));
        put_text(one, "kind", coll_traits(last->kind)->name);
        put_times(one, &last->times);
        json_object_array_add(late, one);
    }
    json_object_object_add(o, "waits", waits);
    json_object_object_add(o, "most_used", used);
    json_object_object_add(o, "last", late);
    return o;
}
