/* SPDX-License-Identifier: BSD-3-Clause */
/* What a broker's administrator sees of the directory. */
#include "plugins/flux/directory_private.h"

#include "plugins/flux/state.h"

#include <string.h>

static void put(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_int64((int64_t)value));
}

static double age(const struct directory *dir, int64_t since)
{
    return (double)(dir->env.now(dir->env.arg) - since) / 1000;
}

static struct json_object *show_server(const struct directory *dir, const struct server *server)
{
    struct json_object *object = json_object_new_object();
    put(object, "job", server->reg.job);
    put(object, "owner", server->owner);
    put(object, "node", server->reg.node);
    put(object, "nodes", server->reg.nnodes);
    json_object_object_add(object, "client", json_object_new_string(server->uuid));
    json_object_object_add(object, "up", json_object_new_double(age(dir, server->since)));
    put(object, "frames", server->frames);
    put(object, "bytes", server->bytes);
    if (server->state != NULL)
        json_object_object_add(object, "state", json_object_get(server->state));
    else
        json_object_object_add(object, "silent", json_object_new_string(server->silent));
    return object;
}

/* The senders that wait for a server of ours to take a message. */
static void show_waits(const struct directory *dir, const struct server *server,
                       struct json_object *list)
{
    for (const struct transfer *t = server->in.first; t != NULL; t = t->next) {
        struct json_object *object = json_object_new_object();
        put(object, "job", server->reg.job);
        put(object, "to", server->reg.node);
        put(object, "from_job", t->job);
        put(object, "from", t->node);
        put(object, "from_broker", t->broker);
        put(object, "bytes", t->len);
        json_object_object_add(object, "age", json_object_new_double(age(dir, t->since)));
        json_object_array_add(list, object);
    }
}

char *directory_show(const struct directory *dir)
{
    struct json_object *object = json_object_new_object();
    struct json_object *servers = json_object_new_array(), *waits = json_object_new_array();
    uint64_t silent = 0, meetings = 0;
    for (const struct server *server = dir->servers; server != NULL; server = server->next) {
        json_object_array_add(servers, show_server(dir, server));
        if (server->state != NULL)
            state_add(object, server->state);
        else
            silent++;
        show_waits(dir, server, waits);
    }
    put(object, "silent", silent);
    json_object_object_add(object, "servers", servers);
    json_object_object_add(object, "waiting", waits);
    for (const struct meeting *m = dir->meetings; m != NULL; m = m->next)
        meetings++;
    put(object, "meetings", meetings);
    char *text = strdup(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
                                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
    return text;
}
