/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Whether the server still answers its launcher: one that is stopped, or hangs, says nothing by
 * itself, and the tasks of its node wait for it without a word.
 *
 * The launcher asks each SILENCE_ASK_S seconds (BOOT_ASKS). All that the server says is an answer.
 * What was not answered is counted, not measured: a launcher that is itself stopped for an hour
 * takes no server for silent.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum {
    SILENCE_ASK_S = 30, /**< from one question to the next: few wakes in a job that computes */
    SILENCE_TOLD = 3,   /**< so many times nothing was heard: the user is told */
};

/** Of one server; all zero at first. */
struct silence {
    unsigned asked; /**< times that it was to be asked since it last said something */
};

/** It is time to ask. A server that has a question is not asked again; the second time that it
 * still has it, the user is told.
 * @param node the RM's name of the server's node
 * @param server its process
 * @return whether to ask the server */
bool silence_asks(struct silence *silence, const char *node, pid_t server);

/** The server has said something. The user is told if it was said to be silent. */
void silence_ends(struct silence *silence, const char *node);
