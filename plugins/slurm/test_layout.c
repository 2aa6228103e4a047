/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how the components of a step are found, against a slurmctld that says what the test
 * says.
 */
#include "plugins/slurm/layout.h"

#include "common/util/test_cmocka.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A step on record: one task on each of its nodes. */
struct record {
    uint32_t job, component, user;
    const char *host;
    uint32_t pid;
    const char *nodes; /* "a,b" */
    bool ended;
};

enum { STEP = 3, USER = 1000, NONE = SLURM_ABI_NO_VAL, TASKS_MAX = 8 };

static const struct record *records; /* up to one of job 0 */
static unsigned asked;               /* for records of steps */

static const struct record *find(uint32_t job, uint32_t component)
{
    for (const struct record *r = records; r->job != 0; r++) {
        if (r->job == job && r->component == component && !r->ended)
            return r;
    }
    errno = SLURM_ABI_INVALID_JOB_ID;
    return NULL;
}

static uint32_t count_nodes(const char *nodes)
{
    uint32_t n = 1;
    for (; *nodes != '\0'; nodes++)
        n += *nodes == ',';
    return n;
}

struct slurm_abi_step_layout *slurm_abi_step_layout_get(const struct slurm_abi_step_id *id)
{
    static uint16_t tasks[TASKS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    static uint32_t ranks[TASKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    static uint32_t *tids[TASKS_MAX];
    const struct record *r = find(id->job_id, id->step_het_comp);
    struct slurm_abi_step_layout *layout;
    assert_int_equal(id->step_id, STEP);
    if (!r)
        return NULL;
    layout = calloc(1, sizeof(*layout));
    assert_non_null(layout);
    for (uint32_t i = 0; i < TASKS_MAX; i++)
        tids[i] = &ranks[i];
    layout->node_list = (char *)(uintptr_t)r->nodes;
    layout->node_cnt = layout->task_cnt = count_nodes(r->nodes);
    layout->tasks = tasks;
    layout->tids = tids;
    return layout;
}

void slurm_abi_step_layout_free(struct slurm_abi_step_layout *layout)
{
    free(layout);
}

static struct slurm_abi_step_records *get_records(uint32_t job)
{
    struct slurm_abi_step_records *found = calloc(1, sizeof(*found) + sizeof(*found->steps));
    const struct record *r = find(job, NONE);
    asked++;
    assert_non_null(found);
    if (!r)
        return found; /* as slurmctld says that there is none: also by no records */
    found->count = 1;
    found->steps = (struct slurm_abi_step_record *)(found + 1);
    *found->steps = (struct slurm_abi_step_record){
        .srun_host = (char *)(uintptr_t)r->host,
        .srun_pid = r->pid,
        .num_tasks = count_nodes(r->nodes),
        .user_id = r->user,
        .step_id = slurm_abi_step_id(job, STEP, NONE),
    };
    return found;
}

int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **found)
{
    assert_int_equal(step, STEP);
    *found = get_records(job);
    return 0;
}

void slurm_abi_free_steps(struct slurm_abi_step_records *found)
{
    free(found);
}

void *slurm_abi_hostlist_create(const char *hostlist)
{
    char **list = malloc(sizeof(*list));
    assert_non_null(list);
    *list = strdup(hostlist);
    assert_non_null(*list);
    return list;
}

char *slurm_abi_hostlist_shift(void *hostlist)
{
    char **list = hostlist, *rest = *list, *name;
    name = strndup(rest, strcspn(rest, ","));
    *list = strdup(rest + strcspn(rest, ",") + (strchr(rest, ',') ? 1 : 0));
    free(rest);
    return name;
}

void slurm_abi_hostlist_destroy(void *hostlist)
{
    free(*(char **)hostlist);
    free(hostlist);
}

const char *slurm_abi_strerror(int errnum)
{
    return strerror(errnum);
}

/* Reads the layout as the slurmstepd of that job, component and node. */
static int read_as(struct facts *facts, uint32_t job, uint32_t component, const char *node,
                   char *const *env, struct err *err)
{
    *facts =
        (struct facts){.job = job, .step = STEP, .component = component, .njobs = 1, .jobs = {job}};
    facts->node = strdup(node);
    facts->user.uid = USER;
    *err = (struct err){0};
    return layout_read(facts, env, err);
}

static void done(struct facts *facts)
{
    free(facts->node);
    boot_free(&facts->boot);
}

/* The nodes by their names, each with its application and its rank: "a0:0 b1:1". */
static void check_nodes(const struct facts *facts, const char *expected)
{
    char text[200] = "";
    for (uint32_t i = 0; i < facts->boot.nnodes; i++) {
        const struct boot_node *node = &facts->boot.nodes[i];
        uint32_t first, app = boot_app_of(&facts->boot, node->ranks[0], &first);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%u:%u", i > 0 ? " " : "",
                 node->name, app, node->ranks[0]);
    }
    assert_string_equal(text, expected);
}

static void one_component(void **state)
{
    const struct record one[] = {{7, NONE, USER, "login", 9, "a,b", false}, {0}};
    char *const env[] = {"SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID_HET_GROUP_0=8", NULL};
    struct facts facts;
    struct err err;
    (void)state;
    records = one;
    assert_int_equal(read_as(&facts, 7, NONE, "b", env, &err), 0);
    check_nodes(&facts, "a0:0 b0:1");
    assert_int_equal(facts.boot.node, 1);
    assert_int_equal(facts.boot.ntasks, 2);
    assert_int_equal(facts.njobs, 1);
    done(&facts);
    assert_int_equal(read_as(&facts, 7, NONE, "a", NULL, &err), 0);
    done(&facts);
    assert_int_equal(read_as(&facts, 7, NONE, "c", NULL, &err), -1);
    assert_non_null(strstr(err.text, "does not name node c"));
    done(&facts);
}

static void numbered_components(void **state)
{
    struct record three[] = {{7, 0, USER, "login", 9, "a", false},
                             {7, 1, USER, "login", 9, "b,c", false},
                             {7, 2, USER, "login", 9, "d", false},
                             {0}};
    struct facts facts;
    struct err err;
    (void)state;
    records = three;
    assert_int_equal(read_as(&facts, 7, 1, "c", NULL, &err), 0);
    check_nodes(&facts, "a0:0 b1:1 c1:2 d2:3");
    assert_int_equal(facts.boot.node, 2);
    assert_int_equal(facts.njobs, 1);
    assert_string_equal(err.text, "");
    done(&facts);
    three[0].ended = true;
    assert_int_equal(read_as(&facts, 7, 1, "c", NULL, &err), -1);
    done(&facts);
    three[0].ended = false;
    three[1].ended = true; /* then those behind it are not found */
    assert_int_equal(read_as(&facts, 7, 2, "d", NULL, &err), -1);
    done(&facts);
    three[1].ended = false;
    three[2].nodes = "c";
    assert_int_equal(read_as(&facts, 7, 1, "c", NULL, &err), -1);
    assert_non_null(strstr(err.text, "node c is in components 1 and 2 of step 7.3"));
    done(&facts);
}

static void components_by_job(void **state)
{
    struct record three[] = {{7, NONE, USER, "login", 9, "a", false},
                             {8, NONE, USER, "login", 9, "b,c", false},
                             {9, NONE, USER, "login", 9, "d", false},
                             {0}};
    char *const named[] = {"SLURM_JOB_ID=1",
                           "SLURM_STEP_NUM_TASKS=4",
                           "SLURM_JOB_ID_HET_GROUP_0=7",
                           "SLURM_JOB_ID_HET_GROUP_1=8",
                           "SLURM_JOB_ID_HET_GROUP_2=9",
                           NULL};
    char *const counted[] = {"SLURM_JOB_ID=7", "SLURM_STEP_NUM_TASKS=4", NULL};
    char *const *envs[] = {named, counted};
    struct facts facts;
    struct err err;

    (void)state;
    records = three;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_as(&facts, 9, NONE, "d", envs[i], &err), 0);
        check_nodes(&facts, "a0:0 b1:1 c1:2 d2:3");
        assert_int_equal(facts.boot.node, 3);
        assert_int_equal(facts.njobs, 3);
        assert_int_equal(facts.jobs[0], 7);
        assert_int_equal(facts.jobs[2], 9);
        done(&facts);
    }
    three[0].ended = true;
    assert_int_equal(read_as(&facts, 9, NONE, "d", named, &err), -1);
    assert_non_null(strstr(err.text, "3 of the 4 tasks"));
    done(&facts);
}

/* Whatever the environment says: only steps of the same user's same srun are joined. */
static void strangers_are_not_joined(void **state)
{
    const struct record good = {8, NONE, USER, "login", 9, "b", false};
    struct record two[] = {{7, NONE, USER, "login", 9, "a", false}, good, {0}};
    char *const env[] = {"SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID_HET_GROUP_0=7",
                         "SLURM_JOB_ID_HET_GROUP_1=8", NULL};
    char *const without_us[] = {"SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID_HET_GROUP_0=8", NULL};
    struct record strangers[] = {good, good, good, good, good};
    struct facts facts;
    struct err err;
    (void)state;
    records = two;
    assert_int_equal(read_as(&facts, 7, NONE, "a", env, &err), 0);
    done(&facts);
    strangers[0].user = USER + 1;
    strangers[1].host = "other";
    strangers[2].pid = 10;
    strangers[3].host = NULL;
    strangers[4].ended = true;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
        two[1] = strangers[i];
        assert_int_equal(read_as(&facts, 7, NONE, "a", env, &err), -1);
        assert_int_equal(facts.njobs, 1);
        assert_int_equal(facts.jobs[0], 7);
        assert_non_null(strstr(err.text, "1 of the 2 tasks"));
        done(&facts);
    }
    two[1] = good;
    assert_int_equal(read_as(&facts, 7, NONE, "a", without_us, &err), -1);
    assert_int_equal(facts.jobs[0], 7); /* which is what would be killed */
    done(&facts);
    two[0].pid = two[1].pid = 0; /* an srun that says nothing of itself */
    assert_int_equal(read_as(&facts, 7, NONE, "a", env, &err), -1);
    done(&facts);
}

static void nonsense_in_the_environment(void **state)
{
    const struct record one[] = {{7, NONE, USER, "login", 9, "a", false}, {0}};
    char *const sane[] = {"SLURM_STEP_NUM_TASKS=", NULL};
    char *const mad[] = {"SLURM_STEP_NUM_TASKS=99999999999999999999",
                         "SLURM_JOB_ID=-1",
                         "",
                         "=",
                         "SLURM_JOB_ID_HET_GROUP_0=7x",
                         "SLURM_JOB_ID_HET_GROUP_1=7",
                         "SLURM_JOB_ID_HET_GROUP_2=7",
                         NULL};
    struct facts facts;
    struct err err;
    (void)state;
    records = one;
    assert_int_equal(read_as(&facts, 7, NONE, "a", sane, &err), 0);
    done(&facts);
    assert_int_equal(read_as(&facts, 7, NONE, "a", mad, &err), -1);
    assert_non_null(strstr(err.text, "1 of the 4294967295 tasks"));
    done(&facts);
}

/* Each slurmstepd of a large step asks. */
static void hostile_environment_asks_little(void **state)
{
    const struct record two[] = {
        {7, NONE, USER, "login", 9, "a", false}, {14, NONE, USER, "login", 9, "b", false}, {0}};
    char *const far[] = {"SLURM_STEP_NUM_TASKS=1000", "SLURM_JOB_ID=100", NULL};
    char *const apart[] = {"SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=7", NULL};
    char *const again[] = {"SLURM_STEP_NUM_TASKS=1000",  "SLURM_JOB_ID_HET_GROUP_0=7",
                           "SLURM_JOB_ID_HET_GROUP_1=7", "SLURM_JOB_ID_HET_GROUP_2=7",
                           "SLURM_JOB_ID_HET_GROUP_3=7", NULL};
    struct facts facts;
    struct err err;

    (void)state;
    records = two;
    asked = 0;
    assert_int_equal(read_as(&facts, 7, NONE, "a", far, &err), -1);
    assert_in_range(asked, 1, 10);
    done(&facts);
    asked = 0;
    assert_int_equal(read_as(&facts, 7, NONE, "a", again, &err), -1);
    assert_int_equal(asked, 2); /* our own, and what was found to be it */
    done(&facts);
    assert_int_equal(read_as(&facts, 14, NONE, "b", apart, &err), 0); /* components between them */
    check_nodes(&facts, "a0:0 b1:1");
    done(&facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_component),
        cmocka_unit_test(numbered_components),
        cmocka_unit_test(components_by_job),
        cmocka_unit_test(strangers_are_not_joined),
        cmocka_unit_test(nonsense_in_the_environment),
        cmocka_unit_test(hostile_environment_asks_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
