/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups for the test clients; see group.h. */
#include "group.h"

void group_result_read(struct group_result *result, const pmix_info_t *info, size_t ninfo)
{
    *result = (struct group_result){0};
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_CONTEXT_ID)) {
            result->context = number_in(&info[i].value, PMIX_GROUP_CONTEXT_ID);
            result->has_context = true;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_MEMBERSHIP)) {
            const pmix_data_array_t *array = info[i].value.data.darray;
            CHECK(info[i].value.type == PMIX_DATA_ARRAY && array && array->type == PMIX_PROC,
                  "membership: expected an array of processes, found %s",
                  PMIx_Data_type_string(info[i].value.type));
            result->nmembers = array->size;
            result->members = malloc(array->size * sizeof *result->members);
            memcpy(result->members, array->array, array->size * sizeof *result->members);
        }
    }
}

void group_result_free(struct group_result *result)
{
    free(result->members);
    *result = (struct group_result){0};
}

void group_construct(const char *id, const pmix_proc_t *members, size_t nmembers,
                     struct group_result *result)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    bool yes = true;
    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    pmix_status_t status =
        PMIx_Group_construct(id, members, nmembers, &info, 1, &results, &nresults);
    CHECK(status == PMIX_SUCCESS, "construct of \"%s\": expected SUCCESS, found %s", id,
          PMIx_Error_string(status));
    group_result_read(result, results, nresults);
    if (results)
        PMIX_INFO_FREE(results, nresults);
    CHECK(result->has_context && result->context,
          "construct of \"%s\": expected a context id, "
          "found %s",
          id, result->has_context ? "0" : "none");
}

void group_destruct(const char *id)
{
    pmix_status_t status = PMIx_Group_destruct(id, NULL, 0);
    CHECK(status == PMIX_SUCCESS, "destruct of \"%s\": expected SUCCESS, found %s", id,
          PMIx_Error_string(status));
}

bool group_contains(const pmix_proc_t *members, size_t nmembers, pmix_rank_t rank)
{
    for (size_t i = 0; i < nmembers; i++)
        if (PMIX_CHECK_NSPACE(members[i].nspace, client.me.nspace) && members[i].rank == rank)
            return true;
    return false;
}

void group_check_members(const struct group_result *result, const pmix_proc_t *members,
                         size_t nmembers)
{
    if (!GROUP_HAS_MEMBERSHIP)
        return;
    CHECK_EQ(result->nmembers, nmembers, "number of members returned");
    for (size_t i = 0; i < nmembers; i++)
        CHECK(group_contains(result->members, result->nmembers, members[i].rank),
              "membership returned: expected rank %u in it, found it missing", members[i].rank);
}

uint64_t group_order(const struct group_result *result)
{
    uint64_t order = 0;
    for (size_t i = 0; i < result->nmembers; i++)
        order = mix(order + result->members[i].rank + 1);
    return order;
}

void group_compare(const struct group_seen *mine, size_t n, uint64_t *contexts, const char *key)
{
    struct group_seen *agreed = calloc(n, sizeof *agreed);
    pmix_rank_t *first = calloc(n, sizeof *first); /* the member that agreed[] is from */
    put_bytes(PMIX_GLOBAL, mine, n * sizeof *mine, "%s", key);
    commit();
    fence_all(true);
    for (pmix_rank_t rank = 0; rank < client.size; rank++) {
        struct group_seen *seen = get_bytes(rank, n * sizeof *seen, "%s", key);
        for (size_t i = 0; i < n; i++) {
            if (seen[i].context && !agreed[i].context) {
                agreed[i] = seen[i];
                first[i] = rank;
            }
            CHECK(!seen[i].context || seen[i].context == agreed[i].context,
                  "context id of group %zu: expected %llu as on rank %u, found %llu on rank %u", i,
                  (unsigned long long)agreed[i].context, first[i],
                  (unsigned long long)seen[i].context, rank);
            CHECK(!seen[i].context || seen[i].order == agreed[i].order,
                  "members of group %zu: expected rank %u's order, found another on rank %u", i,
                  first[i], rank);
        }
        free(seen);
    }
    for (size_t i = 0; i < n; i++)
        contexts[i] = agreed[i].context;
    free(agreed);
    free(first);
}

void group_check_distinct(uint64_t *contexts, size_t n)
{
    qsort(contexts, n, sizeof *contexts, compare_u64);
    for (size_t i = 1; i < n; i++)
        CHECK(contexts[i] != contexts[i - 1],
              "context id %llu: expected once, found for two groups",
              (unsigned long long)contexts[i]);
    CHECK(n == 0 || contexts[0] != 0, "context ids: expected none to be 0");
}

/* @thread PMIx's */
static void constructed(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                        pmix_release_cbfunc_t release, void *release_cbdata)
{
    struct group_call *call = cbdata;
    pthread_mutex_lock(&call->lock);
    if (status == PMIX_SUCCESS)
        group_result_read(&call->result, info, ninfo);
    call->status = status;
    call->done = true;
    pthread_cond_signal(&call->answered);
    pthread_mutex_unlock(&call->lock);
    if (release)
        release(release_cbdata);
}

/* The directives that are asked for. @return how many */
static size_t directives(const struct group_ask *ask, pmix_info_t *info)
{
    size_t n = 0;
    bool yes = true;
    pmix_data_array_t array = {.type = PMIX_PROC, .size = ask->nadded, .array = (void *)ask->added};
    PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    if (ask->leaders)
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_BOOTSTRAP, &ask->leaders, PMIX_SIZE);
    if (ask->added)
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_ADD_MEMBERS, &array, PMIX_DATA_ARRAY);
    if (ask->timeout)
        PMIX_INFO_LOAD(&info[n++], PMIX_TIMEOUT, &ask->timeout, PMIX_INT);
    if (ask->notify)
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_NOTIFY_TERMINATION, &yes, PMIX_BOOL);
    if (ask->info) {
        PMIX_DATA_ARRAY_CONSTRUCT(&array, 1, PMIX_INFO);
        PMIX_INFO_LOAD((pmix_info_t *)array.array, PMIX_GROUP_LOCAL_CID, &ask->info, PMIX_SIZE);
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_INFO, &array, PMIX_DATA_ARRAY);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
    }
    return n;
}

void group_begin(struct group_call *call, const char *id, const pmix_proc_t *members,
                 size_t nmembers, struct group_ask ask)
{
    pmix_info_t info[6];
    size_t n = directives(&ask, info);
    *call = (struct group_call){.lock = PTHREAD_MUTEX_INITIALIZER,
                                .answered = PTHREAD_COND_INITIALIZER};
    snprintf(call->id, sizeof call->id, "%s", id);
    CHECK_OK(PMIx_Group_construct_nb(id, nmembers ? members : NULL, nmembers, info, n, constructed,
                                     call),
             "PMIx_Group_construct_nb");
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
}

pmix_status_t group_end(struct group_call *call)
{
    pthread_mutex_lock(&call->lock);
    while (!call->done)
        pthread_cond_wait(&call->answered, &call->lock);
    pthread_mutex_unlock(&call->lock);
    return call->status;
}

void group_run(struct group_call *call, const char *id, const pmix_proc_t *members, size_t nmembers,
               struct group_ask ask, pmix_status_t expected)
{
    group_begin(call, id, members, nmembers, ask);
    CHECK_STATUS(group_end(call), expected, id);
}

void group_check_info(pmix_rank_t rank, size_t context, size_t expected)
{
    pmix_info_t info[2];
    int seconds = 10;
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&info[0]);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    pmix_value_t *value = get_value_with(rank, info, 2, PMIX_GROUP_LOCAL_CID);
    CHECK_EQ(number_in(value, PMIX_GROUP_LOCAL_CID), expected, "group local cid");
    PMIX_VALUE_RELEASE(value);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}
