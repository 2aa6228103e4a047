/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A spawned job, between what starts it (children.c) and what follows it (child.c).
 * @thread the shell's, all of it
 */
#pragma once

#include "common/launch/spawn_wire.h"
#include "plugins/flux/child_output.h"
#include "plugins/flux/jobid.h"

/** In the order of its life: children.h. */
enum child_state {
    CHILD_SUBMITS,
    CHILD_QUEUED,
    CHILD_BEGINS,
    CHILD_RUNS,
    CHILD_ENDS,
    CHILD_OVER,
    CHILD_SAID,
};

struct child {
    struct child *next;
    struct children *children;
    const flux_msg_t *request;
    struct spawn_order order;
    enum child_state state;
    uint32_t number;
    uint64_t id;
    char label[JOBID_SIZE];         /* its id; "" before it has one */
    flux_future_t *submit, *events; /* NULL: nothing is awaited */
    flux_watcher_t *timer;
    struct child_output output;
    bool prints;     /* output is not at its end */
    bool told;       /* the server that has asked knows that it runs, or that it failed */
    char words[512]; /* of the exception that has ended it */
    bool no_place;   /* which says that there are not the processors for it */
    int status;      /* as wait(2) has it */
};

struct children {
    flux_shell_t *shell;
    flux_t *h;
    uint64_t job;
    uint32_t nnodes, numbers;
    char channel[160]; /* of this shell: broker and topic */
    struct child *list;
    unsigned count;
    bool tasks_ended;
};

/** Tells the server news. */
void child_tell(struct child *child, const struct rm_spawn_news *news);

/** Tells it a failure, unless it knows how the job got on. It shows it to the user. */
void child_tell_failure(struct child *child, enum rm_spawn_result result, const char *text);

/** The same, and ends the job. */
void child_fail(struct child *child, enum rm_spawn_result result, const char *text);

/** Ends the job. @param why one line, for Flux's record */
void child_end(struct child *child, const char *why);

/** Has on_timer() of its state called in @p seconds, and not before. */
void child_set_timer(struct child *child, double seconds);
void child_stop_timer(struct child *child);

/** Follows the log of a job that has its id. The child may be gone afterwards. */
void child_watch(struct child *child);

/** All is said of it: the shell may end. */
void child_finish(struct child *child);
void child_forget(struct child *child);

enum { CHILD_QUEUED_S = 3 /* for the scheduler to find free processors */ };
#define CHILD_REFERENCE "muster.spawn" /* of each child to the shell */
