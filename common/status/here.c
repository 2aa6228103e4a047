/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server says is its user's, and taken with suspicion.
 */
#include "common/status/here.h"

#include "common/status/fields.h"
#include "common/status/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_object *here_only_node(json_object *state)
{
    json_object *nodes = field_list(state, "nodes"), *node = field_at(nodes, 0);
    return field_length(nodes) == 1 && json_object_is_type(node, json_type_object) ? node : NULL;
}

/* Of some task that has a process; 0: none has. */
static pid_t first_pid(json_object *node)
{
    json_object *tasks = field_list(node, "tasks");
    for (size_t i = 0; i < field_length(tasks); i++) {
        int64_t pid = field_number(field_at(tasks, i), "pid", 0);
        if (pid > 0)
            return (pid_t)pid;
    }
    return 0;
}

json_object *here_begin(const struct find *find, struct found *found, json_object **node,
                        struct err *err)
{
    char *text = find_guarded(find, found, err);
    if (text == NULL)
        return NULL;
    json_object *state = field_parse(text);
    free(text);
    *node = here_only_node(state);
    if (*node == NULL)
        err_set(err, "what the server on this node says makes no sense");
    else if (owner_become(found->owner, first_pid(*node), err) == 0)
        return state;
    find_let_go(found, true);
    json_object_put(state);
    return NULL;
}

const char *here_program(char *path, size_t cap, struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", path, cap - 1);
    if (n < 0)
        err_set(err, "cannot find out where this program is: %s", strerror(errno));
    path[n > 0 ? n : 0] = '\0';
    return n > 0 ? path : NULL;
}
