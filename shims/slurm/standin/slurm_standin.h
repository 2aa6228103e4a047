/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun and the functions of Slurm that it stands in for know of each other.
 *
 * libslurm_standin.so defines the functions of slurm_abi.h that muster's plugin and back end call.
 * It is in two processes, as Slurm's library is: musterrun, which describes its step to it, and
 * muster-server, which loads it by the path that the plugin finds, and where it knows no more than
 * SLURM_CONF: the socket of the "slurmd" of its node.
 */
#pragma once

#include "shims/standin/standin.h"

/** The version of Slurm that musterrun plays: its SLURM_ABI_RELEASE, and micro release 0. */
#define STANDIN_VERSION ((uint32_t)SLURM_ABI_RELEASE << 8)

/** The name of the cluster that all runs are in, those of one user and one TMPDIR (runs.h). */
#define STANDIN_CLUSTER "musterrun"

/** Describes the step to the functions in this process; NULL @p here is srun's role.
 * @param step,here borrowed for good @thread before all others */
void standin_describe(const struct standin_step *step, const struct standin_node *here);

/** What a process asks of the slurmd of its node, and what follows it. */
enum standin_kind {
    STANDIN_FORWARD = 1, /**< node's name, address, data: bring data to that socket there */
    STANDIN_KILL = 2,    /**< nothing: signal the tasks of the step */
    STANDIN_RECORD = 3, /**< nothing: when the step was started and has to end, or 0; an answer of 0
                           has both behind it, two int64_t */
    STANDIN_TOKEN_NEW = 4,  /**< data: make a credential; its token is behind an answer of 0 */
    STANDIN_TOKEN_READ = 5, /**< nothing: struct standin_credential is behind an answer of 0 */
    STANDIN_STEPS = 6, /**< nothing: the answer is how many bytes of steps_list() are behind it */
    /** The listed nodes of its ranks: a spawned step begins, which ends with the connection. Behind
     * an answer of 0 are struct standin_joined, the processors of each node of the job, the node of
     * each rank; then each signal for the step, an int32_t */
    STANDIN_JOIN = 7,
    /** The same as STEPS and TOKEN_READ, asked by the slurmd of another run of the user (runs.h):
     * of this run alone. */
    STANDIN_RUN_STEPS = 8,
    STANDIN_RUN_TOKEN = 9,
};

enum {
    STANDIN_TOKEN = 16, /**< bytes */
    STANDIN_CREDENTIAL_MAX = 256,
    STANDIN_NODES_MAX = 999,
    STANDIN_TASKS_MAX = 10000,
};

struct standin_credential {
    uint32_t uid, len;
    char data[STANDIN_CREDENTIAL_MAX];
};

/** A step that is spawned. */
struct standin_join {
    uint32_t ntasks, nnodes, per_node; /**< the last two: 0: not said */
    uint32_t listed;                   /**< 0, or ntasks: each rank's node is asked for */
    uint32_t flags;                    /**< STANDIN_FREE_CPUS ... */
};

enum { STANDIN_FREE_CPUS = 1, STANDIN_OVERCOMMIT = 2, STANDIN_CYCLIC = 4 };

struct standin_joined {
    uint32_t step, nnodes; /**< of the job */
    uint32_t limited;
    int64_t start;
};

/** Head of a request; answered by one int32_t, 0 or an error number. Host order: both ends are one
 * build on one machine. */
struct standin_head {
    uint32_t kind;
    union {
        struct {
            uint32_t name_len, address_len, data_len; /**< bytes that follow, without NUL */
        } forward;
        struct {
            uint32_t job, step, signal;
        } kill;
        struct {
            uint32_t job, step;
        } record;
        struct {
            uint32_t reader, len; /**< bytes that follow */
        } make;
        struct {
            unsigned char token[STANDIN_TOKEN];
            uint32_t node; /**< RUN_TOKEN: where it is read */
        } read;
        struct standin_join join;
    };
};

enum {
    STANDIN_NAME_MAX = 63,
    STANDIN_ADDRESS_MAX = 4096,
    STANDIN_DATA_MAX = 1 << 30, /**< Slurm's own bound */
};

/** Numbers of slurm_errno.h beside those of slurm_abi.h. */
enum {
    STANDIN_CONNECTION_ERROR = 1001,
    STANDIN_TOO_MANY = 2026, /**< more processors than the job has */
    STANDIN_BUSY = 2016,
    STANDIN_NO_NODES = 2014,
};

/** Asks for a credential with @p data in it. @return 0, or an error number */
int standin_ask_token(uint32_t reader, const void *data, uint32_t len, unsigned char *token);

/** Asks what is in one, which can be done once. @param data STANDIN_CREDENTIAL_MAX bytes
 * @return 0, or an error number */
int standin_ask_credential(const unsigned char *token, uint32_t *uid, void *data, uint32_t *len);

/** Asks for a credential that another run has made. @param slurmd path of a socket of that run
 * @param node where it is read @return 0, or an error number */
int standin_ask_run_credential(const char *slurmd, uint32_t node, const unsigned char *token,
                               struct standin_credential *found);

/** Asks for all steps of the cluster, or of another run. @param slurmd NULL, or path of a socket of
 * that run @param text as of steps_list(), malloc()ed @return 0, or an error number */
int standin_ask_steps(const char *slurmd, char **text);

/** Asks what slurmctld would have on record of a step. @return 0, or an error number */
int standin_ask_record(uint32_t job, uint32_t step, int64_t times[2]);
