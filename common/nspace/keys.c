/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Builds the list of keys, one function for each realm: session, job, application, node, process.
 */
#include "common/nspace/keys.h"

#include "common/nspace/library.h"
#include "common/nspace/maps.h"
#include "common/nspace/stop.h"
#include "common/util/text.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *keys_nspace_dir(const struct boot *boot)
{
    return text_format("%s/nspace", boot->tmpdir);
}

char *keys_proc_dir(const struct boot *boot, uint32_t rank)
{
    return text_format("%s/nspace/%u", boot->tmpdir, rank);
}

void keys_server_name(char *name, const struct boot *boot)
{
    memset(name, 0, PMIX_MAX_NSLEN + 1);
    snprintf(name, PMIX_MAX_NSLEN + 1, "muster.%s", boot->nspace);
}

/* A user who starts more tasks than there are processors says that these are slots enough. */
static uint32_t at_least(uint32_t slots, uint32_t tasks)
{
    return slots > tasks ? slots : tasks;
}

/* What is known of the allocation only if the launcher could ask for it. */
static void put_allocation(struct infos *list, const struct boot_allocation *alloc)
{
    if (alloc->nnodes == 0)
        return;
    infos_u32(list, PMIX_NUM_ALLOCATED_NODES, alloc->nnodes);
    infos_str(list, PMIX_ALLOCATED_NODELIST, alloc->nodes);
}

/* The process that has spawned the ones of this namespace. */
static void put_parent(struct infos *list, const struct boot *boot)
{
    char nspace[PMIX_MAX_NSLEN + 1];
    pmix_proc_t parent;
    uint32_t rank;
    bool spawned = boot_parent(boot, nspace, &rank);
    infos_bool(list, PMIX_SPAWNED, spawned);
    if (!spawned)
        return;
    PMIX_LOAD_PROCID(&parent, nspace, rank);
    infos_put(list, PMIX_PARENT_ID, &parent, PMIX_PROC);
}

static void put_allocated(struct infos *array, const struct boot *boot)
{
    const struct boot_allocation *alloc = &boot->allocation;
    infos_u32(array, PMIX_UNIV_SIZE, at_least(alloc->slots, boot->ntasks));
    infos_u32(array, PMIX_MAX_PROCS, at_least(alloc->slots, boot->ntasks));
    if (alloc->slots > 0)
        infos_u32(array, PMIX_NUM_SLOTS, alloc->slots);
    put_allocation(array, alloc);
    infos_str(array, PMIX_RM_NAME, alloc->rm);
    infos_str(array, PMIX_RM_VERSION, alloc->rm_version);
    if (alloc->cluster[0] != '\0')
        infos_str(array, PMIX_CLUSTER_ID, alloc->cluster);
    if (boot->node != BOOT_NO_NODE) {
        infos_str(array, PMIX_TMPDIR, boot->tmpdir);
        infos_bool(array, PMIX_TDIR_RMCLEAN, true);
    }
}

/* libpmix looks up what belongs to the session in the session alone. @param known it has it */
static void put_session(struct infos *list, const struct boot *boot, bool known)
{
    struct infos array = {0};
    infos_u32(&array, PMIX_SESSION_ID, (uint32_t)strtoul(boot->session, NULL, 10));
    if (!known)
        put_allocated(&array, boot);
    infos_array(list, PMIX_SESSION_INFO_ARRAY, &array);
}

static uint32_t slots_of_step(const struct boot *boot)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < boot->nnodes; i++)
        slots += boot->nodes[i].slots;
    return slots;
}

static void put_server(struct infos *list, const struct boot *boot)
{
    pmix_nspace_t name;
    keys_server_name(name, boot);
    infos_str(list, PMIX_SERVER_NSPACE, name);
    infos_rank(list, PMIX_SERVER_RANK, boot->node);
}

static void store(struct infos *list, const char *key, const struct stop *stop)
{
    if (stop->rank == STOP_ALL)
        infos_bool(list, key, true);
    else
        infos_rank(list, key, stop->rank);
}

/* libpmix's client, or the program, looks for it. */
static void put_stop(struct infos *list, const struct boot *boot)
{
    struct stop stop;
    struct err err = {0};
    char nspace[STOP_NSPACE_SIZE];
    pmix_proc_t target;
    uint32_t rank;
    if (stop_target(boot, nspace, &rank)) {
        PMIX_LOAD_PROCID(&target, nspace, rank == STOP_ALL ? PMIX_RANK_WILDCARD : rank);
        infos_put(list, PMIX_DEBUG_TARGET, &target, PMIX_PROC);
    }
    if (stop_read(&stop, boot, &err) != 0)
        return;
    if (stop.where == STOP_IN_INIT)
        store(list, PMIX_DEBUG_STOP_IN_INIT, &stop);
    if (stop.where == STOP_IN_APP)
        store(list, PMIX_DEBUG_STOP_IN_APP, &stop);
}

static void put_job(struct infos *list, const struct nspace *ns)
{
    const struct boot *boot = ns->boot;
    uint32_t slots = slots_of_step(boot);
    infos_str(list, PMIX_NSPACE, boot->nspace);
    infos_str(list, PMIX_JOBID, boot->label);
    infos_u32(list, PMIX_JOB_SIZE, boot->ntasks);
    infos_u32(list, PMIX_MAX_PROCS, boot->ntasks);
    infos_u32(list, PMIX_JOB_NUM_APPS, boot_napps(boot));
    if (boot_napps(boot) == 1)
        infos_u32(list, PMIX_APPNUM, 0);
    infos_rank(list, PMIX_NPROC_OFFSET, 0);
    infos_u32(list, PMIX_NUM_NODES, boot->nnodes);
    if (slots > 0)
        infos_u32(list, PMIX_NUM_SLOTS, slots);
    put_allocation(list, &boot->allocation);
    infos_str_new(list, PMIX_NODE_LIST, map_nodes(boot, MAP_ALL_APPS));
    infos_str_new(list, PMIX_ANL_MAP, map_anl(ns));
    put_parent(list, boot);
    infos_u32(list, PMIX_USERID, geteuid());
    infos_u32(list, PMIX_GRPID, getegid());
    if (boot->node == BOOT_NO_NODE)
        return;
    infos_str_new(list, PMIX_NSDIR, keys_nspace_dir(boot));
    put_server(list, boot);
    put_stop(list, boot);
}

/* A launcher that knows the command beforehand has one application; else see command.h. */
static void put_command(struct infos *list, const struct boot *boot)
{
    const char *wdir = boot_setting(boot, "wdir"), *argv = boot_setting(boot, "argv");
    if (wdir != NULL)
        infos_str(list, PMIX_WDIR, wdir);
    if (argv != NULL)
        infos_str(list, PMIX_APP_ARGV, argv);
}

static void put_app(struct infos *list, const struct boot *boot, uint32_t number,
                    const struct psets *psets)
{
    struct boot_app app = boot_app(boot, number);
    const struct pset *set = psets_whole(psets, boot);
    struct infos array = {0};
    infos_u32(&array, PMIX_APPNUM, number);
    infos_u32(&array, PMIX_APP_SIZE, app.ntasks);
    infos_rank(&array, PMIX_APPLDR, app.first);
    infos_u32(&array, PMIX_MAX_PROCS, app.ntasks);
    infos_u32(&array, PMIX_NUM_NODES, app.nnodes);
    infos_str_new(&array, PMIX_NODE_LIST, map_nodes(boot, number));
    if (set != NULL)
        infos_str(&array, PMIX_PSET_NAME, set->name);
    put_command(&array, boot);
    infos_array(list, PMIX_APP_INFO_ARRAY, &array);
}

/* What programs on other nodes do not find: only the node itself knows it. */
static void put_here(struct infos *list)
{
    char host[256] = "";
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    if (gethostname(host, sizeof host - 1) == 0 && host[0] != '\0')
        infos_str(list, PMIX_HOSTNAME_ALIASES, host);
    if (pages > 0 && size > 0)
        infos_u64(list, PMIX_AVAIL_PHYS_MEMORY, (uint64_t)pages * (uint64_t)size);
}

void keys_describe_local_procs(struct infos *list, const struct boot *boot)
{
    const struct boot_node *here = boot_here(boot);
    infos_procs(list, PMIX_LOCAL_PROCS, boot->nspace, here->ranks, here->ntasks);
}

static void put_node_keys(struct infos *list, const struct boot *boot, uint32_t i)
{
    const struct boot_node *node = &boot->nodes[i];
    infos_u32(list, PMIX_NODEID, i);
    infos_str(list, PMIX_HOSTNAME, node->name);
    infos_u32(list, PMIX_LOCAL_SIZE, node->ntasks);
    infos_u32(list, PMIX_NODE_SIZE, node->ntasks);
    infos_str_new(list, PMIX_LOCAL_PEERS, map_ranks(node));
    if (node->ntasks > 0)
        infos_rank(list, PMIX_LOCALLDR, node->ranks[0]);
    if (node->slots > 0)
        infos_bool(list, PMIX_NODE_OVERSUBSCRIBED, node->ntasks > node->slots);
    if (i == boot->node)
        put_here(list);
}

static void put_node(struct infos *list, const struct boot *boot, uint32_t i)
{
    struct infos array = {0};
    put_node_keys(&array, boot, i);
    if (boot->nodes[i].slots > 0) {
        infos_u32(&array, PMIX_NUM_SLOTS, boot->nodes[i].slots);
        infos_u32(&array, PMIX_MAX_PROCS, at_least(boot->nodes[i].slots, boot->nodes[i].ntasks));
    }
    if (i == boot->node) {
        infos_str(&array, PMIX_TMPDIR, boot->tmpdir);
        infos_str_new(&array, PMIX_NSDIR, keys_nspace_dir(boot));
    }
    infos_array(list, PMIX_NODE_INFO_ARRAY, &array);
}

/* The keys of a process that clients look for in their own memory alone. */
static void put_place(struct infos *array, const struct boot *boot, uint32_t node, uint32_t number)
{
    infos_u32(array, PMIX_APPNUM, number);
    infos_str(array, PMIX_HOSTNAME, boot->nodes[node].name);
    infos_u32(array, PMIX_NODEID, node);
}

/* The others. */
static void put_ranks(struct infos *array, const struct boot *boot, uint32_t rank, uint32_t slot,
                      uint32_t first)
{
    infos_rank(array, PMIX_RANK, rank);
    infos_rank(array, PMIX_GLOBAL_RANK, rank);
    infos_rank(array, PMIX_APP_RANK, rank - first);
    infos_u16(array, PMIX_LOCAL_RANK, slot);
    infos_u16(array, PMIX_NODE_RANK, slot);
    infos_u32(array, PMIX_REINCARNATION, 0);
    put_parent(array, boot);
}

static void put_proc(struct infos *list, const struct boot *boot, uint32_t node, uint32_t slot,
                     bool brief)
{
    struct infos array = {0};
    uint32_t rank = boot->nodes[node].ranks[slot], first;
    uint32_t number = boot_app_of(boot, rank, &first);
    infos_rank(&array, PMIX_RANK, rank); /* libpmix takes the first for itself */
    put_place(&array, boot, node, number);
    if (!brief || node == boot->node)
        put_ranks(&array, boot, rank, slot, first);
    if (node == boot->node)
        infos_str_new(&array, PMIX_PROCDIR, keys_proc_dir(boot, rank));
    infos_array(list, PMIX_PROC_INFO_ARRAY, &array);
}

void keys_describe_rank(struct infos *list, const struct nspace *ns, uint32_t rank)
{
    const struct boot *boot = ns->boot;
    uint32_t first;
    boot_app_of(boot, rank, &first);
    put_ranks(list, boot, rank, ns->local_of[rank], first);
}

bool keys_are_brief(const struct boot *boot, uint32_t library)
{
    enum { WIDE = 4096 };
    return boot->ntasks > WIDE && library_has(library, LIBRARY_ASKS_FOR_KEYS);
}

void keys_describe_job(struct infos *list, const struct nspace *ns, const struct psets *psets,
                       bool session)
{
    const struct boot *boot = ns->boot;
    put_session(list, boot, session);
    put_job(list, ns);
    for (uint32_t number = 0; number < boot_napps(boot); number++)
        put_app(list, boot, number, psets);
    /* Bare, node keys mean this node: so libpmix 4.2 hands them out without a qualifier. */
    if (boot->node != BOOT_NO_NODE)
        put_node_keys(list, boot, boot->node);
}

/* Neither PMIX_NODE_MAP nor PMIX_PROC_MAP: libpmix makes of them what stands here for each node and
 * each rank anyway, and looks for each name among all before it. */
uint32_t keys_describe_nodes(struct infos *list, const struct nspace *ns, uint32_t first,
                             size_t most, bool brief)
{
    const struct boot *boot = ns->boot;
    uint32_t i;
    for (i = first; i < boot->nnodes && (i == first || list->n < most); i++) {
        put_node(list, boot, i);
        for (uint32_t k = 0; k < boot->nodes[i].ntasks; k++)
            put_proc(list, boot, i, k, brief);
    }
    return i;
}
