/* SPDX-License-Identifier: BSD-3-Clause */
/* departed: what is asked of, or said to, processes that have finalized and ended in order.
 *
 * By default, a get of what a process never puts ends when that process has finalized, both when it
 * was asked before and when it is asked after. Nobody gives a deadline, and the process has
 * committed nothing, so that libpmix itself would wait for it.
 *
 * The asker is on another node than the target, and the target's node has another process that
 * stays, so that somebody can answer.
 *
 * The others are about whole nodes that have been left, to which nothing was ever sent. --how
 * event: rank 0 raises an event for all, as the last thing that it does. get: rank 0 asks for a key
 * of the last rank. cancel: rank 0 makes a group with a process that there is not, which libpmix 7
 * ends itself by its deadline, and tells all nodes of it. group: all but the last rank make a group
 * of all, while that one finalizes. late: the same, and the rank before it calls when the others
 * have failed. fence: likewise with a fence over all. last: all but the last rank finalize at the
 * same moment, so that their servers leave together, and then the last one makes a group of all.
 */
#include "client.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool done;
static pmix_status_t found;

static void got(pmix_status_t status, pmix_value_t *value, void *arg)
{
    (void)value, (void)arg;
    pthread_mutex_lock(&lock);
    done = true;
    found = status;
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&lock);
}

enum how { STAYS, EVENT, GET, CANCEL, GROUP, LATE, FENCE, LAST };

enum {
    TOGETHER_MS = 300,
    LEAVE_MS = 2000, /* until the others' servers have left: a shorter time tests less */
    ABORTS_FROM = 70000,
    SOME_KNOW_FROM = 50000,
    SOON_S = 60, /* less than timeouts.peer of who starts it, even on a busy machine */
};

static long how = STAYS;

static pmix_status_t construct(size_t n, int timeout)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    pmix_proc_t *procs = calloc(n, sizeof *procs);
    for (pmix_rank_t r = 0; r < n; r++)
        procs[r] = proc_of(r);
    if (n > client.size) /* libpmix 7 refuses a rank of our own that there is not */
        PMIX_LOAD_PROCID(&procs[client.size], "departed.nobody", 0);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout, PMIX_INT);
    pmix_status_t status =
        PMIx_Group_construct("departed", procs, n, &info, timeout > 0, &results, &nresults);
    free(procs);
    return status;
}

/* What rank 0 does when the others have left. */
static void do_alone(void)
{
    if (how == EVENT)
        CHECK_OK(PMIx_Notify_event(PMIX_ERR_NOT_AVAILABLE, &client.me, PMIX_RANGE_NAMESPACE, NULL,
                                   0, NULL, NULL),
                 "PMIx_Notify_event");
    else
        CHECK(try_get(client.size - 1, "departed.never", NULL, 0) != PMIX_SUCCESS,
              "a get of what was never put succeeded");
}

static void check_group(void)
{
    pmix_status_t status = construct(client.size, 0);
    CHECK_STATUS(status,
                 LIBPMIX < ABORTS_FROM ? PMIX_ERR_PROC_TERM_WO_SYNC : PMIX_GROUP_CONSTRUCT_ABORT,
                 "PMIx_Group_construct");
}

/* From 5.0 to 6.1 libpmix lets only one process of each node know that a fence has failed. */
static void check_fence(void)
{
    pmix_status_t status = PMIx_Fence(NULL, 0, NULL, 0);
    if (LIBPMIX < SOME_KNOW_FROM || LIBPMIX >= ABORTS_FROM)
        CHECK_STATUS(status, PMIX_ERR_PROC_TERM_WO_SYNC, "PMIx_Fence");
}

static int of_whole_nodes(void)
{
    uint64_t begin = now_ns();
    bool last = client.me.rank == client.size - 1,
         groups = how == GROUP || how == LATE || how == FENCE;
    step("--how %ld", how);
    if (how == CANCEL) {
        pmix_status_t status = client.me.rank == 0 ? construct(client.size + 1, 2) : PMIX_ERROR;
        CHECK(status != PMIX_SUCCESS, "a construct with nobody succeeded");
        CHECK(client.me.rank != 0 || LIBPMIX < ABORTS_FROM || status == PMIX_ERR_TIMEOUT,
              "expected that libpmix ends it, found %s", PMIx_Error_string(status));
        return client_pass("the others have ended long ago");
    }
    if (how == LAST)
        sleep_ms(last ? LEAVE_MS : TOGETHER_MS);
    if (how == LAST && last)
        check_group();
    if (how != LAST && (groups ? last : client.me.rank == 0))
        sleep_ms(LEAVE_MS);
    if ((how == LATE || how == FENCE) && client.me.rank == client.size - 2)
        sleep_ms(2 * LEAVE_MS);
    if (how == FENCE && !last)
        check_fence();
    else if (groups && !last)
        check_group();
    else if (!groups && how != LAST && client.me.rank == 0)
        do_alone();
    CHECK(now_ns() < begin + SOON_S * 1000000000ull, "it took %.1f s",
          (double)(now_ns() - begin) / 1e9);
    return client_pass("it took %.1f s", (double)(now_ns() - begin) / 1e9);
}

/* Two ranks of different nodes, of which @p target's has another one. @return whether there are */
static bool choose(pmix_rank_t *asker, pmix_rank_t *target)
{
    char **node = calloc(client.size, sizeof *node);
    for (pmix_rank_t r = 0; r < client.size; r++)
        node[r] = get_string(r, PMIX_HOSTNAME);
    for (*target = 1; *target < client.size; ++*target)
        for (*asker = 0; *asker < client.size; ++*asker)
            for (pmix_rank_t r = 0; strcmp(node[*asker], node[*target]) && r < client.size; r++)
                if (r != *target && !strcmp(node[r], node[*target]))
                    return true;
    return false;
}

/* All but the target. */
static void fence_rest(pmix_rank_t target)
{
    pmix_proc_t *rest = calloc(client.size, sizeof *rest);
    size_t n = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (r != target)
            rest[n++] = proc_of(r);
    fence_of(rest, n, false);
    free(rest);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"how", &how, "is tested", "stays|event|get|cancel|group|late|fence|last"}, {0}};
    pmix_rank_t asker, target;
    client_init("departed", options, argc, argv);
    if (how != STAYS)
        return of_whole_nodes();
    if (!choose(&asker, &target))
        return client_skip("it takes two nodes, and two ranks on one of them");
    pmix_proc_t gone = proc_of(target);
    if (client.me.rank == asker)
        CHECK_OK(PMIx_Get_nb(&gone, "departed.never", NULL, 0, got, NULL), "PMIx_Get_nb");
    fence_all(false);
    if (client.me.rank == target)
        return client_pass("the target has left");
    if (client.me.rank == asker) {
        step("get that was asked before the target finalized");
        pthread_mutex_lock(&lock);
        while (!done)
            pthread_cond_wait(&answered, &lock);
        pthread_mutex_unlock(&lock);
        CHECK_STATUS(found, PMIX_ERR_NOT_FOUND, "get that was asked before");
        step("get of a process that has finalized");
        CHECK_STATUS(try_get(target, "departed.never", NULL, 0), PMIX_ERR_NOT_FOUND,
                     "get that is asked after");
    }
    fence_rest(target);
    return client_pass("rank %u was told that rank %u is gone", asker, target);
}
