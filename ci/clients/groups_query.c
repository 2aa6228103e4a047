/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_query: the host answers queries about groups, process sets and namespaces, for members and
 * others: a group is there after its construct and gone after its destruct.
 */
#include "group.h"

static long psets = 1;

#define GROUP_ID "query.evens"

/* One key, with the qualifier PMIX_GROUP_ID if @p group, or else PMIX_RANGE, required, unless @p
 * range is PMIX_RANGE_UNDEF. The caller frees the results. */
static pmix_status_t ask(const char *key, const char *group, pmix_data_range_t range,
                         pmix_info_t **results, size_t *nresults)
{
    pmix_query_t query;
    pmix_status_t status;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, key);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    if (group) {
        PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
        PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_GROUP_ID, group, PMIX_STRING);
    } else if (range != PMIX_RANGE_UNDEF) {
        PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
        PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_RANGE, &range, PMIX_DATA_RANGE);
        PMIX_INFO_REQUIRED(&query.qualifiers[0]);
    }
    *results = NULL;
    *nresults = 0;
    step("query of %s", key);
    status = PMIx_Query_info(&query, 1, results, nresults);
    PMIX_QUERY_DESTRUCT(&query);
    return status;
}

/* The value of @p key, which must be answered. */
static const pmix_value_t *answer(const char *key, const char *group, pmix_info_t **results,
                                  size_t *nresults)
{
    pmix_status_t status = ask(key, group, PMIX_RANGE_UNDEF, results, nresults);
    CHECK(status == PMIX_SUCCESS, "query of %s: expected SUCCESS, found %s", key,
          PMIx_Error_string(status));
    for (size_t i = 0; i < *nresults; i++)
        if (PMIX_CHECK_KEY(&(*results)[i], key))
            return &(*results)[i].value;
    check_failed(__FILE__, __LINE__, "query of %s: expected its value, found %zu others", key,
                 *nresults);
}

static uint64_t ask_number(const char *key)
{
    pmix_info_t *results;
    size_t nresults;
    uint64_t number = number_in(answer(key, NULL, &results, &nresults), key);
    PMIX_INFO_FREE(results, nresults);
    return number;
}

/* How often @p word is among the names; their number in @p length. The standard asks for an array
 * of strings for groups and a list with commas for process sets; PRRTE gives the list for both. */
static size_t count_names(const pmix_value_t *value, const char *word, size_t *length)
{
    size_t found = 0;
    char *save = NULL;
    *length = 0;
    if (value->type == PMIX_DATA_ARRAY) {
        const pmix_data_array_t *array = value->data.darray;
        CHECK(!array || !array->size || array->type == PMIX_STRING,
              "names: expected an array of strings, found one of %s",
              PMIx_Data_type_string(array->type));
        for (; array && *length < array->size; ++*length)
            found += !strcmp(((char **)array->array)[*length], word);
        return found;
    }
    CHECK(value->type == PMIX_STRING, "names: expected a string or an array, found %s",
          PMIx_Data_type_string(value->type));
    char *names = strdup(value->data.string ? value->data.string : "");
    for (char *s = strtok_r(names, ",", &save); s; s = strtok_r(NULL, ",", &save), ++*length)
        found += !strcmp(s, word);
    free(names);
    return found;
}

static size_t ask_names(const char *key, const char *word, size_t *length)
{
    pmix_info_t *results;
    size_t nresults;
    const pmix_value_t *value = answer(key, NULL, &results, &nresults);
    size_t found = count_names(value, word, length);
    PMIX_INFO_FREE(results, nresults);
    return found;
}

static void check_present(const pmix_proc_t *members, size_t n, bool present)
{
    pmix_info_t *results;
    size_t nresults, length;
    CHECK_EQ(ask_names(PMIX_QUERY_GROUP_NAMES, GROUP_ID, &length), present,
             "times that the group's name is listed");
    CHECK_EQ(ask_number(PMIX_QUERY_NUM_GROUPS), length, "number of groups");
    if (!present) {
        pmix_status_t status =
            ask(PMIX_QUERY_GROUP_MEMBERSHIP, GROUP_ID, PMIX_RANGE_UNDEF, &results, &nresults);
        CHECK(status != PMIX_SUCCESS || nresults == 0,
              "membership of a destructed group: expected none, found %zu results", nresults);
        return;
    }
    const pmix_value_t *value = answer(PMIX_QUERY_GROUP_MEMBERSHIP, GROUP_ID, &results, &nresults);
    CHECK(value->type == PMIX_DATA_ARRAY && value->data.darray &&
              value->data.darray->type == PMIX_PROC,
          "membership: expected an array of processes, found %s",
          PMIx_Data_type_string(value->type));
    const pmix_proc_t *found = value->data.darray->array;
    CHECK_EQ(value->data.darray->size, n, "number of members");
    for (size_t i = 0; i < n; i++)
        CHECK(group_contains(found, n, members[i].rank),
              "members: expected rank %u, found it "
              "missing",
              members[i].rank);
    PMIX_INFO_FREE(results, nresults);
}

/* The groups of a range up to the session are known, those of a wider one are not. */
static void check_range(void)
{
    static const struct {
        pmix_data_range_t range;
        pmix_status_t status;
    } rows[] = {{PMIX_RANGE_SESSION, PMIX_SUCCESS},
                {PMIX_RANGE_NAMESPACE, PMIX_SUCCESS},
                {PMIX_RANGE_LOCAL, PMIX_SUCCESS},
                {PMIX_RANGE_GLOBAL, PMIX_ERR_NOT_SUPPORTED}};
    uint64_t all = ask_number(PMIX_QUERY_NUM_GROUPS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pmix_info_t *results;
        size_t nresults;
        pmix_status_t status = ask(PMIX_QUERY_NUM_GROUPS, NULL, rows[i].range, &results, &nresults);
        CHECK_STATUS(status, rows[i].status, PMIx_Data_range_string(rows[i].range));
        if (status == PMIX_SUCCESS && rows[i].range != PMIX_RANGE_LOCAL) {
            CHECK_EQ(nresults, 1, "results");
            CHECK_EQ(number_in(&results[0].value, PMIX_QUERY_NUM_GROUPS), all, "groups");
        }
        PMIX_INFO_FREE(results, nresults);
    }
}

/* Names and number of the process sets agree; hosts may have none. */
static void check_psets(void)
{
    size_t length;
    ask_names(PMIX_QUERY_PSET_NAMES, "", &length);
    CHECK_EQ(ask_number(PMIX_QUERY_NUM_PSETS), length, "number of process sets");
}

/* My namespace is among those that there are. */
static void check_namespaces(void)
{
    size_t length;
    CHECK_EQ(ask_names(PMIX_QUERY_NAMESPACES, client.me.nspace, &length), 1,
             "times that my namespace is listed");
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"psets", &psets, "0: do not ask for process sets", NULL}, {0}};
    struct group_result result;
    client_init("groups_query", options, argc, argv);
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    size_t n = 0;
    for (pmix_rank_t r = 0; r < client.size; r += 2)
        members[n++] = proc_of(r);
    bool member = group_contains(members, n, client.me.rank);
    check_present(members, n, false);
    fence_all(false);
    if (member)
        group_construct(GROUP_ID, members, n, &result);
    fence_all(false);
    check_present(members, n, true);
    check_range();
    fence_all(false);
    if (member) {
        group_result_free(&result);
        group_destruct(GROUP_ID);
    }
    fence_all(false);
    check_present(members, n, false);
    if (psets)
        check_psets();
    check_namespaces();
    free(members);
    step("last fence");
    fence_all(false);
    return client_pass("%u ranks, %zu of them members, see the group come and go", client.size, n);
}
