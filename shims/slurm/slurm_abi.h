/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What we use of Slurm's binary interface, the same for all its releases.
 *
 * An MPI plugin needs a few structures and functions that Slurm's public headers lack. So all of it
 * stands here, under names of our own. Functions that all releases have alike keep Slurm's names
 * for the linker. What differs is in slurm_raw.h; abi.c turns it into what is declared here, by the
 * release that runs. Nothing is linked: the functions resolve from the process that loads the
 * plugin (srun, slurmctld, slurmd, slurmstepd all carry them), or from the libslurm that
 * muster-server has loaded.
 */
#pragma once

#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

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

/** "Not set", in every field that has such a state. */
#define SLURM_ABI_NO_VAL 0xfffffffeU

/** Steps that an srun makes have lower numbers; the batch script and what else Slurm makes itself
 * have these and higher ones. */
#define SLURM_ABI_STEPS_END 0xfffffff0U

/** A step, and which part of it. */
struct slurm_abi_step_id {
    uint32_t job_id;
    uint32_t step_het_comp; /**< component of a heterogeneous step, or SLURM_ABI_NO_VAL */
    uint32_t step_id;
};

/** Which ranks run on which node. */
struct slurm_abi_step_layout {
    uint32_t node_cnt;
    uint32_t task_cnt;
    char *node_list; /**< a hostlist, in the order of the arrays below */
    uint16_t *tasks; /**< tasks on each node */
    uint32_t **tids; /**< by node and local task: the rank in the step */
    void *raw;       /**< Slurm's own, whose memory all of these are */
};

/** A step on slurmctld's record. */
struct slurm_abi_step_record {
    struct slurm_abi_step_id step_id;
    uint32_t num_cpus; /**< processors that it has */
    uint32_t num_tasks;
    uint32_t user_id;  /**< whose job it is of */
    char *srun_host;   /**< where its srun runs */
    uint32_t srun_pid; /**< and as what process */
    time_t start_time;
    char *nodes; /**< where its tasks run, a hostlist; NULL: not placed yet */
};

/** Steps on slurmctld's record. */
struct slurm_abi_step_records {
    uint32_t count;
    struct slurm_abi_step_record *steps;
    time_t now; /**< slurmctld's time when it wrote them */
    void *raw;  /**< Slurm's own, whose memory the strings are */
};

/** What an allocation has. */
struct slurm_abi_allocation {
    uint32_t num_cpu_groups;
    uint16_t *cpus_per_node;  /**< by group: processors on each of its nodes */
    uint32_t *cpu_count_reps; /**< by group: how many nodes in a row */
    uint32_t node_cnt;
    char *node_list; /**< a hostlist, in the order of the groups */
    void *raw;       /**< Slurm's own, whose memory all of these are */
};

/** mpi_step_info_t: what srun knows before it launches. Read by slurm_abi_step_of(). */
struct slurm_abi_step_info;

/** mpi_task_info_t, as far as all releases have it alike: what slurmstepd tells of the task that it
 * is about to start. */
struct slurm_abi_task_info {
    void *client;
    uint32_t gtaskid; /**< rank in the step, all components together */
    int ltaskid;      /**< slot on this node */
    uint32_t ltasks;
    uint32_t nnodes;
    uint32_t nodeid;
    uint32_t ntasks; /**< of the step, all components together */
};

/** Mode of slurm_abi_stepd_getpw(): the step's record, of whichever user it is. */
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
                            const struct slurm_abi_step_id *step_id, uint16_t *protocol_version);
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

/** ClusterName and AuthInfo of the process's own slurm.conf. @return freed by free(); NULL: not
 * set, or no memory */
char *slurm_abi_cluster_name(void);
char *slurm_abi_auth_info(void);

/* Asked from slurmctld. slurm.conf's structure is not declared, since it changes with every
 * release: it is printed, as lines "Key    = value". */
int slurm_abi_load_conf(time_t update_time, void **conf) SLURM_ABI_NAME(slurm_load_ctl_conf);
void slurm_abi_print_conf(FILE *out, void *conf) SLURM_ABI_NAME(slurm_print_ctl_conf);
void slurm_abi_free_conf(void *conf);
/** @return NULL with errno set */
struct slurm_abi_step_layout *slurm_abi_step_layout_get(const struct slurm_abi_step_id *step_id);
void slurm_abi_step_layout_free(struct slurm_abi_step_layout *layout);

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

/** A step's id. @p het_comp is SLURM_ABI_NO_VAL for all but heterogeneous steps. */
static inline struct slurm_abi_step_id slurm_abi_step_id(uint32_t job, uint32_t step,
                                                         uint32_t het_comp)
{
    return (struct slurm_abi_step_id){.job_id = job, .step_het_comp = het_comp, .step_id = step};
}

/** The step that srun is about to launch. */
struct slurm_abi_step_id slurm_abi_step_of(const struct slurm_abi_step_info *info);

/** Asks slurmctld what a running job has. @return 0, or -1 with errno set
 * @param allocation freed by slurm_abi_free_allocation() */
int slurm_abi_allocation_lookup(uint32_t job, struct slurm_abi_allocation **allocation);
void slurm_abi_free_allocation(struct slurm_abi_allocation *allocation);

/** Asks slurmctld, at most once a minute, how long the job may still run; one without a limit has
 * a year from its start on. @return seconds, or -1 with errno set. @thread one at a time */
long slurm_abi_time_left(uint32_t job);

/** SHOW_ALL and SHOW_LOCAL: also of hidden partitions, and of this cluster alone. */
enum { SLURM_ABI_SHOW = 0x11 };

/** Asks slurmctld for the record of one step, or with SLURM_ABI_NO_VAL as @p step for those of all
 * steps of the job, or for both numbers for those of all steps that the user may see. @return 0, or
 * -1 with errno set
 * @param records freed by slurm_abi_free_steps(); may have none */
int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **records);
void slurm_abi_free_steps(struct slurm_abi_step_records *records);

/** Asks slurmctld to signal all tasks of a step, those of all its components in that job.
 * @param fails whether tasks that die by it count as failed @return 0, or -1 with errno set */
int slurm_abi_kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails);

/** The number that the running Slurm's messages have, SLURM_PROTOCOL_VERSION. */
uint16_t slurm_abi_protocol(void);

/** The number of the process's libslurm: in bits 16 and up one more with each release. */
long slurm_abi_api_version(void) SLURM_ABI_NAME(slurm_api_version);

/** The version of the process's Slurm, as SLURM_VERSION_NUMBER; 0: not found, and then Slurm does
 * not use the plugin. Of the plugin alone. */
uint32_t slurm_abi_version(void);
