/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Groups for the test clients: construct, what came back, destruct; checked.
 */
#pragma once

#include "client.h"

#include <pthread.h>

/* No header before 6.1 has them both. */
#ifndef PMIX_GROUP_BOOTSTRAP
#define PMIX_GROUP_BOOTSTRAP "pmix.grp.btstrp"
#endif
#ifndef PMIX_GROUP_ADD_MEMBERS
#define PMIX_GROUP_ADD_MEMBERS "pmix.grp.add"
#endif

/* From where on the library knows bootstrap and added members. */
#define GROUP_HAS_ADDED (LIBPMIX >= 60100)

/* libpmix 4.2.2 hands the client no PMIX_GROUP_MEMBERSHIP: its server does not send it on. */
#define GROUP_HAS_MEMBERSHIP (LIBPMIX >= 50000)

/** What a construct gave one member. */
struct group_result {
    bool has_context;
    size_t context;
    size_t nmembers; /**< 0 where the library hands none over */
    pmix_proc_t *members;
};

/** Fills in a result from what PMIx_Group_construct() returned; free it with group_result_free().
 */
void group_result_read(struct group_result *result, const pmix_info_t *info, size_t ninfo);
void group_result_free(struct group_result *result);

/** Constructs with PMIX_GROUP_ASSIGN_CONTEXT_ID and checks that a context id, not 0, came. */
void group_construct(const char *id, const pmix_proc_t *members, size_t nmembers,
                     struct group_result *result);
void group_destruct(const char *id);

/** Checks that the membership is exactly @p members, in any order, if the library gives one. */
void group_check_members(const struct group_result *result, const pmix_proc_t *members,
                         size_t nmembers);

/** @return a number for the membership in its order, 0 if the library gives none */
uint64_t group_order(const struct group_result *result);

/** Whether @p rank of my namespace is in @p members. */
bool group_contains(const pmix_proc_t *members, size_t nmembers, pmix_rank_t rank);

/** What one rank saw of a group, to be put and compared; context 0: not a member. */
struct group_seen {
    uint64_t context, order;
};

/**
 * Checks @p n groups over all ranks by a put, a fence and gets: every member saw the same context
 * id and the same order of members.
 * @param mine what this rank saw
 * @param contexts set to the groups' context ids
 */
void group_compare(const struct group_seen *mine, size_t n, uint64_t *contexts, const char *key);

/** Checks that no number comes twice; sorts them. */
void group_check_distinct(uint64_t *contexts, size_t n);

/** What a construct asks for; all zero: nothing. */
struct group_ask {
    size_t leaders;           /**< bootstrap: how many there are; 0: no bootstrap */
    const pmix_proc_t *added; /**< NULL: the directive is left out */
    size_t nadded;
    int timeout; /**< seconds; 0: none */
    size_t info; /**< a PMIX_GROUP_LOCAL_CID to hand out; 0: none */
    bool notify; /**< PMIX_GROUP_NOTIFY_TERMINATION */
};

/** A construct under way; stays put until group_end(). */
struct group_call {
    char id[64];
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
    pmix_status_t status;
    struct group_result result;
};

/** Begins a construct with PMIX_GROUP_ASSIGN_CONTEXT_ID. @param nmembers 0: as an added member */
void group_begin(struct group_call *call, const char *id, const pmix_proc_t *members,
                 size_t nmembers, struct group_ask ask);

/** Waits for it. @return its status; the result is filled in when that is PMIX_SUCCESS */
pmix_status_t group_end(struct group_call *call);

/** group_begin() and group_end(), whose status must be @p expected. */
void group_run(struct group_call *call, const char *id, const pmix_proc_t *members, size_t nmembers,
               struct group_ask ask, pmix_status_t expected);

/** Checks that @p rank's PMIX_GROUP_LOCAL_CID in the group with that context id is @p expected. */
void group_check_info(pmix_rank_t rank, size_t context, size_t expected);
