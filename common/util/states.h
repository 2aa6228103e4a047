/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A life as a table: its states, what can happen in it, and which state follows. The names are what
 * the log says.
 */
#pragma once

/** A cell of a table: in this state that cannot happen. */
#define STATES_NONE (-1)

/** All static. */
struct states {
    const char *const *names;  /**< of the states */
    const char *const *events; /**< names of what can happen */
    const int *next;           /**< a row for each state, a cell for each event: the next state */
    int nevents;
};

/** Looks up what follows. Logs a change of state at level debug, and an event that cannot happen as
 * a warning.
 * @param of whose life it is, for the log
 * @return the next state, or STATES_NONE: it cannot happen
 * @thread any */
int states_next(const struct states *states, int state, int event, const char *of, ...)
    __attribute__((format(printf, 4, 5)));
