/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that no construct of ours has made: libpmix forms them by events (PMIx_Group_invite), and
 * members leave by one (PMIx_Group_leave). The host sees these events pass, and so knows the
 * groups for queries. Of a lost member it knows whether its clients have been told. */
#include "common/notify/event.h"
#include "common/nspace/library.h"
#include "common/server/steps/steps.h"

#include <pmix.h>
#include <string.h>

/* An older libpmix's completion has the members in its range alone. */
static const pmix_value_t *find_procs(pmix_status_t code, const pmix_info_t info[], size_t ninfo)
{
    static const char *const formed[] = {PMIX_GROUP_MEMBERSHIP, PMIX_EVENT_CUSTOM_RANGE, NULL};
    static const char *const left[] = {PMIX_EVENT_AFFECTED_PROC, NULL};
    for (const char *const *key = code == PMIX_GROUP_CONSTRUCT_COMPLETE ? formed : left;
         *key != NULL; key++)
        for (size_t i = 0; i < ninfo; i++)
            if (PMIX_CHECK_KEY(&info[i], *key))
                return &info[i].value;
    return NULL;
}

/* @return 0, or -1: no processes, or one whose namespace is no name */
static int read_procs(const struct boot *boot, struct event_group *group, const pmix_value_t *value)
{
    struct proclist all = {0};
    const pmix_data_array_t *array = value->data.darray;
    const pmix_proc_t *procs = NULL;
    size_t n = 0;
    int rc = 0;
    if (value->type == PMIX_PROC) {
        procs = value->data.proc;
        n = 1;
    } else if (value->type == PMIX_DATA_ARRAY && array != NULL && array->type == PMIX_PROC) {
        procs = array->array;
        n = array->size;
    }
    for (size_t i = 0; procs != NULL && i < n && rc == 0; i++)
        if (procs[i].rank == PMIX_RANK_WILDCARD && strcmp(procs[i].nspace, boot->nspace) == 0)
            rc = proclist_add(&all, boot->nspace, 0, boot->ntasks - 1);
        else
            rc = proclist_add(&all, procs[i].nspace, procs[i].rank, procs[i].rank);
    if (rc == 0)
        rc = proclist_add_new(&group->order, &all, &group->members);
    proclist_free(&all);
    return rc != 0 || procset_size(&group->members) == 0 ? -1 : 0;
}

void event_group_free(struct event_group *group)
{
    procset_free(&group->members);
    proclist_free(&group->order);
}

void event_group_read(const struct boot *boot, struct event_group *group, pmix_status_t code,
                      const pmix_proc_t *source, const pmix_info_t info[], size_t ninfo)
{
    if (code != PMIX_GROUP_CONSTRUCT_COMPLETE && code != PMIX_GROUP_LEFT &&
        code != PMIX_GROUP_MEMBER_FAILED)
        return;
    const pmix_value_t *procs = find_procs(code, info, ninfo);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ID) && info[i].value.type == PMIX_STRING &&
            info[i].value.data.string != NULL &&
            strlen(info[i].value.data.string) <= PROCSET_NAME_MAX)
            strcpy(group->id, info[i].value.data.string);
    if (procs != NULL && group->id[0] != '\0' && read_procs(boot, group, procs) == 0)
        group->what = code == PMIX_GROUP_LEFT            ? EVENT_GROUP_LEFT
                      : code == PMIX_GROUP_MEMBER_FAILED ? EVENT_GROUP_FAILED
                                                         : EVENT_GROUP_FORMED;
    /* The host's own events come from the process that they are about. Others are a program's own
     * affair. */
    if (group->what == EVENT_GROUP_FAILED &&
        (procset_size(&group->members) != 1 ||
         !procset_has(&group->members, source->nspace, source->rank)))
        group->what = EVENT_NO_GROUP;
}

static void leave(struct server *server, const struct event_group *group)
{
    for (uint32_t i = 0; i < server->registry->n; i++) {
        struct registry_entry *e = &server->registry->entries[i];
        struct procset rest = {0};
        if (e->kind != REGISTRY_GROUP || strcmp(e->id, group->id) != 0)
            continue;
        procset_except(&rest, &e->members, &group->members);
        if (procset_equal(&rest, &e->members)) {
            procset_free(&rest);
            continue;
        }
        if (server_members_here(server, &rest) > 0) { /* only such a server is told of the end */
            procset_free(&e->members);
            e->members = rest;
        } else {
            registry_remove(server->registry, REGISTRY_GROUP, group->id, &e->members);
            procset_free(&rest);
        }
        return; /* a process is in one group of an id */
    }
}

bool event_group_note(struct server *server, const struct event_group *group)
{
    const struct procset_part *who = group->members.parts;
    if (group->what == EVENT_GROUP_FAILED)
        return registry_tell(server->registry, group->id, who->nspace, who->ranks.v->first);
    if (group->what == EVENT_GROUP_LEFT) {
        leave(server, group);
        steps_group_ended(server);
    } else if (group->what == EVENT_GROUP_FORMED &&
               server_members_here(server, &group->members) > 0) {
        registry_add(server->registry, REGISTRY_GROUP, group->id, &group->members);
        if (library_has(server->library, LIBRARY_GROUP_ORDER))
            registry_order(server->registry, group->id, &group->members, &group->order);
    }
    return true;
}
