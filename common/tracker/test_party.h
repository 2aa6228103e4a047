/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tests of added members and bootstrap share: calls of single processes on a loopback, and
 * what they got. Process r of namespaces "a" and "b" is on server r, so a server has two.
 */
#pragma once

#include "common/tracker/test_kit.h"

/** A process: namespace 'a' or 'b', and rank. */
struct party_proc {
    char ns;
    uint32_t rank;
};

/** One call. */
struct party {
    struct engine_call call;
    struct party *next;
    struct party_room *room;
    struct party_proc proc;
    char id[32];
    struct procset caller, nobody;
    uint32_t group; /**< the test's */
    unsigned answers;
    int32_t status;
    uint64_t context_id, made_at, answered_at;
    struct procset members; /**< of the result */
    void (*then)(struct party *party);
    unsigned char data[5];
};

/** All calls of a test. */
struct party_room {
    struct kit *kit;
    struct party *all; /**< the latest first */
};

/** What a call asks for besides its role. */
struct party_ask {
    const struct procset *added;
    const struct procset *gone; /**< of a later try; stays put until it is answered */
    uint32_t timeout;
    int32_t status;
    bool nameless; /**< a member of whom only the server is known */
    uint32_t group;
    void (*then)(struct party *party);
};

/** @return a set: "a0 a3 b1" */
struct procset party_set(const char *text);

void party_add(struct procset *set, struct party_proc proc);

/** A leader that knows all @p leaders. */
struct party *party_collective(struct party_room *room, const char *id, struct party_proc proc,
                               const struct procset *leaders, struct party_ask ask);
/** A leader that knows their number. */
struct party *party_bootstrap(struct party_room *room, const char *id, struct party_proc proc,
                              uint32_t leaders, struct party_ask ask);
/** An added member. */
struct party *party_join(struct party_room *room, const char *id, struct party_proc proc,
                         struct party_ask ask);

/** Of group "g", by rank @p rank of namespace 'a', which adds the set @p adds. @return its call */
struct party *party_boots(struct party_room *room, uint32_t rank, uint32_t leaders,
                          const char *adds, uint32_t timeout);
/** Of group "g". @return its call */
struct party *party_joins(struct party_room *room, struct party_proc proc, bool nameless);

/** Asserts that it was answered once, with @p status. */
void party_assert(const struct party *party, int32_t status);

/** Asserts that all calls were answered once with @p status, in one result. */
void party_assert_all(struct party_room *room, int32_t status, const char *members);

/** Asserts that nothing is kept on any living server, once failures are forgotten; ends the kit. */
void party_end(struct party_room *room);
