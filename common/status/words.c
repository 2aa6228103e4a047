/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads the state with suspicion: a field that is missing or of another type counts as absent, and
 * text is masked before it reaches a terminal.
 */
#include "common/status/words.h"

#include "common/status/fields.h"
#include "common/status/fold.h"
#include "common/util/log.h"

#include <stdbool.h>
#include <string.h>

enum { TEXT_MAX = 512 };

struct text {
    char s[TEXT_MAX];
};

/* ---- fields, as far as they are there ---- */

static struct text text_of(json_object *o, const char *key)
{
    struct text text;
    const char *value = field_text(o, key);
    snprintf(text.s, sizeof text.s, "%s", value != NULL ? value : "?");
    log_mask(text.s);
    return text;
}

static bool is(json_object *o, const char *key)
{
    return json_object_get_boolean(field(o, key, json_type_boolean));
}

/* Whole seconds, or -1 for a time that there is none of. */
static long long seconds(json_object *o, const char *key)
{
    json_object *value = field(o, key, json_type_double);
    if (value == NULL)
        value = field(o, key, json_type_int);
    double s = value != NULL ? json_object_get_double(value) : -1;
    return s >= 0 && s < 1e12 ? (long long)s : -1;
}

static long long number(json_object *o, const char *key)
{
    return (long long)field_number(o, key, 0);
}

/* ---- a line for each node ---- */

static void write_tasks(FILE *out, json_object *node)
{
    static const char *const states[] = {"started", "connected", "finalized", "ended", "lost"};
    json_object *tasks = field_list(node, "tasks");
    const char *between = "; tasks: ";
    for (size_t s = 0; s < sizeof states / sizeof *states; s++) {
        size_t n = 0;
        for (size_t i = 0; i < field_length(tasks); i++) {
            struct text state = text_of(field_at(tasks, i), "state");
            n += strcmp(state.s, states[s]) == 0;
        }
        if (n == 0)
            continue;
        fprintf(out, "%s%zu %s", between, n, states[s]);
        between = ", ";
    }
}

/* The servers that this one has had to do with, by how messages go to them. */
static void write_ways(FILE *out, json_object *node)
{
    json_object *peers = field_list(node, "peers");
    size_t direct = 0, native = 0;
    for (size_t i = 0; i < field_length(peers); i++) {
        json_object *peer = field_at(peers, i);
        if (field(peer, "direct", json_type_boolean) == NULL || is(peer, "lost"))
            continue;
        direct += is(peer, "direct");
        native += !is(peer, "direct");
    }
    if (direct + native > 0)
        fprintf(out, "; other servers: %zu direct, %zu native", direct, native);
}

/* Connections by PMIx_Connect that processes of this node are in. */
static void write_connections(FILE *out, json_object *node)
{
    size_t n =
        field_length(field_list(node, "connections")) + (size_t)number(node, "connections_omitted");
    if (n > 0)
        fprintf(out, "; open connections: %zu", n);
}

static void write_node(FILE *out, json_object *node)
{
    size_t waiting =
        field_length(field_list(node, "trackers")) + field_length(field_list(node, "waits")) +
        field_length(field_list(node, "asks")) + (size_t)number(node, "trackers_omitted") +
        (size_t)number(node, "waits_omitted") + (size_t)number(node, "asks_omitted");
    fprintf(out, "%s: muster %s, libpmix %s, up %lld s", text_of(node, "node").s,
            text_of(node, "version").s, text_of(node, "libpmix").s, seconds(node, "uptime"));
    write_tasks(out, node);
    write_connections(out, node);
    write_ways(out, node);
    fprintf(out, "; %zu waiting", waiting);
    if (field(node, "uri", json_type_string) != NULL)
        fprintf(out, "; for tools: \"%s\"", text_of(node, "uri").s);
    fputc('\n', out);
}

/* What is published in the session, on the node that has it, or where that is. */
static void write_meeting(FILE *out, json_object *node, const char *unit)
{
    json_object *meeting = field(node, "meeting", json_type_object);
    struct text name = text_of(node, "node"), holder = text_of(meeting, "holder");
    if (strcmp(text_of(meeting, "state").s, "holds") == 0)
        fprintf(out, "%s holds what is published: %lld entries, %lld bytes, of %lld other %ss\n",
                name.s, number(meeting, "held"), number(meeting, "held_bytes"),
                number(meeting, "steps"), unit);
    else if (strcmp(text_of(meeting, "state").s, "follows") == 0)
        fprintf(out, "%lld entries that this %s has published are held by %s\n",
                number(meeting, "kept"), unit, holder.s);
}

/* ---- which operation waits for which ranks ---- */

/* How much a server's view of an operation tells: the server that decides hears of all. */
static int worth(json_object *tracker)
{
    return is(tracker, "decides") ? 2 : field_length(field_list(tracker, "missing")) > 0 ? 1 : 0;
}

/* Each operation once, as seen by the server that knows most of it. */
static json_object *best_views(json_object *nodes)
{
    json_object *best = json_object_new_object();
    for (size_t i = 0; i < field_length(nodes); i++) {
        json_object *list = field_list(field_at(nodes, i), "trackers");
        for (size_t k = 0; k < field_length(list); k++) {
            json_object *tracker = field_at(list, k), *known;
            struct text id = text_of(tracker, "id");
            if (!json_object_object_get_ex(best, id.s, &known) || worth(known) < worth(tracker))
                json_object_object_add(best, id.s, json_object_get(tracker));
        }
    }
    return best;
}

static void write_missing(FILE *out, json_object *missing)
{
    for (size_t i = 0; i < field_length(missing); i++) {
        json_object *o = field_at(missing, i);
        struct text ranks = text_of(o, "ranks"), node = text_of(o, "node");
        fprintf(out, "%s%s %s on %s", i == 0 ? "missing " : ", ",
                strpbrk(ranks.s, ",-.") != NULL ? "one or more of ranks" : "rank", ranks.s, node.s);
    }
}

static void write_operation(FILE *out, json_object *tracker)
{
    json_object *missing = field_list(tracker, "missing");
    long long left = seconds(tracker, "left"), omitted = number(tracker, "missing_omitted");
    fprintf(out, "%s has waited for %lld s", text_of(tracker, "operation").s,
            seconds(tracker, "age"));
    if (left >= 0)
        fprintf(out, ", fails in %lld s", left);
    fprintf(out, ": ");
    write_missing(out, missing);
    if (field_length(missing) == 0)
        fprintf(out, "no word yet of %s, which decides", text_of(tracker, "root").s);
    if (omitted > 0)
        fprintf(out, ", and ranks on %lld more nodes", omitted);
    fprintf(out, "\n");
}

/* Calls that belong to no operation yet, and what decides with others than its tree's.
 * @return lines written */
static size_t write_waits(FILE *out, json_object *node)
{
    json_object *waits = field_list(node, "waits");
    struct text name = text_of(node, "node");
    for (size_t i = 0; i < field_length(waits); i++) {
        json_object *wait = field_at(waits, i);
        long long left = seconds(wait, "left");
        fprintf(out, "%s has waited for %lld s", name.s, seconds(wait, "age"));
        if (left >= 0)
            fprintf(out, ", fails in %lld s", left);
        fprintf(out, ": %s\n", text_of(wait, "about").s);
    }
    return field_length(waits);
}

/* What one node alone waits for. @return lines written */
static size_t write_own(FILE *out, json_object *node)
{
    json_object *asks = field_list(node, "asks"), *peers = field_list(node, "peers");
    struct text name = text_of(node, "node");
    size_t lines = field_length(asks) + write_waits(out, node);
    for (size_t i = 0; i < field_length(asks); i++) {
        json_object *ask = field_at(asks, i);
        fprintf(out, "%s has waited for %lld s: %s\n", name.s, seconds(ask, "age"),
                text_of(ask, "about").s);
    }
    for (size_t i = 0; i < field_length(peers); i++) {
        json_object *peer = field_at(peers, i);
        long long since = seconds(peer, "unreachable");
        if (is(peer, "lost"))
            fprintf(out, "%s has given up %s\n", name.s, text_of(peer, "node").s);
        else if (since >= 0)
            fprintf(out, "%s has not reached %s for %lld s, with %lld messages waiting\n", name.s,
                    text_of(peer, "node").s, since, number(peer, "queued"));
        lines += is(peer, "lost") || since >= 0;
    }
    return lines;
}

/* What is no default, once: all servers of a step have the same. */
static void write_settings(FILE *out, json_object *node)
{
    json_object *settings = field_list(node, "settings");
    for (size_t i = 0; i < field_length(settings); i++) {
        json_object *o = field_at(settings, i);
        fprintf(out, "%s%s %s (by: %s)", i == 0 ? "settings: " : ", ", text_of(o, "key").s,
                text_of(o, "value").s, text_of(o, "from").s);
    }
    if (field_length(settings) > 0)
        fprintf(out, "\n");
}

/* The step's process sets, of any node: all servers of a step have the same. */
static void write_psets(FILE *out, json_object *node)
{
    json_object *psets = field_list(node, "psets");
    for (size_t i = 0; i < field_length(psets); i++) {
        json_object *o = field_at(psets, i);
        fprintf(out, "%s%s of %lld", i == 0 ? "process sets: " : ", ", text_of(o, "name").s,
                number(o, "size"));
    }
    if (number(node, "psets_omitted") > 0)
        fprintf(out, ", and %lld more", number(node, "psets_omitted"));
    if (field_length(psets) > 0)
        fprintf(out, "\n");
}

static const char *unit_of(json_object *node)
{
    return strcmp(text_of(node, "unit").s, "job") == 0 ? "job" : "step";
}

/* They come as they answered: c2 before c10. */
static int by_node(const void *a, const void *b)
{
    struct text one = text_of(*(json_object *const *)a, "node"),
                two = text_of(*(json_object *const *)b, "node");
    return strverscmp(one.s, two.s);
}

/* Each server knows it of the whole step. */
static void write_stopped(FILE *out, json_object *node)
{
    json_object *stopped = field(node, "stopped", json_type_object);
    if (stopped != NULL)
        fprintf(out, "stopped by a debugger: %lld processes, at %s\n", number(stopped, "processes"),
                text_of(stopped, "breakpoint").s);
    if (field(node, "paused", json_type_int) != NULL)
        fprintf(out, "paused by PMIx_Job_control: %lld processes\n", number(node, "paused"));
}

/* The first line. @return the lists of @p state that there must be, sorted; 0, or -1 */
static int write_head(FILE *out, json_object *state, const char *owner, json_object **nodes,
                      json_object **silent)
{
    *nodes = field_list(state, "nodes");
    *silent = field_list(state, "silent");
    if (field_length(*nodes) == 0 || *silent == NULL)
        return -1;
    json_object_array_sort(*nodes, by_node);
    json_object_array_sort(*silent, by_node);
    json_object *first = field_at(*nodes, 0);
    fprintf(out, "%s %s of %s: %zu of %zu nodes answer\n", unit_of(first), text_of(first, "step").s,
            owner, field_length(*nodes), field_length(*nodes) + field_length(*silent));
    return 0;
}

static void write_silent(FILE *out, json_object *silent)
{
    for (size_t i = 0; i < field_length(silent); i++) {
        json_object *o = field_at(silent, i);
        fprintf(out, "%s: %s\n", text_of(o, "node").s, text_of(o, "why").s);
    }
}

/* Which operations wait, and for whom. */
static void write_waiting(FILE *out, json_object *nodes)
{
    json_object *best = best_views(nodes);
    size_t lines = 0;
    json_object_object_foreach(best, id, tracker)
    {
        (void)id;
        write_operation(out, tracker);
        lines++;
    }
    json_object_put(best);
    for (size_t i = 0; i < field_length(nodes); i++)
        lines += write_own(out, field_at(nodes, i));
    if (lines == 0)
        fprintf(out, "no PMIx operation waits\n");
}

int words_write(FILE *out, json_object *state, const char *owner)
{
    json_object *nodes, *silent;
    if (write_head(out, state, owner, &nodes, &silent) != 0)
        return -1;
    json_object *first = field_at(nodes, 0);
    write_settings(out, first);
    write_psets(out, first);
    write_stopped(out, first);
    for (size_t i = 0; i < field_length(nodes); i++)
        write_node(out, field_at(nodes, i));
    for (size_t i = 0; i < field_length(nodes); i++)
        write_meeting(out, field_at(nodes, i), unit_of(first));
    write_silent(out, silent);
    write_waiting(out, nodes);
    return 0;
}

int words_write_stacks(FILE *out, json_object *state, const char *owner, bool full)
{
    json_object *nodes, *silent;
    if (write_head(out, state, owner, &nodes, &silent) != 0)
        return -1;
    write_silent(out, silent);
    write_stopped(out, field_at(nodes, 0));
    write_waiting(out, nodes);
    fold_write(out, nodes, full);
    return 0;
}
