/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tests of the agent in srun share: the agent, by its own functions, with Slurm and munged
 * played (test_munge.h), and strangers that call it.
 */
#pragma once

#include "common/transport/rm.h"
#include "plugins/slurm/agent_wire.h"

enum { WAIT_MS = 20000 };

extern char *address;            /**< of the agent, as agent_find() gives it */
extern char agent_variable[128]; /**< of the environment */
extern uint16_t *ports;          /**< SrunPortRange; NULL: none */
extern char shown[1024];         /**< the last error */
extern unsigned nshown;
extern unsigned fds; /**< that are open without the agent */

/** A test: an agent is there. */
#define AGENT_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
int begin(void **state);
int end(void **state);

/** Another component of the step begins. */
void enter(void);

/** A sanitizer may start a thread of its own with our first one: it is there before any are
 * counted. */
void start_first_thread(void);

/** @return how many entries a directory has */
unsigned count(const char *directory);

/** @return 0 when the agent has taken it */
int tell(enum rm_cause cause, unsigned status);
/** The same, with a reason. */
int tell_why(enum rm_cause cause, unsigned status, const char *why);

/** @return a socket of one that has connected */
int stranger(void);

void put_status(struct wire_out *out, uint32_t type, uint32_t cause, uint32_t status);
