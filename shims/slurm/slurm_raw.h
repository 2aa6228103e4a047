/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Slurm's structures and functions that differ between its releases, as one of them has them.
 *
 * SLURM_ABI_RELEASE says which: 0x1605 is 22.05. Micro releases do not differ. Only release.c,
 * which is compiled once for each, what checks this file, and musterrun's part that plays Slurm
 * include it; all others use slurm_abi.h. abi_check.c compares what the public headers have with
 * it, and abi_layout.c the sizes and offsets of every release as releases.h has them.
 */
#pragma once

#include "shims/slurm/releases.h"
#include "shims/slurm/slurm_abi.h"

#include <stddef.h>

/*  What changed between the releases, and is asked for by name below; the rest is compared where it
 *  stands. A release that is newer than all of these is like the last one. */
#define SLURM_ABI_LAYOUT_FRONT_END (SLURM_ABI_RELEASE < 0x1905)
#define SLURM_ABI_LAYOUT_CPT (SLURM_ABI_RELEASE >= 0x170b)
#define SLURM_ABI_TASK_SELF (SLURM_ABI_RELEASE < 0x170b)
#define SLURM_ABI_SLUID (SLURM_ABI_RELEASE >= 0x180b)
/* A step is killed by (job, step, signal), the same and flags, or (id, signal, flags). */
#if SLURM_ABI_RELEASE < 0x170b
#define SLURM_ABI_KILL 1
#elif SLURM_ABI_RELEASE < 0x190b
#define SLURM_ABI_KILL 2
#else
#define SLURM_ABI_KILL 3
#endif
#if SLURM_ABI_RELEASE < 0x1a05
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#else
#define SLURM_ABI_FREE_CONF slurm_free_conf
#endif

#define SLURM_ABI_API_OF(release, number, api, ...) +(SLURM_ABI_RELEASE == (number) ? (api) : 0)
/** The number of its libslurm, which slurm_api_version() says; its messages have the same one. */
enum { SLURM_ABI_API = 0 SLURM_RELEASE_ROWS(SLURM_ABI_API_OF) };

/** slurm_step_id_t */
struct slurm_raw_step_id {
#if SLURM_ABI_SLUID
    uint64_t sluid;
#endif
    uint32_t job_id;
    uint32_t step_het_comp; /**< component of a heterogeneous step, or SLURM_ABI_NO_VAL */
    uint32_t step_id;
};

/** slurm_step_layout_t: which task runs where. */
struct slurm_raw_step_layout {
#if SLURM_ABI_LAYOUT_CPT
    uint16_t *cpt_compact_array;
    uint32_t cpt_compact_cnt;
    uint32_t *cpt_compact_reps;
#endif
#if SLURM_ABI_LAYOUT_FRONT_END
    char *front_end;
#endif
#if SLURM_ABI_LAYOUT_CPT
    void *alias_addrs;
#endif
    uint32_t node_cnt;
    char *node_list; /**< a hostlist, in the order of the arrays below */
    uint16_t plane_size;
    uint16_t start_protocol_ver;
    uint16_t *tasks; /**< tasks on each node */
    uint32_t task_cnt;
    uint32_t task_dist;
    uint32_t **tids; /**< by node and local task: the rank in the step */
};

/** job_step_info_t: a step on slurmctld's record. */
struct slurm_raw_step_record {
    uint32_t array_job_id, array_task_id;
    char *cluster;
    char *container;
#if SLURM_ABI_RELEASE >= 0x1702
    char *container_id;
#endif
#if SLURM_ABI_RELEASE >= 0x1a05
    char *container_type;
#endif
    uint32_t cpu_freq_min, cpu_freq_max, cpu_freq_gov;
    char *cpus_per_tres;
#if SLURM_ABI_RELEASE >= 0x1905
    char *cwd;
#endif
    char *mem_per_tres, *name;
#if SLURM_ABI_RELEASE >= 0x1905
    char *job_name;
#endif
    char *network, *nodes;
    int32_t *node_inx;
    uint32_t num_cpus, num_tasks;
    char *partition, *resv_ports;
    time_t run_time;
#if SLURM_ABI_RELEASE < 0x1702
    void *select_jobinfo;
#endif
    char *srun_host;   /**< where its srun runs */
    uint32_t srun_pid; /**< and as what process */
    time_t start_time;
    uint16_t start_protocol_ver;
    uint32_t state;
    struct slurm_raw_step_id step_id;
#if SLURM_ABI_RELEASE >= 0x1905
    char *std_err, *std_in, *std_out;
#endif
    char *submit_line;
    uint32_t task_dist, time_limit;
    char *tres_alloc_str, *tres_bind, *tres_freq;
    char *tres_per_step, *tres_per_node, *tres_per_socket, *tres_per_task;
    uint32_t user_id; /**< whose job it is of */
};

/** job_step_info_response_msg_t, as far as it is read. */
struct slurm_raw_step_records {
    time_t last_update;
    uint32_t count;
    struct slurm_raw_step_record *steps;
};

/** resource_allocation_response_msg_t, as far as it is read: what an allocation has. */
struct slurm_raw_allocation {
    char *account;
#if SLURM_ABI_RELEASE < 0x190b
    uint32_t job_id;
#endif
#if SLURM_ABI_RELEASE < 0x1905
    char *alias_list;
#endif
    char *batch_host;
    uint32_t cpu_freq_min, cpu_freq_max, cpu_freq_gov;
    uint16_t *cpus_per_node;  /**< by group: processors on each of its nodes */
    uint32_t *cpu_count_reps; /**< by group: how many nodes in a row */
    uint32_t env_size;
    char **environment;
    uint32_t error_code;
#if SLURM_ABI_RELEASE >= 0x1702
    gid_t gid;
    char *group_name;
#endif
    char *job_submit_user_msg;
#if SLURM_ABI_RELEASE < 0x1905
    void *node_addr;
#endif
    uint32_t node_cnt;
    char *node_list; /**< a hostlist, in the order of the groups */
    uint16_t ntasks_per_board, ntasks_per_core, ntasks_per_tres, ntasks_per_socket;
    uint32_t num_cpu_groups;
};

/** slurm_conf_t, as far as it is read: a process's own slurm.conf. */
struct slurm_raw_conf {
    time_t last_update;
    char *accounting_storage_tres;
    uint16_t accounting_storage_enforce;
    char *accounting_storage_backup_host, *accounting_storage_ext_host;
    char *accounting_storage_host, *accounting_storage_params, *accounting_storage_pass;
    uint16_t accounting_storage_port;
    char *accounting_storage_type;
#if SLURM_ABI_RELEASE < 0x190b
    char *accounting_storage_user;
#endif
    void *acct_gather_conf;
    char *acct_gather_energy_type, *acct_gather_profile_type;
    char *acct_gather_interconnect_type, *acct_gather_filesystem_type;
    uint16_t acct_gather_node_freq;
    char *authalttypes, *authinfo, *authalt_params, *authtype;
    uint16_t batch_start_timeout;
    char *bb_type, *bcast_exclude, *bcast_parameters;
    time_t boot_time;
#if SLURM_ABI_RELEASE >= 0x1905
    char *certgen_params, *certgen_type;
#endif
#if SLURM_ABI_RELEASE >= 0x180b
    char *certmgr_params, *certmgr_type;
#endif
    void *cgroup_conf;
#if SLURM_ABI_RELEASE >= 0x190b
    char *cli_filter_params;
#endif
    char *cli_filter_plugins;
#if SLURM_ABI_RELEASE < 0x1805
    char *core_spec_plugin;
#endif
#if SLURM_ABI_RELEASE >= 0x180b
    uint16_t cluster_id;
#endif
    char *cluster_name;
};

/** mpi_step_info_t: what srun knows before it launches. */
struct slurm_raw_step_info {
    uint32_t het_job_id; /**< 0 or SLURM_ABI_NO_VAL: no heterogeneous job */
    uint32_t het_job_task_offset;
    struct slurm_raw_step_id step_id;
    struct slurm_raw_step_layout *step_layout; /**< all components together */
};

/** mpi_task_info_t: what slurmstepd tells of the task that it is about to start. */
struct slurm_raw_task_info {
    void *client;
    uint32_t gtaskid; /**< rank in the step, all components together */
    int ltaskid;      /**< slot on this node */
    uint32_t ltasks;
    uint32_t nnodes;
    uint32_t nodeid;
    uint32_t ntasks; /**< of the step, all components together */
#if SLURM_ABI_TASK_SELF
    void *self;
#endif
    struct slurm_raw_step_id step_id;
};

void slurm_raw_free_conf(void *conf) SLURM_ABI_NAME(SLURM_ABI_FREE_CONF)
    __attribute__((weak)); /* each has its own only */

/* slurmstepd's socket, as slurm_abi_stepd_connect(). */
int slurm_raw_stepd_connect(const char *directory, const char *nodename,
                            struct slurm_raw_step_id *step_id, uint16_t *protocol_version)
    SLURM_ABI_NAME(slurm_stepd_connect);

struct slurm_raw_step_layout *slurm_raw_step_layout_get(struct slurm_raw_step_id *step_id)
    SLURM_ABI_NAME(slurm_job_step_layout_get);
void slurm_raw_step_layout_free(struct slurm_raw_step_layout *layout)
    SLURM_ABI_NAME(slurm_job_step_layout_free);
void slurm_raw_free_steps(struct slurm_raw_step_records *records)
    SLURM_ABI_NAME(slurm_free_job_step_info_response_msg);
void slurm_raw_free_allocation(struct slurm_raw_allocation *allocation)
    SLURM_ABI_NAME(slurm_free_resource_allocation_response_msg);

/* The process's own slurm.conf, locked. It is whole enough for what slurm_raw_conf declares also in
 * slurmstepd. */
const struct slurm_raw_conf *slurm_raw_conf_lock(void) SLURM_ABI_NAME(slurm_conf_lock);
void slurm_raw_conf_unlock(void) SLURM_ABI_NAME(slurm_conf_unlock);

#if SLURM_ABI_KILL == 1
int slurm_raw_kill(uint32_t job, uint32_t step, uint16_t sig) SLURM_ABI_NAME(slurm_kill_job_step);
#elif SLURM_ABI_KILL == 2
int slurm_raw_kill(uint32_t job, uint32_t step, uint16_t sig, uint16_t flags)
    SLURM_ABI_NAME(slurm_kill_job_step);
#else
int slurm_raw_kill(struct slurm_raw_step_id *id, uint16_t sig, uint16_t flags)
    SLURM_ABI_NAME(slurm_kill_job_step);
#endif

/* Takes a job id up to 25.11, a step id since. */
#if SLURM_ABI_RELEASE < 0x1a05
int slurm_raw_allocation_lookup(uint32_t job, struct slurm_raw_allocation **allocation)
    SLURM_ABI_NAME(slurm_allocation_lookup);
#else
int slurm_raw_allocation_lookup(struct slurm_raw_step_id id,
                                struct slurm_raw_allocation **allocation)
    SLURM_ABI_NAME(slurm_allocation_lookup);
#endif

/* The same. @return seconds, or -1 */
#if SLURM_ABI_RELEASE < 0x1a05
long slurm_raw_time_left(uint32_t job) SLURM_ABI_NAME(slurm_get_rem_time);
#else
long slurm_raw_time_left(struct slurm_raw_step_id id) SLURM_ABI_NAME(slurm_get_rem_time);
#endif

/* Takes a step id from 25.11 on. */
#if SLURM_ABI_RELEASE < 0x190b
int slurm_raw_get_steps(time_t update_time, uint32_t job, uint32_t step,
                        struct slurm_raw_step_records **records, uint16_t flags)
    SLURM_ABI_NAME(slurm_get_job_steps);
#else
int slurm_raw_get_steps(struct slurm_raw_step_id *id, struct slurm_raw_step_records **records,
                        uint16_t flags) SLURM_ABI_NAME(slurm_get_job_steps);
#endif

/** A step's id. @p het_comp is SLURM_ABI_NO_VAL for all but heterogeneous steps. */
static inline struct slurm_raw_step_id slurm_raw_step_id(uint32_t job, uint32_t step,
                                                         uint32_t het_comp)
{
    return (struct slurm_raw_step_id){.job_id = job, .step_het_comp = het_comp, .step_id = step};
}
