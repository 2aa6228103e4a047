/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A step that another step has started: whether all its processes have become their programs.
 *
 * Each process comes as muster-exec (launch/plan.h), which connects here, and whose connection ends
 * with its exec. Servers tell each other along a tree, whose root is node 0:
 *
 * | a server has | it says |
 * | --- | --- |
 * | the exec of all its tasks, and the word of all servers below it | up: so far all have started |
 * | a process that cannot be started | node 0: which one, and why; then it ends the step |
 *
 * Node 0 tells the step that started this one (rm_ops.started), once.
 * What the processes print and read may go to, and come from, a process of that step: streams.h.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** Begins to listen, where the step is a spawned one. @return 0, or -1 with the reason in @p err */
int execs_open(struct server *server, struct err *err);

/** @return "K=V", malloc()ed, for the environment of tasks; NULL: not spawned */
char *execs_env(const struct server *server);

/** The task in @p slot has ended. */
void execs_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code);

/** Takes the body of a FRAME_STARTED of server @p from of the own step. */
void execs_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** Whether this server has a word to say that others wait for, and has not said it: the programs of
 * a step may have ended before the servers below have said that they ran. */
bool execs_owe(const struct server *server);

/** @return whether a process was killed before it ran, and a server elsewhere may still say why.
 * True for 1 s at most. */
bool execs_await_why(const struct server *server);

/** Closes the socket of the processes, their connections and streams. */
void execs_close(struct server *server);
