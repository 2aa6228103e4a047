/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks that libpmix keeps waiting for one that has ended in order; see stranded.h. */
#include "common/server/tasks/stranded.h"

#include "common/nspace/library.h"
#include "common/server/ending.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 5000, /* for those here to end by themselves, as others have had an error */
};

struct stranded {
    struct timer due; /* to be told of */
    enum coll_kind kind;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members;
    uint32_t gone; /* slot of one that has ended */
};

static bool is_member(const struct server *server, const struct procset *members, uint32_t slot)
{
    return procset_has(members, server->boot.nspace, boot_here(&server->boot)->ranks[slot]);
}

/* Whether libpmix may wait for a task that is not lost. Up to libpmix 6 a fence goes on without one
 * that finalizes while it is under way, and is then handed up; not so when one calls it later. */
static bool strands(const struct task *task)
{
    return task_has_ended(task) && !task_is_lost(task);
}

/* Those here that have neither ended nor finalized, as "rank 6" or "ranks 6,8". */
static bool list_waiting(const struct server *server, const struct stranded *s, char *buf,
                         size_t cap)
{
    const struct boot_node *here = boot_here(&server->boot);
    struct ranges ranks = {0};
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (server->tasks[k].state == TASK_CONNECTED && is_member(server, &s->members, k))
            ranges_put(&ranks, here->ranks[k]);
    uint64_t n = ranges_count(&ranks);
    snprintf(buf, cap, n == 1 ? "rank " : "ranks ");
    ranges_text(&ranks, buf + strlen(buf), cap - strlen(buf));
    ranges_free(&ranks);
    return n > 0;
}

static void on_due(void *arg, struct timer *timer)
{
    struct server *server = arg;
    const struct stranded *s = server->stranded;
    const struct boot_node *here = boot_here(&server->boot);
    bool end = server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP;
    char waiting[128], what[COLL_DESCRIBE_MAX], text[768], release[LIBRARY_TEXT_SIZE];
    (void)timer;
    if (server->ending || server->told_to_leave ||
        !list_waiting(server, s, waiting, sizeof waiting)) {
        stranded_free(server);
        return;
    }
    coll_describe(s->kind, s->id, what, sizeof what);
    snprintf(text, sizeof text,
             "%s: rank %u on %s has ended without taking part, and libpmix %s lets %s "
             "there wait for it for ever",
             what, here->ranks[s->gone], here->name, library_text(server->library, release),
             waiting);
    if (end)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; ending the %s", log_unit());
    else
        log_error("%s", text);
    const struct task *gone = &server->tasks[s->gone];
    struct rm_ending ending = ending_of_task(gone->sig, gone->code, text);
    stranded_free(server);
    if (end)
        server_end_step(server, &ending, server->boot.node);
}

void stranded_note(struct server *server, const struct signature *sig)
{
    const struct boot_node *here = boot_here(&server->boot);
    uint32_t alive = 0, gone = here->ntasks;
    if (server->stranded != NULL || server->ending || server->told_to_leave)
        return;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (!is_member(server, &sig->members, k))
            continue;
        alive += task->state == TASK_CONNECTED;
        if (gone == here->ntasks && strands(task))
            gone = k;
    }
    if (alive == 0 || gone >= here->ntasks)
        return;
    struct stranded *s = calloc(1, sizeof *s);
    s->kind = sig->kind;
    s->gone = gone;
    snprintf(s->id, sizeof s->id, "%s", sig->id);
    procset_unite(&s->members, &sig->members);
    timer_init(&s->due, &server->timers, on_due, server);
    timer_after(&s->due, WAIT_MS);
    server->stranded = s;
}

void stranded_called(struct server *server, enum coll_kind kind, const char *id)
{
    const struct stranded *s = server->stranded;
    if (s != NULL && s->kind == kind && strcmp(s->id, id) == 0)
        stranded_free(server);
}

void stranded_free(struct server *server)
{
    if (server->stranded != NULL) {
        timer_stop(&server->stranded->due);
        procset_free(&server->stranded->members);
    }
    free(server->stranded);
    server->stranded = NULL;
}
