/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a program comes to run once on each node of a step: command lines that a resource manager's
 * place (place.h) makes.
 * @thread any
 */
#pragma once

#include "common/util/err.h"

#include <stddef.h>
#include <sys/types.h>

struct place;

/** A command line that starts the program on one node or several. */
struct reach_line {
    char **argv;  /**< up to a NULL; owned, with its texts */
    char **env;   /**< the same; NULL: ours */
    char **nodes; /**< names of the nodes that it starts the program on, up to a NULL; the same;
                       NULL: they are not known */
};

struct reach {
    const char *const *program; /**< the program, a whole path, and its options, up to a NULL */
    const char *const *rest;    /**< what comes after the step's name, the same; NULL: nothing */
    uid_t uid;                  /**< whose step; (uid_t)-1: any user's, for root */
    const char *dir; /**< where the user says that its servers' directories are, or NULL */
    uid_t owner;     /**< whose it is; set by the place */
    int death;       /**< the signal that a command line gets when we are killed; set by the
                          place, SIGTERM unless that does not end it */
    char why[160];   /**< what a resource manager's command says that knows no such
                          step; "": nothing */
    struct reach_line *lines; /**< owned */
    size_t n;
};

/** Adds a command line: @p before, the program with its options, --user for root, --dir, the step,
 * the rest.
 * @param before up to a NULL; NULL: nothing
 * @param dir    where the server's directory is; NULL: where the user says, or the program finds
 * out
 * @param env, nodes taken over: malloc()ed, with their texts
 * @return 0, or -1 with the reason in @p err: out of memory */
int reach_add(struct reach *reach, const char *const *before, const char *dir, const char *step,
              char **env, char **nodes, struct err *err);

/** Has the first place that knows a step fill in the command lines.
 * @param places up to a NULL
 * @return 0 with at least one line, or -1 with the reason in @p err */
int reach_find(struct reach *reach, const struct place *const *places, const char *step,
               struct err *err);

/** Adds a text to a list up to a NULL. @return the list, or NULL when out of memory: then the
 * whole list is freed */
char **reach_word(char **list, const char *word);

void reach_free_list(char **list);
void reach_free(struct reach *reach);
