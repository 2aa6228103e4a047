/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Compares slurm_raw.h with Slurm's public headers. Compiled, never run, and only where there are
 * headers; a layout or signature that differs does not compile.
 *
 * The two structures that MPI plugins alone see are in no public header. They are composed here
 * from the public types as Slurm's sources compose them, which catches a change in their parts.
 */
#include "shims/slurm/slurm_raw.h"
#include "shims/slurm/spank_abi.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <slurm/spank.h>

/* 26.05 puts macros over functions to take old arguments. */
#undef slurm_kill_job_step
#undef slurm_job_step_layout_get
#undef slurm_allocation_lookup
#undef slurm_get_job_steps
#undef slurm_get_rem_time

#define SAME_SIZE(ours, theirs)                                                                    \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs " has another size")
#define SAME_FIELD(ours, theirs, field)                                                            \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, field) &&                             \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->field),                 \
                   #theirs "." #field " lies elsewhere")
#define SAME_TYPE(function, ...)                                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(function), __VA_ARGS__),                \
                   #function " has other arguments")

_Static_assert(SLURM_VERSION_NUMBER >> 8 == SLURM_ABI_RELEASE,
               "the headers are of another Slurm than SLURM_ABI_RELEASE");
_Static_assert(NO_VAL == SLURM_ABI_NO_VAL, "NO_VAL differs");
_Static_assert(SLURM_SUCCESS == SLURM_ABI_SUCCESS && SLURM_ERROR == SLURM_ABI_ERROR,
               "return codes differ");

SAME_SIZE(struct slurm_raw_step_id, slurm_step_id_t);
#if SLURM_ABI_SLUID
SAME_FIELD(struct slurm_raw_step_id, slurm_step_id_t, sluid);
#endif
SAME_FIELD(struct slurm_raw_step_id, slurm_step_id_t, job_id);
SAME_FIELD(struct slurm_raw_step_id, slurm_step_id_t, step_het_comp);
SAME_FIELD(struct slurm_raw_step_id, slurm_step_id_t, step_id);

SAME_SIZE(struct slurm_raw_step_layout, slurm_step_layout_t);
#if SLURM_ABI_LAYOUT_FRONT_END
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, front_end);
#endif
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, node_cnt);
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, node_list);
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, tasks);
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, task_cnt);
SAME_FIELD(struct slurm_raw_step_layout, slurm_step_layout_t, tids);

SAME_SIZE(struct slurm_raw_step_record, job_step_info_t);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, nodes);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, num_cpus);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, num_tasks);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, srun_host);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, srun_pid);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, step_id);
SAME_FIELD(struct slurm_raw_step_record, job_step_info_t, user_id);
_Static_assert(offsetof(struct slurm_raw_step_records, count) ==
                       offsetof(job_step_info_response_msg_t, job_step_count) &&
                   offsetof(struct slurm_raw_step_records, steps) ==
                       offsetof(job_step_info_response_msg_t, job_steps),
               "job_step_info_response_msg_t is laid out otherwise");
_Static_assert((SHOW_ALL | SHOW_LOCAL) == SLURM_ABI_SHOW, "SHOW_ALL or SHOW_LOCAL differ");

SAME_FIELD(struct slurm_raw_allocation, resource_allocation_response_msg_t, cpus_per_node);
SAME_FIELD(struct slurm_raw_allocation, resource_allocation_response_msg_t, cpu_count_reps);
SAME_FIELD(struct slurm_raw_allocation, resource_allocation_response_msg_t, node_cnt);
SAME_FIELD(struct slurm_raw_allocation, resource_allocation_response_msg_t, node_list);
SAME_FIELD(struct slurm_raw_allocation, resource_allocation_response_msg_t, num_cpu_groups);
SAME_FIELD(struct slurm_raw_conf, slurm_conf_t, cluster_name);
SAME_FIELD(struct slurm_raw_conf, slurm_conf_t, authinfo);
_Static_assert((int)ESLURM_TRANSITION_STATE_NO_UPDATE == (int)SLURM_ABI_TRANSITION,
               "error numbers differ");

struct step_info {
    uint32_t het_job_id, het_job_task_offset;
    slurm_step_id_t step_id;
    slurm_step_layout_t *step_layout;
};
struct task_info {
    slurm_addr_t *client;
    uint32_t gtaskid;
    int ltaskid;
    uint32_t ltasks, nnodes, nodeid, ntasks;
#if SLURM_ABI_TASK_SELF
    slurm_addr_t *self;
#endif
    slurm_step_id_t step_id;
};
SAME_SIZE(struct slurm_raw_step_info, struct step_info);
SAME_FIELD(struct slurm_raw_step_info, struct step_info, step_id);
SAME_FIELD(struct slurm_raw_step_info, struct step_info, step_layout);
SAME_SIZE(struct slurm_raw_task_info, struct task_info);
SAME_FIELD(struct slurm_raw_task_info, struct task_info, ltaskid);
SAME_FIELD(struct slurm_raw_task_info, struct task_info, ntasks);
SAME_FIELD(struct slurm_raw_task_info, struct task_info, step_id);

#if SLURM_ABI_KILL > 1
_Static_assert(KILL_NO_SIG_FAIL == SLURM_ABI_KILL_QUIET, "flags of slurm_kill_job_step differ");
#endif
#if SLURM_ABI_KILL == 1
SAME_TYPE(slurm_kill_job_step, int(uint32_t, uint32_t, uint16_t));
#elif SLURM_ABI_KILL == 2
SAME_TYPE(slurm_kill_job_step, int(uint32_t, uint32_t, uint16_t, uint16_t));
#else
SAME_TYPE(slurm_kill_job_step, int(slurm_step_id_t *, uint16_t, uint16_t));
#endif
#if SLURM_ABI_RELEASE < 0x1a05
SAME_TYPE(slurm_allocation_lookup, int(uint32_t, resource_allocation_response_msg_t **));
SAME_TYPE(slurm_get_rem_time, long(uint32_t));
#else
SAME_TYPE(slurm_get_rem_time, long(slurm_step_id_t));
SAME_TYPE(slurm_allocation_lookup, int(slurm_step_id_t, resource_allocation_response_msg_t **));
#endif
#if SLURM_ABI_RELEASE < 0x190b
SAME_TYPE(slurm_get_job_steps,
          int(time_t, uint32_t, uint32_t, job_step_info_response_msg_t **, uint16_t));
#else
SAME_TYPE(slurm_get_job_steps, int(slurm_step_id_t *, job_step_info_response_msg_t **, uint16_t));
#endif
SAME_TYPE(slurm_free_job_step_info_response_msg, void(job_step_info_response_msg_t *));
SAME_TYPE(slurm_free_resource_allocation_response_msg, void(resource_allocation_response_msg_t *));
SAME_TYPE(slurm_load_ctl_conf, int(time_t, slurm_conf_t **));
SAME_TYPE(SLURM_ABI_FREE_CONF, void(slurm_conf_t *));
SAME_TYPE(slurm_print_ctl_conf, void(FILE *, slurm_conf_t *));
SAME_TYPE(slurm_job_step_layout_get, slurm_step_layout_t *(slurm_step_id_t *));
SAME_TYPE(slurm_job_step_layout_free, void(slurm_step_layout_t *));
SAME_SIZE(struct spank_abi_option, struct spank_option);
SAME_FIELD(struct spank_abi_option, struct spank_option, name);
SAME_FIELD(struct spank_abi_option, struct spank_option, arginfo);
SAME_FIELD(struct spank_abi_option, struct spank_option, usage);
SAME_FIELD(struct spank_abi_option, struct spank_option, has_arg);
SAME_FIELD(struct spank_abi_option, struct spank_option, val);
SAME_FIELD(struct spank_abi_option, struct spank_option, cb);
SAME_TYPE(slurm_error, void(const char *, ...));
SAME_TYPE(slurm_info, void(const char *, ...));
SAME_TYPE(slurm_debug, void(const char *, ...));

_Static_assert((int)ESLURM_INVALID_JOB_ID == (int)SLURM_ABI_INVALID_JOB_ID,
               "ESLURM_INVALID_JOB_ID");
_Static_assert((int)ESLURM_ALREADY_DONE == (int)SLURM_ABI_ALREADY_DONE, "ESLURM_ALREADY_DONE");
