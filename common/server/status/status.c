/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of this server as JSON. Each module shows what it has as plain structs; here alone they
 * become JSON. Lists are cut, and say how much was left out. */
#include "common/server/status/status.h"

#include "common/holder/holder.h"
#include "common/nspace/library.h"
#include "common/server/server.h"
#include "common/server/tallied.h"
#include "common/status/fields.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "muster_version.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const topic_names[ASK_TOPICS] = {
    [ASK_MODEX] = "modex",     [ASK_QUERY] = "query",   [ASK_STATUS] = "status",
    [ASK_DATA] = "data",       [ASK_OUTPUT] = "output", [ASK_INPUT] = "input",
    [ASK_READY] = "ready",     [ASK_FAR] = "far",       [ASK_CHECKPOINT] = "checkpoint",
    [ASK_CONTROL] = "control", [ASK_USAGE] = "usage"};

static void put(json_object *to, const char *key, json_object *value)
{
    json_object_object_add(to, key, value);
}

/* Seconds with three digits; null for a time that there is none of. */
static void put_seconds(json_object *to, const char *key, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    put(to, key, ms < 0 ? NULL : json_object_new_double_s((double)ms / 1000, text));
}

/* What a list is made of, and how much of it there is room for. */
struct list {
    struct server *server;
    json_object *array;
    uint32_t n, max;
    uint32_t missing; /* nodes missing from one operation that there is room for */
};

static bool has_room(struct list *list)
{
    return list->n++ < list->max;
}

/* @return a new element, or NULL: there is no room */
static json_object *add(struct list *list)
{
    return has_room(list) ? field_add(list->array) : NULL;
}

static void put_list(json_object *to, const char *key, struct list *list)
{
    char omitted[64];
    put(to, key, list->array);
    if (list->n <= list->max)
        return;
    snprintf(omitted, sizeof omitted, "%s_omitted", key);
    field_put_number(to, omitted, list->n - list->max);
}

static void put_missing(json_object *to, struct server *server, const struct engine_view *view,
                        uint32_t max)
{
    struct list list = {.array = json_object_new_array(), .max = max};
    struct signature sig;
    bool known = signature_read(&sig, view->sig, view->siglen) == 0;
    for (uint32_t i = 0; i < view->nmissing && known; i++) {
        char ranks[RANKS_TEXT];
        const struct nspace *ns = nspace_of(server->nspace, view->missing[i]);
        if (!has_room(&list) || ns == NULL || ns->boot == NULL)
            continue;
        json_object *o = field_add(list.array);
        nspace_ranks_on(server->nspace, &sig, view->missing[i], ranks, sizeof ranks);
        field_put_text(o, "node", nspace_name(server->nspace, view->missing[i]));
        field_put_text(o, "nspace", ns->boot->nspace);
        field_put_text(o, "ranks", ranks);
    }
    signature_free(&sig);
    put_list(to, "missing", &list);
}

static void visit_tracker(void *arg, const struct engine_view *view)
{
    struct list *list = arg;
    const struct server *server = list->server;
    char text[512];
    json_object *o = add(list);
    if (o == NULL)
        return;
    const char *kind = coll_traits(signature_kind(view->sig, view->siglen))->name;
    signature_describe(view->sig, view->siglen, text, sizeof text);
    field_put_text(o, "operation", text);
    field_put_text(o, "kind", kind != NULL ? kind : "");
    snprintf(text, sizeof text, "%016" PRIx64, signature_hash(view->sig, view->siglen));
    field_put_text(o, "id", text);
    field_put_text(o, "state", view->state);
    put_seconds(o, "age", (int64_t)view->age);
    put_seconds(o, "in_state", (int64_t)view->in_state);
    put_seconds(o, "left", view->left);
    put(o, "called", json_object_new_boolean(view->called));
    field_put_number(o, "queued", view->queued);
    field_put_number(o, "nodes", view->nservers);
    field_put_text(o, "root", nspace_name(server->nspace, view->root));
    put(o, "decides", json_object_new_boolean(view->root == server->boot.node));
    put_missing(o, list->server, view, list->missing);
}

static void visit_wait(void *arg, const struct engine_wait *wait)
{
    struct list *list = arg;
    json_object *o = add(list);
    if (o == NULL)
        return;
    field_put_text(o, "about", wait->about);
    put_seconds(o, "age", (int64_t)wait->age);
    put_seconds(o, "left", wait->left);
}

static void visit_ask(void *arg, const struct ask_view *view)
{
    struct list *list = arg;
    json_object *o = view->topic != ASK_STATUS ? add(list) : NULL;
    if (o == NULL)
        return;
    field_put_text(o, "about", view->about);
    field_put_text(o, "node", nspace_name(list->server->nspace, view->node));
    put_seconds(o, "age", (int64_t)view->age);
    put_seconds(o, "left", view->left);
}

/* Peers that something went to or came from. @return their total */
static struct link_counts put_peers(json_object *to, struct server *server, uint64_t *retries)
{
    struct list list = {.array = json_object_new_array(), .max = STATUS_PEERS_MAX};
    struct link_counts sum = {0};
    uint32_t handles = nspace_handles(server->nspace);
    for (uint32_t i = 0; i < handles; i++) {
        const struct link_counts c = link_counts(server->link, i);
        const struct rm_peer peer = server->rm_ops->peer(server->rm, i);
        const struct link_owed owed = link_owed(server->link, i);
        sum.frames_out += c.frames_out;
        sum.bytes_out += c.bytes_out;
        sum.frames_in += c.frames_in;
        sum.bytes_in += c.bytes_in;
        sum.repeated += c.repeated;
        *retries += peer.retries;
        if ((c.frames_out == 0 && c.frames_in == 0 && !rm_peer_is_lost(peer.state)) ||
            !has_room(&list))
            continue;
        json_object *o = field_add(list.array);
        field_put_text(o, "node", nspace_name(server->nspace, i));
        bool direct = direct_is_up(server->direct, i);
        put(o, "reached", json_object_new_boolean(peer.reached || direct));
        put(o, "direct", json_object_new_boolean(direct));
        put(o, "lost", json_object_new_boolean(rm_peer_is_lost(peer.state)));
        put_seconds(o, "unreachable", peer.failing_since == 0 ? -1 : now_ms() - peer.failing_since);
        field_put_number(o, "queued", owed.frames);
        field_put_number(o, "queued_bytes", owed.bytes);
        field_put_number(o, "held", c.held);
        field_put_number(o, "bytes_out", c.bytes_out);
        field_put_number(o, "bytes_in", c.bytes_in);
    }
    put_list(to, "peers", &list);
    return sum;
}

static void put_tasks(json_object *to, const struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    struct list list = {.array = json_object_new_array(), .max = STATUS_TASKS_MAX};
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        json_object *o = add(&list);
        if (o == NULL)
            continue;
        field_put_number(o, "rank", here->ranks[k]);
        field_put_text(o, "state", task_state_name(task->state));
        if (task->pid > 0 && !task_has_ended(task))
            field_put_number(o, "pid", (uint64_t)task->pid);
    }
    put_list(to, "tasks", &list);
}

static void put_ends(json_object *to, const struct engine_counts *engine)
{
    json_object *done = json_object_new_object(), *failed = json_object_new_object();
    for (int kind = COLL_FENCE; kind < COLL_KIND_END; kind++) {
        field_put_number(done, coll_traits(kind)->name, engine->done[kind]);
        field_put_number(failed, coll_traits(kind)->name, engine->failed[kind]);
    }
    put(to, "done", done);
    put(to, "failed", failed);
}

static void put_counters(json_object *to, const struct server *server,
                         const struct link_counts *sum, uint64_t retries)
{
    const struct engine_counts engine = engine_counts(server->engine);
    const struct ask_counts asks = asks_counts(server->asks);
    json_object *counters = json_object_new_object(), *asked = json_object_new_object(),
                *served = json_object_new_object(), *events = json_object_new_object();
    for (int topic = ASK_MODEX; topic < ASK_TOPICS; topic++) {
        field_put_number(asked, topic_names[topic], asks.asked[topic]);
        field_put_number(served, topic_names[topic], asks.served[topic]);
    }
    put_ends(counters, &engine);
    field_put_number(counters, "failures_remembered", engine.remembered);
    put(counters, "asked", asked);
    put(counters, "served", served);
    field_put_number(events, "out", server->events.out);
    field_put_number(events, "in", server->events.in);
    field_put_number(events, "dropped", server->events.dropped);
    field_put_number(events, "refused", server->events.refused);
    put(counters, "events", events);
    field_put_number(counters, "frames_out", sum->frames_out);
    field_put_number(counters, "bytes_out", sum->bytes_out);
    field_put_number(counters, "frames_in", sum->frames_in);
    field_put_number(counters, "bytes_in", sum->bytes_in);
    field_put_number(counters, "duplicates_dropped", sum->repeated);
    field_put_number(counters, "retries", retries);
    put(to, "counters", counters);
}

/* While processes of the step wait for a debugger. */
static void put_stopped(json_object *to, const struct server *server)
{
    const struct stopped *stopped = &server->stopped;
    if (stopped->n == 0)
        return;
    json_object *o = json_object_new_object();
    field_put_number(o, "processes", stopped->n);
    field_put_text(o, "breakpoint", stopped->where);
    put(to, "stopped", o);
}

static void put_self(json_object *to, const struct server *server)
{
    char text[LIBRARY_TEXT_SIZE];
    field_put_text(to, "step", server->boot.label);
    field_put_text(to, "unit", log_unit());
    field_put_number(to, "size", server->boot.ntasks);
    field_put_text(to, "node", boot_here(&server->boot)->name);
    field_put_text(to, "version", MUSTER_VERSION);
    field_put_text(to, "libpmix", library_text(server->library, text));
    field_put_number(to, "pid", (uint64_t)getpid());
    if (server->uri != NULL)
        field_put_text(to, "uri", server->uri);
    put_seconds(to, "uptime", now_ms() - server->started);
}

static void visit_setting(void *arg, const char *key, const char *value, enum conf_source from)
{
    json_object *o = field_add(arg);
    field_put_text(o, "key", key);
    field_put_text(o, "value", value);
    field_put_text(o, "from", conf_source_name(from));
}

/* Settings that are no defaults. */
static void put_settings(json_object *to, const struct server *server)
{
    json_object *settings = json_object_new_array();
    conf_walk(&server->conf, &server->sources, visit_setting, settings);
    put(to, "settings", settings);
}

/* @param o let go of */
static char *text_of(json_object *o, size_t *len)
{
    char *copy = strdup(field_line(o));
    *len = strlen(copy);
    json_object_put(o);
    return copy;
}

/* How much is published, never what, and which server holds it. */
static void put_meeting(json_object *to, const struct server *server)
{
    if (server->holder == NULL)
        return;
    const struct holder_view view = holder_view(server->holder);
    json_object *o = json_object_new_object();
    field_put_text(o, "state", view.state);
    field_put_text(o, "holder",
                   view.node != HOLDER_NONE ? nspace_name(server->nspace, view.node) : "");
    field_put_number(o, "kept", view.kept);
    field_put_number(o, "held", view.held.entries);
    field_put_number(o, "held_bytes", view.held.bytes);
    field_put_number(o, "waiting", view.waiting);
    field_put_number(o, "steps", view.steps);
    put(to, "meeting", o);
}

static void put_named(struct list *list, const char *name, const struct procset *members)
{
    json_object *o = add(list);
    if (o == NULL)
        return;
    field_put_text(o, "name", name);
    field_put_number(o, "size", procset_size(members));
}

/* Which processes belong together: the step's process sets, and connections of processes here. */
static void put_together(json_object *to, struct server *server)
{
    struct list sets = {server, json_object_new_array(), 0, STATUS_LIST_MAX, 0},
                connections = {server, json_object_new_array(), 0, STATUS_LIST_MAX, 0};
    for (uint32_t i = 0; i < server->psets.n; i++)
        put_named(&sets, server->psets.sets[i].name, &server->psets.sets[i].members);
    const struct book_entry *c;
    LIST_FOREACH (c, &server->book.open, link)
        put_named(&connections, c->id, &c->members);
    put_list(to, "psets", &sets);
    put_list(to, "connections", &connections);
}

char *status_text(struct server *server, size_t *len)
{
    json_object *o = json_object_new_object();
    struct list trackers = {server, json_object_new_array(), 0, STATUS_LIST_MAX,
                            STATUS_MISSING_MAX};
    struct list waits = {server, json_object_new_array(), 0, STATUS_LIST_MAX, 0};
    struct list asks = {server, json_object_new_array(), 0, STATUS_LIST_MAX, 0};
    uint64_t retries = 0;
    put_self(o, server);
    engine_walk(server->engine, visit_tracker, &trackers);
    put_list(o, "trackers", &trackers);
    engine_walk_waits(server->engine, visit_wait, &waits);
    put_list(o, "waits", &waits);
    asks_walk(server->asks, visit_ask, &asks);
    put_list(o, "asks", &asks);
    struct link_counts sum = put_peers(o, server, &retries);
    put_tasks(o, server);
    put_stopped(o, server);
    if (server->paused.nparts > 0)
        field_put_number(o, "paused", procset_size(&server->paused));
    put_meeting(o, server);
    put_together(o, server);
    put_settings(o, server);
    put_counters(o, server, &sum, retries);
    put(o, "collectives", tallied_json(server, engine_tally(server->engine)));
    return text_of(o, len);
}

static void count_tracker(void *arg, const struct engine_view *view)
{
    const char *kind = coll_traits(signature_kind(view->sig, view->siglen))->name;
    json_object *states, *n = NULL;
    if (kind == NULL)
        return;
    if (!json_object_object_get_ex(arg, kind, &states)) {
        states = json_object_new_object();
        put(arg, kind, states);
    }
    json_object_object_get_ex(states, view->state, &n);
    field_put_number(states, view->state, (uint64_t)json_object_get_int64(n) + 1);
}

/* @param max of a list */
static json_object *operations(struct server *server, uint32_t max)
{
    const struct engine_counts counts = engine_counts(server->engine);
    json_object *o = json_object_new_object(), *under_way = json_object_new_object();
    struct list trackers = {server, json_object_new_array(), 0, max,
                            max < STATUS_SHORT_MISSING_MAX ? max : STATUS_SHORT_MISSING_MAX};
    struct list waits = {server, json_object_new_array(), 0, max, 0};
    engine_walk(server->engine, count_tracker, under_way);
    engine_walk(server->engine, visit_tracker, &trackers);
    engine_walk_waits(server->engine, visit_wait, &waits);
    asks_walk(server->asks, visit_ask, &waits);
    field_put_number(under_way, "waits", waits.n);
    put(o, "under_way", under_way);
    put_ends(o, &counts);
    put_list(o, "trackers", &trackers);
    put_list(o, "waits", &waits);
    return o;
}

char *status_operations(void *arg, size_t max, size_t *len)
{
    uint32_t n = STATUS_SHORT_MAX;
    char *text = text_of(operations(arg, n), len);
    while (text != NULL && *len > max && n > 0) {
        free(text);
        n /= 2;
        text = text_of(operations(arg, n), len);
    }
    return text;
}
