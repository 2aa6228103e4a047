/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The processes of this machine, as far as they may be seen, and which of them others have started.
 * @thread any
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proctab_entry {
    pid_t pid, parent;
    char state; /**< as in /proc/PID/stat: 'T' is stopped, 't' is held by a debugger */
};

/** Processes in the order of their numbers. All zero is empty. */
struct proctab {
    struct proctab_entry *v; /**< owned */
    size_t n;
};

/** Reads what /proc has now. @return 0, or -1: it cannot be read, or memory ran out. */
int proctab_read(struct proctab *tab);

/** @return the process of that number, or NULL. */
const struct proctab_entry *proctab_find(const struct proctab *tab, pid_t pid);

/** @return whether @p pid is @p root, or was started by it or by what it has started. */
bool proctab_is_below(const struct proctab *tab, pid_t pid, pid_t root);

/** @return whether a process is ending, or has gone; false where that is not known. */
bool proctab_is_ending(pid_t pid);

void proctab_free(struct proctab *tab);
