/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How much memory each simulated server holds. All engines live in one process, so the program's
 * malloc() and its kin are wrapped by the linker (meson.build), and what they give is charged to
 * the server whose code runs.
 * @thread one
 */
#pragma once

#include <stddef.h>

/** One server's memory, in bytes as malloc_usable_size() counts them. */
struct meter {
    size_t now, max;
};

/** Charges what follows to @p meter; NULL: to no server. */
void meter_enter(struct meter *meter);

/** Memory that the current server has handed to the simulator is its own no more. */
void meter_hand_over(const void *data);
