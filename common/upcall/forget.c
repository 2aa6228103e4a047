/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that are lost, where libpmix awaits the gone (LIBRARY_GONE_IS_AWAITED).
 *
 * libpmix ends an operation in which a client is lost. But one that is lost before the first of its
 * node has called counts there as one that is still to call, and the others are never handed up:
 * libpmix waits for it to come back. So it is deregistered when it cannot come back: its connection
 * has closed, of which libpmix has told the operations under way before it tells us, and the task
 * has ended, of which the launcher tells; or it is just ending, which can be seen if the launcher
 * has told what process it is. Otherwise who calls between the two is not handed up.
 *
 * libpmix forgets what the client has put for other nodes, too, so that is fetched before. */
#include "common/upcall/collective.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <errno.h>
#include <pmix.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXITING = 0x4 /* PF_EXITING */ };

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
    struct task *task;
    struct kept *kept; /* what was asked for before */
};

/* @thread the loop's */
static void run_kept(struct handoff_item *item)
{
    struct kept *kept = (struct kept *)item;
    kept->task->kept = NULL;
    kept->task->answered = true;
    free(kept->task->data);
    kept->task->data = kept->data;
    kept->task->len = kept->len;
    free(kept);
}

/* @thread PMIx's */
static void on_kept(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct kept *kept = arg;
    if (status == PMIX_SUCCESS && (kept->data = malloc(len + 1)) != NULL) {
        if (len > 0)
            memcpy(kept->data, data, len);
        kept->len = len;
    }
    kept->item.run = run_kept;
    handoff_post(upcall_server()->handoff, &kept->item);
}

/* @thread the loop's */
static void run_forgotten(struct handoff_item *item)
{
    struct closed *closed = (struct closed *)item;
    struct task *task = closed->task;
    task->removed = true;
    if (!task->answered)
        task->kept = closed->kept; /* libpmix never may */
    log_debug("upcall: libpmix has forgotten task slot %td", task - upcall_server()->tasks);
    free(closed);
}

/* @thread PMIx's, before it takes any other call */
static void on_forgotten(pmix_status_t status, void *arg)
{
    struct closed *closed = arg;
    (void)status;
    closed->item.run = run_forgotten;
    handoff_post(upcall_server()->handoff, &closed->item);
}

/* Once. Any thread's. */
static void forget(const pmix_proc_t *proc, struct task *task)
{
    if (atomic_exchange(&task->forgets, true))
        return;
    struct closed *closed = calloc(1, sizeof *closed);
    struct kept *kept = calloc(1, sizeof *kept);
    if (closed == NULL || kept == NULL) {
        free(closed);
        free(kept);
        return;
    }
    closed->task = kept->task = task;
    closed->kept = kept;
    if (PMIx_server_dmodex_request(proc, on_kept, kept) != PMIX_SUCCESS) {
        free(kept);
        closed->kept = NULL;
    }
    PMIx_server_deregister_client(proc, on_forgotten, closed);
}

/* Whether a process is ending, or has gone. */
static bool is_ending(pid_t pid)
{
    char path[64], line[512], state;
    unsigned flags;
    if (pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return errno == ENOENT && kill(pid, 0) != 0 && errno == ESRCH;
    const char *rest = fgets(line, sizeof line, in) != NULL ? strrchr(line, ')') : NULL;
    fclose(in);
    return rest != NULL && sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
           (state == 'Z' || state == 'X' || (flags & EXITING) != 0);
}

void upcall_client_ended(struct server *server, uint32_t slot)
{
    struct task *task = &server->tasks[slot];
    pmix_proc_t proc;
    if (task->connected > 0 || !task->lost || server->told_to_leave || server->ending)
        return;
    PMIX_LOAD_PROCID(&proc, server->boot.nspace, server->boot.nodes[server->boot.node].ranks[slot]);
    forget(&proc, task);
}

void upcall_forget_ended(struct server *server, const struct procset *members)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    if (!library_has(server->library, LIBRARY_GONE_IS_AWAITED) || server->told_to_leave ||
        server->ending)
        return;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        struct task *task = &server->tasks[k];
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, server->boot.nspace, here->ranks[k]);
        if (task->state == TASK_ENDED && !task->lost && task->connected == 0 &&
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
    upcall_client_ended(server, (uint32_t)(closed->task - server->tasks));
    free(closed);
}

/* @thread PMIx's */
static void close_client(const pmix_proc_t *proc)
{
    struct task *task = upcall_task(proc);
    struct closed *closed = task != NULL ? calloc(1, sizeof *closed) : NULL;
    if (closed == NULL)
        return;
    closed->item.run = run_closed;
    closed->task = task;
    upcall_count_client(proc, false);
    handoff_post(upcall_server()->handoff, &closed->item);
    if (task->connected == 0 && is_ending(task->pid)) /* a child may be another client */
        forget(proc, task);
}

/* Of several clients at once one is the source, and the others are named each. @thread PMIx's */
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

int upcall_watch_clients(const struct server *server, struct err *err)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    if (!library_has(server->library, LIBRARY_GONE_IS_AWAITED))
        return 0;
    pmix_status_t rc = PMIx_Register_event_handler(&code, 1, NULL, 0, on_closed, NULL, NULL);
    if (rc < 0)
        return err_set(err, "libpmix does not tell of lost processes: %s", PMIx_Error_string(rc));
    return 0;
}

void upcall_free_kept(struct server *server)
{
    for (uint32_t k = 0; server->tasks != NULL && k < server->boot.nodes[server->boot.node].ntasks;
         k++) {
        free(server->tasks[k].data);
        free(server->tasks[k].kept);
    }
}
