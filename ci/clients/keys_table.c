/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The table of reserved keys. A row names a key, the realm in which it is asked for, and the
 * function that says which value it should have.
 */
#include "keys_table.h"

#include <unistd.h>

static struct want number(uint64_t n)
{
    return (struct want){NUMBER, n, NULL};
}

static struct want number_if_known(uint64_t n)
{
    return (struct want){n ? NUMBER : UNKNOWN, n, NULL};
}

static struct want flag(bool on)
{
    return (struct want){FLAG, on, NULL};
}

static struct want text(const char *t)
{
    return (struct want){t ? TEXT : UNKNOWN, 0, t};
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

bool is_here(uint32_t node)
{
    return node == known.node_of[client.me.rank];
}

/* What each key should be, about a subject: a node, a rank, or nothing. */
#define WANT(name, value)                                                                          \
    static struct want name(uint32_t about)                                                        \
    {                                                                                              \
        (void)about;                                                                               \
        return value;                                                                              \
    }

WANT(session_id, known.session_id ? number(strtoul(known.session_id, NULL, 10)) : text(NULL))
WANT(session_max,
     number_if_known(known.session_slots ? at_least(known.session_slots, client.size) : 0))
WANT(session_slots, number_if_known(known.session_slots))
WANT(session_nodes, number_if_known(known.session_nodes))
WANT(session_list, text(known.session_list))
WANT(cluster, text(known.cluster))
WANT(some_text, ((struct want){SOME, 0, NULL}))
WANT(folder, ((struct want){FOLDER, 0, NULL}))
WANT(yes, flag(true))
WANT(no, flag(false))
WANT(not_spawned, text(NULL)) /* ci/clients/spawner.c looks at it in spawned jobs */
WANT(not_stopped, text(NULL)) /* ci/clients/debugged.c is */
WANT(zero, number(0))
WANT(nspace, text(client.me.nspace))
WANT(job_id, text(known.job_id))
WANT(size, number(client.size))
WANT(apps, number(known.napps))
WANT(only_app, known.napps == 1 ? number(0) : text(NULL))
WANT(app_size, number(known.apps[about].tasks))
WANT(app_leader, number(known.apps[about].first))
WANT(app_nodes, number(known.apps[about].nodes))
WANT(nodes, number(known.nnodes))
WANT(node_list, text(known.step_list))
WANT(step_slots, number_if_known(known.step_slots))
WANT(layout, ((struct want){LAYOUT, 0, NULL}))
WANT(user, number(geteuid()))
WANT(group, number(getegid()))
WANT(my_node, number(known.node_of[client.me.rank]))
WANT(node_id, number(about))
WANT(node_name, text(known.nodes[about].name))
WANT(node_tasks, number(known.nodes[about].tasks))
WANT(node_leader, number(known.nodes[about].ranks[0]))
WANT(node_slots, number_if_known(known.nodes[about].slots))
WANT(node_max, number_if_known(known.nodes[about].slots
                                   ? at_least(known.nodes[about].slots, known.nodes[about].tasks)
                                   : 0))
WANT(node_procs, ((struct want){is_here(about) ? RANKS : ABSENT, about, NULL}))
WANT(rank, number(about))
WANT(rank_app, number(known.app_of[about]))
WANT(rank_in_app, number(known.app_rank_of[about]))
WANT(rank_slot, number(known.slot_of[about]))
WANT(rank_node, number(known.node_of[about]))
WANT(rank_host, text(known.nodes[known.node_of[about]].name))

static struct want node_full(uint32_t about)
{
    const struct known_node *node = &known.nodes[about];
    return node->slots ? flag(node->tasks > node->slots) : text(NULL);
}

static struct want node_peers(uint32_t about)
{
    static char *list;
    size_t size = known.nodes[about].tasks * 11u + 1, at = 0;
    list = realloc(list, size);
    for (uint32_t i = 0; i < known.nodes[about].tasks; i++)
        at += (size_t)snprintf(list + at, size - at, "%s%u", i ? "," : "",
                               known.nodes[about].ranks[i]);
    return text(list);
}

static struct want node_alias(uint32_t about)
{
    static char name[256];
    gethostname(name, sizeof name - 1);
    return text(is_here(about) ? name : NULL);
}

static struct want app_list(uint32_t about)
{
    static char *list;
    size_t size = strlen(known.step_list) + 1, at = 0;
    list = realloc(list, size);
    for (uint32_t i = 0; i < known.nnodes; i++)
        if (known.app_of[known.nodes[i].ranks[0]] == about)
            at +=
                (size_t)snprintf(list + at, size - at, "%s%s", at ? "," : "", known.nodes[i].name);
    return text(list);
}

/* No set of a step of its own has all ranks. */
static struct want app_pset(uint32_t about)
{
    (void)about;
    return getenv("MUSTER_PSETS") ? (struct want){UNKNOWN, 0, NULL} : text(NULL);
}

/* @return a rank of an application on our node, or client.size; there alone it is known how an
 * application was started */
static pmix_rank_t rank_here(uint32_t app)
{
    pmix_rank_t rank = 0;
    while (rank < client.size && (known.app_of[rank] != app || !is_here(known.node_of[rank])))
        rank++;
    return rank;
}

static struct want app_wdir(uint32_t about)
{
    pmix_rank_t rank = rank_here(about);
    return text(rank < client.size ? known.wdir[rank] : NULL);
}

static struct want app_argv(uint32_t about)
{
    pmix_rank_t rank = rank_here(about);
    if (rank == client.size)
        return text(NULL);
    return (struct want){known.argv[rank][0] ? COMMAND : ABSENT, 0, known.argv[rank]};
}

static struct want node_folder(uint32_t about)
{
    return (struct want){is_here(about) ? FOLDER : UNKNOWN, 0, NULL};
}

static struct want node_memory(uint32_t about)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    return number_if_known(is_here(about) ? bytes : 0);
}

static struct want rank_folder(uint32_t about)
{
    return (struct want){about == client.me.rank ? FOLDER : UNKNOWN, 0, NULL};
}

/* A task's binding is known on its own node. */
static bool bound_here(pmix_rank_t about)
{
    return known.cpus[about] && is_here(known.node_of[about]);
}

static struct want rank_cpus(uint32_t about)
{
    static char cpus[300];
    snprintf(cpus, sizeof cpus, "hwloc:%s", known.cpus[about] ? known.cpus[about] : "");
    return text(bound_here(about) ? cpus : NULL);
}

/* Among the ranks of its node that are bound to its package; of others there is none. */
static struct want rank_in_package(uint32_t about)
{
    const struct known_node *node = &known.nodes[known.node_of[about]];
    uint64_t place = 0;
    for (uint32_t i = 0; i < known.slot_of[about]; i++)
        place += known.cpus[node->ranks[i]] != NULL &&
                 known.package_of[node->ranks[i]] == known.package_of[about];
    return bound_here(about) && known.package_of[about] >= 0 ? number(place) : text(NULL);
}

static struct want rank_locality(uint32_t about)
{
    return (struct want){is_here(known.node_of[about]) ? SOME : ABSENT, 0, NULL};
}

const struct row rows[] = {
#define ROW(name, realm, want)                                                                     \
    {                                                                                              \
#name, name, realm, want                                                                   \
    }
    ROW(PMIX_SESSION_ID, SESSION, session_id),
    ROW(PMIX_UNIV_SIZE, SESSION, session_max),
    ROW(PMIX_MAX_PROCS, SESSION, session_max),
    ROW(PMIX_NUM_SLOTS, SESSION, session_slots),
    ROW(PMIX_NUM_ALLOCATED_NODES, SESSION, session_nodes),
    ROW(PMIX_ALLOCATED_NODELIST, SESSION, session_list),
    ROW(PMIX_CLUSTER_ID, SESSION, cluster),
    ROW(PMIX_RM_NAME, SESSION, some_text),
    ROW(PMIX_RM_VERSION, SESSION, some_text),
    ROW(PMIX_TMPDIR, SESSION, folder),
    ROW(PMIX_TDIR_RMCLEAN, SESSION, yes),
    ROW(PMIX_NSPACE, JOB, nspace),
    ROW(PMIX_JOBID, JOB, job_id),
    ROW(PMIX_JOB_SIZE, JOB, size),
    ROW(PMIX_MAX_PROCS, JOB, size),
    ROW(PMIX_JOB_NUM_APPS, JOB, apps),
    ROW(PMIX_APPNUM, JOB, only_app),
    ROW(PMIX_NPROC_OFFSET, JOB, zero),
    ROW(PMIX_NUM_NODES, JOB, nodes),
    ROW(PMIX_NUM_SLOTS, JOB, step_slots),
    ROW(PMIX_NUM_ALLOCATED_NODES, JOB, session_nodes),
    ROW(PMIX_ALLOCATED_NODELIST, JOB, session_list),
    ROW(PMIX_NODE_LIST, JOB, node_list),
    ROW(PMIX_ANL_MAP, JOB, layout),
    ROW(PMIX_SPAWNED, JOB, no),
    ROW(PMIX_PARENT_ID, JOB, not_spawned),
    ROW(PMIX_DEBUG_STOP_IN_INIT, JOB, not_stopped),
    ROW(PMIX_DEBUG_STOP_IN_APP, JOB, not_stopped),
    ROW(PMIX_DEBUG_TARGET, JOB, not_stopped),
    ROW(PMIX_USERID, JOB, user),
    ROW(PMIX_GRPID, JOB, group),
    ROW(PMIX_NSDIR, JOB, folder),
    ROW(PMIX_SERVER_NSPACE, JOB, some_text),
    ROW(PMIX_SERVER_RANK, JOB, my_node),
    ROW(PMIX_APP_SIZE, APP, app_size),
    ROW(PMIX_APPLDR, APP, app_leader),
    ROW(PMIX_MAX_PROCS, APP, app_size),
    ROW(PMIX_NUM_NODES, APP, app_nodes),
    ROW(PMIX_NODE_LIST, APP, app_list),
    ROW(PMIX_WDIR, APP, app_wdir),
    ROW(PMIX_APP_ARGV, APP, app_argv),
    ROW(PMIX_PSET_NAME, APP, app_pset),
    ROW(PMIX_NODEID, NODE, node_id),
    ROW(PMIX_HOSTNAME, NODE, node_name),
    ROW(PMIX_LOCAL_SIZE, NODE, node_tasks),
    ROW(PMIX_NODE_SIZE, NODE, node_tasks),
    ROW(PMIX_LOCAL_PEERS, NODE, node_peers),
    ROW(PMIX_LOCAL_PROCS, NODE, node_procs),
    ROW(PMIX_LOCALLDR, NODE, node_leader),
    ROW(PMIX_NODE_OVERSUBSCRIBED, NODE, node_full),
    ROW(PMIX_NUM_SLOTS, NODE, node_slots),
    ROW(PMIX_MAX_PROCS, NODE, node_max),
    ROW(PMIX_HOSTNAME_ALIASES, NODE, node_alias),
    ROW(PMIX_AVAIL_PHYS_MEMORY, NODE, node_memory),
    ROW(PMIX_TMPDIR, NODE, node_folder),
    ROW(PMIX_NSDIR, NODE, node_folder),
    ROW(PMIX_RANK, PROC, rank),
    ROW(PMIX_GLOBAL_RANK, PROC, rank),
    ROW(PMIX_APP_RANK, PROC, rank_in_app),
    ROW(PMIX_APPNUM, PROC, rank_app),
    ROW(PMIX_LOCAL_RANK, PROC, rank_slot),
    ROW(PMIX_NODE_RANK, PROC, rank_slot),
    ROW(PMIX_HOSTNAME, PROC, rank_host),
    ROW(PMIX_NODEID, PROC, rank_node),
    ROW(PMIX_REINCARNATION, PROC, zero),
    ROW(PMIX_SPAWNED, PROC, no),
    ROW(PMIX_PARENT_ID, PROC, not_spawned),
    ROW(PMIX_PROCDIR, PROC, rank_folder),
    ROW(PMIX_CPUSET, PROC, rank_cpus),
    ROW(PMIX_LOCALITY_STRING, PROC, rank_locality),
    ROW(PMIX_PACKAGE_RANK, PROC, rank_in_package),
};
const size_t nrows = sizeof rows / sizeof *rows;
_Static_assert(sizeof rows / sizeof *rows <= ROWS_MAX, "too many rows");
