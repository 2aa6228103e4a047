/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that many nodes of a step may have alike. */
#include "plugins/slurm/agent_causes.h"

#include "common/util/log.h"
#include "common/util/text.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/node_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_MS = 1500,    /* from the second node that says the same to the line with all of them */
    HEAD_BYTES = 100, /* of the first line, in the lines with the other nodes */
    LIST_BYTES = 600,
};

/* In the place of all lines that are new once there are CAUSES_MAX causes. */
static const char others[] =
    "there are more causes than are shown; slurmd's log has those of a node";

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* @return how long the node's name is at @p p, as a word of its own, or 0 */
static size_t names_node(const char *text, const char *p, const char *node)
{
    size_t len = strlen(node);
    bool whole = (p == text || !is_word(p[-1])) && strncmp(p, node, len) == 0 && !is_word(p[len]);
    return whole ? len : 0;
}

/* @return the end of what is alike on all nodes in the path at @p p: its end mkdtemp() has made */
static const char *path_end(const char *p, size_t len)
{
    for (size_t at = len; at > 1; at--)
        if (p[at - 2] == '.')
            return p + at - 1;
    return p + len;
}

/* @param key as long as @p text at least */
static void make_key(const char *text, const char *node, char *key)
{
    const char *cut = NULL, *end = text; /* of the path that is being read */
    for (const char *p = text; *p != '\0';) {
        if (*p == '/' && p >= end) {
            size_t len = strcspn(p, " :,;");
            end = p + len;
            cut = path_end(p, len);
        }
        size_t len = names_node(text, p, node);
        bool differs = isdigit((unsigned char)*p) || (p < end && p >= cut);
        if (!differs)
            *key++ = len > 0 ? '*' : *p;
        p += len > 0 ? len : 1;
    }
    *key = '\0';
}

/* @return the begin of the line, without "7.0 c07: ", for free(), or NULL */
static char *head_of(const char *text, const char *node)
{
    const char *colon = strstr(text, ": ");
    size_t len = strlen(node);
    if (colon != NULL && (size_t)(colon - text) >= len && strncmp(colon - len, node, len) == 0)
        text = colon + 2;
    return text_format("%.*s%s", HEAD_BYTES, text, strlen(text) > HEAD_BYTES ? "..." : "");
}

static struct cause *find(struct causes *causes, const char *key)
{
    for (uint32_t i = 0; i < causes->n; i++)
        if (strcmp(causes->all[i].key, key) == 0)
            return &causes->all[i];
    return NULL;
}

static bool has_node(const struct cause *cause, const char *node)
{
    for (uint32_t i = 0; i < cause->n; i++)
        if (strcmp(cause->nodes[i], node) == 0)
            return true;
    return false;
}

/* @return whether there is memory */
static bool add_node(struct cause *cause, const char *node)
{
    char **nodes = realloc(cause->nodes, (cause->n + 1) * sizeof *nodes), *copy = strdup(node);
    if (nodes != NULL)
        cause->nodes = nodes;
    if (nodes == NULL || copy == NULL) {
        free(copy);
        return false;
    }
    nodes[cause->n++] = copy;
    return true;
}

static void free_cause(struct cause *cause)
{
    for (uint32_t i = 0; i < cause->n; i++)
        free(cause->nodes[i]);
    free(cause->nodes);
    free(cause->key);
    free(cause->head);
}

/* The first node that says it. @return whether there is memory */
static bool begin(struct causes *causes, const char *key, const char *text, const char *node)
{
    struct cause *cause = &causes->all[causes->n];
    *cause = (struct cause){.key = strdup(key), .head = head_of(text, node), .gap = GAP_MS};
    if (cause->key == NULL || cause->head == NULL || !add_node(cause, node)) {
        free_cause(cause);
        return false;
    }
    cause->named = 1;
    causes->n++;
    log_error("%s", text);
    return true;
}

/* One more node says it. */
static void add(struct cause *cause, const char *node, int64_t now)
{
    if (has_node(cause, node))
        return;
    if (cause->n == CAUSE_NODES_MAX || !add_node(cause, node))
        cause->more++;
    if (cause->until == 0)
        cause->until = now + cause->gap;
}

bool causes_take(struct causes *causes, struct wire_in *in, int64_t now)
{
    char node[CAUSE_NODE_MAX + 1] = "", text[AGENT_TEXT_MAX] = "", key[AGENT_TEXT_MAX];
    wire_get_str(in, node, sizeof node);
    wire_get_str(in, text, sizeof text);
    if (in->bad || text[0] == '\0' || !node_names_is_one(node, CAUSE_NODE_MAX))
        return false;
    make_key(text, node, key);
    struct cause *cause = find(causes, key);
    if (cause == NULL && causes->n >= CAUSES_MAX) {
        cause = find(causes, others);
        snprintf(key, sizeof key, "%s", others);
        snprintf(text, sizeof text, "%s: %s", node, others);
    }
    if (cause == NULL)
        return begin(causes, key, text, node);
    add(cause, node, now);
    return true;
}

static void name_others(struct cause *cause)
{
    char list[LIST_BYTES];
    uint32_t n = cause->n - cause->named + cause->more;
    node_names_text(cause->nodes + cause->named, cause->n - cause->named, list, sizeof list);
    log_error("%u more node%s the same as %s: %s (%s)", n, n == 1 ? " says" : "s say",
              cause->nodes[0], list[0] != '\0' ? list : "...", cause->head);
    cause->named = cause->n;
    cause->more = 0;
    cause->until = 0;
    cause->gap *= 2;
}

int64_t causes_next(const struct causes *causes)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < causes->n; i++)
        if (causes->all[i].until != 0 && causes->all[i].until < next)
            next = causes->all[i].until;
    return next;
}

void causes_tick(struct causes *causes, int64_t now)
{
    for (uint32_t i = 0; i < causes->n; i++)
        if (causes->all[i].until != 0 && causes->all[i].until <= now)
            name_others(&causes->all[i]);
}

void causes_end(struct causes *causes)
{
    causes_tick(causes, INT64_MAX);
    for (uint32_t i = 0; i < causes->n; i++)
        free_cause(&causes->all[i]);
    *causes = (struct causes){.n = 0};
}
