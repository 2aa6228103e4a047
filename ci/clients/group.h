/** @file
 * Groups for the test clients: construct, what came back, destruct; checked.
 */
#ifndef MUSTER_CLIENTS_GROUP_H
#define MUSTER_CLIENTS_GROUP_H

#include "client.h"

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

#endif
