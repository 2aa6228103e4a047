/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective request on its way from libpmix's thread to the engine. */
#include "common/notify/loss.h"
#include "common/notify/refuse.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/stranded.h"
#include "common/server/tasks/tasks.h"
#include "common/upcall/collective.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static uint32_t default_timeout(const struct server *server, enum coll_kind kind)
{
    const struct conf_timeouts *t = &server->conf.timeouts;
    return (uint32_t)(kind == COLL_FENCE       ? t->fence
                      : kind == COLL_CONSTRUCT ? t->construct
                      : kind == COLL_DESTRUCT  ? t->destruct
                                               : t->connect);
}

/* @thread the loop's */
static void on_done(struct engine_call *call, const struct engine_result *result)
{
    struct collective *c = (struct collective *)((char *)call - offsetof(struct collective, call));
    struct engine_result told = *result;
    if (told.status == ENGINE_MISFIT)
        told.status = PMIX_ERR_NOT_SUPPORTED; /* told when the two servers met */
    collective_complete(c, &told);
}

static bool is_forgotten(const struct task *task)
{
    return task->client == CLIENT_FORGOTTEN;
}

/* Whether a participant here is such a task. One that was lost before this began libpmix has not
 * waited for, and does not say so. */
static bool has_task(const struct collective *c, bool (*is)(const struct task *task))
{
    const struct boot_node *here = boot_here(&c->server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (is(&c->server->tasks[k]) &&
            procset_has(&c->all, c->server->boot.nspace, here->ranks[k]))
            return true;
    return false;
}

/* How many calls less libpmix has handed up than there are participants here, as some are lost: it
 * does not say so of a destruct that tells of lost members by events. */
static uint32_t lacking_calls(const struct collective *c)
{
    uint32_t n = server_members_here(c->server, &c->all);
    bool known = c->role == COLLECTIVE_PARTICIPANTS && coll_traits(c->kind)->is_group &&
                 (survive_wants(c) || c->apart) &&
                 library_has(c->server->library, LIBRARY_GROUP_COUNTS) && c->ncalls < n;
    return known ? n - c->ncalls : 0;
}

/* Whether libpmix gives this status to a call that it hands up because a connection has closed. */
static bool is_of_connection(pmix_status_t status)
{
    return status == PMIX_ERR_LOST_CONNECTION || status == PMIX_ERR_PARTIAL_SUCCESS;
}

/* A participant that has ended gives the operation one status. libpmix's own statuses differ by
 * release and by what else the node has called. An operation that is to survive the loss fails with
 * it first, too: so the others hear of it (survive.c). */
static void find_lost(struct collective *c)
{
    const struct signature sig = {.kind = c->kind, .members = c->members};
    pmix_status_t status = c->lost ? tasks_status(c->server, &sig) : PMIX_SUCCESS;
    if (status != PMIX_SUCCESS &&
        (c->call.status == PMIX_SUCCESS || is_of_connection(c->call.status)))
        c->call.status = status;
}

/* With LIBRARY_WILDCARD_IS_LOCAL libpmix takes a construct over all processes of a namespace,
 * without a context id, for one of its own node's processes alone: it ends at once, without those
 * of other nodes, and no host is asked. The first that a host hears of the group is its destruct.
 * One server tells, once. */
static void tell_unawaited(const struct collective *c)
{
    struct server *server = c->server;
    bool all = false;
    for (size_t i = 0; i < c->nprocs; i++)
        all |= c->procs[i].rank == PMIX_RANK_WILDCARD;
    if (!all || server->told_unawaited ||
        !library_has(server->library, LIBRARY_WILDCARD_IS_LOCAL) || server->boot.node != 0 ||
        server->boot.nnodes == 1)
        return;
    server->told_unawaited = true;
    log_error("group \"%s\" was made without awaiting its members on other nodes: %s", c->id,
              library_advice(LIBRARY_WILDCARD_IS_LOCAL));
}

static void on_sought(struct seek_wait *wait)
{
    struct collective *c = (struct collective *)((char *)wait - offsetof(struct collective, seek));
    collective_run(&c->request.item);
}

/* Whether the request waits until its namespaces are known here; once. */
static bool seek(struct collective *c)
{
    bool known = true;
    if (c->state != COLLECTIVE_NEW || c->kind == COLL_DESTRUCT ||
        c->role != COLLECTIVE_PARTICIPANTS)
        return false;
    for (size_t i = 0; i < c->nprocs; i++) {
        known = known && (nspace_find(c->server->nspace, c->procs[i].nspace) != NULL ||
                          book_named(&c->server->book, c->procs[i].nspace, NULL) != NULL);
        if (collective_add_proc(c->server, &c->sought, &c->procs[i]) != 0)
            return false;
    }
    procset_canonical(&c->sought);
    if (known)
        return false;
    int64_t ms = c->call.timeout > 0 ? INT64_C(1000) * c->call.timeout : SEEK_WAIT_MS;
    c->started = now_ms();
    c->seek = (struct seek_wait){.set = &c->sought, .done = on_sought};
    collective_move(c, COLLECTIVE_SEEK);
    seek_begin(c->server, &c->seek, ms);
    return true;
}

/* Takes the time that seeking took out of the deadline; none is left: the call fails with it. */
static void spend(struct collective *c)
{
    uint32_t spent = (uint32_t)((now_ms() - c->started + 999) / 1000);
    if (c->call.timeout > spent)
        c->call.timeout -= spent;
    else if (c->call.status == PMIX_SUCCESS)
        c->call.status = PMIX_ERR_TIMEOUT;
}

/* What is set once, before the first call. @return PMIX_SUCCESS, or why it cannot be called */
static pmix_status_t begin(struct collective *c)
{
    for (size_t i = 0; i < c->nprocs; i++)
        if (c->procs[i].nspace[0] == '\0')
            return refused(PMIX_ERR_NOT_FOUND, "%s: process %zu of %zu has no namespace",
                           coll_traits(c->kind)->name, i + 1, c->nprocs);
    if (c->role == COLLECTIVE_LEADER && !members_leads_alone(c))
        return refused_aloud(PMIX_ERR_BAD_PARAM,
                             "group \"%s\": a leader of a bootstrap has to give itself as the only "
                             "process",
                             c->id);
    c->call.id = c->id;
    c->call.caller = &c->procs_of_caller;
    if (c->call.timeout == 0)
        c->call.timeout = default_timeout(c->server, c->kind);
    c->timeout = c->call.timeout;
    if (c->started != 0 && c->timeout > 0)
        spend(c);
    else
        c->started = now_ms();
    if (collective_expand(c) != 0 || members_expand(c) != 0)
        return PMIX_ERR_NOMEM;
    if (c->kind == COLL_DESTRUCT) {
        const struct registry_entry *e = registry_group(c->server->registry, c->id, &c->all);
        c->notify = c->notify || (e != NULL && e->notify);
        if (e == NULL)
            tell_unawaited(c);
    }
    c->apart = has_task(c, is_forgotten);
    c->lacking = lacking_calls(c);
    c->lost = c->lost || c->lacking > 0 ||
              (!coll_traits(c->kind)->is_group && (c->apart || has_task(c, task_is_lost)));
    if (c->lost && c->kind == COLL_DESTRUCT && c->notify)
        loss_group_ends(c->server, c->id, &c->all);
    return collective_prepare(c) == 0 ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

/* Takes a connection's name among the participants into account: a disconnect is of that
 * connection, and a fence by name is another one than that of the same processes by their own
 * names. */
static void take_name(struct collective *c)
{
    const struct book_entry *named = NULL;
    bool is_open = true;
    for (size_t i = 0; i < c->nprocs && named == NULL; i++)
        named = book_named(&c->server->book, c->procs[i].nspace, &is_open);
    if (named == NULL || c->state != COLLECTIVE_NEW)
        return;
    const char *id = c->kind == COLL_DISCONNECT ? named->id
                     : c->kind == COLL_FENCE    ? named->name
                                                : c->id;
    char *copy = strdup(id);
    pmix_status_t fault = PMIX_SUCCESS;
    if (coll_traits(c->kind)->is_group)
        fault = refused_aloud(PMIX_ERR_NOT_SUPPORTED,
                              "group \"%s\": %s is the name of a connection, which libpmix would "
                              "give as a member; name its processes",
                              c->id, named->name);
    else if (!is_open)
        fault = refused(PMIX_ERR_NOT_FOUND, "%s: the connection %s has been closed",
                        coll_traits(c->kind)->name, named->name);
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = fault;
    free(c->id);
    c->id = copy;
}

/* A leader or an added member is one process. */
static void hand_over(struct collective *c)
{
    struct engine_result bad = {.status = c->call.status};
    if (c->role == COLLECTIVE_PARTICIPANTS)
        engine_call(c->server->engine, &c->call);
    else if (c->role == COLLECTIVE_LEADER)
        engine_lead(c->server->engine, &c->call);
    else if (bad.status == PMIX_SUCCESS)
        engine_join(c->server->engine, &c->call);
    else
        collective_complete(c, &bad);
}

void collective_run(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    take_name(c);
    if (pending_is_behind(c)) {
        server_hold(c->server, item);
        return;
    }
    if (seek(c))
        return;
    struct engine_result failed = {.status = c->state >= COLLECTIVE_HELD ? 0 : begin(c)};
    bool ready = failed.status == PMIX_SUCCESS;
    if (!pending_add(c)) {
        collective_free(c);
        return;
    }
    if (!ready) {
        collective_complete(c, &failed);
        return;
    }
    if (c->lost && c->state != COLLECTIVE_HELD && !tasks_loss_is_told(c->server, &c->members)) {
        collective_move(c, COLLECTIVE_HOLD);
        server_hold(c->server, item);
        return;
    }
    collective_move(c, COLLECTIVE_CALL);
    c->call.done = on_done;
    c->handed_up = now_ms();
    stranded_called(c->server, c->kind, c->id);
    if (c->kind == COLL_CONNECT || c->kind == COLL_DISCONNECT)
        connect_begin(c);
    spread_speak(c->server, &c->members);
    find_lost(c);
    if (log_wants(LOG_LEVEL_DEBUG)) {
        char what[COLL_DESCRIBE_MAX];
        coll_describe(c->kind, c->id, what, sizeof what);
        log_debug("handoff: %s of %zu processes", what, c->nprocs);
    }
    hand_over(c);
}
