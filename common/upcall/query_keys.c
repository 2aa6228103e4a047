/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of PMIx_Query_info that come to a host, each with what answers it or why nothing does;
 * docs/keys.md has the same list for users. Keys that libpmix answers by itself are not here. And
 * the values that follow from the layout of the step alone. */
#include "common/nspace/built.h"
#include "common/nspace/maps.h"
#include "common/upcall/directives.h"
#include "common/upcall/query.h"
#include "common/util/text.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* ---- values of the layout ---- */

static pmix_status_t load_namespaces(const struct query_item *item, pmix_value_t *value)
{
    char *list = strdup("");
    (void)item;
    for (const struct nspace *ns = upcall_server()->nspace; ns != NULL; ns = ns->next)
        if (query_is_active(ns))
            list = text_append(list, ",", ns->boot->nspace);
    return query_give_text(value, list);
}

static pmix_status_t load_nodes(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    /* Without a namespace all that libpmix itself knows are meant. */
    if (ns == NULL || item->filter->nspace[0] == '\0')
        return PMIX_ERR_NOT_FOUND;
    return query_give_text(value, map_nodes(ns->boot, MAP_ALL_APPS));
}

static pmix_status_t load_peers(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    uint32_t node =
        ns != NULL && item->filter->nspace[0] != '\0' ? query_node(ns, item->filter) : UINT32_MAX;
    struct infos list = {0};
    if (node == UINT32_MAX || ns->boot->nodes[node].ntasks == 0)
        return PMIX_ERR_NOT_FOUND;
    infos_procs(&list, "", ns->boot->nspace, ns->boot->nodes[node].ranks,
                ns->boot->nodes[node].ntasks);
    *value = list.info[0].value;
    list.n = 0;
    infos_free(&list);
    return PMIX_SUCCESS;
}

/* Processors on a node of the allocation, as they were when the step began; 0: not known. */
static uint32_t slots_then(const struct boot *boot, const char *name)
{
    for (uint32_t i = 0; i < boot->nnodes; i++)
        if (strcmp(boot->nodes[i].name, name) == 0)
            return boot->nodes[i].slots;
    return 0;
}

/* The nodes of the allocation as they are now, "name=slots" or "name", separated by commas, for
 * next_node(); where the RM does not tell, as they were when the step began.
 * @return PMIX_SUCCESS with a copy, or why not */
static pmix_status_t copy_nodes(const struct query_item *item, char **names)
{
    const struct boot *boot = &upcall_server()->boot;
    const char *wanted = item->filter->allocation, *now = item->query->nodes;
    const char *list = now != NULL ? now : boot->allocation.nodes;
    if (list[0] == '\0' || (wanted != NULL && strcmp(wanted, boot->session) != 0))
        return PMIX_ERR_NOT_FOUND;
    *names = strdup(list);
    return PMIX_SUCCESS;
}

/* @param names at first, then NULL @return the next name, or NULL */
static const char *next_node(char *names, char **save, uint32_t *slots)
{
    char *name = strtok_r(names, ",", save), *number = name != NULL ? strchr(name, '=') : NULL;
    if (name == NULL)
        return NULL;
    if (number != NULL)
        *number++ = '\0';
    *slots = number != NULL ? (uint32_t)strtoul(number, NULL, 10)
                            : slots_then(&upcall_server()->boot, name);
    return name;
}

static pmix_status_t load_allocation(const struct query_item *item, pmix_value_t *value)
{
    struct infos list = {0};
    char *names, *save = NULL;
    const char *name;
    uint32_t slots;
    pmix_status_t rc = copy_nodes(item, &names);
    if (rc != PMIX_SUCCESS)
        return rc;
    for (name = next_node(names, &save, &slots); name != NULL;
         name = next_node(NULL, &save, &slots)) {
        struct infos node = {0};
        infos_str(&node, PMIX_HOSTNAME, name);
        if (slots > 0)
            infos_u32(&node, PMIX_NUM_SLOTS, slots);
        infos_array(&list, PMIX_NODE_INFO, &node);
    }
    free(names);
    return query_give_infos(value, &list);
}

/* The standard wants a text: "granted: 2 nodes, c07,c08". */
static pmix_status_t load_allocation_status(const struct query_item *item, pmix_value_t *value)
{
    char *names, *save = NULL, *list;
    const char *name;
    uint32_t slots, n = 0;
    pmix_status_t rc = copy_nodes(item, &names);
    if (rc != PMIX_SUCCESS)
        return rc;
    list = strdup("");
    for (name = next_node(names, &save, &slots); name != NULL;
         name = next_node(NULL, &save, &slots), n++)
        list = text_append(list, ",", name);
    free(names);
    char *text = text_format("granted: %u nodes, %s", n, list);
    free(list);
    return query_give_text(value, text);
}

static pmix_status_t load_time(const struct query_item *item, pmix_value_t *value)
{
    if (query_nspace(item->filter) != upcall_server()->nspace ||
        item->query->seconds == JOB_NOW_UNKNOWN)
        return PMIX_ERR_NOT_FOUND;
    if (item->query->seconds == JOB_NOW_LATE)
        return PMIX_ERR_TIMEOUT;
    value->type = PMIX_UINT32;
    value->data.uint32 =
        item->query->seconds < UINT32_MAX ? (uint32_t)item->query->seconds : UINT32_MAX;
    return PMIX_SUCCESS;
}

/* Of the newest connection of the process that has a name. */
static const struct book_entry *connection_of(const struct query_filter *filter)
{
    const struct book *book = &upcall_server()->book;
    const struct book_entry *c = NULL;
    while ((c = book_next(book, c, filter->nspace, filter->rank)) != NULL)
        if (c->name[0] != '\0' &&
            strcmp(c->id, filter->connect != NULL ? filter->connect : "") == 0)
            return c;
    return NULL;
}

static pmix_status_t load_connection(const struct query_item *item, pmix_value_t *value)
{
    const struct book_entry *c = connection_of(item->filter);
    return c != NULL ? query_give_text(value, strdup(c->name)) : PMIX_ERR_NOT_FOUND;
}

static pmix_status_t load_place(const struct query_item *item, pmix_value_t *value)
{
    const struct query_filter *f = item->filter;
    const struct book_entry *c = connection_of(f);
    if (c == NULL)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_PROC_RANK;
    value->data.rank = (pmix_rank_t)procset_place(&c->members, f->nspace, f->rank);
    return PMIX_SUCCESS;
}

/* Of what PMIx_Spawn heeds. */
static pmix_status_t load_spawn(const struct query_item *item, pmix_value_t *value)
{
    const struct directive_name *name;
    char *list = strdup("");
    (void)item;
    for (size_t i = 0; (name = directives_name("PMIx_Spawn", i)) != NULL; i++)
        list = text_append(list, ",", name->key);
    return query_give_text(value, list);
}

static pmix_status_t load_debug(const struct query_item *item, pmix_value_t *value)
{
    (void)item;
    return query_give_text(value, strdup(PMIX_DEBUG_STOP_ON_EXEC "," PMIX_DEBUG_STOP_IN_INIT
                                                                 "," PMIX_DEBUG_STOP_IN_APP
                                                                 "," PMIX_DEBUG_TARGET));
}

static query_load_fn load_keys;

/* ---- the table ---- */

#define OF_JOB PMIX_NSPACE
#define OF_PROC PMIX_PROCID "," PMIX_NSPACE "," PMIX_RANK "," PMIX_QUERY_LOCAL_ONLY
#define OF_CONNECTION PMIX_PROCID "," PMIX_CONNECT_ID
#define OF_NODE PMIX_HOSTNAME "," PMIX_NODEID

static const struct query_key keys[] = {
    {PMIX_QUERY_SUPPORTED_KEYS, QUERY_HERE, 0, load_keys, "", NULL},
    {PMIX_QUERY_NAMESPACES, QUERY_HERE, 0, load_namespaces, "", NULL},
    {PMIX_QUERY_NAMESPACE_INFO, QUERY_APPS, CENSUS_COMMAND, query_command, OF_JOB, NULL},
    {PMIX_QUERY_JOB_STATUS, QUERY_JOB, CENSUS_TASKS, query_status, OF_JOB, NULL},
    {PMIX_QUERY_PROC_TABLE, QUERY_JOB, CENSUS_TASKS, query_table, OF_JOB "," PMIX_QUERY_LOCAL_ONLY,
     NULL},
    {PMIX_QUERY_LOCAL_PROC_TABLE, QUERY_NODE, CENSUS_TASKS, query_local_table, OF_JOB "," OF_NODE,
     NULL},
    {PMIX_PROC_PID, QUERY_PROC, CENSUS_TASKS, query_pid, OF_PROC, NULL},
    {PMIX_PROC_STATE_STATUS, QUERY_PROC, CENSUS_TASKS, query_state, OF_PROC, NULL},
    {PMIX_QUERY_MEMORY_USAGE, QUERY_NODE, CENSUS_MEMORY, query_memory, OF_NODE, NULL},
    {PMIX_DAEMON_MEMORY, QUERY_NODE, CENSUS_MEMORY, query_memory, OF_NODE, NULL},
    {PMIX_CLIENT_AVG_MEMORY, QUERY_NODE, CENSUS_MEMORY, query_memory, OF_NODE, NULL},
    {PMIX_QUERY_NUM_GROUPS, QUERY_SESSION, CENSUS_GROUPS, query_number, PMIX_QUERY_LOCAL_ONLY,
     NULL},
    {PMIX_QUERY_GROUP_NAMES, QUERY_SESSION, CENSUS_GROUPS, query_names, PMIX_QUERY_LOCAL_ONLY,
     NULL},
    {PMIX_QUERY_GROUP_MEMBERSHIP, QUERY_SESSION, CENSUS_GROUPS, query_members,
     PMIX_GROUP_ID "," PMIX_QUERY_LOCAL_ONLY, NULL},
    {PMIX_QUERY_NUM_PSETS, QUERY_SESSION, CENSUS_GROUPS, query_number, PMIX_QUERY_LOCAL_ONLY, NULL},
    {PMIX_QUERY_PSET_NAMES, QUERY_SESSION, CENSUS_GROUPS, query_names, PMIX_QUERY_LOCAL_ONLY, NULL},
    {PMIX_QUERY_PSET_MEMBERSHIP, QUERY_SESSION, CENSUS_GROUPS, query_members,
     PMIX_PSET_NAME "," PMIX_QUERY_LOCAL_ONLY, NULL},
    {PMIX_QUERY_RESOLVE_NODE, QUERY_HERE, 0, load_nodes, OF_JOB, NULL},
    {PMIX_QUERY_RESOLVE_PEERS, QUERY_HERE, 0, load_peers, OF_JOB "," OF_NODE, NULL},
    {PMIX_QUERY_ALLOCATION, QUERY_RM, 0, load_allocation, PMIX_ALLOC_ID, NULL},
    {PMIX_QUERY_ALLOC_STATUS, QUERY_RM, 0, load_allocation_status, PMIX_ALLOC_ID, NULL},
    {PMIX_TIME_REMAINING, QUERY_RM, 0, load_time, OF_JOB, NULL},
    {PMIX_QUERY_SPAWN_SUPPORT, QUERY_HERE, 0, load_spawn, "", NULL},
    {PMIX_QUERY_DEBUG_SUPPORT, QUERY_HERE, 0, load_debug, "", NULL},
    {MUSTER_CONNECT_NSPACE, QUERY_HERE, 0, load_connection, OF_CONNECTION, NULL},
    {MUSTER_CONNECT_RANK, QUERY_HERE, 0, load_place, OF_CONNECTION, NULL},

    {PMIX_QUERY_QUEUE_LIST, QUERY_HERE, 0, NULL, "", "ask the resource manager for its queues"},
    {PMIX_QUERY_QUEUE_STATUS, QUERY_HERE, 0, NULL, "", "ask the resource manager for its queues"},
    {PMIX_QUERY_ALLOC_IDS, QUERY_HERE, 0, NULL, "", "muster makes no allocations"},
    {PMIX_QUERY_ALLOC_PROPERTIES, QUERY_HERE, 0, NULL, "", "muster makes no allocations"},
    {PMIX_QUERY_MIN_ALLOC_UNIT, QUERY_HERE, 0, NULL, "", "muster makes no allocations"},
    {PMIX_QUERY_RES_BLOCKS, QUERY_HERE, 0, NULL, "", "muster has no resource blocks"},
    {PMIX_QUERY_RES_BLOCK_DEF, QUERY_HERE, 0, NULL, "", "muster has no resource blocks"},
    {PMIX_QUERY_AVAILABLE_SLOTS, QUERY_HERE, 0, NULL, "",
     "what others use of the allocation is not known here"},
    {PMIX_QUERY_AUTHORIZATIONS, QUERY_HERE, 0, NULL, "",
     "the standard does not say what an answer is; every tool of the job's user may do all"},
    {PMIX_QUERY_DEVICES, QUERY_HERE, 0, NULL, "", "ask hwloc for the devices of a node"},
    {PMIX_QUERY_PROC_RESOURCE_USAGE, QUERY_HERE, 0, NULL, "",
     "ask the resource manager, or look at /proc"},
    {PMIX_QUERY_NODE_RESOURCE_USAGE, QUERY_HERE, 0, NULL, "",
     "ask the resource manager, or look at /proc"},
    {PMIX_SERVER_URI, QUERY_HERE, 0, NULL, "",
     "the environment of the tasks on that node has it (PMIX_SERVER_URI…)"},
};

enum { NKEYS = sizeof keys / sizeof *keys };

const struct query_key *query_key(const char *key)
{
    for (size_t i = 0; i < NKEYS; i++)
        if (strcmp(keys[i].key, key) == 0)
            return &keys[i];
    return NULL;
}

const struct query_key *query_key_at(size_t i)
{
    return i < NKEYS ? &keys[i] : NULL;
}

static pmix_status_t load_keys(const struct query_item *item, pmix_value_t *value)
{
    char *list = strdup("");
    (void)item;
    for (size_t i = 0; i < NKEYS; i++)
        if (keys[i].load != NULL)
            list = text_append(list, ",", keys[i].key);
    return query_give_text(value, list);
}
