/* SPDX-License-Identifier: BSD-3-Clause */
/* queries: what the host answers of the job, its processes and its nodes, and how it refuses the
 * rest. groups_query asks for groups and process sets. To be started without a program around it,
 * since the numbers of the processes are compared.
 */
#include "client.h"

#include <limits.h>
#include <unistd.h>

/* Keys that some releases' headers lack. */
#ifndef PMIX_QUERY_ALLOCATION
#define PMIX_QUERY_ALLOCATION "pmix.query.allc"
#endif
#ifndef PMIX_QUERY_RESOLVE_PEERS
#define PMIX_QUERY_RESOLVE_PEERS "pmix.qry.peers"
#define PMIX_QUERY_RESOLVE_NODE "pmix.qry.node"
#endif

enum { QUALIFIERS_MAX = 3 };

static long limit = -1;

/* What is asked about; up to three qualifiers. */
struct about {
    size_t n;
    pmix_info_t info[QUALIFIERS_MAX];
};

static const struct about nothing;

static struct about with(struct about about, const char *key, const void *value,
                         pmix_data_type_t type)
{
    PMIX_INFO_LOAD(&about.info[about.n], key, value, type);
    about.n++;
    return about;
}

static struct about of_job(const char *nspace)
{
    return with(nothing, PMIX_NSPACE, nspace, PMIX_STRING);
}

static struct about of_rank(pmix_rank_t rank)
{
    pmix_proc_t proc = proc_of(rank);
    return with(nothing, PMIX_PROCID, &proc, PMIX_PROC);
}

static struct {
    pmix_status_t status;
    pmix_info_t *infos;
    size_t n;
} found;

static void forget(void)
{
    if (found.infos != NULL)
        PMIX_INFO_FREE(found.infos, found.n);
    found.infos = NULL;
    found.n = 0;
}

/* Up to two keys of one query; the results are there until the next one. */
static pmix_status_t ask_two(const char *key, const char *other, struct about about)
{
    pmix_query_t query;
    pmix_status_t status;
    forget();
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, key);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    if (other != NULL)
        PMIX_ARGV_APPEND(status, query.keys, other);
    if (about.n > 0)
        PMIX_QUERY_QUALIFIERS_CREATE(&query, about.n);
    for (size_t i = 0; i < about.n; i++) {
        PMIX_INFO_XFER(&query.qualifiers[i], &about.info[i]);
        PMIX_INFO_DESTRUCT(&about.info[i]);
    }
    step("query of %s", key);
    found.status = PMIx_Query_info(&query, 1, &found.infos, &found.n);
    PMIX_QUERY_DESTRUCT(&query);
    return found.status;
}

/* The value of a key, which must be answered. */
static const pmix_value_t *ask(const char *key, struct about about, pmix_data_type_t type)
{
    CHECK_OK(ask_two(key, NULL, about), key);
    CHECK(found.n == 1 && PMIX_CHECK_KEY(&found.infos[0], key), "%s: expected one value, found %zu",
          key, found.n);
    CHECK(found.infos[0].value.type == type, "%s: expected %s, found %s", key,
          PMIx_Data_type_string(type), PMIx_Data_type_string(found.infos[0].value.type));
    return &found.infos[0].value;
}

static void refused(const char *key, struct about about, pmix_status_t status)
{
    CHECK_STATUS(ask_two(key, NULL, about), status, key);
    CHECK_EQ(found.n, 0, "values of a query that is refused");
}

/* An array of @p type, which must be there. */
static const pmix_data_array_t *ask_array(const char *key, struct about about,
                                          pmix_data_type_t type)
{
    const pmix_data_array_t *array = ask(key, about, PMIX_DATA_ARRAY)->data.darray;
    CHECK(array != NULL && array->type == type, "%s: expected an array of %s", key,
          PMIx_Data_type_string(type));
    return array;
}

/* The value of @p key in an array of pmix_info_t, or NULL. */
static const pmix_value_t *in(const pmix_data_array_t *array, const char *key)
{
    const pmix_info_t *info = array->array;
    for (size_t i = 0; array->type == PMIX_INFO && i < array->size; i++)
        if (PMIX_CHECK_KEY(&info[i], key))
            return &info[i].value;
    return NULL;
}

static bool is_listed(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static char *host_of(pmix_rank_t rank)
{
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    CHECK_OK(PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &value), "get of PMIX_HOSTNAME");
    char *name = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
    return name;
}

/* A reserved key of a process on another node that has put nothing: the get ends. No process puts
 * such a key, so there is nothing to wait for. */
static void check_reserved(void)
{
    char *here = host_of(client.me.rank);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        char *host = host_of(r);
        pmix_proc_t proc = proc_of(r);
        pmix_value_t *value = NULL;
        step("get of PMIX_LOCALITY_STRING of rank %u", r);
        if (strcmp(host, here) != 0)
            CHECK_STATUS(PMIx_Get(&proc, PMIX_LOCALITY_STRING, NULL, 0, &value), PMIX_ERR_NOT_FOUND,
                         "get of a reserved key of another node's process");
        free(host);
    }
    free(here);
    fence_all(false); /* so that nobody has put anything meanwhile */
}

/* ---- processes ---- */

static void check_row(const pmix_proc_info_t *row, pmix_rank_t rank)
{
    char program[PATH_MAX] = "", *host = host_of(rank);
    CHECK(row->proc.rank == rank && strcmp(row->proc.nspace, client.me.nspace) == 0,
          "table: expected rank %u of %s, found %u of %s", rank, client.me.nspace, row->proc.rank,
          row->proc.nspace);
    CHECK(row->hostname != NULL && strcmp(row->hostname, host) == 0,
          "table: expected rank %u on %s, found %s", rank, host, row->hostname);
    CHECK_EQ(row->pid, get_u64(rank, "queries.pid"), "pid in the table");
    CHECK_EQ(row->state, PMIX_PROC_STATE_CONNECTED, "state in the table");
    CHECK_EQ(row->exit_code, 0, "exit code in the table");
    CHECK(readlink("/proc/self/exe", program, sizeof program - 1) > 0, "readlink");
    CHECK(row->executable_name != NULL && strcmp(row->executable_name, program) == 0,
          "table: expected rank %u to run %s, found %s", rank, program, row->executable_name);
    free(host);
}

/* A launcher may tell of a process a moment after it has started it. */
static void await_pids(void)
{
    bool all = false;
    for (uint64_t end = now_ns() + 60000000000; !all && now_ns() < end; sleep_ms(all ? 0 : 20)) {
        const pmix_data_array_t *table =
            ask_array(PMIX_QUERY_PROC_TABLE, of_job(client.me.nspace), PMIX_PROC_INFO);
        all = true;
        for (size_t i = 0; i < table->size; i++)
            all = all && ((pmix_proc_info_t *)table->array)[i].pid != 0;
    }
}

static void check_tables(void)
{
    uint32_t here = 0;
    await_pids();
    char *host = host_of(client.me.rank);
    const pmix_data_array_t *table =
        ask_array(PMIX_QUERY_PROC_TABLE, of_job(client.me.nspace), PMIX_PROC_INFO);
    CHECK_EQ(table->size, client.size, "rows of the table");
    const pmix_proc_info_t *rows = table->array;
    for (pmix_rank_t r = 0; r < client.size; r++) {
        check_row(&rows[r], r);
        here += strcmp(rows[r].hostname, host) == 0;
    }
    table = ask_array(PMIX_QUERY_LOCAL_PROC_TABLE, of_job(client.me.nspace), PMIX_PROC_INFO);
    rows = table->array;
    CHECK_EQ(table->size, here, "rows of the local table");
    for (uint32_t i = 0; i < here; i++)
        check_row(&rows[i], rows[i].proc.rank);
    refused(PMIX_QUERY_PROC_TABLE, of_job("no.such.job"), PMIX_ERR_NOT_FOUND);
    refused(PMIX_QUERY_LOCAL_PROC_TABLE, of_job("no.such.job"), PMIX_ERR_NOT_FOUND);
    free(host);
}

static void check_processes(void)
{
    pmix_rank_t last = client.size - 1;
    struct about by_name = with(of_job(client.me.nspace), PMIX_RANK, &last, PMIX_PROC_RANK);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        CHECK_EQ(ask(PMIX_PROC_PID, of_rank(r), PMIX_PID)->data.pid, get_u64(r, "queries.pid"),
                 PMIX_PROC_PID);
        CHECK_EQ(ask(PMIX_PROC_STATE_STATUS, of_rank(r), PMIX_PROC_STATE)->data.state,
                 PMIX_PROC_STATE_CONNECTED, PMIX_PROC_STATE_STATUS);
    }
    CHECK_EQ(ask(PMIX_PROC_PID, by_name, PMIX_PID)->data.pid, get_u64(last, "queries.pid"),
             "PMIX_PROC_PID by PMIX_NSPACE and PMIX_RANK");
    refused(PMIX_PROC_PID, with(of_rank(last), PMIX_NSPACE, client.me.nspace, PMIX_STRING),
            PMIX_ERR_BAD_PARAM);
    refused(PMIX_PROC_PID, of_rank(client.size), PMIX_ERR_NOT_FOUND);
}

/* ---- the job ---- */

static void check_command(const pmix_data_array_t *jobs)
{
    const pmix_info_t *job = jobs->array;
    size_t mine = 0;
    for (size_t i = 0; i < jobs->size; i++) {
        CHECK(PMIX_CHECK_KEY(&job[i], PMIX_QUERY_NAMESPACE_INFO) &&
                  job[i].value.type == PMIX_DATA_ARRAY,
              "namespaces: expected arrays, found %s", PMIx_Data_type_string(job[i].value.type));
        const pmix_value_t *name = in(job[i].value.data.darray, PMIX_NSPACE),
                           *line = in(job[i].value.data.darray, PMIX_CMD_LINE);
        CHECK(name != NULL && name->type == PMIX_STRING, "namespaces: expected a name");
        if (strcmp(name->data.string, client.me.nspace) != 0)
            continue;
        mine++;
        CHECK(line != NULL && line->type == PMIX_STRING &&
                  strstr(line->data.string, client.name) != NULL,
              "command line: expected %s in it, found %s", client.name,
              line != NULL ? line->data.string : "none");
    }
    CHECK_EQ(mine, 1, "times that my namespace is described");
}

static void check_job(void)
{
    const char *mine = client.me.nspace;
    CHECK(is_listed(ask(PMIX_QUERY_NAMESPACES, nothing, PMIX_STRING)->data.string, mine),
          "namespaces: expected %s among them", mine);
    check_command(ask_array(PMIX_QUERY_NAMESPACE_INFO, nothing, PMIX_INFO));
    const pmix_data_array_t *jobs = ask_array(PMIX_QUERY_NAMESPACE_INFO, of_job(mine), PMIX_INFO);
    CHECK_EQ(jobs->size, 1, "namespaces described when one is named");
    check_command(jobs);
    refused(PMIX_QUERY_NAMESPACE_INFO, of_job("no.such.job"), PMIX_ERR_NOT_FOUND);
    CHECK_OK(ask(PMIX_QUERY_JOB_STATUS, of_job(mine), PMIX_STATUS)->data.status,
             "the job's status");
    refused(PMIX_QUERY_JOB_STATUS, of_job("no.such.job"), PMIX_ERR_NOT_FOUND);
}

/* ---- nodes ---- */

static double mib(const pmix_value_t *value, const char *what)
{
    CHECK(value != NULL && value->type == PMIX_FLOAT, "%s: expected a number, found none", what);
    CHECK(value->data.fval > 0.1 && value->data.fval < 1e6, "%s: expected MiB, found %g", what,
          value->data.fval);
    return value->data.fval;
}

static void check_memory(const char *host)
{
    struct about there = with(nothing, PMIX_HOSTNAME, host, PMIX_STRING);
    const pmix_data_array_t *array = ask_array(PMIX_QUERY_MEMORY_USAGE, there, PMIX_INFO);
    const pmix_value_t *name = in(array, PMIX_HOSTNAME);
    CHECK(name != NULL && strcmp(name->data.string, host) == 0, "memory: expected that of %s",
          host);
    mib(in(array, PMIX_DAEMON_MEMORY), "the server's memory");
    mib(in(array, PMIX_CLIENT_AVG_MEMORY), "the tasks' memory");
    there = with(nothing, PMIX_HOSTNAME, host, PMIX_STRING);
    mib(ask(PMIX_DAEMON_MEMORY, there, PMIX_FLOAT), PMIX_DAEMON_MEMORY);
    there = with(nothing, PMIX_HOSTNAME, host, PMIX_STRING);
    mib(ask(PMIX_CLIENT_AVG_MEMORY, there, PMIX_FLOAT), PMIX_CLIENT_AVG_MEMORY);
}

static void check_nodes(const char *host)
{
    struct about peers = with(of_job(client.me.nspace), PMIX_HOSTNAME, host, PMIX_STRING);
    bool there = false;
    const char *nodes =
        ask(PMIX_QUERY_RESOLVE_NODE, of_job(client.me.nspace), PMIX_STRING)->data.string;
    CHECK(is_listed(nodes, host), "nodes of the job: expected %s, found %s", host, nodes);
    const pmix_data_array_t *array = ask_array(PMIX_QUERY_RESOLVE_PEERS, peers, PMIX_PROC);
    const pmix_proc_t *procs = array->array;
    for (size_t i = 0; i < array->size; i++)
        there |= procs[i].rank == client.size - 1;
    CHECK(there, "processes on %s: expected rank %u among them", host, client.size - 1);
    pmix_status_t status = ask_two(PMIX_QUERY_ALLOCATION, NULL, nothing);
    if (status == PMIX_ERR_NOT_FOUND) /* the resource manager has not told */
        return;
    there = false;
    array = ask_array(PMIX_QUERY_ALLOCATION, nothing, PMIX_INFO);
    for (size_t i = 0; i < array->size; i++) {
        const pmix_info_t *node = &((pmix_info_t *)array->array)[i];
        const pmix_value_t *name = in(node->value.data.darray, PMIX_HOSTNAME);
        there |= name != NULL && strcmp(name->data.string, host) == 0;
    }
    CHECK(there, "nodes of the allocation: expected %s among them", host);
    const char *text = ask(PMIX_QUERY_ALLOC_STATUS, nothing, PMIX_STRING)->data.string;
    CHECK(strstr(text, host) != NULL, "%s: expected %s in it", text, host);
    refused(PMIX_QUERY_ALLOCATION, with(nothing, PMIX_ALLOC_ID, "no.such", PMIX_STRING),
            PMIX_ERR_NOT_FOUND);
}

/* The resource manager may not tell. */
static void check_time(void)
{
    if (limit == 0) {
        refused(PMIX_TIME_REMAINING, nothing, PMIX_ERR_NOT_FOUND);
    } else if (limit > 0) {
        long left = ask(PMIX_TIME_REMAINING, nothing, PMIX_UINT32)->data.uint32;
        CHECK(left > 0 && left <= limit, "time that is left: expected 1 to %ld s, found %ld", limit,
              left);
    }
    refused(PMIX_TIME_REMAINING, with(nothing, PMIX_NSPACE, "no.such", PMIX_STRING),
            PMIX_ERR_NOT_FOUND);
}

/* ---- what is not answered ---- */

static void check_refused(void)
{
    static const char *const keys[] = {PMIX_QUERY_QUEUE_LIST, PMIX_QUERY_QUEUE_STATUS,
                                       PMIX_QUERY_AUTHORIZATIONS, "no.such.key"};
    uint32_t number = 1;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        refused(keys[i], nothing, PMIX_ERR_NOT_SUPPORTED);
    refused(PMIX_QUERY_GROUP_MEMBERSHIP, with(nothing, PMIX_GROUP_ID, &number, PMIX_UINT32),
            PMIX_ERR_BAD_PARAM);
    refused(PMIX_QUERY_GROUP_MEMBERSHIP, nothing, PMIX_ERR_NOT_FOUND);
    CHECK_STATUS(ask_two(PMIX_QUERY_NUM_GROUPS, "no.such.key", nothing), PMIX_ERR_PARTIAL_SUCCESS,
                 "a query of which one key is known");
    /* libpmix 4.2's client drops what comes with this status. */
    CHECK_EQ(found.n, LIBPMIX >= 50000, "values of a query of which one key is known");
}

static void check_help(void)
{
    const char *const known[] = {PMIX_QUERY_NAMESPACE_INFO, PMIX_QUERY_PROC_TABLE,
                                 PMIX_QUERY_NUM_GROUPS, PMIX_QUERY_SUPPORTED_KEYS};
    const char *list = ask(PMIX_QUERY_SUPPORTED_KEYS, nothing, PMIX_STRING)->data.string;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(is_listed(list, known[i]), "supported keys: expected %s, found %s", known[i], list);
    CHECK(!is_listed(list, PMIX_QUERY_QUEUE_LIST), "supported keys: expected no queues");
    list = ask(PMIX_QUERY_DEBUG_SUPPORT, nothing, PMIX_STRING)->data.string;
    CHECK(is_listed(list, PMIX_DEBUG_STOP_IN_INIT), "debug support: found %s", list);
    list = ask(PMIX_QUERY_SPAWN_SUPPORT, nothing, PMIX_STRING)->data.string;
    CHECK(is_listed(list, PMIX_MAPBY), "spawn support: found %s", list);
    bool yes = true;
    list = ask(PMIX_QUERY_GROUP_MEMBERSHIP,
               with(nothing, PMIX_QUERY_SUPPORTED_QUALIFIERS, &yes, PMIX_BOOL), PMIX_STRING)
               ->data.string;
    CHECK(is_listed(list, PMIX_GROUP_ID), "qualifiers: expected PMIX_GROUP_ID, found %s", list);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"limit", &limit, "seconds that the job may run; 0: for ever, -1: not known", NULL}, {0}};
    client_init("queries", options, argc, argv);
    check_reserved();
    put_u64(PMIX_GLOBAL, (uint64_t)getpid(), "queries.pid");
    commit();
    fence_all(true);
    char *host = host_of(client.size - 1);
    check_tables();
    check_processes();
    check_job();
    check_memory(host);
    check_nodes(host);
    check_time();
    check_refused();
    check_help();
    forget();
    free(host);
    step("last fence");
    fence_all(false);
    return client_pass("%u ranks have their queries answered", client.size);
}
