/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients come and go; PMIx_Abort. */
#include "common/upcall/upcall.h"

#include "common/nspace/command.h"
#include "common/nspace/library.h"
#include "common/server/ending.h"
#include "common/server/process/rounds.h"
#include "common/upcall/collective.h"
#include "common/upcall/forward.h"
#include "common/upcall/pullers.h"
#include "common/upcall/push.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 256 };

struct task *upcall_task(const pmix_proc_t *proc)
{
    struct server *server = upcall_server();
    const struct boot *boot = &server->boot;
    if (strcmp(proc->nspace, boot->nspace) != 0 || proc->rank >= boot->ntasks ||
        server->nspace->node_of[proc->rank] != boot->node)
        return NULL;
    return &server->tasks[server->nspace->local_of[proc->rank]];
}

/* A client's change of state. */
struct change {
    struct request request;
    pmix_nspace_t nspace;
    uint32_t rank;
    struct task *task; /* NULL: a tool */
    bool connected;
    uint64_t since; /* of pullers_now(), if it is connected */
};

/* @thread the loop's */
static void run_change(struct handoff_item *item)
{
    struct change *change = (struct change *)item;
    struct task *task = change->task;
    if (task != NULL) {
        task_move(task, change->rank, change->connected ? TASK_INIT : TASK_FINALIZE);
        if (!change->connected)
            upcall_task_gone(upcall_server(), change->rank);
    }
    if (change->connected) {
        pullers_came(forwards_pullers(upcall_server()), change->nspace, change->rank,
                     change->since);
    } else {
        forwards_parent_gone(upcall_server(), change->nspace, change->rank);
        pushes_parent_gone(upcall_server(), change->nspace, change->rank);
    }
    answer_status(&change->request.answer, PMIX_SUCCESS);
    free(change);
}

static pmix_status_t post_change(const pmix_proc_t *proc, bool connected, pmix_op_cbfunc_t cbfunc,
                                 void *cbdata)
{
    struct change *change = calloc(1, sizeof *change);
    if (change == NULL)
        return PMIX_ERR_NOMEM;
    PMIX_LOAD_NSPACE(change->nspace, proc->nspace);
    change->rank = proc->rank;
    change->task = upcall_task(proc);
    change->connected = connected;
    change->since = pullers_now(forwards_pullers(upcall_server()));
    change->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&change->request.item, run_change);
}

/* The one thing that is not left to the loop: see command.h. A task's pid is known before it execs,
 * and the step's layout does not change. */
static void seek_argv(const pmix_proc_t *proc)
{
    struct server *server = upcall_server();
    const struct task *task = upcall_task(proc);
    if (!library_has(server->library, LIBRARY_APP_GROWS) || server->argv_sought ||
        boot_setting(&server->boot, "argv") != NULL || task == NULL)
        return;
    server->argv_sought = true;
    command_argv(server->nspace, task->pid);
}

pmix_status_t upcall_client_connected(const pmix_proc_t *proc, void *object,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)cbfunc, (void)cbdata;
    const struct task *task = upcall_task(proc);
    seek_argv(proc);
    upcall_count_client(proc, true);
    if (task != NULL)
        rounds_connected((uint32_t)(task - upcall_server()->tasks));
    /* From libpmix 6 on the client waits for this. What it sends next is posted behind. */
    pmix_status_t rc = post_change(proc, true, NULL, NULL);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

pmix_status_t upcall_client_connected2(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                       size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)info, (void)ninfo;
    return upcall_client_connected(proc, object, cbfunc, cbdata);
}

pmix_status_t upcall_client_finalized(const pmix_proc_t *proc, void *object,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    const struct task *task = upcall_task(proc);
    (void)object;
    upcall_count_client(proc, false);
    if (task != NULL)
        rounds_finalized((uint32_t)(task - upcall_server()->tasks));
    if (!library_has(upcall_server()->library, LIBRARY_FINALIZE_RACES))
        return post_change(proc, false, cbfunc, cbdata);
    /* The callback answers the client before it notes that it has finalized: from another thread
     * than libpmix's own, the client may be gone in between, and is then lost for good. */
    pmix_status_t rc = post_change(proc, false, NULL, NULL);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

struct abort {
    struct request request;
    uint32_t rank;
    int status;
    char text[TEXT_MAX];
};

/* @thread the loop's */
static void run_abort(struct handoff_item *item)
{
    struct abort *a = (struct abort *)item;
    struct server *server = upcall_server();
    char why[2 * TEXT_MAX];
    snprintf(why, sizeof why, "rank %u on %s called PMIx_Abort with status %d%s%s", a->rank,
             boot_here(&server->boot)->name, a->status, a->text[0] != '\0' ? ": " : "", a->text);
    log_error("%s; ending %s %s", why, boot_unit(&server->boot), server->boot.label);
    struct rm_ending ending = ending_of_abort(a->status, why);
    server_end_step(server, &ending, NULL);
    answer_status(&a->request.answer, PMIX_SUCCESS);
    free(a);
}

/* Whether the processes to abort are the whole namespace: the step ends as one. */
static bool is_all(const struct server *server, const pmix_proc_t procs[], size_t nprocs)
{
    struct procset set = {0};
    bool all = procs == NULL || nprocs == 0;
    for (size_t i = 0; i < nprocs && !all; i++) {
        if (procs[i].rank == PMIX_RANK_WILDCARD)
            all = strcmp(procs[i].nspace, server->boot.nspace) == 0;
        else
            procset_add(&set, procs[i].nspace, procs[i].rank, procs[i].rank);
    }
    procset_canonical(&set);
    all = all || procset_size(&set) >= server->boot.ntasks;
    procset_free(&set);
    return all;
}

pmix_status_t upcall_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                           pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc,
                           void *cbdata)
{
    (void)object;
    if (!is_all(upcall_server(), procs, nprocs)) {
        log_error("rank %u: PMIx_Abort of some of the processes is not supported: a %s is ended "
                  "as a whole; give no processes, or all",
                  proc->rank, boot_unit(&upcall_server()->boot));
        return PMIX_ERR_PARAM_VALUE_NOT_SUPPORTED;
    }
    struct abort *a = calloc(1, sizeof *a);
    if (a == NULL)
        return PMIX_ERR_NOMEM;
    a->rank = proc->rank;
    a->status = status;
    snprintf(a->text, sizeof a->text, "%s", msg != NULL ? msg : "");
    a->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&a->request.item, run_abort);
}
