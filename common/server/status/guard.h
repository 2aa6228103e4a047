/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sees to it that no task stays stopped because a tool that looked at it was killed.
 *
 * A debugger, or a program that takes stacks, stops a process by SIGSTOP and lets it go on. When it
 * is killed between the two, the process stays stopped. So muster-status --stacks and muster-attach
 * keep a connection to the server open while such programs run. The kernel closes it, however they
 * end, and the server lives on. When it closes without a word that all is well, the server looks
 * for a second, and for up to five while a debugger holds one, for processes of the tasks that are
 * stopped and were not before, and has them go on.
 * @thread all of it: the loop's
 */
#pragma once

#include <stdbool.h>

struct server;
struct guards;

/** @return of which there is one a server */
struct guards *guards_open(struct server *server);

/** Has what is stopped by then go on. */
void guards_close(struct guards *guards);

/** Notes which processes of the tasks are stopped already.
 * @return what guard_end() takes; NULL: as many as may stand at a time stand already */
struct guard *guard_begin(struct guards *guards);

/** A tool has ended. @param well it has said that it has stopped nothing, or let all go on */
void guard_end(struct guard *guard, bool well);
