/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of one Slurm release: what its functions are called with, and what comes out of its
 * structures. Compiled once for each, like release.c; slurmctld is played here.
 */
#include "common/util/test_cmocka.h"
#include "shims/slurm/release.h"
#include "shims/slurm/slurm_raw.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { JOB = 7, STEP = 3, HET = 2, TOLD = 1 << 10 /* tasks do not count as failed */ };

extern const struct slurm_release SLURM_RELEASE_NAME;
static const struct slurm_release *const release = &SLURM_RELEASE_NAME;

static char name[] = "node1", host[] = "login", cluster[] = "ocean", info[] = "socket=/m";
static uint16_t tasks[] = {1};
static uint32_t ranks[] = {4}, *tids[] = {ranks}, reps[] = {1};
static uint32_t killed_job, killed_step;
static uint16_t killed_by, kill_flags;
static unsigned freed;

static struct slurm_raw_step_layout layout;
static struct slurm_raw_step_record record;
static struct slurm_raw_step_records records = {.count = 1, .steps = &record};
static struct slurm_raw_allocation allocation;
static const struct slurm_raw_conf conf = {.cluster_name = cluster, .authinfo = info};

struct slurm_raw_step_layout *slurm_raw_step_layout_get(struct slurm_raw_step_id *id)
{
    if (id->job_id == JOB && id->step_id == STEP && id->step_het_comp == HET)
        return &layout;
    errno = SLURM_ABI_INVALID_JOB_ID;
    return NULL;
}

void slurm_raw_step_layout_free(struct slurm_raw_step_layout *got)
{
    freed += got == &layout;
}

static int get(uint32_t job, uint32_t step, uint16_t flags, struct slurm_raw_step_records **got)
{
    assert_int_equal(flags, SLURM_ABI_SHOW);
    *got = job == JOB && step == STEP ? &records : NULL;
    errno = SLURM_ABI_INVALID_JOB_ID;
    return *got ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

#if SLURM_ABI_RELEASE < 0x190b
int slurm_raw_get_steps(time_t since, uint32_t job, uint32_t step,
                        struct slurm_raw_step_records **got, uint16_t flags)
{
    assert_int_equal(since, 0);
    return get(job, step, flags, got);
}
#else
int slurm_raw_get_steps(struct slurm_raw_step_id *id, struct slurm_raw_step_records **got,
                        uint16_t flags)
{
    assert_int_equal(id->step_het_comp, SLURM_ABI_NO_VAL);
    return get(id->job_id, id->step_id, flags, got);
}
#endif

void slurm_raw_free_steps(struct slurm_raw_step_records *got)
{
    freed += got == &records;
}

#if SLURM_ABI_RELEASE < 0x1a05
int slurm_raw_allocation_lookup(uint32_t job, struct slurm_raw_allocation **got)
{
#else
int slurm_raw_allocation_lookup(struct slurm_raw_step_id id, struct slurm_raw_allocation **got)
{
    uint32_t job = id.job_id;
#endif
    *got = job == JOB ? &allocation : NULL;
    return *got ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

void slurm_raw_free_allocation(struct slurm_raw_allocation *got)
{
    freed += got == &allocation;
}

#if SLURM_ABI_RELEASE < 0x1a05
long slurm_raw_time_left(uint32_t job)
{
#else
long slurm_raw_time_left(struct slurm_raw_step_id id)
{
    uint32_t job = id.job_id;
#endif
    return job == JOB ? 60 : -1;
}

static int killed(uint32_t job, uint32_t step, uint16_t sig, uint16_t flags)
{
    killed_job = job;
    killed_step = step;
    killed_by = sig;
    kill_flags = flags;
    return SLURM_ABI_SUCCESS;
}

#if SLURM_ABI_KILL == 1
int slurm_raw_kill(uint32_t job, uint32_t step, uint16_t sig)
{
    return killed(job, step, sig, 0);
}
#elif SLURM_ABI_KILL == 2
int slurm_raw_kill(uint32_t job, uint32_t step, uint16_t sig, uint16_t flags)
{
    return killed(job, step, sig, flags);
}
#else
int slurm_raw_kill(struct slurm_raw_step_id *id, uint16_t sig, uint16_t flags)
{
    return killed(id->job_id, id->step_id, sig, flags);
}
#endif

const struct slurm_raw_conf *slurm_raw_conf_lock(void)
{
    return &conf;
}

void slurm_raw_conf_unlock(void)
{
}

void slurm_raw_free_conf(void *got)
{
    freed += got == info;
}

int slurm_raw_stepd_connect(const char *directory, const char *node, struct slurm_raw_step_id *id,
                            uint16_t *protocol)
{
    (void)directory;
    assert_string_equal(node, name);
    *protocol = SLURM_ABI_API << 8;
    return id->job_id == JOB && id->step_id == STEP && id->step_het_comp == HET ? 5 : -1;
}

static void test_step(void **state)
{
    const struct slurm_raw_step_info step = {.step_id = slurm_raw_step_id(JOB, STEP, HET)};
    struct slurm_abi_step_id id = release->step_of((const void *)&step);
    uint16_t protocol = 0;
    (void)state;
    assert_int_equal(id.job_id, JOB);
    assert_int_equal(id.step_id, STEP);
    assert_int_equal(id.step_het_comp, HET);
    assert_int_equal(release->stepd_connect("/spool", name, &id, &protocol), 5);
    assert_int_equal(protocol, release->api << 8);
}

static void test_layout(void **state)
{
    struct slurm_abi_step_id id = slurm_abi_step_id(JOB, STEP, HET);
    struct slurm_abi_step_layout got;
    (void)state;
    layout.node_cnt = 1;
    layout.task_cnt = 1;
    layout.node_list = name;
    layout.tasks = tasks;
    layout.tids = tids;
    assert_int_equal(release->layout_get(&id, &got), 0);
    assert_true(got.node_cnt == 1 && got.task_cnt == 1 && got.node_list == name);
    assert_true(got.tasks == tasks && got.tids == tids && got.raw == &layout);
    release->layout_free(got.raw);
    assert_int_equal(freed, 1);
    id.job_id++;
    assert_int_equal(release->layout_get(&id, &got), -1);
    assert_int_equal(errno, SLURM_ABI_INVALID_JOB_ID);
}

static void test_record(void **state)
{
    struct slurm_abi_step_records got;
    (void)state;
    record = (struct slurm_raw_step_record){.step_id = slurm_raw_step_id(JOB, STEP, HET),
                                            .num_tasks = 8,
                                            .user_id = 1000,
                                            .srun_host = host,
                                            .srun_pid = 99,
                                            .start_time = 123456,
                                            .nodes = host};
    records.last_update = 99;
    assert_int_equal(release->get_step(JOB, STEP, &got), 0);
    assert_int_equal(got.count, 1);
    assert_true(got.steps->step_id.job_id == JOB && got.steps->step_id.step_id == STEP);
    assert_true(got.steps->num_tasks == 8 && got.steps->user_id == 1000);
    assert_true(got.steps->srun_host == host && got.steps->srun_pid == 99);
    assert_int_equal(got.steps->start_time, 123456);
    assert_true(got.steps->nodes == host && got.now == 99);
    free(got.steps);
    release->steps_free(got.raw);
    assert_int_equal(freed, 1);
    assert_int_equal(release->get_step(JOB + 1, STEP, &got), -1);
    assert_int_equal(errno, SLURM_ABI_INVALID_JOB_ID);
}

static void test_allocation(void **state)
{
    struct slurm_abi_allocation got;
    (void)state;
    allocation.num_cpu_groups = 1;
    allocation.cpus_per_node = tasks;
    allocation.cpu_count_reps = reps;
    allocation.node_cnt = 1;
    allocation.node_list = name;
    assert_int_equal(release->allocation_lookup(JOB, &got), 0);
    assert_true(got.num_cpu_groups == 1 && got.cpus_per_node == tasks);
    assert_true(got.cpu_count_reps == reps && got.node_cnt == 1 && got.node_list == name);
    release->allocation_free(got.raw);
    assert_int_equal(freed, 1);
    assert_int_equal(release->allocation_lookup(JOB + 1, &got), -1);
    assert_int_equal(release->time_left(JOB), 60);
    assert_int_equal(release->time_left(JOB + 1), -1);
}

static void test_kill(void **state)
{
    (void)state;
    assert_int_equal(release->kill_step(JOB, STEP, SIGKILL, true), SLURM_ABI_SUCCESS);
    assert_true(killed_job == JOB && killed_step == STEP && killed_by == SIGKILL);
    assert_int_equal(kill_flags, 0);
    release->kill_step(JOB, STEP, SIGKILL, false);
    assert_int_equal(kill_flags, release->number < 0x170b ? 0 : TOLD);
}

static void test_conf(void **state)
{
    char *found = release->cluster_name();
    (void)state;
    assert_string_equal(found, cluster);
    free(found);
    found = release->auth_info();
    assert_string_equal(found, info);
    free(found);
    release->free_conf(info);
    assert_int_equal(freed, 1);
}

static int forget(void **state)
{
    (void)state;
    freed = 0;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_step, forget),
        cmocka_unit_test_setup(test_layout, forget),
        cmocka_unit_test_setup(test_record, forget),
        cmocka_unit_test_setup(test_allocation, forget),
        cmocka_unit_test_setup(test_kill, forget),
        cmocka_unit_test_setup(test_conf, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
