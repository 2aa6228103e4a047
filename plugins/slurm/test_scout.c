/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how other steps of the user are found, against a slurmctld and nodes that say what the
 * test says.
 */
#include "plugins/slurm/rm_slurm.h"

#include "common/launch/boot.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/job_nodes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB = 7, STARTED = 1000, NOW = 5000, BATCH = 0xfffffffb, STEPS_MAX = 16, FOUND_MAX = 8 };

/* slurmctld's list, and what its nodes have. */
static struct step {
    uint32_t job, step, component, uid;
    time_t start;
    const char *nodes, *srun_host;
    uint32_t srun_pid;
    const char *server; /* the node whose server answers; NULL: none does */
    unsigned after;     /* so many probes of that node fail before */
    unsigned probes;    /* of any node */
} steps[STEPS_MAX];
static uint32_t nsteps;
static int error; /* slurmctld does not answer */

static struct step *add(uint32_t job, uint32_t step, time_t start, const char *nodes,
                        const char *server)
{
    struct step *s = &steps[nsteps++];
    *s = (struct step){.job = job, .step = step, .component = SLURM_ABI_NO_VAL, .uid = getuid()};
    s->start = start;
    s->nodes = nodes;
    s->server = server;
    return s;
}

int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **found)
{
    assert_int_equal(job, SLURM_ABI_NO_VAL);
    assert_int_equal(step, SLURM_ABI_NO_VAL);
    errno = error;
    if (error != 0)
        return SLURM_ABI_ERROR;
    *found = calloc(1, sizeof **found);
    assert_non_null(*found);
    (*found)->count = nsteps;
    (*found)->now = NOW;
    (*found)->steps = calloc(nsteps + 1ul, sizeof *(*found)->steps);
    assert_non_null((*found)->steps);
    for (uint32_t i = 0; i < nsteps; i++)
        (*found)->steps[i] = (struct slurm_abi_step_record){
            .step_id = slurm_abi_step_id(steps[i].job, steps[i].step, steps[i].component),
            .user_id = steps[i].uid,
            .srun_host = (char *)steps[i].srun_host,
            .srun_pid = steps[i].srun_pid,
            .start_time = steps[i].start,
            .nodes = (char *)steps[i].nodes};
    return SLURM_ABI_SUCCESS;
}

void slurm_abi_free_steps(struct slurm_abi_step_records *found)
{
    free(found->steps);
    free(found);
}

/* A hostlist is names and commas. */
struct hosts {
    char *text, *at;
};

void *slurm_abi_hostlist_create(const char *text)
{
    struct hosts *hosts = calloc(1, sizeof *hosts);
    assert_non_null(hosts);
    hosts->at = hosts->text = strdup(text);
    return hosts;
}

char *slurm_abi_hostlist_shift(void *list)
{
    struct hosts *hosts = list;
    char *name = strsep(&hosts->at, ",");
    return name != NULL ? strdup(name) : NULL;
}

void slurm_abi_hostlist_destroy(void *list)
{
    struct hosts *hosts = list;
    free(hosts->text);
    free(hosts);
}

struct slurm_abi_step_layout *slurm_abi_step_layout_get(const struct slurm_abi_step_id *id)
{
    for (uint32_t i = 0; i < nsteps; i++) {
        const struct step *s = &steps[i];
        if (s->job != id->job_id || s->step != id->step_id || s->component != id->step_het_comp)
            continue;
        struct slurm_abi_step_layout *layout = calloc(1, sizeof *layout);
        assert_non_null(layout);
        layout->node_list = (char *)s->nodes;
        layout->node_cnt = 1;
        for (const char *p = s->nodes; (p = strchr(p, ',')) != NULL; p++)
            layout->node_cnt++;
        return layout;
    }
    return NULL;
}

void slurm_abi_step_layout_free(struct slurm_abi_step_layout *layout)
{
    free(layout);
}

int slurm_abi_forward_data(char **node, char *address, uint32_t len, const char *data)
{
    assert_int_equal(len, 0);
    assert_string_equal(data, "");
    for (uint32_t i = 0; i < nsteps; i++) {
        char name[128];
        snprintf(name, sizeof name, "/spool/%%n/muster.%u.%u.%" PRIx64, steps[i].job, steps[i].step,
                 (uint64_t)steps[i].start);
        if (strcmp(name, address) != 0)
            continue;
        steps[i].probes++;
        if (steps[i].server != NULL && strcmp(steps[i].server, *node) == 0 &&
            (steps[i].after == 0 || steps[i].after-- == 0))
            return 0;
    }
    return ENOENT;
}

const char *slurm_abi_strerror(int errnum)
{
    return strerror(errnum);
}

int job_nodes_read(uint32_t job, struct job_nodes *nodes)
{
    static struct job_node two[] = {{.name = (char *)"node1", .cpus = 16},
                                    {.name = (char *)"node4", .cpus = 8}};
    assert_int_equal(job, JOB);
    *nodes = (struct job_nodes){.nodes = two, .n = 2};
    return error == 0 ? 0 : -1;
}

void job_nodes_free(struct job_nodes *nodes)
{
    (void)nodes;
}

long slurm_abi_time_left(uint32_t job)
{
    assert_int_equal(job, JOB);
    errno = error;
    return error != 0 ? -1 : 90;
}

/* ---- the server ---- */

static struct boot boot = {.nnodes = 2, .run = STARTED};
static struct rm rm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct handoff_item *item; /* the first answer on its way to the loop */

void handoff_post(struct handoff *handoff, struct handoff_item *one, handoff_run_fn *run)
{
    (void)handoff;
    struct handoff_item **end = &item;
    pthread_mutex_lock(&lock);
    while (*end != NULL)
        end = &(*end)->next;
    *end = one;
    one->next = NULL;
    one->run = run;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}

static void run_answer(void)
{
    pthread_mutex_lock(&lock);
    while (item == NULL)
        pthread_cond_wait(&posted, &lock);
    struct handoff_item *one = item;
    item = one->next;
    pthread_mutex_unlock(&lock);
    one->run(one);
}

/* What was answered. */
static struct found {
    char nspace[64], names[128];
    uint64_t run;
    uint32_t node, nnodes;
} found[FOUND_MAX];
static uint32_t nfound, nends;
static char why[256];
static int64_t seconds;

static void take(void *arg, const struct rm_server *server, const char *reason)
{
    assert_ptr_equal(arg, &rm);
    snprintf(why, sizeof why, "%s", reason != NULL ? reason : "");
    if (server == NULL) {
        nends++;
        return;
    }
    assert_in_range(nfound, 0, FOUND_MAX - 1);
    struct found *f = &found[nfound++];
    *f = (struct found){.run = server->run, .node = server->node, .nnodes = server->nnodes};
    snprintf(f->nspace, sizeof f->nspace, "%s", server->nspace);
    assert_non_null(rm.offered);
    for (uint32_t i = 0; rm.offered->names != NULL && i < rm.offered->nnodes; i++)
        snprintf(f->names + strlen(f->names), sizeof f->names - strlen(f->names), "%s%s",
                 i > 0 ? "," : "", rm.offered->names[i]);
}

static void take_time(void *arg, int64_t left, const char *nodes, const char *reason)
{
    assert_ptr_equal(arg, &rm);
    assert_int_equal(nodes != NULL, left >= 0);
    assert_true(nodes == NULL || strcmp(nodes, "node1=16,node4=8") == 0);
    seconds = left;
    snprintf(why, sizeof why, "%s", reason != NULL ? reason : "");
}

static void ask_home(void)
{
    nfound = nends = 0;
    scout_rendezvous(&rm, take, &rm);
    run_answer();
}

static void ask_step(const char *name)
{
    nfound = nends = 0;
    scout_resolve(&rm, name, take, &rm);
    run_answer();
}

static void assert_found(const char *nspace, uint64_t run, uint32_t node, const char *names)
{
    assert_int_equal(nfound, 1);
    assert_int_equal(nends, 0);
    assert_string_equal(found[0].nspace, nspace);
    assert_int_equal(found[0].run, run);
    assert_int_equal(found[0].node, node);
    assert_string_equal(found[0].names, names);
}

static int open_server(void **state)
{
    (void)state;
    char address[] = "/spool/%n/muster.7.0.3e8";
    boot.nspace = (char *)"slurm.7.0";
    rm = (struct rm){.boot = &boot, .jobs = "7"};
    rm.address = strdup(address);
    pthread_mutex_init(&rm.lock, NULL);
    nsteps = 0;
    error = 0;
    add(JOB, 0, STARTED, "n1,n2", "n1")->after = 1000; /* nobody probes the own step */
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    pthread_mutex_lock(&rm.lock);
    rm.closing = true;
    pthread_mutex_unlock(&rm.lock);
    assert_true(scout_join(&rm, INT64_MAX));
    while (item != NULL)
        run_answer();
    scout_free(&rm);
    assert_int_equal(steps[0].probes, 0);
    free(rm.address);
    return 0;
}

/* ---- tests ---- */

static void the_oldest_step_with_a_server_is_home(void **state)
{
    (void)state;
    struct step *none = add(3, 0, 400, "n1,n2,n3,n4,n5", "n5"); /* not among the first nodes */
    struct step *home = add(5, 1, 600, "n3,n4", "n4");
    struct step *later = add(6, 0, 700, "n5", "n5");
    struct step *young = add(9, 0, 2000, "n5", "n5");
    ask_home();
    assert_found("slurm.5.1", 600, 1, "n3,n4");
    assert_int_equal(none->probes, 3);
    assert_int_equal(home->probes, 2);
    assert_int_equal(later->probes + young->probes, 0);
}

static void a_step_without_an_older_one_is_home(void **state)
{
    (void)state;
    struct step *younger = add(8, 0, STARTED + 1, "n5", "n5");
    struct step *twin = add(8, 1, STARTED, "n5", "n5"); /* of the same second: by its number */
    ask_home();
    assert_found("slurm.7.0", STARTED, 0, "");
    assert_int_equal(found[0].nnodes, 2);
    assert_int_equal(younger->probes + twin->probes, 0);
}

/* Of these none is asked, and none found. */
static void steps_that_are_not_the_users(void **state)
{
    (void)state;
    add(1, 0, 100, "n3", "n3")->uid = getuid() + 1;
    add(2, BATCH, 200, "n3", "n3");
    add(3, 0, 300, NULL, "n3"); /* not placed yet */
    add(4, 0, 0, "n3", "n3");
    ask_home();
    assert_found("slurm.7.0", STARTED, 0, "");
    for (uint32_t i = 1; i < nsteps; i++)
        assert_int_equal(steps[i].probes, 0);
}

/* The server of a young step may only just be starting: it is waited for, and no younger one taken
 * meanwhile. */
static void a_young_step_is_waited_for(void **state)
{
    (void)state;
    boot.run = NOW;
    struct step *young = add(5, 0, NOW - 2, "n3", "n3");
    add(6, 0, NOW - 1, "n4", "n4");
    young->after = 3;
    ask_home();
    boot.run = STARTED;
    assert_found("slurm.5.0", NOW - 2, 0, "n3");
    assert_int_equal(young->probes, 4);
}

static void slurmctld_does_not_answer(void **state)
{
    (void)state;
    add(5, 0, 600, "n3", "n3");
    error = ETIMEDOUT;
    ask_home();
    assert_int_equal(nfound, 0);
    assert_int_equal(nends, 1);
    assert_non_null(strstr(why, strerror(ETIMEDOUT)));
    error = 0;
    ask_home();
    error = ETIMEDOUT; /* what was listed once is kept */
    ask_home();
    assert_found("slurm.5.0", 600, 0, "n3");
    steps[1].server = NULL;
    ask_home();
    assert_found("slurm.7.0", STARTED, 0, "");
}

/* One srun of two components in two jobs, and one of two components in one job. */
static void heterogeneous_steps(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct step *s = add(3 + i, 0, 500 + (time_t)i, i == 0 ? "n3" : "n4,n5", "n3");
        s->srun_pid = 4711;
        s->srun_host = "login";
        s->component = i;
    }
    add(5, 2, 601, "n6", NULL)->component = 1;
    add(5, 2, 600, "n7", "n7")->component = 0;
    ask_home();
    assert_found("slurm.3.0", 500, 0, "n3,n4,n5");
    ask_step("slurm.5.2");
    assert_found("slurm.5.2", 600, 0, "n7,n6");
    ask_step("slurm.4.0"); /* it is called by its first job */
    assert_int_equal(nfound, 0);
}

static void a_step_by_its_name(void **state)
{
    (void)state;
    add(9, 3, 2000, "n3,n4", "n4");
    add(9, 4, 2000, "n3", NULL);
    ask_step("slurm.9.3");
    assert_found("slurm.9.3", 2000, 1, "n3,n4");
    ask_step("slurm.9.4");
    assert_int_equal(nfound, 0);
    assert_string_equal(why, "step 9.4 has no server of muster");
    ask_step("slurm.10.0");
    assert_int_equal(nfound + nends, 1);
    assert_string_equal(why, "no step of this user that runs is called slurm.10.0");
}

static void all_other_steps(void **state)
{
    (void)state;
    add(9, 0, 2000, "n3", "n3");
    add(8, 0, 1500, "n4", NULL);
    add(2, 0, 300, "n5", "n5");
    nfound = nends = 0;
    scout_others(&rm, take, &rm);
    run_answer();
    assert_int_equal(nfound, 2);
    assert_int_equal(nends, 1);
    assert_string_equal(found[0].nspace, "slurm.2.0");
    assert_string_equal(found[1].nspace, "slurm.9.0");
}

static void the_jobs_time(void **state)
{
    (void)state;
    scout_job_now(&rm, take_time, &rm);
    run_answer();
    assert_int_equal(seconds, 90);
    error = ETIMEDOUT;
    scout_job_now(&rm, take_time, &rm);
    run_answer();
    assert_int_equal(seconds, -1);
    assert_non_null(strstr(why, strerror(ETIMEDOUT)));
}

/* An answer that comes when the server leaves is not handed on; a question that waits is freed. */
static void a_server_that_leaves(void **state)
{
    (void)state;
    add(5, 0, 600, "n3", "n3");
    nfound = nends = 0;
    scout_rendezvous(&rm, take, &rm);
    pthread_mutex_lock(&lock);
    while (item == NULL)
        pthread_cond_wait(&posted, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&rm.lock);
    rm.closing = true;
    pthread_mutex_unlock(&rm.lock);
    scout_rendezvous(&rm, take, &rm);
    run_answer();
    assert_int_equal(nfound + nends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_step_with_a_server_is_home),
        TEST(a_step_without_an_older_one_is_home),
        TEST(steps_that_are_not_the_users),
        TEST(a_young_step_is_waited_for),
        TEST(slurmctld_does_not_answer),
        TEST(heterogeneous_steps),
        TEST(a_step_by_its_name),
        TEST(all_other_steps),
        TEST(the_jobs_time),
        TEST(a_server_that_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
