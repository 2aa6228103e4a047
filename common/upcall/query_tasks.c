/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks, as the servers of their nodes see them: state, process, program, command line, memory. */
#include "common/upcall/query.h"

#include "common/util/text.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static const float KIB_PER_MIB = 1024;

/* What is known of a process, or NULL. */
static const struct census_task *task_of(const struct query *q, const struct nspace *ns,
                                         uint32_t rank)
{
    const struct census *census = query_census(q, ns->base + ns->node_of[rank]);
    for (uint32_t k = ns->local_of[rank]; census != NULL && k < census->ntasks; k++)
        if (census->tasks[k].rank == rank)
            return &census->tasks[k];
    return NULL;
}

/* ---- how the job is doing ---- */

/* The graver, the later. */
static const pmix_status_t verdicts[] = {PMIX_SUCCESS, PMIX_ERR_JOB_NON_ZERO_TERM,
                                         PMIX_ERR_JOB_TERM_WO_SYNC, PMIX_ERR_JOB_ABORTED_BY_SIG};

static unsigned verdict_of(const struct census_task *task)
{
    switch (task->state) {
    case PMIX_PROC_STATE_TERM_NON_ZERO:
        return 1;
    case PMIX_PROC_STATE_TERM_WO_SYNC:
        return 2;
    case PMIX_PROC_STATE_ABORTED_BY_SIG:
        return 3;
    default:
        return 0;
    }
}

pmix_status_t query_status(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    unsigned worst = 0;
    bool known = false; /* of another step's tasks nothing is */
    for (uint32_t rank = 0; ns != NULL && rank < ns->boot->ntasks; rank++) {
        const struct census_task *task = task_of(item->query, ns, rank);
        unsigned verdict = task != NULL ? verdict_of(task) : 0;
        worst = verdict > worst ? verdict : worst;
        known |= task != NULL;
    }
    if (!known)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_STATUS;
    value->data.status = verdicts[worst];
    return PMIX_SUCCESS;
}

/* ---- tables of processes ---- */

static void fill(pmix_proc_info_t *row, const struct query *q, const struct nspace *ns,
                 uint32_t rank)
{
    const struct census_task *task = task_of(q, ns, rank);
    PMIX_LOAD_PROCID(&row->proc, ns->boot->nspace, rank);
    row->hostname = strdup(ns->boot->nodes[ns->node_of[rank]].name);
    row->state = PMIX_PROC_STATE_UNDEF;
    if (task == NULL)
        return;
    row->pid = (pid_t)task->pid;
    row->exit_code = task->code;
    row->state = task->state;
    row->executable_name = task->program[0] != '\0' ? strdup(task->program) : NULL;
}

/* @param node index in the namespace; UINT32_MAX: all nodes */
static pmix_status_t give_table(const struct query *q, const struct nspace *ns, uint32_t node,
                                pmix_value_t *value)
{
    size_t n = 0, size = node == UINT32_MAX ? ns->boot->ntasks : ns->boot->nodes[node].ntasks;
    pmix_data_array_t *array = NULL;
    if (size == 0)
        return PMIX_ERR_NOT_FOUND;
    PMIX_DATA_ARRAY_CREATE(array, size, PMIX_PROC_INFO);
    pmix_proc_info_t *rows = array->array;
    for (uint32_t rank = 0; rank < ns->boot->ntasks && n < size; rank++)
        if (node == UINT32_MAX || ns->node_of[rank] == node)
            fill(&rows[n++], q, ns, rank);
    return query_give_array(value, array);
}

pmix_status_t query_table(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    return ns != NULL ? give_table(item->query, ns, UINT32_MAX, value) : PMIX_ERR_NOT_FOUND;
}

pmix_status_t query_local_table(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    uint32_t node = ns != NULL ? query_node(ns, item->filter) : UINT32_MAX;
    return node != UINT32_MAX ? give_table(item->query, ns, node, value) : PMIX_ERR_NOT_FOUND;
}

/* ---- one process ---- */

static const struct census_task *one(const struct query_item *item)
{
    const struct nspace *ns = query_nspace(item->filter);
    return ns != NULL && item->filter->rank < ns->boot->ntasks
               ? task_of(item->query, ns, item->filter->rank)
               : NULL;
}

pmix_status_t query_pid(const struct query_item *item, pmix_value_t *value)
{
    const struct census_task *task = one(item);
    if (task == NULL || task->pid == 0)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_PID;
    value->data.pid = (pid_t)task->pid;
    return PMIX_SUCCESS;
}

pmix_status_t query_state(const struct query_item *item, pmix_value_t *value)
{
    const struct census_task *task = one(item);
    if (task == NULL)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_PROC_STATE;
    value->data.state = task->state;
    return PMIX_SUCCESS;
}

/* ---- what runs ---- */

/* "PROGRAM a : PROGRAM b", as the launcher's user has written it. @return owned */
static char *command_of(const struct query *q, const struct nspace *ns)
{
    char *line = strdup("");
    for (uint32_t i = 0; i < ns->boot->nnodes; i++) {
        const struct census *census = query_census(q, ns->base + i);
        if (census != NULL && census->command != NULL && census->command[0] != '\0')
            line = text_append(line, " : ", census->command);
    }
    return line;
}

static void put_namespace(struct infos *list, const struct query *q, const struct nspace *ns)
{
    struct infos array = {0};
    char *line = command_of(q, ns);
    infos_str(&array, PMIX_NSPACE, ns->boot->nspace);
    if (line[0] != '\0')
        infos_str(&array, PMIX_CMD_LINE, line);
    infos_array(list, PMIX_QUERY_NAMESPACE_INFO, &array);
    free(line);
}

pmix_status_t query_command(const struct query_item *item, pmix_value_t *value)
{
    struct infos list = {0};
    for (const struct nspace *ns = upcall_server()->nspace; ns != NULL; ns = ns->next)
        if (query_is_active(ns) && (item->filter->nspace[0] == '\0' ||
                                    strcmp(ns->boot->nspace, item->filter->nspace) == 0))
            put_namespace(&list, item->query, ns);
    return query_give_infos(value, &list);
}

/* ---- memory of a node's processes ---- */

static void put_mib(struct infos *list, const char *key, uint64_t kib)
{
    float mib = (float)kib / KIB_PER_MIB;
    infos_put(list, key, &mib, PMIX_FLOAT);
}

pmix_status_t query_memory(const struct query_item *item, pmix_value_t *value)
{
    const struct nspace *ns = query_nspace(item->filter);
    uint32_t node = ns != NULL ? query_node(ns, item->filter) : UINT32_MAX;
    const struct census *census =
        node != UINT32_MAX ? query_census(item->query, ns->base + node) : NULL;
    struct infos list = {0};
    if (item->filter->rank != PMIX_RANK_UNDEF) /* there is no key for what one process has */
        return PMIX_ERR_NOT_SUPPORTED;
    if (census == NULL)
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(item->key->key, PMIX_QUERY_MEMORY_USAGE) == 0)
        infos_str(&list, PMIX_HOSTNAME, ns->boot->nodes[node].name);
    if (strcmp(item->key->key, PMIX_CLIENT_AVG_MEMORY) != 0)
        put_mib(&list, PMIX_DAEMON_MEMORY, census->server_kib);
    if (strcmp(item->key->key, PMIX_DAEMON_MEMORY) != 0 && census->counted > 0)
        put_mib(&list, PMIX_CLIENT_AVG_MEMORY, census->tasks_kib / census->counted);
    if (strcmp(item->key->key, PMIX_QUERY_MEMORY_USAGE) == 0)
        return query_give_infos(value, &list);
    if (list.n == 0)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_FLOAT;
    value->data.fval = list.info[0].value.data.fval;
    infos_free(&list);
    return PMIX_SUCCESS;
}
