/* SPDX-License-Identifier: BSD-3-Clause */
/* connect and disconnect: operations of the engine whose success is a status alone.
 *
 * Before a connect is answered, libpmix knows the namespaces of all participants on every server of
 * the step: so a process finds the job-level information of the others, and their data by direct
 * modex, and fences and events may name them.
 */
#include "common/server/steps.h"
#include "common/upcall/collective.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* A connect that has succeeded. */
struct connected {
    struct spread_wait wait; /* until all servers of the step know the namespaces */
    struct collective *collective;
};

static void answer(struct collective *c, pmix_status_t status)
{
    answer_status(&c->request.answer, status);
    collective_free(c);
}

static void on_known(struct spread_wait *wait)
{
    struct connected *done = (struct connected *)((char *)wait - offsetof(struct connected, wait));
    answer(done->collective, PMIX_SUCCESS);
    free(done);
}

void connect_complete(struct collective *c, const struct engine_result *result)
{
    struct connected *done = NULL;
    pmix_status_t status = result->status;
    if (status == PMIX_SUCCESS && c->kind == COLL_CONNECT) {
        done = malloc(sizeof *done);
        status = done == NULL                                  ? PMIX_ERR_NOMEM
                 : steps_register(c->server, &c->members) != 0 ? PMIX_ERR_NOT_FOUND
                                                               : PMIX_SUCCESS;
    }
    if (done == NULL || status != PMIX_SUCCESS) {
        free(done);
        answer(c, status);
        return;
    }
    *done = (struct connected){.collective = c, .wait = {.set = &c->members, .done = on_known}};
    steps_await(c->server, &done->wait);
}

/* @thread PMIx's */
static pmix_status_t post(enum coll_kind kind, const pmix_proc_t procs[], size_t nprocs,
                          const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                          void *cbdata)
{
    if (procs == NULL || nprocs == 0)
        return PMIX_ERR_BAD_PARAM;
    struct collective *c = collective_new(kind, "", procs, nprocs);
    if (c == NULL)
        return PMIX_ERR_NOMEM;
    c->server = upcall_server();
    c->request.answer = answer_op(cbfunc, cbdata);
    collective_directives(c, info, ninfo);
    return upcall_post(&c->request, collective_run);
}

pmix_status_t upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post(COLL_CONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}

pmix_status_t upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post(COLL_DISCONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}
