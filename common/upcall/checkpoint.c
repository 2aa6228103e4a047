/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints, as events. */
#include "common/upcall/checkpoint.h"

#include "common/notify/event.h"
#include "common/notify/refuse.h"
#include "common/nspace/infos.h"
#include "common/nspace/procs.h"
#include "common/server/tasks/signals.h"
#include "common/server/tasks/tasks.h"
#include "common/util/log.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that waits. */
struct checkpoint {
    LIST_ENTRY(checkpoint) entry; /* server->checkpoint_calls */
    struct server *server;
    uint64_t number; /* its own for this server */
    struct answer answer;
    bool answered;
    uint32_t left; /* nodes that have not answered, and one until all were asked */
    char request[CHECKPOINT_NAME_MAX + 1];
    pmix_proc_t caller;
    struct procset set;  /* whom it is for */
    struct timer forget; /* asks the nodes to forget it */
};

/* What is asked of processes of this node. */
struct checkpoint_part {
    LIST_ENTRY(checkpoint_part) entry; /* server->checkpoints, the last one first */
    struct server *server;
    struct checkpoint *own; /* of our own call; NULL: another server's, with both of these */
    uint32_t from;
    uint64_t id, number; /* of the question, and of the call there */
    char name[CHECKPOINT_NAME_MAX + 1];
    uint32_t timeout; /* s */
    int sig;
    struct procset left; /* those that are not done */
    int64_t deadline;    /* by the clock of deadlines */
    struct timer due;
};

/* ---- the caller's server ---- */

/* ask_done_fn */
static void on_node(void *arg, int32_t status, const void *data, size_t len)
{
    struct checkpoint *checkpoint = arg;
    (void)data, (void)len;
    checkpoint->left--;
    if (!checkpoint->answered && (status != PMIX_SUCCESS || checkpoint->left == 0)) {
        checkpoint->answered = true;
        answer_status(&checkpoint->answer, status);
    }
    if (checkpoint->left > 0)
        return;
    LIST_REMOVE(checkpoint, entry);
    timer_stop(&checkpoint->forget);
    procset_free(&checkpoint->set);
    free(checkpoint);
}

static void begin_part(struct server *server, struct checkpoint_part *part, const void *body,
                       size_t len);

static void ask_node(struct server *server, struct checkpoint *checkpoint, uint32_t node,
                     const struct checkpoint_order *order)
{
    struct procset there = {0};
    struct wire_out body = {0};
    nspace_members_on(server->nspace, order->set, node, &there);
    if (there.nparts == 0)
        return;
    wire_put_u64(&body, checkpoint->number);
    wire_put_str(&body, order->id);
    wire_put_u32(&body, order->timeout);
    wire_put_u32(&body, (uint32_t)order->sig);
    procset_write(&there, &body);
    checkpoint->left++;
    if (node == server->boot.node) {
        struct checkpoint_part *part = calloc(1, sizeof *part);
        part->own = checkpoint;
        begin_part(server, part, body.data, body.len);
    } else {
        asks_send(server->asks, node, ASK_CHECKPOINT, body.data, body.len,
                  order->timeout + CHECKPOINT_NODE_LATE_S, on_node, checkpoint);
    }
    procset_free(&there);
    wire_out_free(&body);
}

static void on_forgotten(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len; /* else its deadline ends it there */
}

static struct checkpoint_part *find_part(struct server *server, uint32_t from, uint64_t number);
static void end_part(struct checkpoint_part *part, pmix_status_t status);

static void on_forget(void *arg, struct timer *timer)
{
    struct checkpoint *checkpoint = arg;
    struct server *server = checkpoint->server;
    struct wire_out body = {0};
    (void)timer;
    wire_put_u64(&body, checkpoint->number);
    for (uint32_t node = 0; node < server->boot.nnodes; node++) {
        struct procset there = {0};
        nspace_members_on(server->nspace, &checkpoint->set, node, &there);
        if (there.nparts > 0 && node != server->boot.node)
            asks_send(server->asks, node, ASK_CHECKPOINT, body.data, body.len,
                      CHECKPOINT_NODE_LATE_S, on_forgotten, NULL);
        procset_free(&there);
    }
    wire_out_free(&body);
    struct checkpoint_part *own = find_part(server, server->boot.node, checkpoint->number);
    if (own != NULL)
        end_part(own, PMIX_ERR_JOB_CANCELED); /* which may free the checkpoint */
}

bool checkpoints_cancel(struct server *server, const char *request, const char *nspace,
                        uint32_t rank)
{
    struct checkpoint *checkpoint;
    bool found = false;
    LIST_FOREACH (checkpoint, &server->checkpoint_calls, entry) {
        const pmix_proc_t *caller = &checkpoint->caller;
        bool is = request[0] != '\0' ? strcmp(checkpoint->request, request) == 0
                                     : caller->rank == rank && strcmp(caller->nspace, nspace) == 0;
        if (!is || checkpoint->answered)
            continue;
        found = checkpoint->answered = true;
        answer_status(&checkpoint->answer, PMIX_ERR_JOB_CANCELED);
        timer_after(&checkpoint->forget, 0); /* the view may be asking */
    }
    return found;
}

void checkpoint_begin(struct server *server, const struct checkpoint_order *order,
                      struct answer answer)
{
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    checkpoint->server = server;
    checkpoint->number = ++server->ncheckpoints;
    checkpoint->answer = answer;
    checkpoint->left = 1;
    checkpoint->caller = *order->caller;
    snprintf(checkpoint->request, sizeof checkpoint->request, "%s",
             order->request != NULL ? order->request : "");
    timer_init(&checkpoint->forget, &server->timers, on_forget, checkpoint);
    LIST_INSERT_HEAD(&server->checkpoint_calls, checkpoint, entry);
    procset_unite(&checkpoint->set, order->set);
    for (uint32_t node = 0; node < server->boot.nnodes; node++)
        ask_node(server, checkpoint, node, order);
    on_node(checkpoint, PMIX_SUCCESS, NULL, 0);
}

/* ---- the servers of the targets ---- */

static void free_part(struct checkpoint_part *part)
{
    timer_stop(&part->due);
    procset_free(&part->left);
    free(part);
}

/* It is in no list any more. */
static void answer_part(struct checkpoint_part *part, pmix_status_t status)
{
    if (part->own != NULL)
        on_node(part->own, status, NULL, 0);
    else
        asks_reply(part->server->asks, part->from, part->id, status, NULL, 0);
    free_part(part);
}

static void end_part(struct checkpoint_part *part, pmix_status_t status)
{
    LIST_REMOVE(part, entry);
    answer_part(part, status);
}

/* "rank 3", "ranks 3-5,9" */
static void list_left(const struct checkpoint_part *part, char *buf, size_t cap)
{
    const struct ranges *ranks = &part->left.parts[0].ranks;
    int n = snprintf(buf, cap, ranges_count(ranks) > 1 ? "ranks " : "rank ");
    ranges_text(ranks, buf + n, cap - (size_t)n);
}

static void on_due(void *arg, struct timer *timer)
{
    struct checkpoint_part *part = arg;
    const struct timers *timers = &part->server->timers;
    char who[256];
    if (timers_clock(timers) < part->deadline) { /* it has stood still */
        timer_at(timer, timers_due(timers, part->deadline));
        return;
    }
    list_left(part, who, sizeof who);
    log_error(
        "checkpoint \"%s\": %s on %s did not raise PMIX_JCTRL_CHECKPOINT_COMPLETE within %u s",
        part->name, who, boot_here(&part->server->boot)->name, part->timeout);
    end_part(part, PMIX_ERR_TIMEOUT);
}

/* Whoever registers for it later gets it then. Its source is no process: libpmix would not tell a
 * process that asks for a checkpoint of its own. */
static void raise_event(const struct checkpoint_part *part)
{
    struct infos list = {0};
    pmix_info_t range;
    pmix_proc_t source;
    PMIX_LOAD_PROCID(&source, "muster.checkpoint", 0);
    PMIX_INFO_CONSTRUCT(&range);
    procs_load(&range, PMIX_EVENT_CUSTOM_RANGE, &part->left);
    infos_put(&list, PMIX_EVENT_CUSTOM_RANGE, range.value.data.darray, PMIX_DATA_ARRAY);
    PMIX_INFO_DESTRUCT(&range);
    infos_str(&list, PMIX_JOB_CTRL_CHECKPOINT, part->name);
    notification_give(PMIX_JCTRL_CHECKPOINT, &source, PMIX_RANGE_CUSTOM, list.info, list.n);
}

static bool read_part(const struct server *server, struct checkpoint_part *part, const void *body,
                      size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    part->number = wire_get_u64(&in);
    wire_get_str(&in, part->name, sizeof part->name);
    part->timeout = wire_get_u32(&in);
    uint32_t sig = wire_get_u32(&in);
    part->sig = (int)sig;
    procset_read(&part->left, &in);
    uint32_t known = server_members_here(server, &part->left);
    log_mask(part->name);
    return wire_end(&in) && sig < NSIG && sig != SIGKILL && sig != SIGSTOP && part->timeout > 0 &&
           part->timeout <= CHECKPOINT_S_MAX && known > 0 && known == procset_size(&part->left);
}

static void say_gone(const struct checkpoint_part *part, uint32_t rank)
{
    log_error("checkpoint \"%s\": rank %u on %s has finalized or ended before it was done",
              part->name, rank, boot_here(&part->server->boot)->name);
}

/* @param part all zero but for who has asked; taken over */
static void begin_part(struct server *server, struct checkpoint_part *part, const void *body,
                       size_t len)
{
    const struct boot_node *here = boot_here(&server->boot);
    part->server = server;
    timer_init(&part->due, &server->timers, on_due, part);
    if (!read_part(server, part, body, len)) {
        answer_part(part, refused(PMIX_ERR_BAD_PARAM,
                                  "a checkpoint is asked for that is none of processes on %s",
                                  here->name));
        return;
    }
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (server->tasks[k].state >= TASK_FINALIZED &&
            procset_has(&part->left, server->boot.nspace, here->ranks[k])) {
            say_gone(part, here->ranks[k]);
            answer_part(part, tasks_loss_status(server, COLL_FENCE));
            return;
        }
    LIST_INSERT_HEAD(&server->checkpoints, part, entry);
    part->deadline = timers_clock(&server->timers) + part->timeout * 1000ll;
    timer_at(&part->due, timers_due(&server->timers, part->deadline));
    log_info("checkpoint \"%s\" of %u processes here", part->name,
             (unsigned)procset_size(&part->left));
    if (part->sig != 0)
        signals_here(server, &part->left, part->sig);
    else
        raise_event(part);
}

static struct checkpoint_part *find_part(struct server *server, uint32_t from, uint64_t number)
{
    struct checkpoint_part *part;
    LIST_FOREACH (part, &server->checkpoints, entry)
        if ((part->own != NULL ? server->boot.node : part->from) == from && part->number == number)
            break;
    return part;
}

/* It has not to be done any more. @return whether that is what is asked */
static bool forget_part(struct server *server, uint32_t from, uint64_t id, const void *body,
                        size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint64_t number = wire_get_u64(&in);
    if (!wire_end(&in))
        return false;
    struct checkpoint_part *part = find_part(server, from, number);
    if (part != NULL)
        end_part(part, PMIX_ERR_JOB_CANCELED);
    asks_reply(server->asks, from, id, PMIX_SUCCESS, NULL, 0);
    return true;
}

void checkpoint_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct checkpoint_part *part;
    if (from < server->boot.nnodes && forget_part(server, from, id, body, len))
        return;
    if (from >= server->boot.nnodes) {
        asks_reply(server->asks, from, id, PMIX_ERR_NO_PERMISSIONS, NULL, 0);
        return;
    }
    part = calloc(1, sizeof *part);
    part->from = from;
    part->id = id;
    begin_part(server, part, body, len);
}

static bool waits_for(const struct checkpoint_part *part, uint32_t rank)
{
    return procset_has(&part->left, part->server->boot.nspace, rank);
}

void checkpoint_done(struct server *server, uint32_t rank)
{
    struct checkpoint_part *part, *first = NULL;
    struct procset one = {0}, left = {0};
    LIST_FOREACH (part, &server->checkpoints, entry)
        if (waits_for(part, rank))
            first = part;
    if (first == NULL)
        return;
    procset_add(&one, server->boot.nspace, rank, rank);
    procset_except(&left, &first->left, &one);
    procset_free(&one);
    procset_free(&first->left);
    first->left = left;
    if (procset_size(&left) == 0)
        end_part(first, PMIX_SUCCESS);
}

void checkpoint_task_gone(struct server *server, uint32_t rank)
{
    for (struct checkpoint_part *part = LIST_FIRST(&server->checkpoints), *next; part != NULL;
         part = next) {
        next = LIST_NEXT(part, entry);
        if (!waits_for(part, rank))
            continue;
        say_gone(part, rank);
        end_part(part, tasks_loss_status(server, COLL_FENCE));
    }
}

void checkpoints_free(struct server *server)
{
    struct checkpoint_part *part;
    while ((part = LIST_FIRST(&server->checkpoints)) != NULL) {
        LIST_REMOVE(part, entry);
        if (part->own != NULL)
            on_node(part->own, PMIX_ERR_UNREACH, NULL, 0); /* it is freed with that */
        free_part(part);
    }
}
