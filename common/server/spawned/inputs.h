/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Standard input of processes of a spawned step that another process pushes (PMIx_IOF_push). The
 * other end is upcall/push.h.
 *
 *     PMIx_IOF_push ──► server of the process that has spawned ── ASK_INPUT ──► this server
 *                                                                  program ◄── pipe ──┘
 *
 * muster-exec has put a pipe in the place of the program's standard input, and hands over the end
 * that is written to. One piece is under way at a time: it is answered when all processes that it
 * is for have taken it into their pipes, or take nothing any more. So of all input of a node one
 * piece is in memory. A piece of no bytes is the end of file.
 * @thread all of it: the loop's
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INPUTS_PIECE = 32768,     /**< bytes of a piece, at most */
    INPUTS_ALL = 0xfffffffeu, /**< instead of a rank: every process here that takes input */
};

/** What the inputs need of their server. */
struct inputs_env {
    void *arg;
    struct event_base *base;
    /** @return whether server @p from is that of the process that has spawned the step */
    bool (*is_home)(void *arg, uint32_t from);
    /** Answers question @p id of server @p from: 0 taken, or a PMIx status. */
    void (*reply)(void *arg, uint32_t from, uint64_t id, int32_t status);
};

struct inputs;

struct inputs *inputs_new(const struct inputs_env *env);

/** A process takes input. @param fd the pipe's writing end, taken over */
void inputs_add(struct inputs *inputs, uint32_t rank, int fd);

/** Serves ASK_INPUT (ask.h). @param body borrowed: u32 rank or INPUTS_ALL, block bytes */
void inputs_serve(struct inputs *inputs, uint32_t from, uint64_t id, const void *body, size_t len);

/** Nothing will come any more: all processes see the end of file. */
void inputs_end(struct inputs *inputs);

/** Ends them as well. */
void inputs_free(struct inputs *inputs);
