/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Programs that print what the tasks print: "musterrun --printer SOCKET", which muster-server runs
 * while somebody pulls that (common/upcall/printer.h). Each gets all output, a message a piece; the
 * tasks wait when it does not take it, and after GIVE_UP_MS it is let go.
 * @thread the first process's only one
 */
#pragma once

#include "shims/standin/standin.h"

#include <poll.h>
#include <stddef.h>

enum { PRINTERS_PIECE = 65536, PRINTERS_MAX = 8, PRINTERS_FDS = 1 + PRINTERS_MAX };

/** What a program reads from its socket; without data: that output has ended. */
struct printers_piece {
    uint32_t rank, which; /**< 0: standard output */
    char data[PRINTERS_PIECE];
};

struct printers;

/** Listens in the run's directory, and names the program in MUSTER_PRINTER of our environment, for
 * the plugin. @return NULL: out of memory; where it cannot listen, none ever comes */
struct printers *printers_open(const struct standin_step *step);

/** In a node's process. */
void printers_leave(struct printers *p);

/** Fills in PRINTERS_FDS of them. */
void printers_poll(const struct printers *p, struct pollfd *fds);
void printers_ready(struct printers *p, const struct pollfd *fds);

/** @return when to call printers_ready() at the latest, ms; 0: no need. Until then there is
 * something that a program does not take, and no printers_say() */
int64_t printers_wait(const struct printers *p);

void printers_say(struct printers *p, uint32_t rank, int which, const char *data, size_t len);

/** The programs end by it. */
void printers_close(struct printers *p);
