/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * On a node: the server's guard, the owner's rights, the stacks. For all nodes: the command lines
 * of a place, and one answer out of theirs.
 */
#include "common/status/stacks.h"

#include "common/status/fields.h"
#include "common/status/here.h"
#include "common/status/look.h"
#include "common/status/pieces.h"
#include "common/status/reach.h"
#include "common/util/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECES_MS = 25000 /* each node has its own deadline, which is less */ };

json_object *stacks_here(const struct find *find, const struct rlimit *memory, struct found *found,
                         struct err *err)
{
    json_object *node, *state = here_begin(find, found, &node, err);
    if (state != NULL)
        find_let_go(found, look_at_tasks(node, memory));
    return state;
}

/* @return what was gathered, unless no node has a state; then why */
static json_object *is_said(json_object *state, struct err *err)
{
    json_object *first = field_at(field_list(state, "silent"), 0);
    const char *node = field_text(first, "node"), *why = field_text(first, "why");
    if (state == NULL || field_length(field_list(state, "nodes")) > 0)
        return state;
    if (node != NULL && why != NULL)
        err_set(err, "%s: %s", node, why);
    else
        err_set(err, "no node has answered");
    json_object_put(state);
    return NULL;
}

json_object *stacks_everywhere(const struct find *find, const char *program,
                               const struct rlimit *memory, struct found *found, struct err *err)
{
    const char *const words[] = {program, "--pieces", NULL};
    struct reach reach = {.program = words, .uid = find->uid, .dir = find->only ? find->dir : NULL};
    json_object *state = reach_find(&reach, find->places, find->step, err) == 0
                             ? pieces_run(&reach, PIECES_MS, memory, err)
                             : NULL;
    *found = (struct found){.owner = reach.owner, .guard = -1, .runs = 1};
    reach_free(&reach);
    return is_said(state, err);
}

/* As a node's answer that has no state. */
static json_object *silent(const char *node, const char *why)
{
    json_object *all = json_object_new_object(), *list = json_object_new_array(),
                *o = field_add(list);
    field_put_text(o, "node", node);
    field_put_text(o, "why", why);
    json_object_object_add(all, "silent", list);
    return all;
}

int stacks_write_pieces(json_object *state, const char *why)
{
    char host[256] = "";
    json_object *node = here_only_node(state);
    const char *name = field_text(node, "node");
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    if (node == NULL) {
        json_object_put(state);
        state = silent(host, why);
    }
    const char *text = field_line(state);
    int rc = pieces_write(stdout, name != NULL ? name : host, text != NULL ? text : "{}");
    json_object_put(state);
    return rc;
}
