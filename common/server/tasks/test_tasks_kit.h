/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tests of tasks.c share: the server of the second of three nodes with two ranks each, on
 * a clock of its own. It is not run.
 */
#pragma once

#include "common/server/tasks/tasks.h"

enum { TOGETHER_MS = 5, TURN_MS = 20, JUST_MS = 1000 + TURN_MS /**< for the second node */ };

extern struct boot_node nodes[];
extern struct task tasks[2];
extern struct server server;
extern int64_t now;

extern char said[512];   /**< the last error */
extern char why[512];    /**< the reason of the last end that was asked for */
extern unsigned status;  /**< and its exit status */
extern bool told;        /**< and whether the RM need not show the reason */
extern uint32_t through; /**< and the node that is to say why */
extern unsigned nerrors, nends, nlosses, ngone;
extern uint32_t gone_slot; /**< the last task that counts as ended */
extern uint32_t departed;  /**< a node whose server has left */

int begin(void **state);
int end(void **state);

/** Begins anew. */
void again(void **state);

/** Time passes, and the loop ticks when it is asked to. */
void run(int64_t ms);

/** So many ends of the step are asked for once that time has passed. */
void ends_after(int64_t ms, unsigned n);

/** An operation fails here, since @p rank has ended. */
void fail_with(int32_t failure, uint32_t rank);

/** The same, as its server is lost. */
void fail_for(uint32_t rank);
