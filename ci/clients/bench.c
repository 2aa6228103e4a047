/* SPDX-License-Identifier: BSD-3-Clause */
/* bench: how long PMIx's operations take, for ci/bench.
 *
 * One operation after the other is done in some rounds, each after an empty fence that aligns the
 * ranks. Fences of data put the same key again, because a rank's data is all that it has put: so
 * small ones come after large ones, and keys that stay come last. A round counts with its slowest
 * rank; an event, with rank 0, who waits for the answer. Rank 0 prints a line for each: "BENCH
 * operation median p90", in µs. And whether an empty fence waits for a late rank: "BENCH barrier 0"
 * or 1. It does not in all hosts and settings, and then its time is that of no fence.
 *
 * With --fat, for many ranks on one node: "served-cpu" and "served-wakes" are what the processes
 * that serve them take for an empty fence, µs and times; "served-memory" what they have at the end,
 * KB.
 */
#include "event.h"
#include "group.h"
#include "served.h"

#include <unistd.h>

enum { MANY = 32, LATE_MS = 20, ASKED = 1, ANSWERED = 2 };

static long rounds = 50, warmup = 5, large = 0, fences = 1, modex = 0, groups = 0, many = 0,
            added = 0, bootstrap = 0, events = 0, fat = 0, spawns = 0;
static pmix_proc_t *everybody;
static char *blob;
static struct listener *listener;
static long now; /* the round; negative ones warm up */

static uint64_t fence_with(size_t bytes)
{
    if (bytes > 0) {
        put_bytes(PMIX_GLOBAL, blob, bytes, "bench");
        commit();
    }
    fence_all(false);
    uint64_t begin = now_ns();
    fence_all(bytes > 0);
    return now_ns() - begin;
}

static uint64_t fence_empty(void)
{
    return fence_with(0);
}

static uint64_t fence_64(void)
{
    return fence_with(64);
}

static uint64_t fence_1k(void)
{
    return fence_with(1024);
}

static uint64_t fence_64k(void)
{
    return fence_with(65536);
}

static uint64_t fence_1m(void)
{
    return fence_with(1 << 20);
}

/* A key of a rank that, where there are several nodes, is on another one. */
static uint64_t get_one(void)
{
    pmix_rank_t rank = (client.me.rank + client.size / 2) % client.size;
    put_u64(PMIX_GLOBAL, (uint64_t)now + 1000, "bench.modex.%ld", now);
    commit();
    fence_all(false);
    uint64_t begin = now_ns();
    CHECK_EQ(get_u64(rank, "bench.modex.%ld", now), now + 1000, "direct modex");
    return now_ns() - begin;
}

/* One key of each rank, by each rank. */
static uint64_t get_all(void)
{
    put_u64(PMIX_GLOBAL, (uint64_t)now + 1000, "bench.gets.%ld", now);
    commit();
    fence_all(true);
    uint64_t begin = now_ns();
    for (pmix_rank_t r = 0; r < client.size; r++)
        CHECK_EQ(get_u64(r, "bench.gets.%ld", now), now + 1000, "a key of a rank");
    return now_ns() - begin;
}

/* Rank 0 starts a process that calls PMIx_Init and PMIx_Finalize: until PMIx_Spawn returns. */
static uint64_t spawn_one(void)
{
    pmix_nspace_t nspace;
    pmix_app_t app;
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "start");
    char *name = memrchr(path, '/', n > 0 ? (size_t)n : 0);
    fence_all(false);
    if (client.me.rank != 0)
        return 0;
    CHECK(name != NULL, "the program's path: expected one, found none");
    strcpy(name + 1, "start");
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(path);
    app.maxprocs = 1;
    app.argv = calloc(2, sizeof *app.argv);
    app.argv[0] = strdup(path);
    uint64_t begin = now_ns();
    CHECK_OK(PMIx_Spawn(NULL, 0, &app, 1, nspace), "PMIx_Spawn");
    begin = now_ns() - begin;
    PMIX_APP_DESTRUCT(&app);
    return begin;
}

static uint64_t spawn_first(void)
{
    static bool done;
    uint64_t time = done ? 0 : spawn_one();
    done = true;
    return time;
}

static uint64_t construct(void)
{
    struct group_result result;
    char id[32];
    snprintf(id, sizeof id, "bench.%ld", now);
    fence_all(false);
    uint64_t begin = now_ns();
    group_construct(id, everybody, client.size, &result);
    begin = now_ns() - begin;
    group_result_free(&result);
    return begin;
}

/* Of the group that construct() has made in that round. */
static uint64_t destruct(void)
{
    char id[32];
    snprintf(id, sizeof id, "bench.%ld", now);
    fence_all(false);
    uint64_t begin = now_ns();
    group_destruct(id);
    return now_ns() - begin;
}

static uint64_t construct_many(void)
{
    struct group_call calls[MANY];
    char id[32];
    fence_all(false);
    uint64_t begin = now_ns();
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "bench.many.%d", i);
        group_begin(&calls[i], id, everybody, client.size, (struct group_ask){0});
    }
    for (int i = 0; i < MANY; i++)
        CHECK_OK(group_end(&calls[i]), "one of many constructs");
    begin = now_ns() - begin;
    for (int i = 0; i < MANY; i++) {
        group_result_free(&calls[i].result);
        snprintf(id, sizeof id, "bench.many.%d", i);
        group_destruct(id);
    }
    return begin;
}

/* One construct, timed, and its destruct, not timed. */
static uint64_t form(const char *id, const pmix_proc_t *members, size_t n, struct group_ask ask)
{
    struct group_call call;
    fence_all(false);
    uint64_t begin = now_ns();
    group_run(&call, id, members, n, ask, PMIX_SUCCESS);
    begin = now_ns() - begin;
    group_result_free(&call.result);
    fence_all(false);
    group_destruct(id);
    return begin;
}

/* The first half of the ranks leads; the first of them adds the other half. */
static uint64_t construct_added(void)
{
    pmix_rank_t half = (client.size + 1) / 2;
    bool leads = client.me.rank < half, adds = client.me.rank == 0;
    struct group_ask ask = {.added = adds ? everybody + half : NULL,
                            .nadded = adds ? client.size - half : 0};
    return form("bench.added", everybody, leads ? half : 0, ask);
}

static uint64_t construct_bootstrap(void)
{
    return form("bench.boot", &client.me, 1, (struct group_ask){.leaders = client.size});
}

/* Rank 0 asks all, the last rank answers. */
static uint64_t event_and_back(void)
{
    static size_t n;
    pmix_rank_t last = client.size - 1;
    fence_all(false);
    uint64_t begin = now_ns();
    n++;
    if (client.me.rank == 0)
        event_post(EVENT_CODE(ASKED), PMIX_RANGE_NAMESPACE, n);
    if (client.me.rank == last) {
        listen_wait(listener, EVENT_CODE(ASKED), 0, n);
        event_post(EVENT_CODE(ANSWERED), PMIX_RANGE_NAMESPACE, n);
    }
    if (client.me.rank == 0)
        listen_wait(listener, EVENT_CODE(ANSWERED), last, n);
    return client.me.rank == 0 ? now_ns() - begin : 0;
}

static struct op {
    const char *name;
    uint64_t (*run)(void);
    const long *wanted;
    long every; /* rounds */
} ops[] = {
    {"fence-1M", fence_1m, &large, 10},
    {"fence-64K", fence_64k, &fences, 1},
    {"fence-1K", fence_1k, &fences, 1},
    {"fence-64", fence_64, &fences, 1},
    {"fence", fence_empty, &fences, 1},
    {"fence", fence_empty, &fat, 1},
    {"gets", get_all, &fat, 10},
    {"spawn-first", spawn_first, &spawns, 1},
    {"spawn", spawn_one, &spawns, 1},
    {"modex", get_one, &modex, 1},
    {"construct", construct, &groups, 1},
    {"destruct", destruct, &groups, 1},
    {"construct-32", construct_many, &many, 10},
    {"construct-added", construct_added, &added, 2},
    {"construct-bootstrap", construct_bootstrap, &bootstrap, 2},
    {"event", event_and_back, &events, 3},
};

enum { OPS = sizeof ops / sizeof *ops };

/* @return whether an empty fence has waited for the last rank, to rank 0 */
static bool is_barrier(void)
{
    fence_all(true);
    uint64_t begin = now_ns();
    if (client.me.rank == client.size - 1)
        sleep_ms(LATE_MS);
    fence_all(false);
    begin = now_ns() - begin;
    fence_all(true);
    return begin > LATE_MS * 1000000ull / 2;
}

/* What the servers take for an empty fence, to rank 0. */
static void measure_served(void)
{
    struct served before = {0}, after = {0};
    fence_all(false);
    if (client.me.rank == 0)
        before = served_now();
    for (now = 0; now < rounds; now++) {
        step("round %ld, served", now);
        fence_all(false);
    }
    if (client.me.rank == 0)
        after = served_now();
    fence_all(false);
    if (client.me.rank != 0)
        return;
    printf("BENCH served-cpu %.1f 0\n",
           (double)(after.cpu_ns - before.cpu_ns) / 1e3 / (double)rounds);
    printf("BENCH served-wakes %.1f 0\n", (double)(after.wakes - before.wakes) / (double)rounds);
    printf("BENCH served-memory %lu 0\n", (unsigned long)after.own_kb);
}

/* Replaces each of rank 0's times by the slowest rank's. */
static void gather_slowest(uint64_t *times, size_t n)
{
    step("gathering of the times");
    put_bytes(PMIX_GLOBAL, times, n * sizeof *times, "bench.times");
    commit();
    fence_all(true);
    for (pmix_rank_t r = 0; client.me.rank == 0 && r < client.size; r++) {
        uint64_t *theirs = get_bytes(r, n * sizeof *theirs, "bench.times");
        for (size_t i = 0; i < n; i++)
            times[i] = theirs[i] > times[i] ? theirs[i] : times[i];
        free(theirs);
    }
}

/* @param row the times of a round in which it was not done are 0 */
static void print_op(const char *name, uint64_t *row)
{
    size_t n = 0;
    for (long i = 0; i < rounds; i++)
        if (row[i] > 0)
            row[n++] = row[i];
    qsort(row, n, sizeof *row, compare_u64);
    if (n > 0)
        printf("BENCH %s %.1f %.1f\n", name, (double)row[n / 2] / 1e3,
               (double)row[n * 9 / 10] / 1e3);
}

static void measure(uint64_t *times)
{
    for (int i = 0; i < OPS; i++)
        for (now = -warmup; now < rounds; now++) {
            const struct op *op = &ops[i];
            if (*op->wanted == 0 || now % op->every != 0)
                continue;
            step("round %ld, %s", now, op->name);
            uint64_t time = op->run();
            if (now >= 0)
                times[i * rounds + now] = time;
        }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"rounds", &rounds, "rounds that count", NULL},
        {"warmup", &warmup, "rounds before", NULL},
        {"fences", &fences, "0: none", NULL},
        {"large", &large, "1: fences of 1 MiB a rank", NULL},
        {"modex", &modex, "1: direct modex", NULL},
        {"groups", &groups, "1: construct and destruct", NULL},
        {"many", &many, "1: 32 constructs at once", NULL},
        {"added", &added, "1: constructs with added members", NULL},
        {"bootstrap", &bootstrap, "1: constructs of the bootstrap method", NULL},
        {"events", &events, "1: an event and its answer", NULL},
        {"fat", &fat, "1: empty fences, gets of all by all, and what the servers of the node take",
         NULL},
        {"spawns", &spawns, "1: spawns", NULL},
        {0}};
    const pmix_status_t codes[] = {EVENT_CODE(ASKED), EVENT_CODE(ANSWERED)};
    client_init("bench", options, argc, argv);
    CHECK(rounds > 0 && warmup >= 0, "options: expected no negative ones");
    uint64_t *times = calloc((size_t)rounds * OPS, sizeof *times);
    everybody = calloc(client.size, sizeof *everybody);
    blob = calloc(1, 1 << 20);
    for (pmix_rank_t r = 0; r < client.size; r++)
        everybody[r] = proc_of(r);
    if (events && client.size > 1)
        listener = listen_to(codes, 2, NULL, 0);
    else
        events = 0;
    bool barrier = is_barrier();
    measure(times);
    if (fat)
        measure_served();
    gather_slowest(times, (size_t)rounds * OPS);
    if (client.me.rank == 0) {
        printf("LIBRARY %s\n", PMIx_Get_version());
        printf("BENCH barrier %d\n", client.size < 2 || barrier);
        for (int i = 0; i < OPS; i++)
            print_op(ops[i].name, times + (size_t)i * (size_t)rounds);
    }
    if (listener != NULL)
        listen_end(listener);
    free(times);
    free(everybody);
    free(blob);
    return client_pass("%ld rounds", rounds);
}
