/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_info: a construct hands out what its members bring along: endpoint data (put and
 * committed, no fence) and group info (PMIX_GROUP_INFO), which is kept apart by context id.
 *
 * The groups overlap and each gives other values, as MPI's local communicator ids are. The gets of
 * endpoint data carry PMIX_IMMEDIATE, so that they are answered from what the construct brought and
 * not by a direct modex.
 */
#include "group.h"

static long rounds = 3;

static bool same_node(pmix_rank_t rank)
{
    return nodes_of_ranks()[rank] == nodes_of_ranks()[client.me.rank];
}

/* In libpmix 5.0.2 to 5.0.11 a client does not find group info that it asks its server for: of a
 * reserved key the server fetches that key alone (_satisfy_request()), pmix_hash_fetch() drops the
 * value's qualifier, and the client stores it bare but looks for it with the context id: NOT_FOUND,
 * for good. The info arrives whole only along with a key that the member has put and the client
 * has not got yet, as the answer to that is all that the member has. 6.0 keeps the qualifier. */
#define INFO_COMES_ALONG (LIBPMIX >= 50000 && LIBPMIX < 60000)

/* A client has all the keys that it has put itself, so its own info never comes along. */
static bool library_loses_info(pmix_rank_t rank)
{
    return INFO_COMES_ALONG && rank == client.me.rank;
}

static uint64_t local_cid(pmix_rank_t rank, long number)
{
    return mix(1000u * (uint64_t)number + rank) & 0xffffff;
}

/* Members of the kinds in turn: all, every second rank, the lower half. */
static size_t choose_members(long kind, pmix_proc_t *members)
{
    size_t n = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (kind % 3 == 0 ||
            (kind % 3 == 1 ? r % 2 == client.me.rank % 2 : r < (client.size + 1) / 2))
            members[n++] = proc_of(r);
    return group_contains(members, n, client.me.rank) ? n : 0;
}

static void put_endpoint(long number)
{
    char text[64];
    snprintf(text, sizeof text, "endpoint of %u for %ld", client.me.rank, number);
    put_string(PMIX_GLOBAL, text, "ep%ld.global", number);
    put_string(PMIX_REMOTE, text, "ep%ld.remote", number);
    commit();
}

static size_t construct(long number, const char *id, const pmix_proc_t *members, size_t n)
{
    struct group_result result;
    pmix_info_t info[2], *results = NULL;
    size_t nresults = 0, cid = local_cid(client.me.rank, number);
    bool yes = true;
    pmix_data_array_t array;
    PMIX_DATA_ARRAY_CONSTRUCT(&array, 1, PMIX_INFO);
    PMIX_INFO_LOAD((pmix_info_t *)array.array, PMIX_GROUP_LOCAL_CID, &cid, PMIX_SIZE);
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_GROUP_INFO, &array, PMIX_DATA_ARRAY);
    CHECK_OK(PMIx_Group_construct(id, members, n, info, 2, &results, &nresults), "construct");
    group_result_read(&result, results, nresults);
    CHECK(result.has_context && result.context, "construct: expected a context id, found none");
    cid = result.context;
    group_result_free(&result);
    if (results)
        PMIX_INFO_FREE(results, nresults);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
    PMIX_INFO_DESTRUCT(&info[1]);
    return cid;
}

static void check_endpoint(pmix_rank_t rank, long number, const char *scope)
{
    pmix_info_t info;
    bool yes = true;
    char key[PMIX_MAX_KEYLEN], expected[64];
    snprintf(key, sizeof key, "ep%ld.%s", number, scope);
    snprintf(expected, sizeof expected, "endpoint of %u for %ld", rank, number);
    step("group %ld, get of %s of rank %u", number, key, rank);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    pmix_value_t *value = get_value_with(rank, &info, 1, key);
    CHECK(value->type == PMIX_STRING && !strcmp(value->data.string, expected),
          "%s of rank %u: expected \"%s\", found %s", key, rank, expected,
          value->type == PMIX_STRING ? value->data.string : PMIx_Data_type_string(value->type));
    PMIX_VALUE_RELEASE(value);
    PMIX_INFO_DESTRUCT(&info);
}

/* The local cid that @p rank gave for the group with that context id. */
static void check_info(pmix_rank_t rank, long number, size_t context)
{
    pmix_info_t info[2];
    int seconds = 10;
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&info[0]);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    step("group %ld, get of the group info of rank %u", number, rank);
    pmix_value_t *value = get_value_with(rank, info, 2, PMIX_GROUP_LOCAL_CID);
    CHECK_EQ(number_in(value, PMIX_GROUP_LOCAL_CID), local_cid(rank, number), "group local cid");
    PMIX_VALUE_RELEASE(value);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}

/* Constructs, checks and destructs one group. @return its context id, 0 if not a member */
static size_t one_group(long number, pmix_proc_t *members)
{
    char id[64];
    size_t n = choose_members(number, members);
    /* The halves of one kind are two groups, so the lowest member is in the id. */
    snprintf(id, sizeof id, "info.%ld.%u", number, members[0].rank);
    if (!n)
        return 0;
    step("group %ld, construct", number);
    put_endpoint(number);
    size_t context = construct(number, id, members, n);
    for (size_t i = 0; i < n; i++) {
        if (!INFO_COMES_ALONG)
            check_info(members[i].rank, number, context); /* before anything else came along */
        check_endpoint(members[i].rank, number, "global");
        if (!same_node(members[i].rank))
            check_endpoint(members[i].rank, number, "remote");
        if (!library_loses_info(members[i].rank))
            check_info(members[i].rank, number, context);
    }
    step("group %ld, destruct", number);
    group_destruct(id);
    return context;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "groups of each kind", NULL}, {0}};
    client_init("groups_info", options, argc, argv);
    nodes_of_ranks(); /* its fence is of the whole job */
    if (INFO_COMES_ALONG)
        fence_all(false); /* or its gets bring along the first group's endpoints, but no info yet */
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    size_t *contexts = calloc((size_t)rounds * 3, sizeof *contexts);
    for (long number = 0; number < rounds * 3; number++)
        contexts[number] = one_group(number, members);
    /* The infos of all groups are still apart, by their context ids. */
    for (long number = 0; number < rounds * 3; number++) {
        size_t n = choose_members(number, members);
        for (size_t i = 0; i < n; i++)
            if (!library_loses_info(members[i].rank))
                check_info(members[i].rank, number, contexts[number]);
    }
    free(contexts);
    free(members);
    step("last fence");
    fence_all(false);
    return client_pass("%ld constructs handed out endpoint data and group info of %u ranks",
                       rounds * 3, client.size);
}
