/* departed: a get of what a process never puts ends when that process has finalized, both when it
 * was asked before and when it is asked after. Nobody gives a deadline, and the process has
 * committed nothing, so that libpmix itself would wait for it.
 *
 * The asker is on another node than the target, and the target's node has another process that
 * stays, so that somebody can answer.
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
    pmix_rank_t asker, target;
    client_init("departed", NULL, argc, argv);
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
