/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's standard error, carried into the launcher's log line by line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** In what the dynamic linker says in place of a server that it cannot load. */
#define RELAY_NO_LIBRARY "error while loading shared libraries: "

/** One pipe, used by one thread at a time. */
struct relay {
    int fd;          /**< read end, non-blocking; owned, -1 at its end */
    char line[1025]; /**< what came of the current line */
    size_t used;
    int64_t window;        /**< when counting began, of now_ms() */
    unsigned count;        /**< lines since then */
    unsigned long omitted; /**< lines over the limit since then */
    char last_error[256];  /**< printable text; empty: no error was reported */
    char last_words[256];  /**< the same, of lines without a level */
    int64_t said;          /**< when these came, of now_ms() */
};

/** Takes over @p fd. */
void relay_open(struct relay *relay, int fd);

/** Logs what is there. The server belongs to its user, who may be hostile: lines are cut, rated and
 * made harmless. Never blocks on the pipe.
 * @return true when there may be more at once
 * @thread any, one at a time */
bool relay_read(struct relay *relay);

/** Logs all that is there now, without waiting for more. */
void relay_drain(struct relay *relay);

/** Drains, logs an unfinished line and what was omitted, and closes. */
void relay_close(struct relay *relay);
