/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Programs that a tool starts, and that do not outlive it.
 *
 * Root starts them as the owner of a step, to whom its terminal does not belong: they get none of
 * its descriptors then (reads_out, reads_errors and no_input).
 * @thread any, unless said
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/** A program that runs. */
struct program {
    pid_t pid;  /**< 0: none */
    int out;    /**< what it writes, to be closed by program_end(); -1: it writes where we write */
    int errors; /**< the same of its standard error, if that comes apart; else -1 */
};

/** How to start one. It has a session of its own, so no signals of our terminal, and no way to it
 * but by descriptors that it gets. */
struct program_plan {
    char *const *argv;           /**< up to a NULL; the first is looked for in PATH */
    char *const *env;            /**< NULL: ours */
    uid_t owner;                 /**< whose it is to be, when we are root; 0: ours */
    int death;                   /**< the signal that it gets when we end */
    bool reads_out;              /**< its standard output comes to us */
    bool reads_errors;           /**< so does its standard error */
    bool apart;                  /**< by a pipe of its own */
    bool no_input;               /**< else it has ours */
    const struct rlimit *memory; /**< its limit; NULL: ours */
    /** The new process calls it before its exec, and again if that has failed; or NULL. */
    void (*begins)(void *arg, bool does);
    void *arg;
};

/** @return 0, or -1 with errno set: it was not started @thread one, which lives on: the kernel
 * takes its end for ours */
int program_start(struct program *program, const struct program_plan *plan);

/** Waits for its end. @return as of waitpid(), or -1 */
int program_end(struct program *program);

/** Runs a program that says little. @param ms until it is killed
 * @param why NULL: its standard error is ours; else that is read, too, and on failure the last line
 * comes here, "" if there is none; @p cap bytes
 * @return what it has written, for free(); NULL: it was not started, ended with another status than
 * 0, or was killed. @thread as of program_start() */
char *program_ask(char *const argv[], int ms, char *why, size_t cap);

/** Looks for a program in PATH. @return whether there is one */
bool program_is_there(const char *name);

/** Lowers our own limit of memory, so that nothing that others say makes us run out of it.
 * @return the limit before that, for the programs that are started */
struct rlimit program_limit_memory(unsigned long bytes);
