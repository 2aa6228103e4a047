/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Output of the step's own tasks for those that pull it (PMIx_IOF_pull), although no PMIx_Spawn has
 * started them.
 *
 * The tasks' pipes are the resource manager's. It has a program that prints what comes out of them,
 * the *printer*: lines with "RANK: " in front, standard output and standard error apart, until the
 * step ends. The plugin names it in the setting BOOT_PRINTER, and may name one for each component
 * of the step, whose ranks begin at 0: "TASKS COMMAND WORD... ; TASKS COMMAND WORD...".  The server
 * runs it while somebody on its node pulls. It is never a program that the user may choose: as the
 * server, it is outside of the job's limits.
 *
 * The printer's standard input is a pipe that stays open and empty: a printer that reads its end
 * would close the tasks' own input.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** Finds the printer, if the resource manager has one. */
void printer_open(struct server *server);

/** Ends the printer. */
void printer_close(struct server *server);
