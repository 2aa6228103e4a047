/* SPDX-License-Identifier: BSD-3-Clause */
/* Events about processes that are lost: for all that ask, and for members of their groups. */
#include "common/notify/loss.h"

#include "common/notify/connection.h"
#include "common/notify/event.h"
#include "common/nspace/foreign.h"
#include "common/nspace/infos.h"
#include "common/nspace/procs.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdio.h>

/* Whom an event goes to. */
enum { HERE = 1, ELSEWHERE = 2 };

/* Raises an event whose source is the process that it is about. @param list taken over */
static void raise_event(struct server *server, pmix_status_t code, const pmix_proc_t *about,
                        pmix_data_range_t range, struct infos *list, int where)
{
    pmix_status_t rc = PMIX_SUCCESS;
    if (where & ELSEWHERE) {
        struct notification event = {0};
        rc = notification_copy(&server->boot, &event, code, about, range, list->info, list->n);
        if (rc == PMIX_SUCCESS)
            rc = notification_send(server, &event);
        notification_free(&event);
    }
    /* In a group others may be lost, too, or be the only ones elsewhere. */
    bool partly = rc == PMIX_ERR_PARTIAL_SUCCESS || rc == PMIX_ERR_UNREACH;
    if (rc != PMIX_SUCCESS && !(partly && range == PMIX_RANGE_CUSTOM))
        log_error("other nodes are not told that rank %u is lost: %s", about->rank,
                  PMIx_Error_string(rc));
    /* The array belongs to libpmix's allocator either way: malloc(). */
    if (where & HERE)
        notification_give(code, about, range, list->info, list->n);
    else
        infos_free(list);
}

/* ---- groups ---- */

static void raise_member(struct server *server, const char *id, const struct procset *members,
                         const pmix_proc_t *about, int where)
{
    struct infos list = {0};
    pmix_info_t range;
    PMIX_INFO_CONSTRUCT(&range);
    procs_load_range(&range, server->nspace, members);
    infos_put(&list, PMIX_EVENT_CUSTOM_RANGE, range.value.data.darray, PMIX_DATA_ARRAY);
    PMIX_INFO_DESTRUCT(&range);
    infos_put(&list, PMIX_EVENT_AFFECTED_PROC, about, PMIX_PROC);
    infos_str(&list, PMIX_GROUP_ID, id);
    log_debug("notify: group \"%s\" has lost %s rank %u", id, about->nspace, about->rank);
    raise_event(server, PMIX_GROUP_MEMBER_FAILED, about, PMIX_RANGE_CUSTOM, &list, where);
}

void loss_tell_members(struct server *server, const char *id, const struct procset *members,
                       const char *nspace, uint32_t rank)
{
    pmix_proc_t about;
    PMIX_LOAD_PROCID(&about, nspace, rank);
    registry_tell(server->registry, id, nspace, rank);
    raise_member(server, id, members, &about, HERE);
}

void loss_tell_node(struct server *server, const char *id, const struct procset *members,
                    const char *nspace, uint32_t rank)
{
    struct procset there = {0};
    pmix_proc_t about;
    uint32_t node;
    int rc = 0;
    PMIX_LOAD_PROCID(&about, nspace, rank);
    if (nspace_node(server->nspace, nspace, rank, &node) != 0)
        return;
    const struct nspace *ns = nspace_of(server->nspace, node);
    const struct boot_node *at = &ns->boot->nodes[node - ns->base];
    for (uint32_t k = 0; k < at->ntasks && rc == 0; k++)
        if (at->ranks[k] != rank && procset_has(members, ns->boot->nspace, at->ranks[k]))
            rc = procset_add(&there, ns->boot->nspace, at->ranks[k], at->ranks[k]);
    procset_canonical(&there);
    if (there.nparts > 0)
        raise_member(server, id, &there, &about, ELSEWHERE);
    procset_free(&there);
}

static bool concerns(const struct registry_entry *e, const pmix_proc_t *about)
{
    return e->kind == REGISTRY_GROUP && e->notify &&
           procset_has(&e->members, about->nspace, about->rank);
}

/* @param everywhere it is a task here: servers of other nodes do not know that it is gone */
static void tell_group(struct server *server, const struct registry_entry *e,
                       const pmix_proc_t *about, bool everywhere)
{
    int where = everywhere ? ELSEWHERE : 0;
    if (!(everywhere && e->ends) &&
        registry_tell(server->registry, e->id, about->nspace, about->rank))
        where |= HERE;
    if (where != 0)
        raise_member(server, e->id, &e->members, about, where);
}

static void tell_groups(struct server *server, const char *nspace, uint32_t rank, bool everywhere)
{
    pmix_proc_t about;
    PMIX_LOAD_PROCID(&about, nspace, rank);
    for (uint32_t i = 0; i < server->registry->n; i++)
        if (concerns(&server->registry->entries[i], &about))
            tell_group(server, &server->registry->entries[i], &about, everywhere);
}

/* Calls @p tell_group for tasks of this node that are known to be lost. */
static void tell_lost_here(struct server *server, const struct registry_entry *e, bool everywhere)
{
    const struct boot_node *here = boot_here(&server->boot);
    pmix_proc_t about;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        PMIX_LOAD_PROCID(&about, server->boot.nspace, here->ranks[k]);
        if (server->tasks[k].state == TASK_TOLD && concerns(e, &about))
            tell_group(server, e, &about, everywhere);
    }
}

/* Calls tell_group() for processes of servers that were lost before the group was known here. */
static void tell_lost_servers(struct server *server, const struct registry_entry *e)
{
    pmix_proc_t about;
    for (struct procset_at at = {0}; procset_next(&e->members, &at);) {
        uint32_t node;
        PMIX_LOAD_PROCID(&about, at.nspace, at.rank);
        if (nspace_node(server->nspace, about.nspace, about.rank, &node) == 0 &&
            engine_is_lost(server->engine, node))
            tell_group(server, e, &about, false);
    }
}

void loss_group_formed(struct server *server, const char *id, const struct procset *members)
{
    struct registry_entry *e = registry_group(server->registry, id, members);
    if (e == NULL || server->ending)
        return;
    tell_lost_here(server, e, true);
    tell_lost_servers(server, e);
}

void loss_group_ends(struct server *server, const char *id, const struct procset *members)
{
    struct registry_entry *e = registry_group(server->registry, id, members);
    if (e != NULL)
        e->ends = true;
}

/* libpmix tells of processes that were lost before they called, and of no others. It does not say
 * which these were: as many as it lacked, of the processes that had ended when it handed the
 * destruct up. Where more had ended, we rather tell twice than never. */
void loss_group_ended(struct server *server, const char *id, const struct procset *members,
                      uint32_t lacking, int64_t at)
{
    const struct boot_node *here = boot_here(&server->boot);
    const struct registry_entry *e = registry_group(server->registry, id, members);
    pmix_proc_t about;
    uint32_t before = 0;
    if (e == NULL || !e->ends || server->ending)
        return;
    for (int later = 0; later < 2; later++)
        for (uint32_t k = 0; k < here->ntasks; k++) {
            const struct task *task = &server->tasks[k];
            PMIX_LOAD_PROCID(&about, server->boot.nspace, here->ranks[k]);
            if (!task_is_lost(task) || !concerns(e, &about))
                continue;
            if (!later)
                before += task->at <= at;
            else if (task->at > at || before > lacking)
                tell_group(server, e, &about, false);
        }
}

void loss_group_stays(struct server *server, const char *id, const struct procset *members)
{
    struct registry_entry *e = registry_group(server->registry, id, members);
    if (e == NULL || !e->ends)
        return;
    e->ends = false;
    if (!server->ending)
        tell_lost_here(server, e, false);
}

/* ---- all that ask ---- */

/* What a process is told of a loss: the first event goes to any handler, the others to handlers
 * that were registered for just them, so that a default handler is called once. */
enum loss_end { ANY_END, BAD_END, BY_SIGNAL };
static const struct {
    pmix_status_t code;
    enum loss_end when; /* told of this end and of worse ones */
} loss_codes[] = {
    {PMIX_ERR_PROC_TERM_WO_SYNC, ANY_END},     {PMIX_PROC_TERMINATED, ANY_END},
    {PMIX_EVENT_PROC_TERMINATED, ANY_END},     {PMIX_ERR_PROC_ABORTED, BAD_END},
    {PMIX_ERR_PROC_ABORTED_BY_SIG, BY_SIGNAL},
};

/* @param task how it ended; NULL: it is not known */
static void raise_loss(struct server *server, uint32_t rank, const struct task *task,
                       const char *text, int where)
{
    pmix_proc_t proc;
    bool known = task != NULL && task->code != BOOT_CODE_UNKNOWN;
    enum loss_end end = task != NULL && task->sig != 0 ? BY_SIGNAL
                        : known && task->code != 0     ? BAD_END
                                                       : ANY_END;
    PMIX_LOAD_PROCID(&proc, server->boot.nspace, rank);
    for (size_t i = 0; i < sizeof loss_codes / sizeof *loss_codes; i++) {
        struct infos list = {0};
        if (loss_codes[i].when > end)
            continue;
        infos_put(&list, PMIX_EVENT_AFFECTED_PROC, &proc, PMIX_PROC);
        infos_str(&list, PMIX_EVENT_TEXT_MESSAGE, text);
        if (end != BY_SIGNAL && known) {
            int code = (int)task->code;
            infos_put(&list, PMIX_EXIT_CODE, &code, PMIX_INT);
        }
        if (i > 0)
            infos_bool(&list, PMIX_EVENT_NON_DEFAULT, true);
        raise_event(server, loss_codes[i].code, &proc, PMIX_RANGE_SESSION, &list, where);
    }
}

void loss_task(struct server *server, uint32_t slot, const char *text)
{
    uint32_t rank = boot_here(&server->boot)->ranks[slot];
    raise_loss(server, rank, &server->tasks[slot], text, HERE | ELSEWHERE);
    tell_groups(server, server->boot.nspace, rank, true);
}

void loss_server(struct server *server, uint32_t node, const char *why)
{
    const struct nspace *ns = nspace_of(server->nspace, node);
    if (ns == NULL || ns->boot == NULL)
        return;
    const struct boot_node *lost = &ns->boot->nodes[node - ns->base];
    char text[512];
    snprintf(text, sizeof text, "muster-server on %s is lost: %s", lost->name, why);
    for (uint32_t k = 0; k < lost->ntasks; k++) {
        if (ns == server->nspace)
            raise_loss(server, lost->ranks[k], NULL, text, HERE);
        else
            connection_process_lost(server, ns->boot->nspace, lost->ranks[k]);
        tell_groups(server, ns->boot->nspace, lost->ranks[k], false);
    }
}
