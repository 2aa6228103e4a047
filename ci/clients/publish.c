/* SPDX-License-Identifier: BSD-3-Clause */
/* publish: processes of two jobs of one user find each other by published names.
 *
 * Run in each of two jobs, with --part 0 and --part 1 and one --run number for both. Each rank
 * publishes a value of its own, waits for those of all ranks of the other job, and looks at what
 * the host says of their publishers. Then ranges, persistence, duplicates, partial results, a
 * deadline, PMIX_WAIT with a number, bounds, and PMIx_Unpublish of all keys.
 *
 * With --stay N both look the values up again and again for N ms, and make groups of all their
 * processes, while part 0 waits for a value that part 1 publishes at the end: neither may miss one,
 * and no context id may come twice, whatever becomes of the steps between them. With --late N a
 * value may be missing for N s, as while there are two holders.
 *
 * With --alone 1 a job looks for what another user's job has published, and must not find it.
 */
#include "group.h"

#include <pthread.h>

enum { PACE_MS = 250 };

static pmix_nspace_t other; /* the other job's namespace */
static long part = 0, run = 0, others = 0, stay = 0, alone = 0, bound = 0, late = 0;

static char *key_of(long of, long rank, const char *what)
{
    static char key[PMIX_MAX_KEYLEN];
    snprintf(key, sizeof key, "pub.%ld.%ld.%ld.%s", run, of, rank, what);
    return key;
}

static pmix_status_t publish_with(const char *key, const char *text, pmix_data_range_t range,
                                  pmix_persistence_t life)
{
    pmix_info_t info[3];
    PMIX_INFO_LOAD(&info[0], key, text, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[2], PMIX_PERSISTENCE, &life, PMIX_PERSIST);
    pmix_status_t rc = PMIx_Publish(info, 3);
    for (int i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    return rc;
}

static void publish(const char *key, const char *text)
{
    CHECK_OK(publish_with(key, text, PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION), key);
}

/* @param wait 0: it does not; else that many keys @param seconds 0: none */
static pmix_status_t lookup(pmix_pdata_t *data, size_t n, int wait, int seconds)
{
    pmix_info_t info[2];
    size_t ninfo = 0;
    if (wait > 0)
        PMIX_INFO_LOAD(&info[ninfo++], PMIX_WAIT, &wait, PMIX_INT);
    if (seconds > 0)
        PMIX_INFO_LOAD(&info[ninfo++], PMIX_TIMEOUT, &seconds, PMIX_INT);
    return PMIx_Lookup(data, n, ninfo > 0 ? info : NULL, ninfo);
}

/* @return whether it was found, and says @p text */
static pmix_status_t find(const char *key, const char *text, bool wait)
{
    pmix_pdata_t data;
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    pmix_status_t rc = lookup(&data, 1, wait, wait ? 60 : 0);
    if (rc == PMIX_SUCCESS)
        CHECK(data.value.type == PMIX_STRING && strcmp(data.value.data.string, text) == 0,
              "%s: expected %s, found type %d %s", key, text, data.value.type,
              data.value.type == PMIX_STRING ? data.value.data.string : "");
    PMIX_PDATA_DESTRUCT(&data);
    return rc;
}

/* Values of all ranks of the other job, and where they are. */
static void meet_all(void)
{
    const bool yes = true;
    pmix_info_t now; /* as MPI libraries do: else libpmix 7 looks within the client only */
    PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    for (long rank = 0; rank < others; rank++) {
        pmix_pdata_t data;
        char text[64];
        pmix_value_t *value = NULL;
        PMIX_PDATA_CONSTRUCT(&data);
        PMIX_LOAD_KEY(data.key, key_of(1 - part, rank, "name"));
        step("lookup of %s", data.key);
        CHECK_OK(lookup(&data, 1, 1, 60), data.key);
        snprintf(text, sizeof text, "I am %ld of part %ld", rank, 1 - part);
        CHECK(data.value.type == PMIX_STRING && strcmp(data.value.data.string, text) == 0,
              "%s: expected %s", data.key, text);
        CHECK_EQ(data.proc.rank, rank, "the publisher's rank");
        CHECK(strcmp(data.proc.nspace, client.me.nspace) != 0, "the publisher's namespace is ours");
        pmix_proc_t all;
        PMIX_LOAD_PROCID(&all, data.proc.nspace, PMIX_RANK_WILDCARD);
        PMIX_LOAD_NSPACE(other, data.proc.nspace);
        CHECK_OK(PMIx_Get(&all, PMIX_JOB_SIZE, &now, 1, &value), "the size of its job");
        CHECK_EQ(value->data.uint32, others, "the size of its job");
        PMIX_VALUE_RELEASE(value);
        PMIX_PDATA_DESTRUCT(&data);
    }
}

static void ranges(void)
{
    char *key = strdup(key_of(9, 0, "range"));
    step("ranges");
    if (client.me.rank == 0) /* each job has one of that name */
        CHECK_OK(publish_with(key, part ? "one" : "nought", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_APP),
                 "publish in the namespace");
    CHECK_OK(find(key, part ? "one" : "nought", true), "lookup in the namespace");
    free(key);
    key = strdup(key_of(part, client.me.rank, "own"));
    CHECK_OK(publish_with(key, "mine", PMIX_RANGE_PROC_LOCAL, PMIX_PERSIST_PROC), "for itself");
    CHECK_OK(find(key, "mine", false), "lookup of one's own");
    fence_all(false);
    if (client.size > 1) {
        char *next = key_of(part, (client.me.rank + 1) % client.size, "own");
        CHECK_STATUS(find(next, "", false), PMIX_ERR_NOT_FOUND, "another rank's own");
    }
    free(key);
}

/* Open MPI 5.0.7 looks names up with whatever its memory has for a range. */
static void no_range(void)
{
    const pmix_data_range_t none = 103;
    pmix_info_t info;
    pmix_pdata_t data;
    step("a range that there is not");
    PMIX_INFO_LOAD(&info, PMIX_RANGE, &none, PMIX_DATA_RANGE);
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key_of(part, client.me.rank, "name"));
    CHECK_OK(PMIx_Lookup(&data, 1, &info, 1), data.key);
    PMIX_PDATA_DESTRUCT(&data);
}

static void once(void)
{
    char *key = strdup(key_of(part, client.me.rank, "once"));
    step("first read");
    CHECK_OK(publish_with(key, "once", PMIX_RANGE_SESSION, PMIX_PERSIST_FIRST_READ), "publish");
    CHECK_STATUS(publish_with(key, "twice", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION),
                 PMIX_ERR_DUPLICATE_KEY, "a key that is there already");
    CHECK_OK(find(key, "once", false), "first read");
    CHECK_STATUS(find(key, "once", false), PMIX_ERR_NOT_FOUND, "second read");
    CHECK_OK(publish_with(key, "again", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION), "anew");
    CHECK_OK(find(key, "again", false), "what was published anew");
    char *const keys[] = {key, NULL};
    CHECK_OK(PMIx_Unpublish((char **)keys, NULL, 0), "unpublish");
    CHECK_STATUS(find(key, "", false), PMIX_ERR_NOT_FOUND, "what was unpublished");
    free(key);
}

/* One key is there and one is not. */
static void partly(void)
{
    pmix_pdata_t data[2];
    char *key = strdup(key_of(part, client.me.rank, "part"));
    step("partial results");
    publish(key, "here");
    for (int i = 0; i < 2; i++) {
        PMIX_PDATA_CONSTRUCT(&data[i]);
        PMIX_LOAD_KEY(data[i].key, i ? key : "pub.nowhere");
    }
    pmix_status_t rc = lookup(data, 2, 0, 0);
    CHECK(rc == PMIX_SUCCESS || rc == PMIX_ERR_PARTIAL_SUCCESS, "one of two: found %s",
          PMIx_Error_string(rc));
    CHECK_EQ(data[0].value.type, PMIX_UNDEF, "the type of what is not there");
    CHECK(data[1].value.type == PMIX_STRING && strcmp(data[1].value.data.string, "here") == 0,
          "what is there has type %d", data[1].value.type);
    PMIX_PDATA_DESTRUCT(&data[1]);
    PMIX_PDATA_CONSTRUCT(&data[1]);
    PMIX_LOAD_KEY(data[1].key, key);
    rc = lookup(data, 2, 1, 60);
    CHECK(rc == PMIX_SUCCESS || rc == PMIX_ERR_PARTIAL_SUCCESS, "wait for one of two: found %s",
          PMIx_Error_string(rc));
    uint64_t begin = now_ns();
    rc = lookup(data, 2, 2, 1);
    CHECK_STATUS(rc, PMIX_ERR_TIMEOUT, "wait for both");
    CHECK(now_ns() - begin > 900000000, "a deadline of one second passed early");
    PMIX_PDATA_DESTRUCT(&data[1]);
    free(key);
}

/* A process that publishes without end gets an error, and can go on once there is room again. */
static void bounds(void)
{
    enum { BIG = 600000 };
    char *text = malloc(BIG + 1);
    pmix_status_t rc = PMIX_SUCCESS;
    int n = 0;
    step("bounds");
    memset(text, 'x', BIG);
    text[BIG] = '\0';
    for (; rc == PMIX_SUCCESS && n < 100; n++)
        rc = publish_with(key_of(part, n, "big"), text, PMIX_RANGE_SESSION, PMIX_PERSIST_PROC);
    CHECK_STATUS(rc, PMIX_ERR_OUT_OF_RESOURCE, "too much");
    CHECK(n > 4, "there is room for %d only", n);
    free(text);
    CHECK_OK(PMIx_Unpublish(NULL, NULL, 0), "unpublish of all");
    CHECK_STATUS(find(key_of(part, 0, "big"), "", false), PMIX_ERR_NOT_FOUND, "after that");
    CHECK_OK(publish_with(key_of(part, 0, "big"), "x", PMIX_RANGE_SESSION, PMIX_PERSIST_PROC),
             "when there is room again");
}

static void look_for_all(long n)
{
    char text[64];
    for (long rank = 0; rank < others; rank++) {
        const char *key = key_of(1 - part, rank, "name");
        snprintf(text, sizeof text, "I am %ld of part %ld", rank, 1 - part);
        step("lookup of %s for the %ldth time", key, n);
        uint64_t end = now_ns() + (uint64_t)late * 1000000000;
        pmix_status_t rc;
        while ((rc = find(key, text, false)) == PMIX_ERR_NOT_FOUND && now_ns() < end)
            sleep_ms(PACE_MS);
        CHECK_OK(rc, key);
    }
}

/* @return the context id of a group of all processes of both jobs */
static uint64_t construct(long n)
{
    struct group_result result;
    char id[48];
    size_t size = client.size + (size_t)others, at = 0;
    pmix_proc_t *all = calloc(size, sizeof *all);
    for (long k = 0; k < 2; k++) /* in one order everywhere */
        for (size_t rank = 0; rank < (k == part ? client.size : (size_t)others); rank++, at++)
            PMIX_LOAD_PROCID(&all[at], k == part ? client.me.nspace : other, (pmix_rank_t)rank);
    snprintf(id, sizeof id, "pub.%ld.%ld", run, n);
    step("construct of %s", id);
    group_construct(id, all, size, &result);
    uint64_t context = result.context;
    step("destruct of %s", id);
    group_destruct(id);
    group_result_free(&result);
    free(all);
    return context;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool answered;
static pmix_status_t found;

static void on_found(pmix_status_t status, pmix_pdata_t data[], size_t n, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    found = status == PMIX_SUCCESS && (n != 1 || strcmp(data[0].value.data.string, "done") != 0)
                ? PMIX_ERR_BAD_PARAM
                : status;
    answered = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
}

static void await_found(const char *key)
{
    step("%s, for which we have waited all the time", key);
    pthread_mutex_lock(&lock);
    while (!answered)
        pthread_cond_wait(&cond, &lock); /* the watchdog bounds it */
    CHECK_OK(found, key);
    pthread_mutex_unlock(&lock);
}

/* Publishers and readers while the holder of all that changes. */
static void stay_on(void)
{
    const bool yes = true;
    const long rounds = stay / PACE_MS;
    char *done = strdup(key_of(1, 0, "done")), *keys[] = {done, NULL};
    uint64_t *contexts = calloc((size_t)rounds + 1, sizeof *contexts);
    pmix_info_t wait;
    PMIX_INFO_LOAD(&wait, PMIX_WAIT, &yes, PMIX_BOOL);
    if (part == 0)
        CHECK_OK(PMIx_Lookup_nb(keys, &wait, 1, on_found, NULL), done);
    for (long n = 0; n < rounds; n++) {
        look_for_all(n);
        contexts[n] = construct(n);
        if (part == 0 && client.me.rank == 0)
            printf("CONTEXT %llu\n", (unsigned long long)contexts[n]);
        sleep_ms(PACE_MS);
    }
    group_check_distinct(contexts, (size_t)rounds);
    fence_all(false);
    if (part == 1 && client.me.rank == 0)
        publish(done, "done");
    if (part == 0)
        await_found(done);
    if (part == 1 && client.me.rank == 0) { /* who is done first must not take it away */
        step("goodbye");
        CHECK_OK(find(key_of(0, 0, "bye"), "bye", true), "goodbye");
    }
    if (part == 0)
        fence_all(false);
    if (part == 0 && client.me.rank == 0)
        publish(key_of(0, 0, "bye"), "bye");
    free(contexts);
    free(done);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"part", &part, "which of the two jobs this is: 0 or 1", NULL},
        {"run", &run, "a number that both jobs have, and no other", NULL},
        {"others", &others, "ranks of the other job", NULL},
        {"stay", &stay, "ms for which values are looked up, and groups made, again and again",
         NULL},
        {"late", &late, "s for which a value may be missing then", NULL},
        {"bound", &bound, "1: publish until there is no room", NULL},
        {"alone", &alone, "1: nothing of the other job is to be found", NULL},
        {NULL, NULL, NULL, NULL},
    };
    char text[64];
    client_init("publish", options, argc, argv);
    if (alone) {
        for (long rank = 0; rank < others; rank++)
            CHECK_STATUS(find(key_of(1 - part, rank, "name"), "", false), PMIX_ERR_NOT_FOUND,
                         "what another user has published");
        return client_pass("nothing of %ld ranks was found", others);
    }
    snprintf(text, sizeof text, "I am %u of part %ld", client.me.rank, part);
    step("publish");
    publish(key_of(part, client.me.rank, "name"), text);
    meet_all();
    if (stay == 0) {
        ranges();
        no_range();
        once();
        partly();
    } else {
        stay_on();
    }
    if (bound && client.me.rank == 0)
        bounds();
    fence_all(false);
    return client_pass("%u ranks of part %ld found those of the other job", client.size, part);
}
