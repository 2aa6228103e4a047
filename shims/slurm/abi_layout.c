/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * slurm_raw.h against numbers, where there are no headers of the release. Compiled for every
 * release that muster knows, never run.
 *
 * The numbers are those of Slurm's own structures, printed by programs that included them from the
 * source tags, the first and the last of each release; 64 bits, since Slurm runs on nothing else
 * any more. So a slip in one row of slurm_raw.h, or in a structure, does not compile. A new release
 * gets its numbers the same way, not from slurm_raw.h.
 */
#include "shims/slurm/slurm_raw.h"

_Static_assert(sizeof(void *) == 8, "the numbers below are of 64 bits");

/*  step id: bytes, offset of job_id. Step layout: bytes, offset of node_cnt. Step info: bytes,
 *  offset of step_layout. Task info: bytes, offset of step_id. How a step is killed, and how
 *  slurm.conf is freed. */
#define ROWS(ROW)                                                                                  \
    ROW(22.05, 0x1605, 12, 0, 56, 8, 32, 24, 56, 40, JOB_STEP_SIG, slurm_free_ctl_conf)            \
    ROW(23.02, 0x1702, 12, 0, 56, 8, 32, 24, 56, 40, JOB_STEP_SIG, slurm_free_ctl_conf)            \
    ROW(23.11, 0x170b, 12, 0, 88, 40, 32, 24, 48, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf)     \
    ROW(24.05, 0x1805, 12, 0, 88, 40, 32, 24, 48, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf)     \
    ROW(24.11, 0x180b, 24, 8, 88, 40, 40, 32, 56, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf)     \
    ROW(25.05, 0x1905, 24, 8, 80, 32, 40, 32, 56, 32, JOB_STEP_SIG_FLAGS, slurm_free_ctl_conf)     \
    ROW(25.11, 0x190b, 24, 8, 80, 32, 40, 32, 56, 32, ID_SIG_FLAGS, slurm_free_ctl_conf)           \
    ROW(26.05, 0x1a05, 24, 8, 80, 32, 40, 32, 56, 32, ID_SIG_FLAGS, slurm_free_conf)

typedef int JOB_STEP_SIG(uint32_t, uint32_t, uint16_t);
typedef int JOB_STEP_SIG_FLAGS(uint32_t, uint32_t, uint16_t, uint16_t);
typedef int ID_SIG_FLAGS(struct slurm_raw_step_id *, uint16_t, uint16_t);

#define TEXT(name) #name
#define LENGTH(name) sizeof(TEXT(name)) /* the functions' names differ in it */

#define CHECK(release, number, condition, what)                                                    \
    _Static_assert(SLURM_ABI_RELEASE != (number) || (condition), what " of " #release);
#define LAID_OUT(type, bytes, field, offset)                                                       \
    (sizeof(struct type) == (bytes) && offsetof(struct type, field) == (offset))

#define CHECK_ROW(release, number, id, job_at, layout, nodes_at, step, layout_at, task, id_at,     \
                  kill, free_conf)                                                                 \
    CHECK(release, number, LAID_OUT(slurm_raw_step_id, id, job_id, job_at), "step id")             \
    CHECK(release, number, LAID_OUT(slurm_raw_step_layout, layout, node_cnt, nodes_at), "layout")  \
    CHECK(release, number, LAID_OUT(slurm_raw_step_info, step, step_layout, layout_at), "step")    \
    CHECK(release, number, LAID_OUT(slurm_raw_task_info, task, step_id, id_at), "task")            \
    CHECK(release, number, __builtin_types_compatible_p(__typeof__(slurm_raw_kill), kill),         \
          "slurm_kill_job_step")                                                                   \
    CHECK(release, number, LENGTH(SLURM_ABI_FREE_CONF) == sizeof #free_conf, "freeing slurm.conf")
ROWS(CHECK_ROW)

/*  Allocation: offsets of cpus_per_node, cpu_count_reps, node_cnt, node_list, num_cpu_groups.
 *  slurm.conf: offset of cluster_name. What lies behind them is not declared. */
#define READ_ROWS(ROW)                                                                             \
    ROW(22.05, 0x1605, 48, 56, 104, 112, 128, 232)                                                 \
    ROW(23.02, 0x1702, 48, 56, 112, 120, 136, 232)                                                 \
    ROW(23.11, 0x170b, 48, 56, 112, 120, 136, 232)                                                 \
    ROW(24.05, 0x1805, 48, 56, 112, 120, 136, 224)                                                 \
    ROW(24.11, 0x180b, 48, 56, 112, 120, 136, 248)                                                 \
    ROW(25.05, 0x1905, 40, 48, 96, 104, 120, 264)                                                  \
    ROW(25.11, 0x190b, 32, 40, 88, 96, 112, 264)                                                   \
    ROW(26.05, 0x1a05, 32, 40, 88, 96, 112, 264)

#define ALLOCATED(field, offset) (offsetof(struct slurm_raw_allocation, field) == (offset))
#define CHECK_READ_ROW(release, number, cpus, reps, nodes, list, groups, cluster)                  \
    CHECK(release, number,                                                                         \
          ALLOCATED(cpus_per_node, cpus) && ALLOCATED(cpu_count_reps, reps) &&                     \
              ALLOCATED(node_cnt, nodes) && ALLOCATED(node_list, list) &&                          \
              ALLOCATED(num_cpu_groups, groups),                                                   \
          "allocation")                                                                            \
    CHECK(release, number, offsetof(struct slurm_raw_conf, cluster_name) == (cluster), "slurm.conf")
READ_ROWS(CHECK_READ_ROW)

/*  A step's record: bytes, offsets of num_tasks, srun_host, step_id and user_id; how it is asked
 * for. */
#define RECORD_ROWS(ROW)                                                                           \
    ROW(22.05, 0x1605, 256, 92, 128, 160, 248, BY_NUMBERS)                                         \
    ROW(23.02, 0x1702, 256, 100, 128, 160, 248, BY_NUMBERS)                                        \
    ROW(23.11, 0x170b, 256, 100, 128, 160, 248, BY_NUMBERS)                                        \
    ROW(24.05, 0x1805, 256, 100, 128, 160, 248, BY_NUMBERS)                                        \
    ROW(24.11, 0x180b, 264, 100, 128, 160, 256, BY_NUMBERS)                                        \
    ROW(25.05, 0x1905, 304, 116, 144, 176, 296, BY_NUMBERS)                                        \
    ROW(25.11, 0x190b, 304, 116, 144, 176, 296, BY_ID)                                             \
    ROW(26.05, 0x1a05, 312, 124, 152, 184, 304, BY_ID)

typedef int BY_NUMBERS(time_t, uint32_t, uint32_t, struct slurm_raw_step_records **, uint16_t);
typedef int BY_ID(struct slurm_raw_step_id *, struct slurm_raw_step_records **, uint16_t);

#define CHECK_RECORD(release, number, record, tasks_at, host_at, id_at, user_at, get)              \
    CHECK(release, number, LAID_OUT(slurm_raw_step_record, record, num_tasks, tasks_at), "record") \
    CHECK(release, number, LAID_OUT(slurm_raw_step_record, record, srun_host, host_at), "record")  \
    CHECK(release, number, LAID_OUT(slurm_raw_step_record, record, step_id, id_at), "record")      \
    CHECK(release, number, LAID_OUT(slurm_raw_step_record, record, user_id, user_at), "record")    \
    CHECK(release, number, __builtin_types_compatible_p(__typeof__(slurm_raw_get_steps), get),     \
          "slurm_get_job_steps")
RECORD_ROWS(CHECK_RECORD)

#define COUNT_ROW(release, number, ...) +(SLURM_ABI_RELEASE == (number))
_Static_assert(0 ROWS(COUNT_ROW) == 1 && 0 READ_ROWS(COUNT_ROW) == 1 &&
                   0 RECORD_ROWS(COUNT_ROW) == 1,
               "this release has no numbers: add its row");

/* What is the same in all of them, from the first field on that moves. */
#define AFTER(field, distance)                                                                     \
    _Static_assert(offsetof(struct slurm_raw_step_layout, field) ==                                \
                       offsetof(struct slurm_raw_step_layout, node_cnt) + (distance),              \
                   "step layout: " #field)
AFTER(node_list, 8);
AFTER(plane_size, 16);
AFTER(start_protocol_ver, 18);
AFTER(tasks, 24);
AFTER(task_cnt, 32);
AFTER(task_dist, 36);
AFTER(tids, 40);
#define AT(type, field, offset, size)                                                              \
    _Static_assert(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == (size),      \
                   #type ": " #field)
AT(struct slurm_raw_step_info, het_job_id, 0, 4);
AT(struct slurm_raw_step_info, het_job_task_offset, 4, 4);
AT(struct slurm_raw_step_info, step_id, 8, sizeof(struct slurm_raw_step_id));
AT(struct slurm_raw_task_info, client, 0, 8);
AT(struct slurm_raw_task_info, gtaskid, 8, 4);
AT(struct slurm_raw_task_info, ltaskid, 12, 4);
AT(struct slurm_raw_task_info, ltasks, 16, 4);
AT(struct slurm_raw_task_info, nnodes, 20, 4);
AT(struct slurm_raw_task_info, nodeid, 24, 4);
AT(struct slurm_raw_task_info, ntasks, 28, 4);
AT(struct slurm_raw_step_records, count, 8, 4);
AT(struct slurm_raw_step_records, steps, 16, 8);
_Static_assert(offsetof(struct slurm_raw_step_record, srun_pid) ==
                   offsetof(struct slurm_raw_step_record, srun_host) + 8,
               "record: srun_pid");
#define AFTER_JOB(field, distance)                                                                 \
    _Static_assert(offsetof(struct slurm_raw_step_id, field) ==                                    \
                       offsetof(struct slurm_raw_step_id, job_id) + (distance),                    \
                   "step id: " #field)
AFTER_JOB(step_het_comp, 4);
AFTER_JOB(step_id, 8);
