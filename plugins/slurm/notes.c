/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of tasks, which are other processes than the watch that reads them. */
#include "plugins/slurm/notes.h"

#include "common/launch/launch.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BOUND_MS = 2000 /* a task waits for the server no longer */ };
enum { NOTE_HEAD = offsetof(struct task_note, text) };
_Static_assert(sizeof(struct task_note) == PIPE_BUF, "a note is written at once");

int notes_open(struct notes *notes, const char *node)
{
    *notes = NOTES_NONE;
    notes->node = node;
    notes->owner = getpid();
    return pipe2(notes->pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
                   pipe2(notes->bound, O_CLOEXEC | O_NONBLOCK) < 0
               ? -1
               : 0;
}

void notes_close(struct notes *notes)
{
    const int fds[] = {notes->pipe[0], notes->pipe[1], notes->bound[0], notes->bound[1]};
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *notes = NOTES_NONE;
}

bool notes_read(const struct notes *notes, struct task_note *note)
{
    int fd = notes->pipe[0];
    if (read(fd, note, NOTE_HEAD) != NOTE_HEAD || note->len >= sizeof(note->text))
        return false;
    note->text[note->len] = '\0';
    return note->len == 0 || read(fd, note->text, note->len) == (ssize_t)note->len;
}

/* A full pipe has bytes for all of them. */
void notes_release(struct notes *notes, uint32_t ntasks)
{
    if (notes->bound[1] < 0)
        return;
    for (uint32_t i = 0; i < ntasks; i++) {
        if (write(notes->bound[1], "", 1) < 0)
            break;
    }
    close(notes->bound[1]);
    notes->bound[1] = -1;
}

/* ---- in the task ---- */

/* libpmix tells its first client of a node where all tasks there are bound and what they run, and
 * none later: so no task may go on before the server knows their processes. */
static void wait_bound(const struct notes *notes)
{
    struct pollfd fd = {notes->bound[0], POLLIN, 0};
    char byte;
    if (poll(&fd, 1, BOUND_MS) != 1 || read(notes->bound[0], &byte, 1) != 1)
        log_debug("a task on node %s goes on before PMIx knows of all", notes->node);
}

void notes_task(const struct notes *notes, uint32_t slot, pid_t pid)
{
    struct task_note note = {.slot = slot, .pid = pid};
    /* Our parent is slurmstepd's main thread, which ends last. */
    launch_die_with(notes->owner);
    if (slot == 0 && getcwd(note.text, sizeof(note.text)))
        note.len = (uint32_t)strlen(note.text);
    /* A full pipe means thousands of tasks at once and costs one notice, not the task. */
    if (write(notes->pipe[1], &note, NOTE_HEAD + note.len) < 0)
        log_debug("task slot %u on node %s is not watched: %s", slot, notes->node, strerror(errno));
    else
        wait_bound(notes);
}

/* @return what write() does */
static ssize_t send_note(const struct notes *notes, struct task_note *note, const char *why)
{
    int len = snprintf(note->text, sizeof note->text, "%s", why ? why : "");
    note->len = (uint32_t)(len < (int)sizeof note->text ? len : (int)sizeof note->text - 1);
    return write(notes->pipe[1], note, NOTE_HEAD + note->len);
}

void notes_unserved(const struct notes *notes, const char *why)
{
    struct task_note note = {.slot = SLOT_UNSERVED, .pid = getpid(), .uid = getuid()};
    launch_die_with(notes->owner); /* while it waits at the door, which closes then */
    if (send_note(notes, &note, why) < 0)
        log_error("%s", why ? why : "a task that has no PMIx is not noted");
}

void notes_refused(const struct notes *notes, const char *why)
{
    struct task_note note = {.slot = SLOT_REFUSED, .pid = getpid()};
    if (send_note(notes, &note, why) < 0)
        log_error("%s; the step is not ended: %s; end it with scancel",
                  why ? why : "a task is refused", strerror(errno));
}
