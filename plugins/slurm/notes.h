/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a task tells slurmstepd's watch, from the hook that runs in it before it execs: a note
 * through a pipe. Another pipe has the task wait.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Instead of a slot: the hook has refused a task, or has sent it to the door (door.h). */
#define SLOT_REFUSED UINT32_MAX
#define SLOT_UNSERVED (UINT32_MAX - 1)

/** Written in one piece: what is ahead of the text, and @p len bytes of it. */
struct task_note {
    uint32_t slot;
    int32_t pid;
    uid_t uid;                /**< of SLOT_UNSERVED */
    uint32_t len;             /**< of text */
    char text[PIPE_BUF - 16]; /**< where it is; of SLOT_REFUSED and SLOT_UNSERVED: why */
};

struct notes {
    int pipe[2];      /**< of notes; what is read from does not block */
    int bound[2];     /**< has a byte for each task, once the server knows their processes */
    const char *node; /**< this one; borrowed */
    pid_t owner;      /**< slurmstepd */
};

/** Nothing is open. */
#define NOTES_NONE ((struct notes){.pipe = {-1, -1}, .bound = {-1, -1}})

/** @return 0, or -1 with errno; notes_close() either way */
int notes_open(struct notes *notes, const char *node);
void notes_close(struct notes *notes);

/** @return whether there was one */
bool notes_read(const struct notes *notes, struct task_note *note);

/** Releases, once, @p ntasks tasks that wait. */
void notes_release(struct notes *notes, uint32_t ntasks);

/**
 * Has a task's end watched, and the task end with slurmstepd; the first one's directory is that of
 * all. Waits until the server knows of all tasks of the node, within seconds.
 * @param slot its number on this node
 * @thread the task's process between fork and exec, as the user
 */
void notes_task(const struct notes *notes, uint32_t slot, pid_t pid);

/** The same for a task that no server serves, and that is told of the door.
 * @param why the user is to read; NULL: he does otherwise */
void notes_unserved(const struct notes *notes, const char *why);

/** Has the step ended, since a task cannot be served and the others would wait for it.
 * @param why as above @thread the task's process between fork and exec, as the user */
void notes_refused(const struct notes *notes, const char *why);
