/* SPDX-License-Identifier: BSD-3-Clause */
/* connect: processes connect and disconnect.
 *
 * --mode job: all ranks of the job, several times; then the even and the odd ones at once, each by
 * rank; then without those of the last node, who come too late for the deadline, and again with
 * them.
 *
 * --mode lost: the last rank is killed while the others wait for it in a connect.
 *
 * --mode rules: the directives of RFC 0003, on one rank a node: events, ids, a second disconnect,
 * an exchange only; then the last rank ends without disconnecting.
 *
 * --mode jobs: run in each of --jobs jobs, --part 0 and so on, which tell each other their names by
 * files in the directory $CONNECT_MEET alone. All ranks of all jobs connect; each looks at the keys
 * and the data of the others; a fence over all; disconnect. Then the first ranks alone, and a name
 * that no job has.
 *
 * --mode again: the same of a job, part 0, and of one that is requeued: its first run stays away
 * from the connect, and ends. The second run, which has the same name, connects and disconnects.
 */
#include "event.h"
#include "include/muster/pmix.h"
#include "parts.h"

enum mode { JOB, LOST, JOBS, RULES, AGAIN };
static long mode = JOB, rounds = 3, jobs = 2, part = 0;

/* Up to libpmix 6 a connect within one node is libpmix's own, and partly succeeds without the lost.
 */
static const pmix_status_t lost_codes[] = {PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_LOST_CONNECTION,
                                           PMIX_ERR_PARTIAL_SUCCESS};

static pmix_status_t connect_of(const pmix_proc_t *procs, size_t nprocs, int timeout)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout, PMIX_INT);
    return PMIx_Connect(procs, nprocs, &info, timeout > 0);
}

static void connect_all(const char *what)
{
    step("connect: %s", what);
    CHECK_OK(connect_of(&client.all, 1, 0), what);
    step("disconnect: %s", what);
    CHECK_OK(PMIx_Disconnect(&client.all, 1, NULL, 0), what);
}

/* Ranks of my parity, in falling order: the order is none of the operation's. */
static void connect_half(void)
{
    pmix_proc_t *half = calloc(client.size, sizeof *half);
    size_t n = 0;
    for (pmix_rank_t r = client.size; r-- > 0;)
        if (r % 2 == client.me.rank % 2)
            half[n++] = proc_of(r);
    step("connect of every second rank");
    CHECK_OK(connect_of(half, n, 0), "connect of every second rank");
    step("disconnect of every second rank");
    CHECK_OK(PMIx_Disconnect(half, n, NULL, 0), "disconnect of every second rank");
    free(half);
}

static bool is_late(void)
{
    return nodes_of_ranks()[client.me.rank] == nodes_of_ranks()[client.size - 1];
}

static void expect_timeout(void)
{
    enum { DEADLINE_S = 2, LIMIT_S = 60 };
    step("connect without the last node");
    uint64_t begin = now_ns();
    CHECK_STATUS(connect_of(&client.all, 1, DEADLINE_S), PMIX_ERR_TIMEOUT,
                 "connect that the last node does not make");
    uint64_t ms = (now_ns() - begin) / 1000000;
    CHECK(ms > 1000 * (DEADLINE_S - 1) && ms < 1000 * LIMIT_S,
          "deadline: expected %d s, found %llu ms", DEADLINE_S, (unsigned long long)ms);
    sleep_ms(300); /* libpmix's server has set the same deadline, a little later */
}

/* The late ones are in step with the others at once: their first call is the others' second. Within
 * a node libpmix has deadlines of its own, hence whole nodes. */
static void connect_late(void)
{
    if (!is_late())
        expect_timeout();
    step("fence after the deadline");
    fence_all(false);
    connect_all("all ranks, after the deadline");
}

static int run_job(void)
{
    for (long i = 0; i < rounds; i++)
        connect_all("all ranks");
    connect_half();
    if (nodes_of_ranks()[0] != nodes_of_ranks()[client.size - 1])
        connect_late();
    put_u64(PMIX_GLOBAL, mix(client.me.rank), "connect.number");
    commit();
    fence_all(true);
    CHECK_EQ(get_u64(0, "connect.number"), mix(0), "a number after it all");
    return client_pass("%u ranks", client.size);
}

static int run_lost(void)
{
    pmix_rank_t victim = client.size - 1;
    const uint64_t *nodes = nodes_of_ranks();
    step("fence before the loss");
    fence_all(false);
    if (client.me.rank == victim) {
        sleep_ms(300); /* so that most wait already; both orders have to work */
        client_die();
    }
    step("connect with one that is killed");
    pmix_status_t status = connect_of(&client.all, 1, 0);
    bool is_loss = false, one_node = nodes[0] == nodes[victim] && LIBPMIX < 70000;
    for (size_t i = 0; i < (one_node ? 3 : 2); i++)
        is_loss |= status == lost_codes[i];
    CHECK(is_loss, "connect with one that is killed: found %s", PMIx_Error_string(status));
    return client_pass("%u ranks were told", client.size - 1);
}

/* ---- directives ---- */

static pmix_status_t call(bool connects, const char *id, const char *directive)
{
    pmix_info_t info[3];
    size_t n = 0;
    int timeout = 60;
    PMIX_INFO_LOAD(&info[n++], PMIX_TIMEOUT, &timeout, PMIX_INT);
    if (id != NULL)
        PMIX_INFO_LOAD(&info[n++], PMIX_CONNECT_ID, id, PMIX_STRING);
    if (directive != NULL)
        PMIX_INFO_LOAD(&info[n++], directive, NULL, PMIX_BOOL);
    step("%s, id %s, %s", connects ? "connect" : "disconnect", id != NULL ? id : "none",
         directive != NULL ? directive : "no directive");
    return connects ? PMIx_Connect(&client.all, 1, info, n)
                    : PMIx_Disconnect(&client.all, 1, info, n);
}

static void check_ids(void)
{
    CHECK_OK(call(true, "a", NULL), "connect a");
    CHECK_OK(call(true, "b", NULL), "connect b");
    CHECK_OK(call(false, "a", NULL), "disconnect a");
    CHECK_STATUS(call(false, "a", NULL), PMIX_ERR_NOT_FOUND, "second disconnect a");
    CHECK_OK(call(false, "b", NULL), "disconnect b");
    CHECK_STATUS(call(false, NULL, NULL), PMIX_ERR_NOT_FOUND, "disconnect without a connect");
    CHECK_OK(call(true, "x", PMIX_CONNECT_XCHG_ONLY), "exchange only");
    CHECK_STATUS(call(false, "x", NULL), PMIX_ERR_NOT_FOUND, "disconnect of an exchange");
}

/* Each of the others tells us once. */
static void check_each(void)
{
    const pmix_status_t codes[] = {PMIX_PROC_HAS_CONNECTED, PMIX_PROC_HAS_DISCONNECTED,
                                   PMIX_CONNECT_REQUESTED};
    struct listener *heard = listen_to(codes, 3, NULL, 0);
    fence_all(false);
    CHECK_OK(call(true, NULL, PMIX_CONNECT_NOTIFY_EACH), "connect, telling each");
    listen_wait(heard, PMIX_PROC_HAS_CONNECTED, PMIX_RANK_WILDCARD, client.size - 1);
    CHECK_OK(call(false, NULL, NULL), "disconnect, telling each");
    listen_wait(heard, PMIX_PROC_HAS_DISCONNECTED, PMIX_RANK_WILDCARD, client.size - 1);
    CHECK_OK(call(true, NULL, client.me.rank == 0 ? PMIX_CONNECT_NOTIFY_REQ : NULL), "connect");
    if (client.me.rank != 0)
        listen_wait(heard, PMIX_CONNECT_REQUESTED, 0, 1);
    CHECK_OK(call(false, NULL, NULL), "disconnect");
    fence_all(false);
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (r != client.me.rank) {
            CHECK_EQ(listen_count(heard, PMIX_PROC_HAS_CONNECTED, r), 1, "events of a connect");
            CHECK_EQ(listen_count(heard, PMIX_PROC_HAS_DISCONNECTED, r), 1,
                     "events of a disconnect");
        }
    listen_end(heard);
}

static void check_end(struct listener *heard)
{
    pmix_rank_t last = client.size - 1;
    step("event of the last rank's end");
    listen_wait(heard, PMIX_ERR_PROC_TERM_WO_SYNC, last, 1);
    CHECK_OK(call(false, "early", NULL), "disconnect, of one that may end early");
    CHECK(call(false, "late", NULL) != PMIX_SUCCESS,
          "disconnect, of one that has ended without: expected an error");
    CHECK_OK(call(true, "few", PMIX_CONNECT_OPTIONAL), "connect that is optional");
    CHECK(call(true, "all", NULL) != PMIX_SUCCESS, "connect with one that has ended");
    CHECK_EQ(listen_count(heard, PMIX_ERR_PROC_TERM_WO_SYNC, last), 1, "events of its end");
}

static int run_rules(void)
{
    const pmix_status_t code = PMIX_ERR_PROC_TERM_WO_SYNC;
    for (pmix_rank_t r = 1; r < client.size; r++)
        if (nodes_of_ranks()[r] == nodes_of_ranks()[r - 1])
            return client_skip("there are several ranks on a node");
    check_ids();
    check_each();
    struct listener *heard = listen_to(&code, 1, NULL, 0);
    CHECK_OK(call(true, "early", PMIX_CONNECT_EARLY_TERM_ALLOWED), "connect early");
    CHECK_OK(call(true, "late", NULL), "connect late");
    fence_all(false);
    if (client.me.rank != client.size - 1)
        check_end(heard);
    return client_pass("%u ranks", client.size);
}

/* ---- several jobs ---- */

static pmix_proc_t others[PARTS_MAX]; /* all jobs, mine too; wildcard ranks */

static void learn_names(void)
{
    put_u64(PMIX_GLOBAL, mix(client.me.rank), "connect.number");
    parts_meet(others, part, jobs);
}

static uint64_t number_of(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(proc, key, NULL, 0, &value);
    CHECK(status == PMIX_SUCCESS && value != NULL, "PMIx_Get of %s of %s rank %u: found %s", key,
          proc->nspace, proc->rank, PMIx_Error_string(status));
    uint64_t number = number_in(value, key);
    PMIX_VALUE_RELEASE(value);
    return number;
}

/* Each rank has put the numbers of its job. */
static void look_at(const pmix_proc_t *job, long of, const char *key)
{
    pmix_proc_t proc = *job;
    step("keys of %s", job->nspace);
    uint64_t n = number_of(job, PMIX_JOB_SIZE);
    for (proc.rank = 0; proc.rank < n; proc.rank++) {
        CHECK_EQ(number_of(&proc, "connect.number"), mix(proc.rank), "a committed number");
        CHECK_EQ(number_of(&proc, key), mix(proc.rank + (uint64_t)of), key);
    }
}

static void ask_status(const pmix_proc_t *job)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    pmix_status_t status;
    size_t n = 0;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_JOB_STATUS);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, job->nspace, PMIX_STRING);
    step("status of %s", job->nspace);
    status = PMIx_Query_info(&query, 1, &results, &n);
    CHECK_OK(status, "a job's status");
    PMIX_QUERY_DESTRUCT(&query);
    if (results != NULL)
        PMIX_INFO_FREE(results, n);
}

/* What a fence, or the construct of a group, brings of all jobs. */
static void share_numbers(long round, bool by_group)
{
    char key[64], id[64];
    snprintf(key, sizeof key, "connect.%s%ld", by_group ? "grouped" : "fenced", round);
    snprintf(id, sizeof id, "connect.%ld", round);
    put_u64(PMIX_GLOBAL, mix(client.me.rank + (uint64_t)part), "%s", key);
    commit();
    step("%s of all jobs", by_group ? "group" : "fence with data");
    if (by_group) {
        pmix_info_t *results = NULL, info;
        size_t n = 0;
        PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
        CHECK_OK(PMIx_Group_construct(id, others, (size_t)jobs, &info, 1, &results, &n),
                 "group of all jobs");
        if (results != NULL)
            PMIX_INFO_FREE(results, n);
    } else {
        fence_of(others, (size_t)jobs, true);
    }
    for (long j = 0; j < jobs; j++)
        look_at(&others[j], j, key);
    if (by_group)
        CHECK_OK(PMIx_Group_destruct(id, NULL, 0), "destruct of the group of all jobs");
}

static void send_events(void)
{
    const pmix_status_t code = EVENT_CODE(1);
    pmix_info_t info;
    struct listener *heard = listen_to(&code, 1, NULL, 0);
    step("fence before the events");
    fence_of(others, (size_t)jobs, false);
    if (client.me.rank == 0) {
        event_target(&info, others, (size_t)jobs);
        CHECK_OK(event_raise(code, PMIX_RANGE_CUSTOM, 1, &info, 1), "an event for all jobs");
    }
    step("events of all jobs");
    listen_wait(heard, code, PMIX_RANK_WILDCARD, (size_t)jobs);
    step("fence after the events");
    fence_of(others, (size_t)jobs, false);
    listen_end(heard);
}

static void connect_firsts(void)
{
    pmix_proc_t firsts[PARTS_MAX];
    for (long i = 0; i < jobs; i++) {
        firsts[i] = others[i];
        firsts[i].rank = 0;
    }
    if (client.me.rank == 0) {
        step("connect of the first ranks");
        CHECK_OK(connect_of(firsts, (size_t)jobs, 60), "connect of the first ranks");
        step("disconnect of the first ranks");
        CHECK_OK(PMIx_Disconnect(firsts, (size_t)jobs, NULL, 0), "disconnect of the first ranks");
    }
    fence_of(others, (size_t)jobs, false);
}

static void connect_nobody(void)
{
    pmix_proc_t pair[2] = {client.me, client.me};
    if (client.me.rank != 0)
        return;
    PMIX_LOAD_PROCID(&pair[1], "slurm.999999.0", PMIX_RANK_WILDCARD);
    step("connect to a name that no job has");
    CHECK_STATUS(connect_of(pair, 2, 60), PMIX_ERR_NOT_FOUND, "connect to a name that no job has");
}

/* A namespace may have the name of its cluster in front. */
static void connect_clusters(void)
{
    pmix_proc_t firsts[PARTS_MAX];
    char *cluster;
    if (client.me.rank != 0 ||
        try_get(PMIX_RANK_WILDCARD, PMIX_CLUSTER_ID, NULL, 0) != PMIX_SUCCESS)
        return;
    cluster = get_string(PMIX_RANK_WILDCARD, "%s", PMIX_CLUSTER_ID);
    for (int other = 0; other < 2; other++) {
        for (long i = 0; i < jobs; i++) {
            firsts[i] = others[i];
            firsts[i].rank = 0;
            if (i != part)
                snprintf(firsts[i].nspace, sizeof firsts[i].nspace, "%.60s:%.190s",
                         other ? "elsewhere" : cluster, others[i].nspace);
        }
        step("connect with %s in front", other ? "another cluster" : cluster);
        CHECK_STATUS(connect_of(firsts, (size_t)jobs, 60),
                     other ? PMIX_ERR_NOT_SUPPORTED : PMIX_SUCCESS, "connect of a cluster");
    }
    free(cluster);
}

static int run_jobs(void)
{
    learn_names();
    for (long i = 0; i < rounds; i++) {
        step("connect of all jobs");
        CHECK_OK(connect_of(others, (size_t)jobs, 60), "connect of all jobs");
        share_numbers(i, false);
        share_numbers(i, true);
        for (long j = 0; j < jobs; j++)
            ask_status(&others[j]);
        step("disconnect of all jobs");
        CHECK_OK(PMIx_Disconnect(others, (size_t)jobs, NULL, 0), "disconnect of all jobs");
    }
    send_events();
    connect_firsts();
    connect_nobody();
    connect_clusters();
    return client_pass("part %ld of %ld jobs", part, jobs);
}

/* Jobs that run at different times call at different times: each tries until all do. */
static int run_again(void)
{
    enum { TRY_S = 3, ALL_S = 90 };
    const char *count = getenv("SLURM_RESTART_COUNT");
    pmix_status_t status;
    int tries = 0;
    learn_names();
    if (part == 1 && count == NULL) {
        step("the end of the first run");
        for (;;)
            sleep_ms(1000);
    }
    if (part == 0) {
        step("connect with the first run");
        status = connect_of(others, (size_t)jobs, 0);
        CHECK(status != PMIX_SUCCESS, "connect with a job that ends: found success");
        printf("CONNECT ended: %s\n", PMIx_Error_string(status));
        fflush(stdout);
    }
    uint64_t end = now_ns() + ALL_S * 1000000000ull;
    do {
        sleep_ms(200);
        step("connect with the second run, try %d", ++tries);
        status = connect_of(others, (size_t)jobs, TRY_S);
    } while (status != PMIX_SUCCESS && now_ns() < end);
    CHECK_OK(status, "connect with the second run");
    CHECK_OK(PMIx_Disconnect(others, (size_t)jobs, NULL, 0), "disconnect from the second run");
    return client_pass("part %ld, at try %d", part, tries);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"mode", &mode, "what to do", "job|lost|jobs|rules|again"},
        {"jobs", &jobs, "jobs that connect", NULL},
        {"part", &part, "which of them this is", NULL},
        {"rounds", &rounds, "times that all connect", NULL},
        {NULL, NULL, NULL, NULL},
    };
    client_init("connect", options, argc, argv);
    if ((mode == JOBS || mode == AGAIN) && !parts_may_meet(jobs))
        return client_skip("CONNECT_MEET is not set, or there are more than %d jobs", PARTS_MAX);
    return mode == JOB     ? run_job()
           : mode == LOST  ? run_lost()
           : mode == RULES ? run_rules()
           : mode == JOBS  ? run_jobs()
                           : run_again();
}
