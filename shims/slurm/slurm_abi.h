/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What we use of Slurm's binary interface, declared by release.
 *
 * An MPI plugin needs a few structures and functions that Slurm's public headers lack, and
 * distributions ship those headers for one release only. So all of it stands here, under names of
 * our own, for the release that MUSTER_SLURM_VERSION names; abi_check.c compares what the public
 * headers do have with them. The functions keep Slurm's names for the linker. Nothing is linked:
 * they resolve from the process that loads the plugin (srun, slurmctld, slurmd, slurmstepd all
 * carry them).
 *
 * abi_layout.c has the sizes and offsets of every release as numbers. To support another release:
 * add its row here, its numbers there and its name to plugins/slurm/meson.build; then build with
 * its headers.
 */
#ifndef MUSTER_SLURM_ABI_H
#define MUSTER_SLURM_ABI_H

#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/** Release of a version, micro left out: 0x1605 is 22.05. Layouts do not change within one. */
#define SLURM_ABI_RELEASE (MUSTER_SLURM_VERSION >> 8)

/*  What changed between the releases:
 *
 *  release  step layout  task info  step id  slurm_kill_job_step  freeing slurm.conf
 *  22.05    front end    self       plain    (job, step, sig)     slurm_free_ctl_conf
 *  23.02    front end    self       plain    (job, step, sig)     slurm_free_ctl_conf
 *  23.11    both         -          plain    + flags              slurm_free_ctl_conf
 *  24.05    both         -          plain    + flags              slurm_free_ctl_conf
 *  24.11    both         -          sluid    + flags              slurm_free_ctl_conf
 *  25.05    cpt          -          sluid    + flags              slurm_free_ctl_conf
 *  25.11    cpt          -          sluid    (id, sig, flags)     slurm_free_ctl_conf
 *  26.05    cpt          -          sluid    (id, sig, flags)     slurm_free_conf
 */
#if SLURM_ABI_RELEASE == 0x1605 || SLURM_ABI_RELEASE == 0x1702
#define SLURM_ABI_LAYOUT_FRONT_END 1
#define SLURM_ABI_LAYOUT_CPT 0
#define SLURM_ABI_TASK_SELF 1
#define SLURM_ABI_SLUID 0
#define SLURM_ABI_KILL 1
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#elif SLURM_ABI_RELEASE == 0x170b || SLURM_ABI_RELEASE == 0x1805
#define SLURM_ABI_LAYOUT_FRONT_END 1
#define SLURM_ABI_LAYOUT_CPT 1
#define SLURM_ABI_TASK_SELF 0
#define SLURM_ABI_SLUID 0
#define SLURM_ABI_KILL 2
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#elif SLURM_ABI_RELEASE == 0x180b
#define SLURM_ABI_LAYOUT_FRONT_END 1
#define SLURM_ABI_LAYOUT_CPT 1
#define SLURM_ABI_TASK_SELF 0
#define SLURM_ABI_SLUID 1
#define SLURM_ABI_KILL 2
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#elif SLURM_ABI_RELEASE == 0x1905
#define SLURM_ABI_LAYOUT_FRONT_END 0
#define SLURM_ABI_LAYOUT_CPT 1
#define SLURM_ABI_TASK_SELF 0
#define SLURM_ABI_SLUID 1
#define SLURM_ABI_KILL 2
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#elif SLURM_ABI_RELEASE == 0x190b
#define SLURM_ABI_LAYOUT_FRONT_END 0
#define SLURM_ABI_LAYOUT_CPT 1
#define SLURM_ABI_TASK_SELF 0
#define SLURM_ABI_SLUID 1
#define SLURM_ABI_KILL 3
#define SLURM_ABI_FREE_CONF slurm_free_ctl_conf
#elif SLURM_ABI_RELEASE == 0x1a05
#define SLURM_ABI_LAYOUT_FRONT_END 0
#define SLURM_ABI_LAYOUT_CPT 1
#define SLURM_ABI_TASK_SELF 0
#define SLURM_ABI_SLUID 1
#define SLURM_ABI_KILL 3
#define SLURM_ABI_FREE_CONF slurm_free_conf
#else
#error "muster does not know this Slurm release: add its row to shims/slurm/slurm_abi.h"
#endif

/** Gives a declaration the name that Slurm's function has for the linker. */
#define SLURM_ABI_NAME(name) SLURM_ABI_LABEL(name)
#define SLURM_ABI_LABEL(name) __asm__(#name)
#define SLURM_ABI_PRINTF __attribute__((format(printf, 1, 2)))

enum { SLURM_ABI_SUCCESS = 0, SLURM_ABI_ERROR = -1 };

/** Numbers of slurm_errno.h that are told apart. */
enum {
    SLURM_ABI_INVALID_JOB_ID = 2017,
    SLURM_ABI_TRANSITION = 2020, /**< the job is suspended, or completing */
    SLURM_ABI_ALREADY_DONE = 2021,
};

/** The number that a release's messages have, SLURM_PROTOCOL_VERSION: one more with each release.
 */
#define SLURM_ABI_PROTOCOL                                                                         \
    ((uint16_t)((SLURM_ABI_RELEASE == 0x1605   ? 38                                                \
                 : SLURM_ABI_RELEASE == 0x1702 ? 39                                                \
                 : SLURM_ABI_RELEASE == 0x170b ? 40                                                \
                 : SLURM_ABI_RELEASE == 0x1805 ? 41                                                \
                 : SLURM_ABI_RELEASE == 0x180b ? 42                                                \
                 : SLURM_ABI_RELEASE == 0x1905 ? 43                                                \
                 : SLURM_ABI_RELEASE == 0x190b ? 44                                                \
                                               : 45)                                               \
                << 8))

/** "Not set", in every field that has such a state. */
#define SLURM_ABI_NO_VAL 0xfffffffeU

/** slurm_step_id_t */
struct slurm_abi_step_id {
#if SLURM_ABI_SLUID
    uint64_t sluid;
#endif
    uint32_t job_id;
    uint32_t step_het_comp; /**< component of a heterogeneous step, or SLURM_ABI_NO_VAL */
    uint32_t step_id;
};

/** slurm_step_layout_t: who runs where. */
struct slurm_abi_step_layout {
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
struct slurm_abi_step_record {
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
    struct slurm_abi_step_id step_id;
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
struct slurm_abi_step_records {
    time_t last_update;
    uint32_t count;
    struct slurm_abi_step_record *steps;
};

/** resource_allocation_response_msg_t, as far as it is read: what an allocation has. */
struct slurm_abi_allocation {
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
struct slurm_abi_conf {
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
struct slurm_abi_step_info {
    uint32_t het_job_id; /**< 0 or SLURM_ABI_NO_VAL: no heterogeneous job */
    uint32_t het_job_task_offset;
    struct slurm_abi_step_id step_id;
    struct slurm_abi_step_layout *step_layout; /**< all components together */
};

/** mpi_task_info_t: what slurmstepd tells of the task that it is about to start. */
struct slurm_abi_task_info {
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
    struct slurm_abi_step_id step_id;
};

/** Mode of slurm_abi_stepd_getpw(): the step's record, whoever it is. */
enum { SLURM_ABI_GETPW_MATCH_ALWAYS = 1 };

/** Reads slurm.conf; a process that Slurm did not start calls it first. @param conf NULL: the
 * file that SLURM_CONF names, or the compiled-in one */
void slurm_abi_init(const char *conf) SLURM_ABI_NAME(slurm_init);

/* Messages. Each is one line, written where the host process logs. */
void slurm_abi_error(const char *fmt, ...) SLURM_ABI_NAME(slurm_error) SLURM_ABI_PRINTF;
void slurm_abi_info(const char *fmt, ...) SLURM_ABI_NAME(slurm_info) SLURM_ABI_PRINTF;
void slurm_abi_debug(const char *fmt, ...) SLURM_ABI_NAME(slurm_debug) SLURM_ABI_PRINTF;
const char *slurm_abi_strerror(int errnum) SLURM_ABI_NAME(slurm_strerror);

/* slurmstepd's own record, asked over its own socket. */
int slurm_abi_stepd_connect(const char *directory, const char *nodename,
                            struct slurm_abi_step_id *step_id, uint16_t *protocol_version)
    SLURM_ABI_NAME(slurm_stepd_connect);
uid_t slurm_abi_stepd_get_uid(int fd, uint16_t protocol_version)
    SLURM_ABI_NAME(slurm_stepd_get_uid);
/** @return a record whose strings and itself the caller frees with slurm_abi_xfree() */
struct passwd *slurm_abi_stepd_getpw(int fd, uint16_t protocol_version, int mode, uid_t uid,
                                     const char *name) SLURM_ABI_NAME(slurm_stepd_getpw);
/** Frees Slurm's memory and sets the pointer to NULL. */
void slurm_abi_xfree(void **p) SLURM_ABI_NAME(slurm_xfree);

/** TmpFS of the process's own slurm.conf, its %n and %h expanded. @return freed by
 * slurm_abi_xfree() */
char *slurm_abi_get_tmp_fs(const char *node) SLURM_ABI_NAME(slurm_get_tmp_fs);

/** The path of a file beside slurm.conf. @return freed by slurm_abi_xfree() */
char *slurm_abi_extra_conf_path(const char *name) SLURM_ABI_NAME(slurm_get_extra_conf_path);

/** The process's own slurm.conf, locked. It is whole enough for what slurm_abi_conf declares also
 * in slurmstepd. @return borrowed until slurm_abi_conf_unlock() */
const struct slurm_abi_conf *slurm_abi_conf_lock(void) SLURM_ABI_NAME(slurm_conf_lock);
void slurm_abi_conf_unlock(void) SLURM_ABI_NAME(slurm_conf_unlock);

/* Asked from slurmctld. slurm.conf's structure is not declared, since it changes with every
 * release: it is printed, as lines "Key    = value". */
int slurm_abi_load_conf(time_t update_time, void **conf) SLURM_ABI_NAME(slurm_load_ctl_conf);
void slurm_abi_print_conf(FILE *out, void *conf) SLURM_ABI_NAME(slurm_print_ctl_conf);
void slurm_abi_free_conf(void *conf) SLURM_ABI_NAME(SLURM_ABI_FREE_CONF);
struct slurm_abi_step_layout *slurm_abi_step_layout_get(struct slurm_abi_step_id *step_id)
    SLURM_ABI_NAME(slurm_job_step_layout_get);
void slurm_abi_step_layout_free(struct slurm_abi_step_layout *layout)
    SLURM_ABI_NAME(slurm_job_step_layout_free);

void slurm_abi_free_steps(struct slurm_abi_step_records *records)
    SLURM_ABI_NAME(slurm_free_job_step_info_response_msg);
void slurm_abi_free_allocation(struct slurm_abi_allocation *allocation)
    SLURM_ABI_NAME(slurm_free_resource_allocation_response_msg);

void *slurm_abi_hostlist_create(const char *hostlist) SLURM_ABI_NAME(slurm_hostlist_create);
/** @return the first host, taken out of the list; the caller frees it with free() */
char *slurm_abi_hostlist_shift(void *hostlist) SLURM_ABI_NAME(slurm_hostlist_shift);
void slurm_abi_hostlist_destroy(void *hostlist) SLURM_ABI_NAME(slurm_hostlist_destroy);

/** @return 1 when set */
int slurm_abi_env_overwrite(char ***env, const char *name, const char *value)
    SLURM_ABI_NAME(slurm_env_array_overwrite);

/** buf_t: bytes that are packed or unpacked, as far as all releases have it alike. */
struct slurm_abi_buffer {
    uint32_t magic;
    char *head;
    uint32_t size;
    uint32_t processed; /**< bytes from the head on that were packed, or unpacked */
};
struct slurm_abi_buffer *slurm_abi_buffer_new(uint32_t size) SLURM_ABI_NAME(slurm_init_buf);
void slurm_abi_buffer_free(struct slurm_abi_buffer *buffer) SLURM_ABI_NAME(slurm_free_buf);

/* Credentials of AuthType, which prove a uid to another process; no public header has them, and all
 * releases have them alike. @return SLURM_ABI_SUCCESS, or an error, where it is a number */
enum { SLURM_ABI_AUTH_DEFAULT = 0 };
/** @param info AuthInfo of slurm.conf @param reader the uid whose processes can read it
 * @return a credential with @p data in it, for slurm_abi_auth_destroy(), or NULL */
void *slurm_abi_auth_create(int index, char *info, uid_t reader, void *data, int len)
    SLURM_ABI_NAME(auth_g_create);
/** Its result differs: an int on 22.05. */
void slurm_abi_auth_destroy(void *cred) SLURM_ABI_NAME(auth_g_destroy);
int slurm_abi_auth_verify(void *cred, char *info) SLURM_ABI_NAME(auth_g_verify);
/** Of one that was verified. */
uid_t slurm_abi_auth_get_uid(void *cred) SLURM_ABI_NAME(auth_g_get_uid);
/** The same. @param data a copy, freed by slurm_abi_xfree() */
int slurm_abi_auth_get_data(void *cred, char **data, uint32_t *len) SLURM_ABI_NAME(auth_g_get_data);
int slurm_abi_auth_pack(void *cred, struct slurm_abi_buffer *buffer, uint16_t protocol)
    SLURM_ABI_NAME(auth_g_pack);
void *slurm_abi_auth_unpack(struct slurm_abi_buffer *buffer, uint16_t protocol)
    SLURM_ABI_NAME(auth_g_unpack);

/** SrunPortRange: the first and the last port, or NULL: any. Borrowed. */
uint16_t *slurm_abi_srun_ports(void) SLURM_ABI_NAME(slurm_get_srun_port_range);

/** Sends bytes to a Unix socket on other nodes; see rm_slurm.c, which calls it. */
int slurm_abi_forward_data(char **nodelist, char *address, uint32_t len, const char *data)
    SLURM_ABI_NAME(slurm_forward_data);

/** A flag for it, which 22.05 and 23.02 lack: tasks that die by it do not count as failed. */
enum { SLURM_ABI_KILL_QUIET = 1 << 10 };

/* Its arguments changed; slurm_abi_kill_step() has one signature. */
#if SLURM_ABI_KILL == 1
int slurm_abi_raw_kill(uint32_t job, uint32_t step, uint16_t sig)
    SLURM_ABI_NAME(slurm_kill_job_step);
#elif SLURM_ABI_KILL == 2
int slurm_abi_raw_kill(uint32_t job, uint32_t step, uint16_t sig, uint16_t flags)
    SLURM_ABI_NAME(slurm_kill_job_step);
#else
int slurm_abi_raw_kill(struct slurm_abi_step_id *id, uint16_t sig, uint16_t flags)
    SLURM_ABI_NAME(slurm_kill_job_step);
#endif
/** A step's id. @p het_comp is SLURM_ABI_NO_VAL for all but heterogeneous steps. */
static inline struct slurm_abi_step_id slurm_abi_step_id(uint32_t job, uint32_t step,
                                                         uint32_t het_comp)
{
    return (struct slurm_abi_step_id){.job_id = job, .step_het_comp = het_comp, .step_id = step};
}

/* Takes a job id up to 25.11, a step id since; slurm_abi_allocation_lookup() has one signature. */
#if SLURM_ABI_RELEASE < 0x1a05
int slurm_abi_raw_allocation_lookup(uint32_t job, struct slurm_abi_allocation **allocation)
    SLURM_ABI_NAME(slurm_allocation_lookup);
#else
int slurm_abi_raw_allocation_lookup(struct slurm_abi_step_id id,
                                    struct slurm_abi_allocation **allocation)
    SLURM_ABI_NAME(slurm_allocation_lookup);
#endif

/** Asks slurmctld what a running job has. @return 0, or -1 with errno set
 * @param allocation freed by slurm_abi_free_allocation() */
static inline int slurm_abi_allocation_lookup(uint32_t job,
                                              struct slurm_abi_allocation **allocation)
{
#if SLURM_ABI_RELEASE < 0x1a05
    return slurm_abi_raw_allocation_lookup(job, allocation);
#else
    return slurm_abi_raw_allocation_lookup(
        slurm_abi_step_id(job, SLURM_ABI_NO_VAL, SLURM_ABI_NO_VAL), allocation);
#endif
}

/* Takes a step id from 25.11 on; slurm_abi_get_step() has one signature. */
#if SLURM_ABI_RELEASE < 0x190b
int slurm_abi_raw_get_steps(time_t update_time, uint32_t job, uint32_t step,
                            struct slurm_abi_step_records **records, uint16_t flags)
    SLURM_ABI_NAME(slurm_get_job_steps);
#else
int slurm_abi_raw_get_steps(struct slurm_abi_step_id *id, struct slurm_abi_step_records **records,
                            uint16_t flags) SLURM_ABI_NAME(slurm_get_job_steps);
#endif

/** SHOW_ALL and SHOW_LOCAL: also of hidden partitions, and of this cluster alone. */
enum { SLURM_ABI_SHOW = 0x11 };

/** Asks slurmctld for the record of one step. @return 0, or -1 with errno set
 * @param records freed by slurm_abi_free_steps(); may have none */
static inline int slurm_abi_get_step(uint32_t job, uint32_t step,
                                     struct slurm_abi_step_records **records)
{
#if SLURM_ABI_RELEASE < 0x190b
    return slurm_abi_raw_get_steps(0, job, step, records, SLURM_ABI_SHOW);
#else
    struct slurm_abi_step_id id = slurm_abi_step_id(job, step, SLURM_ABI_NO_VAL);

    return slurm_abi_raw_get_steps(&id, records, SLURM_ABI_SHOW);
#endif
}

/** Asks slurmctld to signal all tasks of a step, those of all its components in that job. @return
 * 0, or -1 with errno set */
static inline int slurm_abi_kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails)
{
#if SLURM_ABI_KILL == 1
    (void)fails;
    return slurm_abi_raw_kill(job, step, sig);
#elif SLURM_ABI_KILL == 2
    return slurm_abi_raw_kill(job, step, sig, fails ? 0 : SLURM_ABI_KILL_QUIET);
#else
    struct slurm_abi_step_id id = slurm_abi_step_id(job, step, SLURM_ABI_NO_VAL);

    return slurm_abi_raw_kill(&id, sig, fails ? 0 : SLURM_ABI_KILL_QUIET);
#endif
}

#endif
