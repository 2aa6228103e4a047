/* SPDX-License-Identifier: BSD-3-Clause */
/* grow: a program that grows. Rank 0 asks for nodes (PMIx_Allocation_request), starts a process on
 * each of them (PMIx_Spawn), and gives the nodes back when these have ended. docs/grow.md has it
 * for readers. --what has parts of that, and requests that are refused. */
#include "spawned.h"

#include <unistd.h>

enum { TEXT_MAX = 1024, INFOS_MAX = 4 };

static const char *program;
static long nodes = 1, cpus, seconds = 3600, timeout = 60, shrinks = 1;

/* What an answer has. */
struct answer {
    char id[TEXT_MAX], request[TEXT_MAX], list[TEXT_MAX];
    uint64_t nnodes, ncpus;
};

static void take_text(const pmix_info_t *info, const char *key, char *to)
{
    if (PMIX_CHECK_KEY(info, key) && info->value.type == PMIX_STRING)
        snprintf(to, TEXT_MAX, "%s", info->value.data.string);
}

static pmix_status_t request(pmix_alloc_directive_t directive, pmix_info_t *info, size_t n,
                             struct answer *answer)
{
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    *answer = (struct answer){.nnodes = 0};
    pmix_status_t rc = PMIx_Allocation_request(directive, info, n, &results, &nresults);
    for (size_t i = 0; i < nresults; i++) {
        take_text(&results[i], PMIX_ALLOC_ID, answer->id);
        take_text(&results[i], PMIX_ALLOC_REQ_ID, answer->request);
        take_text(&results[i], PMIX_ALLOC_NODE_LIST, answer->list);
        if (PMIX_CHECK_KEY(&results[i], PMIX_ALLOC_NUM_NODES))
            answer->nnodes = number_in(&results[i].value, PMIX_ALLOC_NUM_NODES);
        if (PMIX_CHECK_KEY(&results[i], PMIX_ALLOC_NUM_CPUS))
            answer->ncpus = number_in(&results[i].value, PMIX_ALLOC_NUM_CPUS);
    }
    if (results != NULL)
        PMIX_INFO_FREE(results, nresults);
    printf("ANSWER %s %s\n", PMIx_Error_string(rc), answer->list);
    fflush(stdout);
    return rc;
}

/* ---- more nodes ---- */

static pmix_status_t extend(struct answer *answer)
{
    pmix_info_t info[INFOS_MAX];
    uint64_t nnodes = (uint64_t)nodes, ncpus = (uint64_t)cpus;
    uint32_t wait = (uint32_t)timeout;
    size_t n = 0;
    PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_REQ_ID, "more", PMIX_STRING);
    n++;
    PMIX_INFO_LOAD(&info[n], PMIX_TIMEOUT, &wait, PMIX_UINT32);
    n++;
    if (nodes > 0) {
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_NUM_NODES, &nnodes, PMIX_UINT64);
        n++;
    }
    if (cpus > 0) {
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_NUM_CPUS, &ncpus, PMIX_UINT64);
        n++;
    }
    return request(PMIX_ALLOC_EXTEND, info, n, answer);
}

static pmix_status_t release(const char *list)
{
    struct answer answer;
    pmix_info_t info[1];
    PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_NODE_LIST, list, PMIX_STRING);
    pmix_status_t rc = request(PMIX_ALLOC_RELEASE, info, 1, &answer);
    if (rc == PMIX_SUCCESS)
        CHECK(strcmp(answer.list, list) == 0, "nodes given back: expected %s, found %s", list,
              answer.list);
    return rc;
}

/* The allocation's nodes by now are said to have the list, or not to. */
static void check_status(const char *list, bool there)
{
    pmix_query_t *query;
    pmix_info_t *results = NULL;
    size_t n = 0;
    PMIX_QUERY_CREATE(query, 1);
    spawned_append(&query->keys, PMIX_QUERY_ALLOC_STATUS);
    CHECK_OK(PMIx_Query_info(query, 1, &results, &n), PMIX_QUERY_ALLOC_STATUS);
    CHECK(n == 1 && results[0].value.type == PMIX_STRING, "%zu results", n);
    const char *text = results[0].value.data.string;
    CHECK((strstr(text, list) != NULL) == there, "the allocation is \"%s\"; %s %s", text,
          there ? "expected among them" : "not expected any more", list);
    PMIX_INFO_FREE(results, n);
    PMIX_QUERY_FREE(query, 1);
}

/* ---- processes there ---- */

static int child(void)
{
    pmix_proc_t me;
    char host[TEXT_MAX] = "";
    pmix_pdata_t go;
    pmix_info_t info[1];
    bool yes = true;
    client.name = "grow's child";
    CHECK_OK(PMIx_Init(&me, NULL, 0), "PMIx_Init of the child");
    client.me = me;
    CHECK_OK(PMIx_Fence(NULL, 0, NULL, 0), "PMIx_Fence of the children");
    gethostname(host, sizeof host - 1);
    printf("CHILD %u on %s\n", me.rank, host);
    fflush(stdout);
    PMIX_PDATA_CONSTRUCT(&go);
    PMIX_LOAD_KEY(go.key, "grow.go");
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Lookup(&go, 1, info, 1), "PMIx_Lookup, until the parent lets us go");
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize of the child");
    return 0;
}

/* @param hosts NULL: where processors are free */
static void spawn(int n, const char *hosts, char *nspace)
{
    pmix_app_t app;
    pmix_info_t info[2];
    bool yes = true;
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(program);
    app.maxprocs = n;
    spawned_append(&app.argv, program);
    spawned_append(&app.argv, "--child");
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_HOST, hosts, PMIX_STRING);
    CHECK_OK(PMIx_Spawn(info, hosts != NULL ? 2 : 1, &app, 1, nspace), "PMIx_Spawn");
    PMIX_APP_DESTRUCT(&app);
}

static void let_go(void)
{
    pmix_info_t info[1];
    PMIX_INFO_LOAD(&info[0], "grow.go", "yes", PMIX_STRING);
    CHECK_OK(PMIx_Publish(info, 1), "PMIx_Publish");
}

static void grow(void)
{
    struct answer more;
    pmix_nspace_t there, anywhere;
    pmix_status_t rc;
    step("a request for %ld nodes", nodes);
    CHECK_OK(extend(&more), "PMIX_ALLOC_EXTEND");
    CHECK_EQ(more.nnodes, nodes, "new nodes");
    CHECK(strcmp(more.request, "more") == 0 && more.id[0] != '\0' && more.ncpus >= more.nnodes,
          "request \"%s\", id \"%s\", %llu processors", more.request, more.id,
          (unsigned long long)more.ncpus);
    check_status(more.list, true);
    step("a spawn where no step is");
    spawn(1, NULL, anywhere);
    step("a spawn on %s", more.list);
    spawn((int)nodes, more.list, there);
    step("a release of %s, where processes run", more.list);
    CHECK_STATUS(release(more.list), PMIX_ERR_RESOURCE_BUSY, "PMIX_ALLOC_RELEASE");
    let_go();
    CHECK_EQ(spawned_end(there), 0, "exit code of what was spawned");
    step("a release of %s, once the other one has ended, too", more.list);
    while ((rc = release(more.list)) == PMIX_ERR_RESOURCE_BUSY)
        sleep_ms(50);
    CHECK_STATUS(rc, shrinks ? PMIX_SUCCESS : PMIX_ERR_NO_PERMISSIONS, "PMIX_ALLOC_RELEASE");
    check_status(more.list, !shrinks);
}

/* ---- refused ---- */

static pmix_status_t ask_time(uint32_t limit)
{
    struct answer answer;
    pmix_info_t info[1];
#if PMIX_VERSION_MAJOR < 5
    PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_TIME, &limit, PMIX_UINT32);
#else
    char text[32];
    snprintf(text, sizeof text, "%u:00", limit / 60);
    PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_TIME, text, PMIX_STRING);
#endif
    return request(PMIX_ALLOC_EXTEND, info, 1, &answer);
}

/* What makes no sense, or is not served, is refused by name. */
static void wrong(void)
{
    struct answer answer;
    pmix_info_t info[2];
    uint64_t one = 1;
    uint32_t limit = 60;
    char here[TEXT_MAX] = "";
    gethostname(here, sizeof here - 1);
    PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_NUM_NODES, &one, PMIX_UINT64);
    PMIX_INFO_LOAD(&info[1], PMIX_ALLOC_TIME, &limit, PMIX_UINT32);
    CHECK_STATUS(request(PMIX_ALLOC_NEW, info, 1, &answer), PMIX_ERR_NOT_SUPPORTED,
                 "PMIX_ALLOC_NEW");
    CHECK_STATUS(request(PMIX_ALLOC_EXTEND, info, 2, &answer), PMIX_ERR_BAD_PARAM,
                 "nodes and time");
    CHECK_STATUS(release(here), PMIX_ERR_RESOURCE_BUSY, "a release of the own node");
    CHECK_STATUS(release("nowhere"), PMIX_ERR_BAD_PARAM, "a release of no node of the job");
}

int main(int argc, char **argv)
{
    static long what;
    static const struct option_number options[] = {
        {"nodes", &nodes, "nodes that are asked for", NULL},
        {"cpus", &cpus, "processors that are asked for", NULL},
        {"limit", &seconds, "seconds, of --what time", NULL},
        {"wait", &timeout, "PMIX_TIMEOUT of the request", NULL},
        {"shrinks", &shrinks, "0: nodes cannot be given back here", NULL},
        {"what", &what, "what is asked for", "grow|extend|time|wrong"},
        {NULL},
    };
    if (argc == 2 && strcmp(argv[1], "--child") == 0)
        return child();
    char self[TEXT_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    program = self;
    client_init("grow", options, argc, argv);
    spawned_watch();
    struct answer answer;
    if (client.me.rank == 0 && what == 0)
        grow();
    else if (client.me.rank == 0 && what == 1)
        extend(&answer);
    else if (client.me.rank == 0 && what == 2)
        ask_time((uint32_t)seconds);
    else if (client.me.rank == 0)
        wrong();
    fence_all(false);
    return client_pass("done");
}
