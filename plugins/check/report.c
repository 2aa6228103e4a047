/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Gathers what nodes have answered, compares them, and prints.
 */
#include "plugins/check/report.h"

#include "common/util/log.h"
#include "include/muster.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SILENT_REMEDY "look whether slurmd runs there, and restart it: systemctl restart slurmd"

enum { NAMES_SHOWN = 4, CELL_MAX = 64 };

static const struct column {
    const char *key, *title;
    const char *same; /* the remedy when nodes differ; NULL: they may */
} columns[] = {
    {"muster", "MUSTER", "install one version of muster on all nodes"},
    {"plugin", "PLUGIN", NULL},
    {"server", "SERVER", NULL},
    {"backend", "BACK END", NULL},
    {"libpmix", "LIBPMIX", "install one release of libpmix on all nodes"},
    {"settings", "SETTINGS", "copy one muster.json to all nodes"},
    {"spool", "SPOOL", NULL},
    {"tmpdir", "TMPDIR", NULL},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *cell(json_object *node, const char *key)
{
    json_object *value;
    return json_object_object_get_ex(node, key, &value) ? json_object_get_string(value) : "-";
}

static json_object *node_at(const struct report *report, size_t i)
{
    return json_object_array_get_idx(report->nodes, i);
}

/* The fault with that text, made when there is none. @return its list of nodes */
static json_object *nodes_of(struct report *report, const char *text)
{
    json_object *fault, *nodes;
    if (report->faults == NULL)
        report->faults = json_object_new_array();
    for (size_t i = 0; i < json_object_array_length(report->faults); i++) {
        fault = json_object_array_get_idx(report->faults, i);
        if (strcmp(cell(fault, "text"), text) == 0 &&
            json_object_object_get_ex(fault, "nodes", &nodes))
            return nodes;
    }
    fault = json_object_new_object();
    nodes = json_object_new_array();
    json_object_object_add(fault, "text", json_object_new_string(text));
    json_object_object_add(fault, "nodes", nodes);
    json_object_array_add(report->faults, fault);
    return nodes;
}

void report_fault(struct report *report, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    nodes_of(report, text);
}

void report_add(struct report *report, const char *line)
{
    json_object *node = line[0] == '{' ? json_tokener_parse(line) : NULL, *faults, *name;
    if (node == NULL || !json_object_object_get_ex(node, "node", &name) ||
        !json_object_object_get_ex(node, "faults", &faults) ||
        !json_object_is_type(faults, json_type_array)) {
        fputs(line, stderr);
        json_object_put(node);
        return;
    }
    if (report->nodes == NULL)
        report->nodes = json_object_new_array();
    json_object_array_add(report->nodes, node);
    for (size_t i = 0; i < json_object_array_length(faults); i++) {
        const char *text = json_object_get_string(json_object_array_get_idx(faults, i));
        json_object_array_add(nodes_of(report, text), json_object_get(name));
    }
}

static bool has_answered(const struct report *report, const char *name)
{
    for (unsigned i = 0; i < report_nodes(report); i++)
        if (strcmp(cell(node_at(report, i), "node"), name) == 0)
            return true;
    return false;
}

void report_silent(struct report *report, const char *node)
{
    if (has_answered(report, node))
        return;
    if (report->silent == NULL)
        report->silent = json_object_new_array();
    json_object_array_add(report->silent, json_object_new_string(node));
}

void report_tell_silent(const struct report *report)
{
    size_t n = report->silent == NULL ? 0 : json_object_array_length(report->silent);
    if (n == 0)
        return;
    fputs("muster-check: ", stderr);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : ",",
                json_object_get_string(json_object_array_get_idx(report->silent, i)));
    fputs(": no answer yet; " SILENT_REMEDY "\n", stderr);
}

void report_faults_of_silent(struct report *report)
{
    size_t n = report->silent == NULL ? 0 : json_object_array_length(report->silent);
    for (size_t i = 0; i < n; i++) {
        json_object *name = json_object_array_get_idx(report->silent, i);
        if (!has_answered(report, json_object_get_string(name)))
            json_object_array_add(nodes_of(report, "no answer; " SILENT_REMEDY),
                                  json_object_get(name));
    }
}

unsigned report_nodes(const struct report *report)
{
    return report->nodes == NULL ? 0 : (unsigned)json_object_array_length(report->nodes);
}

bool report_is_right(const struct report *report)
{
    return report->faults == NULL;
}

/* The value that most nodes have; those with another one have the fault. */
static const char *usual(const struct report *report, const char *key)
{
    const char *best = "-";
    unsigned most = 0;
    for (unsigned i = 0; i < report_nodes(report); i++) {
        const char *value = cell(node_at(report, i), key);
        unsigned n = 0;
        if (strcmp(value, "-") == 0 || (most > 0 && strcmp(value, best) == 0))
            continue;
        for (unsigned k = 0; k < report_nodes(report); k++)
            n += strcmp(cell(node_at(report, k), key), value) == 0;
        if (n > most) {
            most = n;
            best = value;
        }
    }
    return best;
}

void report_compare(struct report *report)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const char *most = usual(report, columns[c].key);
        for (unsigned i = 0; columns[c].same != NULL && i < report_nodes(report); i++) {
            json_object *node = node_at(report, i);
            const char *value = cell(node, columns[c].key);
            char text[512];
            if (strcmp(value, most) == 0 || strcmp(value, "-") == 0)
                continue;
            snprintf(text, sizeof text, "%s: %s, and %s on most nodes; %s", columns[c].key, value,
                     most, columns[c].same);
            json_object_array_add(nodes_of(report, text),
                                  json_object_new_string(cell(node, "node")));
        }
    }
}

static int by_name(const void *a, const void *b)
{
    json_object *const *x = a, *const *y = b;
    return strverscmp(cell(*x, "node"), cell(*y, "node"));
}

static bool same_row(json_object *a, json_object *b)
{
    for (size_t c = 0; c < COLUMNS; c++)
        if (strcmp(cell(a, columns[c].key), cell(b, columns[c].key)) != 0)
            return false;
    return true;
}

static void print_text(const char *text, int width)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    log_mask(copy);
    printf("%-*s", width, copy);
}

static bool is_first(const struct report *report, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (same_row(node_at(report, k), node_at(report, i)))
            return false;
    return true;
}

static void print_row(const struct report *report, unsigned i, const int *width)
{
    unsigned n = 0, shown = 0;
    for (unsigned k = i; k < report_nodes(report); k++)
        n += same_row(node_at(report, k), node_at(report, i));
    printf("%5u  ", n);
    for (size_t c = 0; c < COLUMNS; c++)
        print_text(cell(node_at(report, i), columns[c].key), width[c] + 2);
    for (unsigned k = i; k < report_nodes(report) && shown < NAMES_SHOWN; k++) {
        if (!same_row(node_at(report, k), node_at(report, i)))
            continue;
        if (shown++ > 0)
            putchar(',');
        print_text(cell(node_at(report, k), "node"), 0);
    }
    puts(n > shown ? ",..." : "");
}

/* All nodes: an admin goes to each. */
static void print_fault(json_object *fault)
{
    json_object *nodes = NULL;
    json_object_object_get_ex(fault, "nodes", &nodes);
    size_t n = json_object_array_length(nodes);
    for (size_t i = 0; i < n; i++) {
        print_text(json_object_get_string(json_object_array_get_idx(nodes, i)), 0);
        fputs(i + 1 < n ? "," : ": ", stdout);
    }
    print_text(cell(fault, "text"), 0);
    putchar('\n');
}

void report_table(struct report *report)
{
    int width[COLUMNS];
    if (report->nodes != NULL) {
        json_object_array_sort(report->nodes, by_name);
        for (size_t c = 0; c < COLUMNS; c++) {
            width[c] = (int)strlen(columns[c].title);
            for (unsigned i = 0; i < report_nodes(report); i++) {
                int len = (int)strnlen(cell(node_at(report, i), columns[c].key), CELL_MAX);
                width[c] = len > width[c] ? len : width[c];
            }
        }
        printf("NODES  ");
        for (size_t c = 0; c < COLUMNS; c++)
            printf("%-*s", width[c] + 2, columns[c].title);
        puts("WHICH");
        for (unsigned i = 0; i < report_nodes(report); i++)
            if (is_first(report, i))
                print_row(report, i, width);
    }
    for (size_t i = 0; report->faults != NULL && i < json_object_array_length(report->faults); i++)
        print_fault(json_object_array_get_idx(report->faults, i));
    if (report_is_right(report))
        puts("all is right");
}

void report_json(struct report *report)
{
    json_object *all = json_object_new_object();
    if (report->nodes != NULL)
        json_object_array_sort(report->nodes, by_name);
    json_object_object_add(all, "version", json_object_new_int(MUSTER_JSON_VERSION));
    json_object_object_add(
        all, "nodes", report->nodes ? json_object_get(report->nodes) : json_object_new_array());
    json_object_object_add(
        all, "faults", report->faults ? json_object_get(report->faults) : json_object_new_array());
    puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN));
    json_object_put(all);
}

void report_free(struct report *report)
{
    json_object_put(report->nodes);
    json_object_put(report->faults);
    json_object_put(report->silent);
}
