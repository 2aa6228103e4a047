/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * slurm_raw.h against the numbers of releases.h, where there are no headers of the release.
 * Compiled for every release that muster knows, never run. So a slip in one row, or in a structure,
 * does not compile.
 */
#include "shims/slurm/releases.h"
#include "shims/slurm/slurm_raw.h"

_Static_assert(sizeof(void *) == 8, "the numbers are of 64 bits");

typedef int JOB_STEP_SIG(uint32_t, uint32_t, uint16_t);
typedef int JOB_STEP_SIG_FLAGS(uint32_t, uint32_t, uint16_t, uint16_t);
typedef int ID_SIG_FLAGS(struct slurm_raw_step_id *, uint16_t, uint16_t);
typedef int BY_NUMBERS(time_t, uint32_t, uint32_t, struct slurm_raw_step_records **, uint16_t);
typedef int BY_ID(struct slurm_raw_step_id *, struct slurm_raw_step_records **, uint16_t);

#define TEXT(name) #name
#define LENGTH(name) sizeof(TEXT(name)) /* the functions' names differ in it */

#define CHECK(release, number, condition, what)                                                    \
    _Static_assert(SLURM_ABI_RELEASE != (number) || (condition), what " of " #release);
#define LAID_OUT(type, bytes, field, offset)                                                       \
    (sizeof(struct type) == (bytes) && offsetof(struct type, field) == (offset))

#define ALLOCATED(field, offset) (offsetof(struct slurm_raw_allocation, field) == (offset))
#define RECORDED(bytes, field, offset) LAID_OUT(slurm_raw_step_record, bytes, field, offset)
#define SAME_TYPE(function, type) __builtin_types_compatible_p(__typeof__(function), type)

#define CHECK_ROW(release, number, api, id, job_at, layout, nodes_at, step, layout_at, task,       \
                  task_id_at, kill, free_conf, cpus, reps, nodes, list, groups, cluster, record,   \
                  tasks_at, host_at, id_at, user_at, get)                                          \
    CHECK(release, number, LAID_OUT(slurm_raw_step_id, id, job_id, job_at), "step id")             \
    CHECK(release, number, LAID_OUT(slurm_raw_step_layout, layout, node_cnt, nodes_at), "layout")  \
    CHECK(release, number, LAID_OUT(slurm_raw_step_info, step, step_layout, layout_at), "step")    \
    CHECK(release, number, LAID_OUT(slurm_raw_task_info, task, step_id, task_id_at), "task")       \
    CHECK(release, number, SAME_TYPE(slurm_raw_kill, kill), "slurm_kill_job_step")                 \
    CHECK(release, number, LENGTH(SLURM_ABI_FREE_CONF) == sizeof #free_conf, "freeing slurm.conf") \
    CHECK(release, number,                                                                         \
          ALLOCATED(cpus_per_node, cpus) && ALLOCATED(cpu_count_reps, reps) &&                     \
              ALLOCATED(node_cnt, nodes) && ALLOCATED(node_list, list) &&                          \
              ALLOCATED(num_cpu_groups, groups),                                                   \
          "allocation")                                                                            \
    CHECK(release, number, offsetof(struct slurm_raw_conf, cluster_name) == (cluster),             \
          "slurm.conf")                                                                            \
    CHECK(release, number,                                                                         \
          RECORDED(record, num_tasks, tasks_at) && RECORDED(record, srun_host, host_at) &&         \
              RECORDED(record, step_id, id_at) && RECORDED(record, user_id, user_at),              \
          "record")                                                                                \
    CHECK(release, number, SAME_TYPE(slurm_raw_get_steps, get), "slurm_get_job_steps")
SLURM_RELEASE_ROWS(CHECK_ROW)

#define COUNT_ROW(release, number, ...) +(SLURM_ABI_RELEASE == (number))
_Static_assert(0 SLURM_RELEASE_ROWS(COUNT_ROW) == 1, "this release has no row in releases.h");

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
_Static_assert(offsetof(struct slurm_raw_step_record, num_tasks) ==
                   offsetof(struct slurm_raw_step_record, nodes) + 20,
               "record: nodes");
AT(struct slurm_raw_step_records, last_update, 0, 8);
#define AFTER_JOB(field, distance)                                                                 \
    _Static_assert(offsetof(struct slurm_raw_step_id, field) ==                                    \
                       offsetof(struct slurm_raw_step_id, job_id) + (distance),                    \
                   "step id: " #field)
AFTER_JOB(step_het_comp, 4);
AFTER_JOB(step_id, 8);
