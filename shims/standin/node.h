/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the process of a node has to do with its tasks, whichever resource manager is played.
 *
 * It goes on when the first process is killed: it kills its tasks then, and takes the directory
 * away.
 */
#pragma once

#include "shims/standin/run.h"

enum { NODE_SERVERS_MAX = 8 };

struct node {
    struct run *run;
    const struct standin_node *here;
    uint32_t index;
    int control;  /**< -1: the first process is gone */
    int children; /**< signalfd of SIGCHLD */
    pid_t *tasks; /**< by slot; 0: ended */
    uint32_t running;
    pid_t kept[NODE_SERVERS_MAX]; /**< what the plugin has started before the tasks */
    size_t nkept;
    void (*task_ended)(struct node *node, uint32_t slot, int status); /**< NULL: is not called */
};

/** In the forked process, first of all. @return 0, or -1 with errno */
int node_open(struct node *node, struct run *run, uint32_t index, int control);

/** The plugin has started what it starts; all children of now are not the tasks'. */
void node_keep_children(struct node *node);

/** Makes the pipes of a slot's task and forks it; it dies with this process. @return 0 in the task,
 * its pid in the node, -1: reported as ended */
pid_t node_fork(struct node *node, uint32_t slot);

/** Something came over control. */
void node_control_ready(struct node *node);

/** Children have ended. */
void node_children_ready(struct node *node);

/** Kills what tasks have left. */
void node_kill_strays(struct node *node);

/** Tells how it went, as the last thing, and removes the directory if no other process will. */
_Noreturn void node_end(struct node *node, int status);

/** Sets a variable in @p env, whose strings are malloc()ed. Ends the process if it cannot.
 * @thread the only one of a forked child */
void task_setenv(char ***env, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Makes the pipes of the task's slot its own. @thread the same */
void task_open(struct node *node, uint32_t slot);

/** Becomes the program. @thread the same */
_Noreturn void task_exec(struct run *run, uint32_t rank);
