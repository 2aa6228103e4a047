/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients come and go; PMIx_Abort. */
#include "common/upcall/checkpoint.h"
#include "common/upcall/upcall.h"

#include "common/notify/debug.h"
#include "common/notify/refuse.h"
#include "common/nspace/command.h"
#include "common/nspace/library.h"
#include "common/server/ending.h"
#include "common/server/process/conns.h"
#include "common/server/process/rounds.h"
#include "common/server/status/stopped.h"
#include "common/server/tasks/cut.h"
#include "common/server/tasks/signals.h"
#include "common/upcall/collective.h"
#include "common/upcall/forward.h"
#include "common/upcall/pullers.h"
#include "common/upcall/push.h"
#include "common/util/log.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 256 };

/* What has become of a client. */
enum change_what {
    CHANGE_CAME,
    CHANGE_FINALIZED,
    CHANGE_CUT,
    CHANGE_BESIDE_CAME,
    CHANGE_BESIDE_GONE,
    CHANGE_BESIDE_CUT
};

/* A client's change of state. */
struct change {
    struct request request;
    pmix_nspace_t nspace;
    uint32_t rank;
    struct task *task; /* NULL: a tool */
    enum change_what what;
    uint64_t since; /* of pullers_now(), if it has come */
};

/* @thread the loop's */
static void task_changes(struct server *server, const struct change *change)
{
    struct task *task = change->task;
    uint32_t slot = (uint32_t)(task - server->tasks);
    if (change->what == CHANGE_CAME) {
        task_move(task, change->rank, TASK_INIT);
        stopped_runs(server, change->rank);
    } else if (change->what == CHANGE_CUT)
        cut_own(server, slot);
    else if (change->what == CHANGE_BESIDE_CUT)
        cut_beside(server, slot);
    else if (change->what == CHANGE_FINALIZED) {
        task_move(task, change->rank, TASK_FINALIZE);
        upcall_task_gone(server, change->rank);
        checkpoint_task_gone(server, change->rank);
    }
}

/* @thread the loop's */
static void run_change(struct handoff_item *item)
{
    struct change *change = (struct change *)item;
    struct server *server = upcall_server();
    bool came = change->what == CHANGE_CAME || change->what == CHANGE_BESIDE_CAME;
    if (change->task != NULL)
        task_changes(server, change);
    if (came) {
        pullers_came(forwards_pullers(server), change->nspace, change->rank, change->since);
        upcall_settle(server);
    } else if (change->what == CHANGE_FINALIZED || change->what == CHANGE_CUT) {
        forwards_parent_gone(server, change->nspace, change->rank);
        pushes_parent_gone(server, change->nspace, change->rank);
        debug_tool_gone(server, change->nspace, change->rank);
    } else {
        forwards_connection_gone(server, change->nspace, change->rank);
    }
    answer_status(&change->request.answer, PMIX_SUCCESS);
    free(change);
}

static pmix_status_t post_change(const pmix_proc_t *proc, enum change_what what,
                                 pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct change *change = calloc(1, sizeof *change);
    PMIX_LOAD_NSPACE(change->nspace, proc->nspace);
    change->rank = proc->rank;
    change->task = upcall_task(proc);
    change->what = what;
    change->since = pullers_now(forwards_pullers(upcall_server()));
    change->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&change->request.item, run_change);
}

void upcall_connection_ended(uint32_t slot, enum conns_end end)
{
    static const enum change_what whats[] = {[CONNS_OWN_FINALIZED] = CHANGE_FINALIZED,
                                             [CONNS_OWN_CUT] = CHANGE_CUT,
                                             [CONNS_BESIDE_FINALIZED] = CHANGE_BESIDE_GONE,
                                             [CONNS_BESIDE_CUT] = CHANGE_BESIDE_CUT};
    const struct boot *boot = &upcall_server()->boot;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, boot->nspace, boot_here(boot)->ranks[slot]);
    if (end == CONNS_OWN_FINALIZED)
        rounds_finalized(slot);
    post_change(&proc, whats[end], NULL, NULL);
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
    uint32_t slot = task != NULL ? (uint32_t)(task - upcall_server()->tasks) : 0;
    bool beside = task != NULL && !conns_connected(slot);
    seek_argv(proc);
    upcall_count_client(proc, true);
    if (task != NULL && !beside)
        rounds_connected(slot);
    if (beside)
        log_info("another process has connected as rank %u, which is connected", proc->rank);
    /* From libpmix 6 on the client waits for this. What it sends next is posted behind. */
    post_change(proc, beside ? CHANGE_BESIDE_CAME : CHANGE_CAME, NULL, NULL);
    return PMIX_OPERATION_SUCCEEDED;
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
    uint32_t slot = task != NULL ? (uint32_t)(task - upcall_server()->tasks) : 0;
    (void)object;
    upcall_count_client(proc, false);
    if (task != NULL && !conns_finalized(slot, task->pid))
        return PMIX_OPERATION_SUCCEEDED; /* which of the rank's processes it was shows when a
                                            connection closes, which comes after the answer */
    if (task != NULL)
        rounds_finalized(slot);
    if (!library_has(upcall_server()->library, LIBRARY_FINALIZE_RACES))
        return post_change(proc, CHANGE_FINALIZED, cbfunc, cbdata);
    /* The callback answers the client before it notes that it has finalized: from another thread
     * than libpmix's own, the client may be gone in between, and is then lost for good. */
    post_change(proc, CHANGE_FINALIZED, NULL, NULL);
    return PMIX_OPERATION_SUCCEEDED;
}

struct abort {
    struct request request;
    uint32_t rank;
    int status;
    struct procset set; /* empty: the whole namespace */
    char text[TEXT_MAX];
};

/* "" for the whole namespace. */
static void describe_aborted(const struct procset *set, const struct boot *boot, char *buf,
                             size_t cap)
{
    uint64_t n = procset_size(set);
    buf[0] = '\0';
    if (n == 1)
        snprintf(buf, cap, " for rank %u", set->parts[0].ranks.v[0].first);
    else if (n > 1)
        snprintf(buf, cap, " for %u of %u processes", (unsigned)n, boot->ntasks);
}

/* @thread the loop's */
static void run_abort(struct handoff_item *item)
{
    struct abort *a = (struct abort *)item;
    struct server *server = upcall_server();
    char why[2 * TEXT_MAX], whom[64];
    describe_aborted(&a->set, &server->boot, whom, sizeof whom);
    snprintf(why, sizeof why, "rank %u on %s called PMIx_Abort with status %d%s%s%s", a->rank,
             boot_here(&server->boot)->name, a->status, whom, a->text[0] != '\0' ? ": " : "",
             a->text);
    /* Where the step ends for each task that is lost, it does for these, with the status. */
    if (whom[0] != '\0' && server->conf.on_task_loss == CONF_TASK_LOSS_CONTINUE) {
        log_error("%s; killing what it names", why);
        signals_send(server, &a->set, SIGKILL);
    } else {
        snprintf(why + strlen(why), sizeof why - strlen(why), "; ending %s %s", log_unit(),
                 server->boot.label);
        struct rm_ending ending = ending_of_abort(a->status, why);
        server_end_step(server, &ending, server->boot.node);
    }
    answer_status(&a->request.answer, PMIX_SUCCESS);
    procset_free(&a->set);
    free(a);
}

/* @param set set to the processes to abort; empty: the whole namespace
 * @return 0, or -1: they are not all of this step */
static int aborted(const struct boot *boot, const pmix_proc_t procs[], size_t nprocs,
                   struct procset *set)
{
    bool all = procs == NULL || nprocs == 0, ours = true;
    for (size_t i = 0; procs != NULL && ours && i < nprocs; i++) {
        ours = strcmp(procs[i].nspace, boot->nspace) == 0;
        if (procs[i].rank == PMIX_RANK_WILDCARD)
            all = true;
        else
            ours = ours && procs[i].rank < boot->ntasks &&
                   procset_add(set, boot->nspace, procs[i].rank, procs[i].rank) == 0;
    }
    procset_canonical(set);
    if (all || procset_size(set) >= boot->ntasks) {
        procset_free(set);
        *set = (struct procset){0};
    }
    return ours ? 0 : -1;
}

pmix_status_t upcall_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                           pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc,
                           void *cbdata)
{
    const struct boot *boot = &upcall_server()->boot;
    (void)object;
    struct abort *a = calloc(1, sizeof *a);
    if (aborted(boot, procs, nprocs, &a->set) != 0) {
        procset_free(&a->set);
        free(a);
        return refused_aloud(
            PMIX_ERR_PARAM_VALUE_NOT_SUPPORTED,
            "rank %u: PMIx_Abort is not supported for processes of another %s, nor "
            "for ranks that there are not",
            proc->rank, log_unit());
    }
    a->rank = proc->rank;
    a->status = status;
    snprintf(a->text, sizeof a->text, "%s", msg != NULL ? msg : "");
    a->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&a->request.item, run_abort);
}
