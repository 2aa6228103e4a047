/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where servers' directories are, beside tmpdir and /tmp, and by which names users know a step:
 * what muster-status has to be told for each resource manager. plugins/places.c lists them.
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stddef.h>

struct reach;

/** Takes one directory in which a server's directory may be.
 * @param dir borrowed; NULL: where muster.json says, or /tmp
 * @param step as servers' directories name it, borrowed; NULL: any */
typedef void place_visit_fn(void *arg, const char *dir, const char *step);

struct place {
    /**
     * Calls @p visit for each directory that may have the server of a step, and looks into none.
     * @param step  as the user wrote it, any bytes; NULL: of every step
     * @param where filled in with what was searched, for a message, "" if nothing; @p cap bytes
     */
    void (*each)(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap);

    /** Names a job, which is what its users call it: not a step. It has one run.
     * @param text as the user wrote it, any bytes
     * @param name filled in with its name as servers' directories have it, @p cap bytes
     * @return whether it is one. NULL: nothing of it is */
    bool (*name)(const char *text, char *name, size_t cap);

    /** Adds the command lines that start a program once on each node of a step (reach.h).
     * @param step as the user wrote it, any bytes
     * @return 0, without a line where it knows no such step; -1 with the reason in @p err: it is
     * its step, and cannot be reached. NULL: it reaches none */
    int (*reach)(const char *step, struct reach *reach, struct err *err);

    /** The command by which a user lists what runs; its first word is a program. NULL: none does */
    const char *lists;

    /** @return the names of the caller's steps that run, as the user writes them, up to a NULL, for
     * reach_free_list(); NULL: none is known. NULL: it does not know */
    char **(*mine)(void);
};

/** All places, up to a NULL. */
extern const struct place *const status_places[];

enum { PLACE_LISTS_SIZE = 128 };

/** How a user lists what runs, for a message: "squeue --me --steps". @param places up to a NULL;
 * NULL: none @param buf set to "" where no such program is in PATH @thread any */
void place_lists(const struct place *const *places, char buf[static PLACE_LISTS_SIZE]);
