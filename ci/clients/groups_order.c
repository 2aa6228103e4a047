/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_order: a group rank is the place of its process in the array of the leaders, and then
 * among the members that they add: in the membership returned, in gets, in queries, in the targets
 * of events. Where leaders give different arrays, all see one order.
 *
 * Up to 6.1 libpmix's client sorts the members, so there the order is by namespace and rank.
 */
#include "event.h"
#include "group.h"

#define HAS_ORDER (LIBPMIX >= 70000)

static pmix_proc_t *array; /* what is given, and then what is expected */
static size_t n;

static int by_rank(const void *a, const void *b)
{
    const pmix_proc_t *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void expect_sorted(void)
{
    qsort(array, n, sizeof *array, by_rank);
}

static void check_order(const char *what, const pmix_proc_t *found, size_t nfound)
{
    CHECK_EQ(nfound, n, what);
    for (size_t i = 0; i < n; i++)
        CHECK(found[i].rank == array[i].rank, "%s: expected rank %u at place %zu, found %u", what,
              array[i].rank, i, found[i].rank);
}

static void check_gets(const char *id)
{
    pmix_proc_t member;
    pmix_value_t *value;
    for (size_t i = 0; i < n; i++) {
        PMIX_LOAD_PROCID(&member, id, (pmix_rank_t)i);
        CHECK_OK(PMIx_Get(&member, "order.rank", NULL, 0, &value), "PMIx_Get of a group rank");
        CHECK_EQ(number_in(value, "order.rank"), array[i].rank, "the rank of a group rank");
        PMIX_VALUE_RELEASE(value);
    }
}

static void check_query(const char *id)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    pmix_status_t status;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_GROUP_MEMBERSHIP);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_GROUP_ID, id, PMIX_STRING);
    CHECK_OK(PMIx_Query_info(&query, 1, &results, &nresults), "the query of the members");
    const pmix_data_array_t *found = results[0].value.data.darray;
    check_order("members of the query", found->array, found->size);
    PMIX_INFO_FREE(results, nresults);
    PMIX_QUERY_DESTRUCT(&query);
}

enum { ALL, ONE, BEYOND, MARK };

static void raise_to(const char *id, int code, pmix_rank_t rank, pmix_status_t expected)
{
    pmix_proc_t target;
    pmix_info_t info;
    PMIX_LOAD_PROCID(&target, id, rank);
    event_target(&info, &target, 1);
    pmix_status_t status = event_raise(EVENT_CODE(code), PMIX_RANGE_CUSTOM, 1, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    if (LIBPMIX >= 60000) /* up to 5.0 it is answered before it is sent */
        CHECK(status == expected, "event to rank %d of the group: expected %s, found %s", (int)rank,
              PMIx_Error_string(expected), PMIx_Error_string(status));
}

/* Rank 0 raises events to the group's id, and to its first rank. */
static void check_events(const char *id, struct listener *l)
{
    static uint64_t marks, all, one;
    step("events to %s", id);
    fence_all(false);
    if (client.me.rank == 0) {
        raise_to(id, ALL, PMIX_RANK_WILDCARD, PMIX_SUCCESS);
        raise_to(id, ONE, 0, PMIX_SUCCESS);
        raise_to(id, BEYOND, (pmix_rank_t)n, PMIX_ERR_NOT_FOUND);
        CHECK_OK(event_raise(EVENT_CODE(MARK), PMIX_RANGE_GLOBAL, 1, NULL, 0), "the mark");
    } else {
        all += group_contains(array, n, client.me.rank);
        one += client.me.rank == array[0].rank;
        listen_wait(l, EVENT_CODE(MARK), 0, ++marks);
        /* on the node of rank 0 libpmix itself gives the mark, which may come before what muster
         * gives */
        listen_wait(l, EVENT_CODE(ALL), 0, all);
        listen_wait(l, EVENT_CODE(ONE), 0, one);
        CHECK_EQ(listen_count(l, EVENT_CODE(ALL), PMIX_RANK_WILDCARD), all, "events to the id");
        CHECK_EQ(listen_count(l, EVENT_CODE(ONE), PMIX_RANK_WILDCARD), one, "events to rank 0");
        CHECK_EQ(listen_count(l, EVENT_CODE(BEYOND), PMIX_RANK_WILDCARD), 0, "events beyond");
    }
    fence_all(false);
}

static void one_group(const char *id, struct listener *l, const pmix_proc_t *leaders,
                      size_t nleaders, struct group_ask ask)
{
    struct group_call call;
    pmix_proc_t all;
    group_run(&call, id, leaders, nleaders, ask, PMIX_SUCCESS);
    if (GROUP_HAS_MEMBERSHIP)
        check_order("members of the construct", call.result.members, call.result.nmembers);
    if (GROUP_HAS_MEMBERSHIP)
        check_gets(id);
    check_query(id);
    group_result_free(&call.result);
    check_events(id, l);
    PMIX_LOAD_PROCID(&all, id, PMIX_RANK_WILDCARD);
    if (LIBPMIX >= 60100) /* 5.0 hangs in it */
        fence_of(&all, 1, false);
    group_destruct(id);
}

/* All leaders give one array: backwards, rotated, every second one first. */
static void one_array(struct listener *l)
{
    for (int way = 0; way < 3; way++) {
        char id[32];
        snprintf(id, sizeof id, "order.way%d", way);
        step("%s", id);
        for (size_t i = 0; i < n; i++)
            array[i] = proc_of((pmix_rank_t)(way == 0    ? n - 1 - i
                                             : way == 1  ? (i + n / 2) % n
                                             : 2 * i < n ? 2 * i
                                                         : 2 * (i - (n + 1) / 2) + 1));
        pmix_proc_t *given = memcpy(calloc(n, sizeof *given), array, n * sizeof *array);
        if (!HAS_ORDER)
            expect_sorted();
        one_group(id, l, given, n, (struct group_ask){0});
        free(given);
    }
}

/* Each leader gives another array. */
static void many_arrays(void)
{
    uint64_t context;
    struct group_call call;
    step("different arrays");
    for (size_t i = 0; i < n; i++)
        array[i] = proc_of((pmix_rank_t)((i + client.me.rank) % n));
    group_run(&call, "order.many", array, n, (struct group_ask){0}, PMIX_SUCCESS);
    group_check_members(&call.result, array, n);
    struct group_seen seen = {call.result.context, group_order(&call.result)};
    group_result_free(&call.result);
    group_compare(&seen, 1, &context, "order.many");
    group_destruct("order.many");
}

/* The first half leads, backwards; the last leader adds the others, backwards. */
static void added(struct listener *l)
{
    size_t nleaders = (n + 1) / 2;
    bool leads = client.me.rank < nleaders;
    step("added members");
    for (size_t i = 0; i < n; i++)
        array[i] = proc_of((pmix_rank_t)(i < nleaders ? nleaders - 1 - i : n - 1 - (i - nleaders)));
    pmix_proc_t *given = memcpy(calloc(n, sizeof *given), array, n * sizeof *array);
    struct group_ask ask = {.added = given + nleaders, .nadded = n - nleaders};
    if (!HAS_ORDER)
        expect_sorted();
    /* docs/limits.md: leaders of a node call before members do */
    if (!leads)
        sleep_ms(300);
    one_group("order.added", l, given, leads ? nleaders : 0,
              client.me.rank == nleaders - 1 && n > nleaders ? ask : (struct group_ask){0});
    free(given);
}

int main(int argc, char **argv)
{
    const pmix_status_t codes[] = {EVENT_CODE(ALL), EVENT_CODE(ONE), EVENT_CODE(BEYOND),
                                   EVENT_CODE(MARK)};
    client_init("groups_order", (struct option_number[]){{0}}, argc, argv);
    struct listener *l = listen_to(codes, 4, NULL, 0);
    n = client.size;
    array = calloc(n, sizeof *array);
    put_u64(PMIX_GLOBAL, client.me.rank, "order.rank");
    commit();
    fence_all(true);
    one_array(l);
    many_arrays();
    if (GROUP_HAS_ADDED)
        added(l);
    listen_end(l);
    return client_pass("%zu members in the order %s", n, HAS_ORDER ? "given" : "of their ranks");
}
