/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's own server tells of it, in all steps. Only of a server that is lost each other one
 * tells its own clients. */
#include "common/notify/connection.h"

#include "common/notify/event.h"
#include "common/nspace/infos.h"
#include "common/nspace/procs.h"
#include "common/nspace/register.h"
#include "common/util/log.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <string.h>

static void describe(const struct server *server, struct infos *list, const char *id,
                     const struct procset *to, const pmix_proc_t *about)
{
    pmix_info_t range;
    PMIX_INFO_CONSTRUCT(&range);
    procs_load_range(&range, server->nspace, to);
    infos_put(list, PMIX_EVENT_CUSTOM_RANGE, range.value.data.darray, PMIX_DATA_ARRAY);
    PMIX_INFO_DESTRUCT(&range);
    infos_put(list, PMIX_EVENT_AFFECTED_PROC, about, PMIX_PROC);
    if (*id != '\0')
        infos_str(list, PMIX_CONNECT_ID, id);
    infos_bool(list, PMIX_EVENT_NON_DEFAULT, true);
}

/* @param everywhere also on other servers @param to empty: no process is told */
static void raise_event(struct server *server, pmix_status_t code, const char *id,
                        const struct procset *to, const pmix_proc_t *about, bool everywhere)
{
    struct infos list = {0};
    struct notification event = {0};
    if (to->nparts == 0 || server->ending)
        return;
    describe(server, &list, id, to, about);
    if (everywhere && notification_copy(&server->boot, &event, code, about, PMIX_RANGE_CUSTOM,
                                        list.info, list.n) == PMIX_SUCCESS)
        notification_send(server, &event); /* others may be gone, too */
    notification_free(&event);
    notification_give(code, about, PMIX_RANGE_CUSTOM, list.info, list.n);
}

void connection_tell_of_own(struct server *server, pmix_status_t code, const char *id,
                            const struct procset *members)
{
    const struct boot_node *here = boot_here(&server->boot);
    pmix_proc_t about;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        PMIX_LOAD_PROCID(&about, server->boot.nspace, here->ranks[k]);
        if (procset_has(members, about.nspace, about.rank))
            raise_event(server, code, id, members, &about, true);
    }
}

void connection_task_ended(struct server *server, uint32_t slot)
{
    const char *nspace = server->boot.nspace;
    uint32_t rank = boot_here(&server->boot)->ranks[slot];
    const struct book_entry *c = NULL;
    pmix_proc_t about;
    PMIX_LOAD_PROCID(&about, nspace, rank);
    while ((c = book_next(&server->book, c, nspace, rank)) != NULL) {
        struct procset to = {0};
        if (c->directives & BOOK_EARLY_TERM)
            continue;
        procset_unite(&to, &c->members);
        if (task_is_lost(&server->tasks[slot]))
            procset_drop(&to, nspace); /* loss.h tells them */
        raise_event(server, PMIX_ERR_PROC_TERM_WO_SYNC, c->id, &to, &about, true);
        procset_free(&to);
    }
}

void connection_process_lost(struct server *server, const char *nspace, uint32_t rank)
{
    const struct book_entry *c = NULL;
    pmix_proc_t about;
    PMIX_LOAD_PROCID(&about, nspace, rank);
    while ((c = book_next(&server->book, c, nspace, rank)) != NULL)
        if (!(c->directives & BOOK_EARLY_TERM))
            raise_event(server, PMIX_ERR_PROC_TERM_WO_SYNC, c->id, &c->members, &about, false);
}

/* It is out of the book. */
static void end(struct server *server, struct book_entry *entry)
{
    if (entry->name[0] != '\0') {
        names_remove(&server->registered, entry->name);
        register_end(entry->name);
    }
    book_drop(entry);
}

void connection_nspace_ended(struct server *server, const char *nspace)
{
    struct book_entry *c;
    bool was_open;
    pmix_proc_t about;
    PMIX_LOAD_PROCID(&about, nspace, PMIX_RANK_WILDCARD);
    while ((c = book_take(&server->book, nspace, &was_open)) != NULL) {
        if (was_open)
            log_info("namespace %s has ended without disconnecting", nspace);
        if (was_open && !(c->directives & BOOK_EARLY_TERM))
            raise_event(server, PMIX_EVENT_JOB_END, c->id, &c->members, &about, false);
        end(server, c);
    }
}

void connection_close(struct server *server, const char *id, const struct procset *members)
{
    struct book_entry *c;
    book_close(&server->book, id, members);
    while ((c = book_take_oldest(&server->book)) != NULL)
        end(server, c);
}

int connection_name(struct server *server, struct book_entry *entry)
{
    uint64_t size = procset_size(&entry->members);
    struct err err = {0};
    if (!book_name(entry))
        return 0;
    uint32_t nlocal = server_members_here(server, &entry->members);
    int rc = size > PMIX_RANK_VALID - nlocal
                 ? err_set(&err, "it has too many processes")
                 : register_connection(entry->name, (uint32_t)size, nlocal, &err);
    if (rc == 0)
        names_add(&server->registered, entry->name);
    if (rc != 0) {
        log_error("a connection (PMIx_Connect) gets no namespace: %s", err.text);
        entry->name[0] = '\0';
    }
    return rc;
}
