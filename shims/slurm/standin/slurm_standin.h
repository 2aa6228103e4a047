/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun and the functions of Slurm that it stands in for know of each other.
 *
 * libslurm_standin.so defines the functions of slurm_abi.h that muster's plugin and back end call.
 * It is in two processes, as Slurm's library is: musterrun, which describes its step to it, and
 * muster-server, which loads it by the path that the plugin finds, and where it knows no more than
 * SLURM_CONF: the socket of the "slurmd" of its node.
 */
#ifndef MUSTER_SLURM_STANDIN_H
#define MUSTER_SLURM_STANDIN_H

#include "shims/standin/standin.h"

/** The version of Slurm that musterrun plays: its SLURM_ABI_RELEASE, and micro release 0. */
#define STANDIN_VERSION ((uint32_t)SLURM_ABI_RELEASE << 8)

/** The name of the cluster that all runs are in. */
#define STANDIN_CLUSTER "musterrun"

/** Describes the step to the functions in this process; NULL @p here is srun's role.
 * @param step,here borrowed for good @thread before all others */
void standin_describe(const struct standin_step *step, const struct standin_node *here);

/** What a process asks of the slurmd of its node, and what follows it. */
enum standin_kind {
    STANDIN_FORWARD = 1, /**< node's name, address, data: bring data to that socket there */
    STANDIN_KILL = 2,    /**< nothing: signal the tasks of the step */
    STANDIN_RECORD = 3, /**< nothing: when the step was started; an answer of 0 has it behind it, an
                           int64_t */
    STANDIN_TOKEN_NEW = 4,  /**< data: make a credential; its token is behind an answer of 0 */
    STANDIN_TOKEN_READ = 5, /**< nothing: struct standin_credential is behind an answer of 0 */
};

enum {
    STANDIN_TOKEN = 16, /**< bytes */
    STANDIN_CREDENTIAL_MAX = 256,
};

struct standin_credential {
    uint32_t uid, len;
    char data[STANDIN_CREDENTIAL_MAX];
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
        unsigned char token[STANDIN_TOKEN];
    };
};

enum {
    STANDIN_NAME_MAX = 63,
    STANDIN_ADDRESS_MAX = 4096,
    STANDIN_DATA_MAX = 1 << 30, /**< Slurm's own bound */
};

/** Numbers of slurm_errno.h beside those of slurm_abi.h. */
enum { STANDIN_CONNECTION_ERROR = 1001 };

/** Asks for a credential with @p data in it. @return 0, or an error number */
int standin_ask_token(uint32_t reader, const void *data, uint32_t len, unsigned char *token);

/** Asks what is in one, which can be done once. @param data STANDIN_CREDENTIAL_MAX bytes
 * @return 0, or an error number */
int standin_ask_credential(const unsigned char *token, uint32_t *uid, void *data, uint32_t *len);

/** Asks what slurmctld would have on record of a step. @return 0, or an error number */
int standin_ask_record(uint32_t job, uint32_t step, int64_t *start);

#endif
