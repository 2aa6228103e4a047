/* SPDX-License-Identifier: BSD-3-Clause */
/* publish: processes of two jobs of one user find each other by published names.
 *
 * Run in each of two jobs, with --part 0 and --part 1 and one --run number for both. Each rank
 * publishes a value of its own, waits for those of all ranks of the other job, and looks at what
 * the host says of their publishers. Then ranges, persistence, duplicates, partial results, a
 * deadline, PMIX_WAIT with a number, bounds, and PMIx_Unpublish of all keys.
 *
 * With --stay N part 0 publishes and then waits until part 1 has published that it is done, while
 * part 1 looks the values up again and again for N ms: neither may miss one, whatever becomes of
 * the steps between them.
 *
 * With --alone 1 a job looks for what another user's job has published, and must not find it.
 */
#include "client.h"

#include <unistd.h>

static long part = 0, run = 0, others = 0, stay = 0, alone = 0, bound = 0;

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

/* Who publishes without end gets an error, and can go on once there is room again. */
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

/* Publishers and readers while the holder of all that changes. */
static void stay_on(void)
{
    char *done = strdup(key_of(1, 0, "done")), text[64];
    long n = 0;
    if (part == 0) {
        step("lookup of %s", done);
        CHECK_OK(find(done, "done", true), done);
    }
    for (uint64_t end = now_ns() + (uint64_t)stay * 1000000; part == 1 && now_ns() < end; n++)
        for (long rank = 0; rank < others; rank++) {
            const char *key = key_of(0, rank, "name");
            snprintf(text, sizeof text, "I am %ld of part 0", rank);
            step("lookup of %s for the %ldth time", key, n);
            CHECK_OK(find(key, text, false), key);
        }
    fence_all(false);
    if (part == 1 && client.me.rank == 0)
        publish(done, "done");
    if (part == 1 && client.me.rank == 0) { /* who is done first must not take it away */
        step("goodbye");
        CHECK_OK(find(key_of(0, 0, "bye"), "bye", true), "goodbye");
    }
    if (part == 0)
        fence_all(false);
    if (part == 0 && client.me.rank == 0)
        publish(key_of(0, 0, "bye"), "bye");
    free(done);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"part", &part, "which of the two jobs this is: 0 or 1", NULL},
        {"run", &run, "a number that both jobs have, and no other", NULL},
        {"others", &others, "ranks of the other job", NULL},
        {"stay", &stay, "ms for which values are looked up again and again", NULL},
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
