/* SPDX-License-Identifier: BSD-3-Clause */
/* pull: output of processes that nobody has spawned. Rank 0 pulls what its own step prints to
 * standard output, until it has read something of each other rank: libpmix gives no process its
 * own. Each piece has to name the rank that has printed it, and nothing of standard error comes
 * along. At the end it deregisters the pull: with a callback, or with --blocking 1 without one,
 * which libpmix before 6 does not survive each time (docs/limits.md).
 */
#include "client.h"

#include <pmix_tool.h>

#include <pthread.h>
#include <unistd.h>

enum { TURNS_MAX = 600, TURN_MS = 50, RANKS_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned heard[RANKS_MAX]; /* lines of each rank */
static char wrong[200];           /* the first that was wrong; empty: none */
static bool deregistered;

/* @thread libpmix's */
static void on_output(size_t handle, pmix_iof_channel_t channel, pmix_proc_t *source,
                      pmix_byte_object_t *payload, pmix_info_t info[], size_t ninfo)
{
    char text[256];
    unsigned rank;
    (void)handle, (void)info, (void)ninfo;
    if (payload == NULL || payload->bytes == NULL)
        return;
    size_t n = payload->size < sizeof text - 1 ? payload->size : sizeof text - 1;
    memcpy(text, payload->bytes, n);
    text[n] = '\0';
    pthread_mutex_lock(&lock);
    if (sscanf(text, "out %u", &rank) == 1 && rank == source->rank && rank < RANKS_MAX &&
        channel == PMIX_FWD_STDOUT_CHANNEL)
        heard[rank]++;
    else if (wrong[0] == '\0')
        snprintf(wrong, sizeof wrong, "of rank %u, channel %d: %.80s", source->rank, channel, text);
    pthread_mutex_unlock(&lock);
}

static bool has_heard_all(void)
{
    bool all = true;
    pthread_mutex_lock(&lock);
    for (pmix_rank_t rank = 1; rank < client.size; rank++)
        all &= heard[rank] > 0;
    CHECK(wrong[0] == '\0', "output %s", wrong);
    pthread_mutex_unlock(&lock);
    return all;
}

/* All print, and learn whether rank 0 has read enough. */
static bool turn(unsigned i)
{
    printf("out %u, turn %u\n", client.me.rank, i);
    fflush(stdout);
    fprintf(stderr, "err %u, turn %u\n", client.me.rank, i);
    sleep_ms(TURN_MS);
    if (client.me.rank == 0)
        put_u64(PMIX_GLOBAL, has_heard_all(), "pull.%u", i);
    commit();
    fence_all(true);
    return get_u64(0, "pull.%u", i) != 0;
}

/* @thread libpmix's */
static void on_deregistered(pmix_status_t status, void *arg)
{
    (void)status, (void)arg;
    pthread_mutex_lock(&lock);
    deregistered = true;
    pthread_mutex_unlock(&lock);
}

static void deregister(size_t handle, bool blocking)
{
    bool done = blocking;
    step("PMIx_IOF_deregister");
    pmix_status_t status =
        PMIx_IOF_deregister(handle, NULL, 0, blocking ? NULL : on_deregistered, NULL);
    printf("deregister: %d\n", status); /* libpmix before 6 answers anything: no check */
    for (unsigned i = 0; !done; i++) {
        CHECK(i < TURNS_MAX, "PMIx_IOF_deregister is not answered");
        sleep_ms(TURN_MS);
        pthread_mutex_lock(&lock);
        done = deregistered;
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv)
{
    long blocking = 0;
    pmix_status_t handle = 0;
    const struct option_number options[] = {
        {"blocking", &blocking, "the pull is deregistered without a callback: 1", NULL}, {0}};
    client_init("pull", options, argc, argv);
    CHECK(client.size <= RANKS_MAX, "at most %d ranks", RANKS_MAX);
    fence_all(false);
    step("PMIx_IOF_pull");
    if (client.me.rank == 0) {
        handle =
            PMIx_IOF_pull(&client.all, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, on_output, NULL, NULL);
        CHECK(handle >= 0, "PMIx_IOF_pull: %s", PMIx_Error_string(handle));
    }
    step("output");
    unsigned i = 0;
    while (!turn(i))
        CHECK(++i < TURNS_MAX, "output of each rank: not all in %d turns", TURNS_MAX);
    if (client.me.rank == 0)
        deregister((size_t)handle, blocking != 0);
    fence_all(false);
    return client_pass("output of %u ranks", client.size);
}
