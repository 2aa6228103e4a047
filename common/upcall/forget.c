/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that are lost. What the processes print that such a client has spawned is no longer
 * delivered to it (forward.h). The rest of this file is for a libpmix that waits for lost clients
 * (LIBRARY_GONE_IS_AWAITED).
 *
 * libpmix ends an operation in which a client is lost. But a client that is lost before the first
 * process of its node has called still counts there as one that will call: libpmix waits for it to
 * come back, and never hands up the calls of the others. So we deregister a client when it cannot
 * come back. Either its connection has closed, of which libpmix tells the operations under way
 * before it tells us, and the launcher has told that the task has ended. Or its process is just
 * ending, which we can see if the launcher has told the process's id. Otherwise an operation that
 * begins between the two events would not be handed up.
 *
 * libpmix also forgets what the client has put for other nodes, so we fetch that first. */
#include "common/notify/debug.h"
#include "common/upcall/collective.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"
#include "common/util/proctab.h"

#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What a client had put, as libpmix gives it. */
struct kept {
    struct handoff_item item;
    struct task *task;
    char *data;
    size_t len;
};

/* A client's connection has closed, or libpmix has forgotten the client. */
struct closed {
    struct handoff_item item;
    pmix_proc_t proc;
    struct task *task; /* NULL: a tool; or a client that need not be forgotten */
};

/* @thread the loop's */
static void run_kept(struct handoff_item *item)
{
    struct kept *kept = (struct kept *)item;
    kept->task->kept = NULL;
    free(kept->task->data);
    kept->task->data = kept->data;
    kept->task->len = kept->len;
    free(kept);
}

/* @thread PMIx's */
static void on_kept(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct kept *kept = arg;
    if (status == PMIX_SUCCESS) {
        kept->data = malloc(len + 1);
        if (len > 0)
            memcpy(kept->data, data, len);
        kept->len = len;
    }
    upcall_post(&kept->item, run_kept);
}

/* @thread the loop's */
static void run_forgotten(struct handoff_item *item)
{
    struct closed *closed = (struct closed *)item;
    struct task *task = closed->task;
    task->client = CLIENT_FORGOTTEN;
    log_debug("upcall: libpmix has forgotten task slot %td", task - upcall_server()->tasks);
    free(closed);
}

/* @thread PMIx's, before it takes any other call */
static void on_forgotten(pmix_status_t status, void *arg)
{
    struct closed *closed = arg;
    (void)status;
    upcall_post(&closed->item, run_forgotten);
}

/* Once. Any thread's. */
static void forget(const pmix_proc_t *proc, struct task *task)
{
    enum client_state known = CLIENT_KNOWN;
    if (!atomic_compare_exchange_strong(&task->client, &known, CLIENT_LEAVES))
        return;
    struct closed *closed = calloc(1, sizeof *closed);
    struct kept *kept = calloc(1, sizeof *kept);
    closed->task = kept->task = task;
    task->kept = kept; /* libpmix may never answer */
    if (PMIx_server_dmodex_request(proc, on_kept, kept) != PMIX_SUCCESS) {
        free(kept);
        task->kept = NULL;
    }
    PMIx_server_deregister_client(proc, on_forgotten, closed);
}

void upcall_client_ended(struct server *server, uint32_t slot)
{
    struct task *task = &server->tasks[slot];
    pmix_proc_t proc;
    if (task->connected > 0 || !task_is_lost(task) || server->told_to_leave || server->ending)
        return;
    PMIX_LOAD_PROCID(&proc, server->boot.nspace, boot_here(&server->boot)->ranks[slot]);
    forget(&proc, task);
}

void upcall_forget_ended(struct server *server, const struct procset *members)
{
    const struct boot_node *here = boot_here(&server->boot);
    if (!library_has(server->library, LIBRARY_GONE_IS_AWAITED) || server->told_to_leave ||
        server->ending)
        return;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        struct task *task = &server->tasks[k];
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, server->boot.nspace, here->ranks[k]);
        if (task_has_ended(task) && !task_is_lost(task) && task->connected == 0 &&
            procset_has(members, server->boot.nspace, here->ranks[k]))
            forget(&proc, task);
    }
}

void upcall_count_client(const pmix_proc_t *proc, bool connected)
{
    struct task *task = upcall_task(proc);
    if (task != NULL && connected)
        task->connected++;
    else if (task != NULL && task->connected > 0)
        task->connected--;
}

/* @thread the loop's */
static void run_closed(struct handoff_item *item)
{
    struct closed *closed = (struct closed *)item;
    struct server *server = upcall_server();
    if (upcall_task(&closed->proc) == NULL) { /* client.c knows which connection of a task it was */
        forwards_parent_gone(server, closed->proc.nspace, closed->proc.rank);
        pushes_parent_gone(server, closed->proc.nspace, closed->proc.rank);
        debug_tool_gone(server, closed->proc.nspace, closed->proc.rank);
    }
    if (closed->task != NULL)
        upcall_client_ended(server, (uint32_t)(closed->task - server->tasks));
    free(closed);
}

/* @thread PMIx's */
static void close_client(const pmix_proc_t *proc)
{
    bool forgets = library_has(upcall_server()->library, LIBRARY_GONE_IS_AWAITED);
    struct task *task = forgets ? upcall_task(proc) : NULL;
    struct closed *closed = calloc(1, sizeof *closed);
    closed->proc = *proc;
    closed->task = task;
    if (task != NULL)
        upcall_count_client(proc, false);
    upcall_post(&closed->item, run_closed);
    /* A child may be another client. */
    if (task != NULL && task->connected == 0 && proctab_is_ending(task->pid))
        forget(proc, task);
}

/* When the connections of several clients close at once, libpmix names one as the source and each
 * of the others in an info. @thread PMIx's */
static void on_closed(size_t id, pmix_status_t status, const pmix_proc_t *source,
                      pmix_info_t info[], size_t ninfo, pmix_info_t results[], size_t nresults,
                      pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id, (void)status, (void)results, (void)nresults;
    if (source != NULL)
        close_client(source);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) && info[i].value.type == PMIX_PROC)
            close_client(info[i].value.data.proc);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

void upcall_watch_soon(const struct server *server)
{
    if (library_has(server->library, LIBRARY_GONE_IS_AWAITED))
        setenv("PMIX_MCA_pmix_event_caching_window", "0", 1);
}

int upcall_watch_clients(struct err *err)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    pmix_status_t rc = PMIx_Register_event_handler(&code, 1, NULL, 0, on_closed, NULL, NULL);
    if (rc < 0)
        return err_set(err, "libpmix does not tell of lost processes: %s", PMIx_Error_string(rc));
    return 0;
}

void upcall_free_kept(struct server *server)
{
    for (uint32_t k = 0; server->tasks != NULL && k < boot_here(&server->boot)->ntasks; k++) {
        free(server->tasks[k].data);
        free(server->tasks[k].kept);
    }
}
