/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts as JSON. common/status/stats.c reads it. */
#include "common/server/tallied.h"

#include "common/server/server.h"
#include "common/status/fields.h"

#include <inttypes.h>
#include <stdio.h>

static void put_times(json_object *to, const struct times *times)
{
    json_object *buckets = json_object_new_array();
    field_put_number(to, "count", times->count);
    field_put_number(to, "total_us", times->total_us);
    field_put_number(to, "max_us", times->max_us);
    for (unsigned i = 0; i < TIMES_BUCKETS; i++) {
        if (times->n[i] == 0)
            continue;
        json_object *bucket = field_add(buckets);
        field_put_number(bucket, "from_us", i == 0 ? 0 : UINT64_C(1) << i);
        field_put_number(bucket, "count", times->n[i]);
        field_put_number(bucket, "total_us", times->us[i]);
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
        json_object *wait = field_add(waits);
        field_put_text(wait, "kind", coll_traits(kind)->name);
        field_put_number(wait, "decided", tally->decided[kind]);
        put_times(wait, &tally->waits[kind]);
    }
    for (uint32_t i = 0; i < tally->noperations; i++) {
        const struct tally_operation *operation = &tally->operations[i];
        char id[24];
        json_object *one = field_add(used);
        snprintf(id, sizeof id, "%016" PRIx64, operation->hash);
        field_put_text(one, "operation",
                       operation->name[0] != '\0' ? operation->name
                                                  : coll_traits(operation->kind)->name);
        field_put_text(one, "kind", coll_traits(operation->kind)->name);
        field_put_text(one, "id", id);
        put_times(one, &operation->waits);
    }
    for (uint32_t i = 0; i < tally->nservers; i++) {
        const struct tally_late *last = &tally->servers[i];
        json_object *one = field_add(late);
        field_put_text(one, "node", nspace_name(server->nspace, last->node));
        field_put_text(one, "kind", coll_traits(last->kind)->name);
        put_times(one, &last->times);
    }
    json_object_object_add(o, "waits", waits);
    json_object_object_add(o, "most_used", used);
    json_object_object_add(o, "last", late);
    return o;
}
