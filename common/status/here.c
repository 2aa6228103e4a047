/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server says is its user's, and taken with suspicion.
 */
#include "common/status/here.h"

#include "common/status/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 /* of JSON */ };

json_object *here_only_node(json_object *state)
{
    json_object *nodes = NULL, *node = NULL;
    if (json_object_is_type(state, json_type_object) &&
        json_object_object_get_ex(state, "nodes", &nodes) &&
        json_object_is_type(nodes, json_type_array) && json_object_array_length(nodes) == 1)
        node = json_object_array_get_idx(nodes, 0);
    return json_object_is_type(node, json_type_object) ? node : NULL;
}

json_object *here_tasks(json_object *node)
{
    json_object *tasks = NULL;
    json_object_object_get_ex(node, "tasks", &tasks);
    return json_object_is_type(tasks, json_type_array) ? tasks : NULL;
}

int64_t here_number(json_object *o, const char *key)
{
    json_object *value = NULL;
    return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &value) &&
                   json_object_is_type(value, json_type_int)
               ? json_object_get_int64(value)
               : -1;
}

/* Of some task that has a process; 0: none has. */
static pid_t first_pid(json_object *node)
{
    json_object *tasks = here_tasks(node);
    for (size_t i = 0; tasks != NULL && i < json_object_array_length(tasks); i++) {
        int64_t pid = here_number(json_object_array_get_idx(tasks, i), "pid");
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
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    json_object *state =
        tokener != NULL ? json_tokener_parse_ex(tokener, text, (int)strlen(text)) : NULL;
    json_tokener_free(tokener);
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
