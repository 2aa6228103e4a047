/* SPDX-License-Identifier: BSD-3-Clause */
/* modex: direct modex. Every rank gets every rank's keys with no fence before, in different orders,
 * from ranks of which one commits late; a key that comes with a later commit is waited for; and a
 * key that nobody put, and a namespace that there is not, end with an error in time.
 */
#include "client.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool answer_came;
static pmix_status_t answer;

static long rounds = 3, bytes = 1000, late_ms = 300, timeout = 2, grace = 60, unknown = 0;

/* libpmix 4.2.2: a get from a rank of the same node that has not committed now and then ends with
 * NOT_FOUND, under any host, when it comes while the ranks start. */
#define LIBRARY_WAITS_FOR_COMMIT (LIBPMIX >= 50000)

enum order { FORWARD, BACKWARD, SHUFFLED, ORDERS };

static pmix_rank_t nth(enum order order, pmix_rank_t i, long round)
{
    const pmix_rank_t n = client.size;
    switch (order) {
    case FORWARD:
        return i;
    case BACKWARD:
        return n - 1 - i;
    default: /* an own start on each rank; a stride of n - 1 or 1 visits all */
        return (pmix_rank_t)((mix(client.me.rank + (uint64_t)round) + (uint64_t)i * (n - 1)) % n);
    }
}

static void put_round(long round, unsigned char *blob)
{
    memset(blob, (int)(client.me.rank + round), (size_t)bytes);
    put_u64(PMIX_GLOBAL, mix(client.me.rank + (uint64_t)round), "m%ld.number", round);
    put_bytes(PMIX_GLOBAL, blob, (size_t)bytes, "m%ld.blob", round);
    commit();
}

static void get_round(long round, unsigned char *blob)
{
    enum order order = (enum order)((client.me.rank + round) % ORDERS);
    for (pmix_rank_t i = 0; i < client.size; i++) {
        pmix_rank_t rank = order == SHUFFLED && client.size < 2 ? i : nth(order, i, round);
        step("round %ld, direct get of rank %u", round, rank);
        CHECK_EQ(get_u64(rank, "m%ld.number", round), mix(rank + (uint64_t)round), "number");
        unsigned char *found = get_bytes(rank, (size_t)bytes, "m%ld.blob", round);
        memset(blob, (int)(rank + round), (size_t)bytes);
        CHECK(!memcmp(found, blob, (size_t)bytes), "%ld bytes of rank %u: found others", bytes,
              rank);
        free(found);
    }
}

static void got(pmix_status_t status, pmix_value_t *value, void *arg)
{
    pthread_mutex_lock(&lock);
    answer_came = true;
    answer = status;
    if (status == PMIX_SUCCESS)
        *(uint64_t *)arg = number_in(value, "the key that was waited for");
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&lock);
}

/* Rank 0 has committed, but not the key that ranks of other nodes ask it for: the host waits for
 * that (PMIX_REQUIRED_KEY). Ranks of its own node do not ask: there it is libpmix that waits. */
static void check_awaited(void)
{
    pmix_proc_t target = proc_of(0);
    pmix_info_t info;
    uint64_t number = 0;
    int seconds = 60;
    const uint64_t *node = nodes_of_ranks();
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    bool asks = node[client.me.rank] != node[0];
    step("get of a key that is not there yet");
    if (asks)
        CHECK_OK(PMIx_Get_nb(&target, "m.later", &info, 1, got, &number), "PMIx_Get_nb");
    fence_all(false);
    if (client.me.rank == 0) {
        put_u64(PMIX_GLOBAL, mix(0), "m.later");
        commit();
    }
    if (!asks)
        return;
    pthread_mutex_lock(&lock);
    while (!answer_came)
        pthread_cond_wait(&answered, &lock);
    pthread_mutex_unlock(&lock);
    CHECK_OK(answer, "get of a key that is not there yet");
    CHECK_EQ(number, mix(0), "the key that was waited for");
}

/* A directive that is a flag makes the get of a key that nobody put fail at once. */
static void check_absent_with(const char *directive)
{
    pmix_info_t info;
    bool yes = true;
    PMIX_INFO_LOAD(&info, directive, &yes, PMIX_BOOL);
    for (pmix_rank_t rank = 0; rank < client.size; rank++) {
        uint64_t begin = now_ns();
        step("get of an absent key of rank %u with %s", rank, directive);
        pmix_status_t status = try_get(rank, "m.nobody-put-this", &info, 1);
        CHECK(status == PMIX_ERR_NOT_FOUND,
              "absent key of rank %u with %s: expected NOT_FOUND, "
              "found %s",
              rank, directive, PMIx_Error_string(status));
        CHECK(now_ns() - begin < (uint64_t)grace * 1000000000u,
              "absent key of rank %u with %s: expected an answer at once, found %llu ms", rank,
              directive, (unsigned long long)(now_ns() - begin) / 1000000u);
    }
    PMIX_INFO_DESTRUCT(&info);
}

/* A key of local scope is not found on another node, and that without anybody giving a deadline. */
static void check_local_scope(void)
{
    const uint64_t *node = nodes_of_ranks();
    pmix_rank_t rank = (client.me.rank + client.size / 2) % client.size;
    step("get of a key of local scope of rank %u", rank);
    put_u64(PMIX_LOCAL, mix(client.me.rank), "m.local");
    commit();
    fence_all(false);
    pmix_status_t status = try_get(rank, "m.local", NULL, 0);
    CHECK_STATUS(status, node[rank] == node[client.me.rank] ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND,
                 "get of a key of local scope");
}

/* With PMIX_TIMEOUT: the library may know at once that there is no such key, or wait. */
static void check_absent_in_time(pmix_rank_t rank)
{
    pmix_info_t info;
    int seconds = (int)timeout;
    uint64_t begin = now_ns();
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    step("get of an absent key of rank %u with PMIX_TIMEOUT %d", rank, seconds);
    pmix_status_t status = try_get(rank, "m.nor-this", &info, 1);
    CHECK(status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT,
          "absent key of rank %u with PMIX_TIMEOUT: expected NOT_FOUND or TIMEOUT, found %s", rank,
          PMIx_Error_string(status));
    CHECK(now_ns() - begin < (uint64_t)(timeout + grace) * 1000000000u,
          "absent key of rank %u: expected an answer in %ld s, found %llu ms", rank,
          timeout + grace, (unsigned long long)(now_ns() - begin) / 1000000u);
    PMIX_INFO_DESTRUCT(&info);
}

/* libpmix itself waits for ever the second time, where the host was not quick to say no. */
static void check_unknown_namespace(void)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, "no-such-namespace", 0);
    for (long i = 0; i < unknown; i++) {
        step("get %ld of a namespace that there is not", i + 1);
        CHECK_STATUS(PMIx_Get(&proc, "m.number", NULL, 0, &value), PMIX_ERR_NOT_FOUND,
                     "get of a namespace that there is not");
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"rounds", &rounds, "rounds with new keys", NULL},
        {"bytes", &bytes, "bytes of a rank's blob", NULL},
        {"late", &late_ms, "ms by which one rank commits late", NULL},
        {"timeout", &timeout, "PMIX_TIMEOUT of the get of an absent key, s", NULL},
        {"grace", &grace, "how long an answer may take beyond that, s", NULL},
        {"unknown", &unknown, "gets of a namespace that there is not", NULL},
        {0}};
    client_init("modex", options, argc, argv);
    unsigned char *blob = malloc((size_t)bytes + 1);
    for (long round = 0; round < rounds; round++) {
        /* In the first round the request comes before the commit: the host has to hold it. */
        if (round == 0 && client.me.rank == client.size - 1)
            sleep_ms(late_ms);
        step("round %ld, commit", round);
        put_round(round, blob);
        /* Later the process has committed before; only a barrier says that it has again. */
        if (round > 0 || !LIBRARY_WAITS_FOR_COMMIT)
            fence_all(false);
        get_round(round, blob);
    }
    free(blob);
    check_awaited();
    check_local_scope();
    /* libpmix asks once for all gets of a process, with the directives of the first. */
    step("fence");
    fence_all(false);
    check_absent_with(PMIX_OPTIONAL);
    check_absent_with(PMIX_IMMEDIATE);
    /* Else a get with a deadline could be part of another one's, which has none. */
    step("fence before the gets with a deadline");
    fence_all(false);
    check_absent_in_time((client.me.rank + 1) % client.size);
    check_absent_in_time((client.me.rank + client.size / 2) % client.size);
    check_unknown_namespace();
    step("last fence"); /* nobody leaves while others still ask for its data */
    fence_all(false);
    return client_pass("%ld rounds of direct gets among %u ranks; absent keys end in time", rounds,
                       client.size);
}
