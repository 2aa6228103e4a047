/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A command of Slurm that srun's agent runs, such as salloc, and what it prints.
 *
 * It ends with srun, whatever ends that: the kernel sends it SIGTERM when the agent's thread is
 * gone. In order it has until a deadline; then it gets SIGTERM, and SIGKILL TOOL_KILL_MS later.
 * @thread all of it: the agent's
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    TOOL_FDS = 2,
    TOOL_TEXT_MAX = 16384, /**< bytes of what it prints; the rest is lost */
    TOOL_KILL_MS = 3000,
};

struct tool {
    pid_t pid;      /**< 0: none runs */
    int pidfd, out; /**< -1: none */
    char text[TOOL_TEXT_MAX];
    size_t len;
    int64_t until; /**< now_ms() when it gets the next signal */
    int signals;   /**< that it has got */
};

/** @param program path @param ms until it is told to end @return 0 or an error number */
int tool_start(struct tool *tool, const char *program, char **argv, char **env, int64_t ms);

/** Tells it to end, now. */
void tool_end(struct tool *tool);

/** Writes what to poll for; TOOL_FDS of them. */
void tool_poll(const struct tool *tool, struct pollfd *fds);
/** Takes what poll() has found. @param status as waitpid() has it
 * @return whether it has ended; all that it has printed is in text then */
bool tool_ready(struct tool *tool, const struct pollfd *fds, int *status);

/** Reads what there is for @p text, of which @p cap - 1 bytes are kept. @param fd -1 after its end
 */
void tool_read(int *fd, char *text, size_t cap, size_t *len);

/** @return now_ms() of the next deadline, or INT64_MAX */
int64_t tool_next(const struct tool *tool);
void tool_tick(struct tool *tool, int64_t now);
