/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives memory back once clients have connected.
 *
 * For the first client libpmix makes a list of all that it has registered, several KiB for each
 * process of the step, copies that to memory which clients share, and frees the list. The C library
 * would keep it. The client's request comes after client_connected(), so libpmix is given a moment,
 * and then asked for a value: it answers on its own thread, after what it is at.
 */
#include "common/nspace/register.h"
#include "common/upcall/upcall.h"

#include <pmix.h>

enum { SETTLE_MS = 500 /* from the last client that has come */ };

/* @thread PMIx's */
static void on_idle(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    (void)status, (void)value, (void)cbdata;
    register_give_back();
}

/* @thread the loop's */
static void on_settle(void *arg, struct timer *timer)
{
    const struct server *server = arg;
    pmix_proc_t job;
    (void)timer;
    PMIX_LOAD_PROCID(&job, server->boot.nspace, PMIX_RANK_WILDCARD);
    PMIx_Get_nb(&job, PMIX_JOB_SIZE, NULL, 0, on_idle, NULL);
}

void upcall_settle(struct server *server)
{
    if (server->settle.timers == NULL)
        timer_init(&server->settle, &server->timers, on_settle, server);
    timer_after(&server->settle, SETTLE_MS);
}
