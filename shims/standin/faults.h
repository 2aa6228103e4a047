/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun does wrong when it is told to, for tests.
 *
 * Decisions about a message follow from the seed, the sender, the receiver and the message's number
 * between these two, so a run with the same seed treats the same messages alike, whatever the order
 * in which threads come.
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum fault_kind {
    FAULT_LATE,      /**< the sender is told that it has arrived; others overtake it */
    FAULT_DUPLICATE, /**< it arrives, and again later */
    FAULT_LOST,      /**< it arrives, and the sender is told that it did not */
    FAULT_REFUSED,   /**< it does not arrive, and the sender is told so */
    FAULT_UID,       /**< a copy from another uid comes before it */
    FAULT_DIE,       /**< a node dies, at a time or at a message */
    /* of direct connections, in the servers: sockets.c */
    FAULT_CUT,         /**< one ends, in the middle of what is sent */
    FAULT_FLIPPED,     /**< a byte arrives as another one */
    FAULT_SILENT,      /**< from now on nothing arrives, and no server is told so */
    FAULT_UNREACHABLE, /**< one cannot be made */
    FAULT_REPEATED,    /**< what was sent comes again */
    FAULT_SWAPPED,     /**< of two records the second one comes first */
    FAULT_INSERTED,    /**< something comes between: of another connection, or made up */
    FAULT_READ,        /**< what a test has put can be read on its way */
    FAULT_KINDS,
};

enum { FAULT_ANY = -1, FAULTS_MAX = 16 };

/** One --fault. */
struct fault {
    enum fault_kind kind;
    long percent;   /**< of the messages */
    long ms;        /**< a delay is 1 to this */
    long node;      /**< receiver, or the node that dies; FAULT_ANY */
    long after;     /**< die: ms after the launch; FAULT_ANY: not by time */
    long message;   /**< die: when this many have been sent in all; FAULT_ANY: not by messages */
    long notice;    /**< die: ms until musterrun notices */
    unsigned count; /**< how often it was done; atomic */
};

struct faults {
    struct fault list[FAULTS_MAX];
    unsigned n;
    uint64_t seed;
    uint64_t total; /**< messages that were sent in all; atomic */
};

/** What is done to one message. */
struct verdict {
    unsigned late;      /**< ms; 0: at once */
    unsigned duplicate; /**< ms until it comes again; 0: it does not */
    bool lost, refused, forged;
};

/** Adds what stands behind "--fault=": KIND or KIND:KEY=NUMBER,... @return 0, or -1 with @p err */
int faults_add(struct faults *faults, const char *text, struct err *err);

/** Judges message @p number (from 1) of node @p from to node @p to, and counts what is done. Counts
 * may stand in memory that processes share. @thread any */
struct verdict faults_judge(struct faults *faults, uint32_t from, uint32_t to, uint64_t number);

/** Counts a message. @return the index of the fault by which a node dies at it, or -1 @thread any
 */
int faults_count(struct faults *faults);

/** What servers are to do wrong on direct connections: a file beside what an environment variable
 * of theirs names. */
struct faults_direct {
    uint64_t seed;
    long percent[FAULT_KINDS - FAULT_CUT];
};
#define FAULTS_DIRECT_BESIDE "SLURM_CONF"
#define FAULTS_DIRECT_ASK ".ask"
#define FAULTS_DIRECT_DONE ".done"

/** Whether any is of direct connections. */
bool faults_direct_any(const struct faults *faults);

/** Writes that file for a node. @param beside the path that its server knows @return whether it is
 * there, or not needed */
bool faults_direct_write(const struct faults *faults, uint32_t node, const char *beside);

/** Counts what a node's server has done. Counts may stand in memory that processes share. */
void faults_direct_read(struct faults *faults, const char *beside);

/** splitmix64 */
static inline uint64_t faults_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/** A line each: what was done how often. */
void faults_report(const struct faults *faults, FILE *out);
