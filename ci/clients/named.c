/* SPDX-License-Identifier: BSD-3-Clause */
/* named: a connection's namespace (MUSTER_CONNECT_NSPACE).
 *
 * All ranks of --jobs jobs connect, which tell each other their names by files in $CONNECT_MEET, as
 * those of `connect --mode jobs`. Then what they name by the connection's namespace: fences, with
 * data and without; gets of the data of each; an event; the disconnect, and a second one.
 */
#include "event.h"
#include "include/muster/pmix.h"
#include "parts.h"

static long jobs = 1, part = 0, rounds = 2;
static pmix_proc_t whole[PARTS_MAX]; /* all jobs, mine too; wildcard ranks */
static pmix_proc_t named;            /* the connection's, wildcard rank */
static pmix_rank_t place;
static uint32_t size;

static pmix_status_t call(bool connects, const pmix_proc_t *procs, size_t n, const char *id)
{
    pmix_info_t info[3];
    int timeout = 60;
    size_t ninfo = 0;
    PMIX_INFO_LOAD(&info[ninfo++], PMIX_TIMEOUT, &timeout, PMIX_INT);
    if (id != NULL)
        PMIX_INFO_LOAD(&info[ninfo++], PMIX_CONNECT_ID, id, PMIX_STRING);
    if (connects)
        PMIX_INFO_LOAD(&info[ninfo++], MUSTER_CONNECT_NSPACE, NULL, PMIX_BOOL);
    step("%s, id %s", connects ? "connect" : "disconnect", id != NULL ? id : "none");
    return connects ? PMIx_Connect(procs, n, info, ninfo) : PMIx_Disconnect(procs, n, info, ninfo);
}

/* The value of one of the keys, or NULL. */
static pmix_info_t *ask(const char *key, const char *id, pmix_status_t *status)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t n = 0;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(*status, query.keys, key);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, id != NULL ? 2 : 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_PROCID, &client.me, PMIX_PROC);
    if (id != NULL)
        PMIX_INFO_LOAD(&query.qualifiers[1], PMIX_CONNECT_ID, id, PMIX_STRING);
    step("query of %s", key);
    *status = PMIx_Query_info(&query, 1, &results, &n);
    PMIX_QUERY_DESTRUCT(&query);
    return *status == PMIX_SUCCESS && n == 1 ? results : NULL;
}

static void learn(const char *id)
{
    pmix_status_t status;
    pmix_info_t *name = ask(MUSTER_CONNECT_NSPACE, id, &status);
    CHECK(name != NULL && name->value.type == PMIX_STRING, "the connection's name: found %s",
          PMIx_Error_string(status));
    PMIX_LOAD_PROCID(&named, name->value.data.string, PMIX_RANK_WILDCARD);
    PMIX_INFO_FREE(name, 1);
    pmix_info_t *rank = ask(MUSTER_CONNECT_RANK, id, &status);
    CHECK(rank != NULL && rank->value.type == PMIX_PROC_RANK, "the rank in it: found %s",
          PMIx_Error_string(status));
    place = rank->value.data.rank;
    PMIX_INFO_FREE(rank, 1);
}

/* From 7 on libpmix wants the caller itself in the array, or a group's id. */
#if PMIX_VERSION_MAJOR >= 7
static void fence_named(bool collect)
{
    fence_of(whole, (size_t)jobs, collect);
}

static void disconnect_named(const char *id)
{
    if (place == 0) {
        CHECK_STATUS(PMIx_Fence(&named, 1, NULL, 0), PMIX_ERR_NOT_A_MEMBER, "fence by name");
        CHECK_STATUS(call(false, &named, 1, id), PMIX_ERR_NOT_A_MEMBER, "disconnect by name");
    }
    CHECK_OK(call(false, whole, (size_t)jobs, id), "disconnect");
}
#else
static void fence_named(bool collect)
{
    fence_of(&named, 1, collect);
}

static void disconnect_named(const char *id)
{
    CHECK_OK(call(false, &named, 1, id == NULL ? NULL : "not looked at"), "disconnect by name");
    CHECK_STATUS(call(false, &named, 1, NULL), PMIX_ERR_NOT_FOUND, "second disconnect");
}
#endif

static uint64_t number_of(pmix_rank_t rank, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc = named;
    proc.rank = rank;
    step("get of %s of %s rank %u", key, proc.nspace, rank);
    pmix_status_t status = PMIx_Get(&proc, key, NULL, 0, &value);
    CHECK(status == PMIX_SUCCESS && value != NULL, "PMIx_Get of %s of %s rank %u: found %s", key,
          proc.nspace, proc.rank, PMIx_Error_string(status));
    uint64_t number = number_in(value, key);
    PMIX_VALUE_RELEASE(value);
    return number;
}

/* The order is by name and rank; of each job the first rank's place is that of all its ranks. */
static void look(long round)
{
    char key[64];
    size = (uint32_t)number_of(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    CHECK(place < size, "rank %u of %u", place, size);
    snprintf(key, sizeof key, "named.place%ld", round);
    put_u64(PMIX_GLOBAL, mix(place), "%s", key);
    commit();
    step("fence by name");
    fence_named(false);
    for (pmix_rank_t r = 0; r < size; r++)
        CHECK_EQ(number_of((r + place) % size, key), mix((r + place) % size), "a number");
    step("fence with data, by name");
    snprintf(key, sizeof key, "named.later%ld", round);
    put_u64(PMIX_GLOBAL, mix(place + 1), "%s", key);
    commit();
    fence_named(true);
    for (pmix_rank_t r = 0; r < size; r++)
        CHECK_EQ(number_of(r, key), mix(r + 1), "a number after the fence");
    pmix_proc_t nobody = named;
    pmix_value_t *value = NULL;
    nobody.rank = size;
    step("get of rank %u, who is not there", size);
    CHECK_STATUS(PMIx_Get(&nobody, key, NULL, 0, &value), PMIX_ERR_NOT_FOUND, "get of nobody");
}

static void tell(long round)
{
    const pmix_status_t code = EVENT_CODE(3 + round); /* libpmix keeps events for late listeners */
    pmix_info_t info;
    struct listener *heard = listen_to(&code, 1, NULL, 0);
    fence_named(false);
    if (place == 1) {
        event_target(&info, &named, 1);
        step("event to %s", named.nspace);
        CHECK_OK(event_raise(code, PMIX_RANGE_CUSTOM, 1, &info, 1), "an event by name");
    } else {
        step("waiting for the event");
        listen_wait(heard, code, PMIX_RANK_WILDCARD, 1);
    }
    fence_named(false);
    CHECK_EQ(listen_count(heard, code, PMIX_RANK_WILDCARD), place != 1, "events by name");
    listen_end(heard);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"jobs", &jobs, "jobs that connect", NULL},
        {"part", &part, "which of them this is", NULL},
        {"rounds", &rounds, "times that all connect", NULL},
        {NULL, NULL, NULL, NULL},
    };
    pmix_status_t status;
    client_init("named", options, argc, argv);
    if (nodes_of_ranks()[0] == nodes_of_ranks()[client.size - 1] && jobs == 1)
        return client_skip("all ranks are on one node");
    if (!parts_may_meet(jobs))
        return client_skip("CONNECT_MEET is not set, or there are more than %d jobs", PARTS_MAX);
    parts_meet(whole, part, jobs);
    for (long i = 0; i < rounds; i++) {
        const char *id = i % 2 == 0 ? NULL : "again";
        CHECK_OK(call(true, whole, (size_t)jobs, id), "connect");
        learn(id);
        look(i);
        tell(i);
        disconnect_named(id);
        CHECK(ask(MUSTER_CONNECT_NSPACE, id, &status) == NULL, "a name after the disconnect");
    }
    CHECK_OK(call(true, whole, (size_t)jobs, NULL), "connect");
    learn(NULL);
    fence_named(false);
    return client_pass("rank %u of %u in %s", place, size, named.nspace);
}
