/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The Slurm releases that muster knows: one row for each. meson.build reads the rows from this
 * file, too.
 *
 * To support another release, add its row here. Its structures and functions are those of the
 * release before until slurm_raw.h says otherwise; when a number of the row is not met, slurm_raw.h
 * does not compile, and says what differs.
 *
 * The numbers are those of Slurm's own structures, printed by programs that included them from the
 * source tags, the first and the last of each release; 64 bits, since Slurm runs on nothing else
 * any more. Never take them from slurm_raw.h.
 */
#pragma once

/*  A row's columns:
 *
 *  release, its number, the number of its libslurm;
 *  step id: bytes, offset of job_id; step layout: bytes, offset of node_cnt; step info: bytes,
 *  offset of step_layout; task info: bytes, offset of step_id; how a step is killed, how slurm.conf
 *  is freed;
 *  allocation: offsets of cpus_per_node, cpu_count_reps, node_cnt, node_list, num_cpu_groups;
 *  slurm.conf: offset of cluster_name; what lies behind these is not declared;
 *  a step's record: bytes, offsets of num_tasks, srun_host, step_id, user_id; how it is asked for.
 */
#define SLURM_RELEASE_ROWS(ROW)                                                                    \
    ROW(22.05, 0x1605, 38, 12, 0, 56, 8, 32, 24, 56, 40, JOB_STEP_SIG, slurm_free_ctl_conf, 48,    \
        56, 104, 112, 128, 232, 256, 92, 128, 160, 248, BY_NUMBERS)                                \
    ROW(23.02, 0x1702, 39, 12, 0, 56, 8, 32, 24, 56, 40, JOB_STEP_SIG, slurm_free_ctl_conf, 48,    \
        56, 112, 120, 136, 232, 256, 100, 128, 160, 248, BY_NUMBERS)                               \
    ROW(23.11, 0x170b, 40, 12, 0, 88, 40, 32, 24, 48, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf, \
        48, 56, 112, 120, 136, 232, 256, 100, 128, 160, 248, BY_NUMBERS)                           \
    ROW(24.05, 0x1805, 41, 12, 0, 88, 40, 32, 24, 48, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf, \
        48, 56, 112, 120, 136, 224, 256, 100, 128, 160, 248, BY_NUMBERS)                           \
    ROW(24.11, 0x180b, 42, 24, 8, 88, 40, 40, 32, 56, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf, \
        48, 56, 112, 120, 136, 248, 264, 100, 128, 160, 256, BY_NUMBERS)                           \
    ROW(25.05, 0x1905, 43, 24, 8, 80, 32, 40, 32, 56, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf, \
        40, 48, 96, 104, 120, 264, 304, 116, 144, 176, 296, BY_NUMBERS)                            \
    ROW(25.11, 0x190b, 44, 24, 8, 80, 32, 40, 32, 56, 32, ID_SIG_FLAGS, slurm_free_ctl_conf, 32,   \
        40, 88, 96, 112, 264, 304, 116, 144, 176, 296, BY_ID)                                      \
    ROW(26.05, 0x1a05, 45, 24, 8, 80, 32, 40, 32, 56, 32, ID_SIG_FLAGS, slurm_free_conf, 32, 40,   \
        88, 96, 112, 264, 312, 124, 152, 184, 304, BY_ID)
