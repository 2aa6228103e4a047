/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to PMIx_Spawn. */
#include "common/nspace/register.h"
#include "common/server/steps/steps.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/spawn.h"

#include <pmix_server.h>
#include <stdlib.h>

/* The answer to a call that has succeeded. */
struct reply {
    struct handoff_item item;
    pmix_spawn_cbfunc_t callback;
    void *cbdata;
    pmix_nspace_t child;
    struct registration *child_keys; /* NULL: libpmix has them */
    uint64_t number;
};

/* @thread the loop's: from now on, libpmix knows which tool is to get what comes */
static void run_replied(struct handoff_item *item)
{
    struct reply *r = (struct reply *)item;
    forwards_open(upcall_server(), r->number);
    free(r);
}

/* @thread PMIx's */
static void reply(pmix_status_t status, void *arg)
{
    struct reply *r = arg;
    (void)status;
    if (r->callback != NULL)
        r->callback(PMIX_SUCCESS, r->child, r->cbdata);
    if (r->child_keys != NULL)
        register_there(r->child_keys);
    upcall_post(&r->item, run_replied);
}

/* libpmix's own thread has to answer:
 *
 * - libpmix up to 5.0 notes which process pulls, in a list that belongs to its own thread, but on
 *   the thread that answers.
 * - The answer brings all keys of the child, if libpmix knows the child by then, to the process
 *   that has spawned and to no other one. Open MPI 5 takes what it can have without a server
 *   (PMIX_OPTIONAL) for what all processes have, and its processes would not agree on which of them
 *   share a node. So libpmix hears of the child behind the answer, and before it hears anything
 *   that follows from that. */
static void reply_there(const struct spawn *s)
{
    struct reply *r = calloc(1, sizeof *r);
    r->callback = s->callback;
    r->cbdata = s->cbdata;
    r->number = s->number;
    forwards_name(s->server, s->number, s->child);
    r->child_keys = steps_registration(s->server, s->child);
    PMIX_LOAD_NSPACE(r->child, s->child);
    upcall_call_there(reply, r);
}

/* Output comes here no more, which may be what the spawn's end has waited for: ended() frees no
 * spawn that is not answered. */
static void answer_here(struct spawn *s, pmix_status_t status)
{
    if (s->number != 0)
        forwards_drop(s->server, s->number);
    if (s->callback != NULL)
        s->callback(status, s->child, s->cbdata);
}

void spawn_answer(struct spawn *s, pmix_status_t status)
{
    if (s->answered)
        return;
    if (s->inlet != NULL && status == PMIX_SUCCESS)
        inlet_open(s->inlet, s->child);
    else if (s->inlet != NULL)
        inlet_drop(s->inlet);
    s->inlet = NULL;
    if (answer_wanted() && status == PMIX_SUCCESS)
        reply_there(s);
    else if (answer_wanted())
        answer_here(s, status);
    s->answered = true;
}

/* A spawn that has ended is freed when its wait goes on: on_known(). */
void upcall_answer_spawns(struct server *server)
{
    struct spawn *s;
    LIST_FOREACH (s, &server->spawns, entry)
        spawn_answer(s, PMIX_ERR_UNREACH);
}
