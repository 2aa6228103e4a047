/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The modules of three brokers in one process, without Flux. What a directory wants sent is queued,
 * and run by pump(). For test_directory*.c.
 */
#pragma once

#include "common/util/test_cmocka.h"
#include "plugins/flux/directory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BROKERS = 3, JOB = 4711, OTHER = 4712, OWNER = 1000 };

/** A request, with what became of it. */
struct request {
    unsigned answers, drops;
    int errnum;
    char why[128];
    unsigned responses;
    unsigned char last[64]; /**< response */
    size_t len;
    char *text; /**< of an answer to stats-get; for free() */
};

extern struct directory *dirs[BROKERS];
/** Of servers of JOB and of OTHER, and what they sent; cleared by setup(). */
extern struct request streams[BROKERS], others[BROKERS], sent[6];
extern int respond_rc;
extern int64_t clock_ms;
/** ms after which an alarm was asked for last; 0: none since setup(). */
extern unsigned alarm_ms;
extern int alarm_rc;

int setup(void **state);
int teardown(void **state);

/** Until nothing is under way between brokers. */
void pump(void);

/** The directory of a broker, empty. */
struct directory *open_broker(uint32_t rank);

/** The server of JOB on a node; OTHER's are of the same user. */
struct client client(uint32_t node);
struct client other_client(uint32_t node);

struct wire_out registration(uint64_t job, uint32_t node);

/** Registers the server of a node, at the broker of that number. @return as directory_register() */
int enter(uint64_t job, uint32_t node, struct client who, struct request *stream);

/** All servers of JOB. */
void enter_all(void);

/** Sends "hello" from a server of @p job on broker @p rank to one of job @p to_job, by the module
 * on its broker. */
void send_to(uint64_t job, uint32_t rank, struct client who, uint64_t to_job, uint32_t to,
             struct request *request);

/** Within JOB. */
void send_as(uint32_t rank, struct client who, uint32_t to, struct request *request);

/** @return the ticket of "hello", which a server has to have been sent last */
uint64_t received(const struct request *stream);

void took_as(uint64_t job, uint32_t rank, struct client who, uint64_t ticket);

/** The server of @p job on broker @p rank leaves. @param reached ranks of brokers that it names */
void leave_as(uint64_t job, uint32_t rank, struct client who, const uint32_t reached[], uint32_t n);

/** What a server was told last. */
void told_gone(const struct request *stream, uint64_t job, uint32_t node, enum packet_loss loss);
