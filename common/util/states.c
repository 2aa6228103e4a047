/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up what follows in a table of states. */
#include "common/util/states.h"

#include "common/util/log.h"

#include <stdarg.h>
#include <stdio.h>

int states_next(const struct states *states, int state, int event, const char *of, ...)
{
    int next = states->next[state * states->nevents + event];
    char what[320];
    va_list args;
    if (next == state || (next != STATES_NONE && !log_wants(LOG_LEVEL_DEBUG)))
        return next;
    va_start(args, of);
    vsnprintf(what, sizeof what, of, args);
    va_end(args);
    if (next == STATES_NONE)
        log_warning("%s: %s cannot happen in state %s; ignored", what, states->events[event],
                    states->names[state]);
    else
        log_debug("%s: %s: %s -> %s", what, states->events[event], states->names[state],
                  states->names[next]);
    return next;
}
