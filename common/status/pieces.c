/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A piece is "muster NODE + TEXT" while more follows, and "muster NODE . TEXT" at the end.
 */
#include "common/status/pieces.h"

#include "common/status/commands.h"
#include "common/status/fields.h"
#include "common/status/find.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MARK "muster "

enum {
    PIECE_MAX = 800,     /* bytes of text in a line: Slurm keeps lines below 1024 bytes together */
    NODE_NAME_MAX = 100, /* bytes of a node's name */
};

struct pieces_node {
    char *name, *text; /* owned */
    size_t len;
    bool whole;
};

int pieces_write(FILE *out, const char *node, const char *text)
{
    size_t len = strlen(text);
    do {
        size_t n = len < PIECE_MAX ? len : PIECE_MAX;
        fprintf(out, MARK "%.*s %c %.*s\n", NODE_NAME_MAX, node, n < len ? '+' : '.', (int)n, text);
        text += n;
        len -= n;
    } while (len > 0);
    return fflush(out) != 0 || ferror(out) ? -1 : 0;
}

static struct pieces_node *node_of(struct pieces *pieces, const char *name, size_t len)
{
    for (size_t i = 0; i < pieces->n; i++)
        if (strncmp(pieces->nodes[i].name, name, len) == 0 && pieces->nodes[i].name[len] == '\0')
            return &pieces->nodes[i];
    struct pieces_node *more = realloc(pieces->nodes, (pieces->n + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    pieces->nodes = more;
    more[pieces->n] = (struct pieces_node){.name = strndup(name, len)};
    return more[pieces->n].name != NULL ? &more[pieces->n++] : NULL;
}

int pieces_take(struct pieces *pieces, const char *line)
{
    if (strncmp(line, MARK, sizeof MARK - 1) != 0)
        return 0;
    const char *name = line + sizeof MARK - 1, *kind = strchr(name, ' ');
    if (kind == NULL || kind == name || kind - name > NODE_NAME_MAX || kind[1] == '\0' ||
        kind[2] != ' ')
        return 0;
    struct pieces_node *node = node_of(pieces, name, (size_t)(kind - name));
    size_t len = strlen(kind + 3);
    if (node == NULL || (pieces->bytes += len) > FIND_ANSWER_MAX)
        return -1;
    if (node->whole)
        return 0;
    char *more = realloc(node->text, node->len + len + 1);
    if (more == NULL)
        return -1;
    memcpy(more + node->len, kind + 3, len + 1);
    node->text = more;
    node->len += len;
    node->whole = kind[1] == '.';
    return 0;
}

static void add_silent(json_object *all, const char *node, const char *why)
{
    json_object *o = field_add(field_list(all, "silent"));
    field_put_text(o, "node", node);
    field_put_text(o, "why", why);
}

/* Moves the elements of one list. @return whether there was one at least */
static bool move(json_object *all, json_object *from, const char *key)
{
    json_object *list = field_list(from, key);
    size_t n = field_length(list);
    for (size_t i = 0; i < n; i++)
        json_object_array_add(field_list(all, key), json_object_get(field_at(list, i)));
    return n > 0;
}

static void add_answer(json_object *all, const struct pieces_node *node)
{
    json_object *answer = node->whole ? field_parse(node->text) : NULL;
    bool nodes = move(all, answer, "nodes"), silent = move(all, answer, "silent");
    if (!nodes && !silent)
        add_silent(all, node->name, node->whole ? "its answer makes no sense" : "it broke off");
    json_object_put(answer);
}

json_object *pieces_end(struct pieces *pieces)
{
    json_object *all = json_object_new_object();
    json_object_object_add(all, "nodes", json_object_new_array());
    json_object_object_add(all, "silent", json_object_new_array());
    for (size_t i = 0; i < pieces->n; i++) {
        add_answer(all, &pieces->nodes[i]);
        free(pieces->nodes[i].name);
        free(pieces->nodes[i].text);
    }
    free(pieces->nodes);
    *pieces = (struct pieces){0};
    return all;
}

/* ---- the command lines ---- */

static bool has_node(json_object *all, const char *key, const char *name)
{
    json_object *list = field_list(all, key);
    for (size_t i = 0; i < field_length(list); i++) {
        const char *text = field_text(field_at(list, i), "node");
        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static void add_missing(json_object *all, const struct reach *reach, const char *why)
{
    for (size_t i = 0; i < reach->n; i++)
        for (char **node = reach->lines[i].nodes; node != NULL && *node != NULL; node++)
            if (!has_node(all, "nodes", *node) && !has_node(all, "silent", *node))
                add_silent(all, *node, why);
}

struct taking {
    struct pieces pieces;
    bool too_long;
};

static void take_line(void *arg, const char *line)
{
    struct taking *taking = arg;
    taking->too_long |= pieces_take(&taking->pieces, line) != 0;
}

json_object *pieces_run(const struct reach *reach, int ms, const struct rlimit *memory,
                        struct err *err)
{
    struct taking taking = {.too_long = false};
    const struct command_plan how = {.memory = memory, .take = take_line, .arg = &taking};
    char late[64];
    int status = commands_reach(reach, &how, ms, err);
    json_object *all = pieces_end(&taking.pieces);
    snprintf(late, sizeof late, "no answer within %d s", ms / 1000);
    add_missing(all, reach, status == COMMANDS_LATE ? late : "no answer came from there");
    if (taking.too_long)
        err_set(err, "the answers are too long");
    if (err->text[0] == '\0')
        return all;
    json_object_put(all);
    return NULL;
}
