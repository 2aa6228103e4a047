/* SPDX-License-Identifier: BSD-3-Clause */
/* statuses: an operation that lacks a lost process has one status, for all who call it and whenever
 * they do. Needs a host that lets the job go on ("on_task_loss": "continue"), and two ranks a node.
 *
 * Rank 0 calls a fence, a connect, or a destruct, and then has rank 1, of its node, end itself. So
 * libpmix hands up rank 0's call because of the loss. The others call when they have been told of
 * it, and all get the status of a process that has ended. From then on a fence over all fails so,
 * too.
 */
#include "event.h"
#include "group.h"

enum { FENCE, CONNECT, DESTRUCT };
enum { SURVIVOR, VICTIM };
enum {
    HANDS_UP_FROM = 70000,
    SOME_KNOW_FROM = 50000, /* until 7 one process of each node alone is told that a fence fails */
};
#define GO EVENT_CODE(0)

static long op = FENCE;
static pmix_proc_t *procs;
static struct group_call call; /* of rank 0 */

static void on_done(pmix_status_t status, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&call.lock);
    call.done = true;
    call.status = status;
    pthread_cond_signal(&call.answered);
    pthread_mutex_unlock(&call.lock);
}

static void start(void)
{
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.answered, NULL);
    CHECK_OK(op == FENCE     ? PMIx_Fence_nb(procs, client.size, NULL, 0, on_done, NULL)
             : op == CONNECT ? PMIx_Connect_nb(procs, client.size, NULL, 0, on_done, NULL)
                             : PMIx_Group_destruct_nb("statuses", NULL, 0, on_done, NULL),
             "the call of rank 0");
}

static pmix_status_t finish(void)
{
    pthread_mutex_lock(&call.lock);
    while (!call.done)
        pthread_cond_wait(&call.answered, &call.lock);
    pthread_mutex_unlock(&call.lock);
    return call.status;
}

static pmix_status_t late(void)
{
    return op == FENCE     ? PMIx_Fence(procs, client.size, NULL, 0)
           : op == CONNECT ? PMIx_Connect(procs, client.size, NULL, 0)
                           : PMIx_Group_destruct("statuses", NULL, 0);
}

static void check(pmix_status_t status, const char *what, bool is_fence)
{
    bool some_know = is_fence && LIBPMIX >= SOME_KNOW_FROM && LIBPMIX < HANDS_UP_FROM;
    if (status != PMIX_SUCCESS || !some_know || client.me.rank == SURVIVOR)
        CHECK_STATUS(status, PMIX_ERR_PROC_TERM_WO_SYNC, what);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"op", &op, "lacks one", "fence|connect|destruct"},
                                            {0}};
    const pmix_status_t lost = PMIX_ERR_PROC_TERM_WO_SYNC, go = GO;
    struct group_result result = {0};
    client_init("statuses", options, argc, argv);
    if (op == DESTRUCT && LIBPMIX < HANDS_UP_FROM)
        return client_skip("libpmix hands it up from 7 on");
    procs = calloc(client.size, sizeof *procs);
    for (pmix_rank_t r = 0; r < client.size; r++)
        procs[r] = proc_of(r);
    struct listener *losses = listen_to(&lost, 1, NULL, 0), *goes = listen_to(&go, 1, NULL, 0);
    if (op == DESTRUCT)
        group_construct("statuses", procs, client.size, &result);
    fence_all(false);
    if (client.me.rank == VICTIM) {
        listen_wait(goes, GO, SURVIVOR, 1);
        client_die();
    }
    if (client.me.rank == SURVIVOR) {
        pmix_info_t target;
        start(); /* libpmix's server has it before the event */
        event_target(&target, &procs[VICTIM], 1);
        CHECK_OK(event_raise(GO, PMIX_RANGE_CUSTOM, 1, &target, 1), "PMIx_Notify_event");
        PMIX_INFO_DESTRUCT(&target);
    }
    step("the word of the loss");
    listen_wait(losses, lost, PMIX_RANK_WILDCARD, 1);
    step("the operation that lacks one");
    check(client.me.rank == SURVIVOR ? finish() : late(), "what lacks a process", op == FENCE);
    step("a fence over all");
    check(PMIx_Fence(NULL, 0, NULL, 0), "a fence over all", true);
    group_result_free(&result);
    return client_pass("%u ranks got one status", client.size - 1);
}
