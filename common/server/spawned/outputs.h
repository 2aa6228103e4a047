/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What processes of a spawned step print, where it goes to the process that has spawned them
 * (PMIX_FWD_STDOUT). The other end is upcall/forward.h.
 *
 *     program ── pipe ──► this server ── ASK_OUTPUT ──► server of the process that has spawned it
 *                             └── own output, which is the RM's
 *
 * muster-exec has put a pipe in the place of the program's output, and hands over the pipe's other
 * end and what was there before, its own output. Each stream is read a piece at a time: the next
 * one when the home, which is the other server, has taken the last one. So of each stream one piece
 * is in memory, a home that takes nothing stops only the streams that go there, and bytes stay in
 * order. The end of a stream is a piece of no bytes.
 *
 * A home that does not want a piece now answers OUTPUTS_PASS: that piece goes to the own output.
 * Any other failure, as when the process there has ended, is for good: so does all that follows.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/launch/plan.h"
#include "common/transport/ask.h"
#include "common/util/timers.h"

#include <event2/event.h>

enum {
    OUTPUTS_PIECE = 32768,   /**< bytes of a piece, at most */
    OUTPUTS_SEEK_MS = 30000, /**< until the home has to be known */
    OUTPUTS_LAST_MS = 1000,  /**< the same once the processes are ended by others */
    OUTPUTS_LOOK_MS = 20,    /**< between two looks for it */
    OUTPUTS_HOLD_MS = 50,    /**< that the end of a line is waited for */
    OUTPUTS_PASS = 1,        /**< an answer that is no PMIx status */
};

/** Where the output goes to, as plan.h has it, and where the input comes from. */
struct outputs_home {
    char streams[4];  /**< of PLAN_STDOUT and so on, without PLAN_STDIN */
    uint64_t number;  /**< of the spawn, on that server */
    uint32_t node;    /**< of that server, in its step */
    char nspace[256]; /**< of that step */
};

/** What the streams need of their server. */
struct outputs_env {
    void *arg;
    struct event_base *base;
    struct timers *timers;
    /** @return whether the home can be asked; its handle in @p node */
    bool (*find)(void *arg, const struct outputs_home *home, uint32_t *node);
    /** @return whether the processes are ended by others, or were: a home that is not known by now
     * most likely never is, as when the spawn has failed or its caller has ended */
    bool (*ends)(void *arg);
    /** Hands a piece to the home, and calls @p done once: with 0 when it was taken. @param body
     * borrowed: u64 number, u32 rank, u8 stream, block bytes */
    void (*ask)(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg);
};

struct outputs;

/** @return NULL: out of descriptors */
struct outputs *outputs_new(const struct outputs_env *env);

/** @return whether @p text is a home */
bool outputs_read_home(const char *text, struct outputs_home *home);

/**
 * Begins to read what a process prints.
 * @param home the same for all processes
 * @param fds  for each of home->streams the reading end of its pipe, and its own output; taken over
 *             either way
 * @return whether the descriptors are as many as they have to be, and there is memory
 */
bool outputs_add(struct outputs *outputs, uint32_t rank, const struct outputs_home *home,
                 const int *fds, unsigned nfds);

/** The home has ended: what is printed goes to the own output from now on. A home that has ended is
 * not known for long, and would be looked for. */
void outputs_home_gone(struct outputs *outputs);

/** @return whether there is something that was printed, and has not arrived
 * @param home at the home; false: there or at the own output */
bool outputs_busy(const struct outputs *outputs, bool home);

/** Sends no piece to the home any more: what is left goes to the own output, as far as that takes
 * it at once. */
void outputs_free(struct outputs *outputs);
