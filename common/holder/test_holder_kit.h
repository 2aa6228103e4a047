/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tests of the holder's end share. They say what has to happen when, in the world of the
 * campaign of jobs that meet (ci/campaign.d/holders/), with five steps of three servers. What holds
 * whatever happens, the campaign shows with schedules of its own.
 */
#pragma once

#include "ci/campaign.d/holders/holders.h"

enum { STEPS = 5, NODES = 3, SEEDS = 500, DELAY_MS = 20 };

extern struct world *world;
extern uint32_t requests, answered; /**< by request() */

struct site *site(uint32_t step, uint32_t node);
const char *state_of(const struct site *s);
uint32_t held_by(const struct site *s);

/** All servers of a step begin. */
void start(uint32_t step);

/** @param nsteps how many of them start at once */
void open_world(uint64_t seed, uint32_t nsteps);
void close_world(void);

/** Asks, for a process of that server. @param body freed @param status set by the answer; may be
 * NULL */
void request(struct site *s, struct wire_out *body, int32_t *status);

struct store_who process_of(const struct site *s);

/** Each process publishes one key, named after its server. */
char *key_of(const struct site *s, char *buf, size_t cap);
void publish(struct site *s, enum store_life life, int32_t *status);

/** All that it has published. */
void put_unpublish(struct wire_out *out, const struct site *s);
void lookup(struct site *s, const struct site *of, bool wait, int32_t *status);

/** They begin to leave at once, and each ends when it may. */
void leave(struct site *s[], uint32_t n);
void end_step(uint32_t step, bool in_order);
