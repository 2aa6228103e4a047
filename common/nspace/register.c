/* The keys of a namespace. docs/keys.md says where each value comes from. */
#include "common/nspace/register.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A list of pmix_info_t that grows. */
struct infos {
    pmix_info_t *info;
    size_t n, cap;
    bool failed;
};

static pmix_info_t *next_info(struct infos *list)
{
    if (list->n == list->cap) {
        size_t cap = list->cap > 0 ? 2 * list->cap : 64;
        pmix_info_t *info = realloc(list->info, cap * sizeof *info);
        if (info == NULL) {
            list->failed = true;
            return NULL;
        }
        list->info = info;
        list->cap = cap;
    }
    PMIX_INFO_CONSTRUCT(&list->info[list->n]);
    return &list->info[list->n++];
}

static void put(struct infos *list, const char *key, const void *value, pmix_data_type_t type)
{
    pmix_info_t *info = next_info(list);
    if (info != NULL)
        PMIX_INFO_LOAD(info, key, value, type);
}

static void put_u32(struct infos *list, const char *key, uint32_t value)
{
    put(list, key, &value, PMIX_UINT32);
}

static void put_u16(struct infos *list, const char *key, uint32_t value)
{
    uint16_t v = (uint16_t)value;
    put(list, key, &v, PMIX_UINT16);
}

static void put_rank(struct infos *list, const char *key, pmix_rank_t value)
{
    put(list, key, &value, PMIX_PROC_RANK);
}

static void put_str(struct infos *list, const char *key, const char *value)
{
    put(list, key, value, PMIX_STRING);
}

/* Moves a finished list into one entry of another. */
static void put_array(struct infos *list, const char *key, struct infos *array)
{
    pmix_data_array_t *darray = NULL;
    pmix_info_t *info = next_info(list);
    PMIX_DATA_ARRAY_CREATE(darray, array->n, PMIX_INFO);
    if (info == NULL || darray == NULL || darray->array == NULL) {
        list->failed = true;
        return;
    }
    memcpy(darray->array, array->info, array->n * sizeof *array->info);
    free(array->info);
    *array = (struct infos){.failed = array->failed};
    list->failed |= array->failed;
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = darray;
}

/* Ranks of a node, or names of all nodes, joined. */
static char *join_ranks(const struct boot_node *node)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (uint32_t k = 0; f != NULL && k < node->ntasks; k++)
        fprintf(f, "%s%u", k > 0 ? "," : "", node->ranks[k]);
    if (f == NULL || fclose(f) != 0)
        return NULL;
    return text;
}

static char *join_nodes(const struct boot *boot, char separator, bool ranks)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (uint32_t i = 0; f != NULL && i < boot->nnodes; i++) {
        char *r = ranks ? join_ranks(&boot->nodes[i]) : NULL;
        if (i > 0)
            fputc(separator, f);
        fputs(ranks ? (r != NULL ? r : "") : boot->nodes[i].name, f);
        free(r);
    }
    if (f == NULL || fclose(f) != 0)
        return NULL;
    return text;
}

/* PMIX_NODE_MAP and PMIX_PROC_MAP in libpmix's own form. */
static int put_maps(struct infos *list, const struct boot *boot)
{
    char *nodes = join_nodes(boot, ',', false), *procs = join_nodes(boot, ';', true);
    char *node_map = NULL, *proc_map = NULL;
    int rc = nodes != NULL && procs != NULL &&
                     PMIx_generate_regex(nodes, &node_map) == PMIX_SUCCESS &&
                     PMIx_generate_ppn(procs, &proc_map) == PMIX_SUCCESS
                 ? 0
                 : -1;
    if (rc == 0) {
        put(list, PMIX_NODE_MAP, node_map, PMIX_REGEX);
        put(list, PMIX_PROC_MAP, proc_map, PMIX_REGEX);
    }
    free(nodes);
    free(procs);
    free(node_map);
    free(proc_map);
    return rc;
}

/* libpmix looks up what belongs to the session in the session alone. */
static void put_session(struct infos *list, const struct boot *boot)
{
    struct infos array = {0};
    put_u32(&array, PMIX_SESSION_ID, (uint32_t)strtoul(boot->session, NULL, 10));
    put_u32(&array, PMIX_UNIV_SIZE, boot->ntasks);
    put_array(list, PMIX_SESSION_INFO_ARRAY, &array);
}

static void put_job(struct infos *list, const struct boot *boot)
{
    const struct boot_node *here = &boot->nodes[boot->node];
    bool spawned = false;
    char *peers = join_ranks(here);
    put_str(list, PMIX_JOBID, boot->nspace);
    put_u32(list, PMIX_JOB_SIZE, boot->ntasks);
    put_u32(list, PMIX_MAX_PROCS, boot->ntasks);
    put_u32(list, PMIX_JOB_NUM_APPS, 1);
    put_u32(list, PMIX_APP_SIZE, boot->ntasks);
    put_rank(list, PMIX_APPLDR, 0);
    put_u32(list, PMIX_NUM_NODES, boot->nnodes);
    put(list, PMIX_SPAWNED, &spawned, PMIX_BOOL);
    put_str(list, PMIX_HOSTNAME, here->name);
    put_u32(list, PMIX_NODEID, boot->node);
    put_u32(list, PMIX_LOCAL_SIZE, here->ntasks);
    put_u32(list, PMIX_NODE_SIZE, here->ntasks);
    put_str(list, PMIX_TMPDIR, boot->tmpdir);
    put_str(list, PMIX_NSDIR, boot->tmpdir);
    if (peers != NULL)
        put_str(list, PMIX_LOCAL_PEERS, peers);
    if (here->ntasks > 0)
        put_rank(list, PMIX_LOCALLDR, here->ranks[0]);
    free(peers);
}

static void put_node(struct infos *list, const struct boot *boot, uint32_t node)
{
    struct infos array = {0};
    char *peers = join_ranks(&boot->nodes[node]);
    put_u32(&array, PMIX_NODEID, node);
    put_str(&array, PMIX_HOSTNAME, boot->nodes[node].name);
    put_u32(&array, PMIX_LOCAL_SIZE, boot->nodes[node].ntasks);
    put_u32(&array, PMIX_NODE_SIZE, boot->nodes[node].ntasks);
    if (peers != NULL)
        put_str(&array, PMIX_LOCAL_PEERS, peers);
    if (boot->nodes[node].ntasks > 0)
        put_rank(&array, PMIX_LOCALLDR, boot->nodes[node].ranks[0]);
    put_array(list, PMIX_NODE_INFO_ARRAY, &array);
    free(peers);
}

static void put_proc(struct infos *list, const struct boot *boot, uint32_t node, uint32_t slot)
{
    struct infos array = {0};
    uint32_t rank = boot->nodes[node].ranks[slot];
    put_rank(&array, PMIX_RANK, rank);
    put_rank(&array, PMIX_GLOBAL_RANK, rank);
    put_rank(&array, PMIX_APP_RANK, rank);
    put_u32(&array, PMIX_APPNUM, 0);
    put_u16(&array, PMIX_LOCAL_RANK, slot);
    put_u16(&array, PMIX_NODE_RANK, slot);
    put_str(&array, PMIX_HOSTNAME, boot->nodes[node].name);
    put_u32(&array, PMIX_NODEID, node);
    put_array(list, PMIX_PROC_INFO_ARRAY, &array);
}

static void free_infos(struct infos *list)
{
    for (size_t i = 0; i < list->n; i++)
        PMIX_INFO_DESTRUCT(&list->info[i]);
    free(list->info);
}

static int register_clients(const struct boot *boot, struct err *err)
{
    const struct boot_node *here = &boot->nodes[boot->node];
    pmix_proc_t proc;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        PMIX_LOAD_PROCID(&proc, boot->nspace, here->ranks[k]);
        pmix_status_t rc = PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL, NULL);
        if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
            return err_set(err, "libpmix does not register rank %u: %s", here->ranks[k],
                           PMIx_Error_string(rc));
    }
    return 0;
}

int register_namespace(const struct nspace *ns, struct err *err)
{
    const struct boot *boot = ns->boot;
    struct infos list = {0};
    pmix_nspace_t name; /* libpmix copies the full buffer */
    PMIX_LOAD_NSPACE(name, boot->nspace);
    put_session(&list, boot);
    put_job(&list, boot);
    if (put_maps(&list, boot) != 0)
        list.failed = true;
    for (uint32_t i = 0; i < boot->nnodes; i++) {
        put_node(&list, boot, i);
        for (uint32_t k = 0; k < boot->nodes[i].ntasks; k++)
            put_proc(&list, boot, i, k);
    }
    pmix_status_t rc = list.failed
                           ? PMIX_ERR_NOMEM
                           : PMIx_server_register_nspace(name, (int)boot->nodes[boot->node].ntasks,
                                                         list.info, list.n, NULL, NULL);
    free_infos(&list);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
        return err_set(err, "libpmix does not register namespace %s: %s", boot->nspace,
                       PMIx_Error_string(rc));
    return register_clients(boot, err);
}

int register_environment(const struct nspace *ns, uint32_t slot, char ***env, struct err *err)
{
    pmix_proc_t proc;
    *env = NULL;
    PMIX_LOAD_PROCID(&proc, ns->boot->nspace, ns->boot->nodes[ns->boot->node].ranks[slot]);
    pmix_status_t rc = PMIx_server_setup_fork(&proc, env);
    if (rc != PMIX_SUCCESS || *env == NULL)
        return err_set(err, "libpmix makes no environment for rank %u: %s", proc.rank,
                       PMIx_Error_string(rc));
    return 0;
}
