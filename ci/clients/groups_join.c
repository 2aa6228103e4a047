/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_join: processes of several jobs form groups by bootstrap.
 *
 * Run in each of the jobs of one session, with the number of processes of all of them. All ranks
 * lead; each member then looks at every member of the other jobs: the job's and the process's keys
 * that the host gives, and data that the process has committed. Then a fence with data over both
 * jobs, by which all compare what they saw, a destruct, the same id again, and a group in which
 * the first rank of each job leads and adds the others of its job.
 *
 * With --meet 1 the first rank of each job alone leads, and adds nobody. It tells its own job what
 * it has learnt, and then all processes of all jobs form one group, collectively: on nodes that had
 * no member of the first one, too.
 *
 * With --until P only the last of these groups is formed, and each job's last rank calls when
 * process P of this machine has ended.
 *
 * An event for the members of a group reaches those of all jobs, once.
 *
 * With --quit 1 job 1, as --part says, ends in order before the last fence over both, which has to
 * fail on those that are left, and at once; with --quit 2 its rank 0 is killed. With --quit 3, too,
 * where steps go on without lost tasks: the members that are left are told of it by an event.
 */
#include "event.h"
#include "group.h"

#include <errno.h>
#include <signal.h>

static long total = 0, jobs = 2, quit = 0, part = 0, meet = 0, until = 0;
static struct listener *heard;

/* The members of one job in a group's membership. */
struct job {
    pmix_proc_t all;
    uint32_t n;
    bool mine;
};

static void put_own(void)
{
    const char *const keys[] = {PMIX_LOCAL_RANK, PMIX_NODE_RANK, PMIX_APP_RANK};
    char *host = get_string(client.me.rank, PMIX_HOSTNAME);
    put_string(PMIX_GLOBAL, host, "join.host");
    for (int i = 0; i < 3; i++)
        put_u64(PMIX_GLOBAL, get_u64(client.me.rank, "%s", keys[i]), "join.%s", keys[i]);
    char *peers = get_string(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
    put_string(PMIX_GLOBAL, peers, "join.peers");
    put_u64(PMIX_GLOBAL, mix(client.me.rank + 1), "join.number");
    put_u64(PMIX_GLOBAL, client.size, "join.size");
    commit();
    free(host);
    free(peers);
}

static pmix_value_t *get_of(const pmix_proc_t *proc, const char *key, const pmix_info_t *info,
                            size_t ninfo)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(proc, key, info, ninfo, &value);
    CHECK(status == PMIX_SUCCESS && value != NULL, "PMIx_Get of %s of %s rank %u: found %s", key,
          proc->nspace, proc->rank, PMIx_Error_string(status));
    return value;
}

static uint64_t number_of(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = get_of(proc, key, NULL, 0);
    uint64_t number = number_in(value, key);
    PMIX_VALUE_RELEASE(value);
    return number;
}

static char *text_of(const pmix_proc_t *proc, const char *key, const pmix_info_t *info,
                     size_t ninfo)
{
    pmix_value_t *value = get_of(proc, key, info, ninfo);
    CHECK(value->type == PMIX_STRING && value->data.string != NULL,
          "%s of %s rank %u: expected a string, found %s", key, proc->nspace, proc->rank,
          PMIx_Data_type_string(value->type));
    char *text = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
    return text;
}

/* libpmix 7.0 looks for the host and the node of a process of another job in the client alone, and
 * does not find them (docs/limits.md); when one does, it has to be right. */
static void check_host(const pmix_proc_t *proc, const char *expected)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(proc, PMIX_HOSTNAME, NULL, 0, &value);
    if (status == PMIX_ERR_NOT_FOUND)
        return;
    CHECK_OK(status, "PMIX_HOSTNAME of another job's process");
    CHECK(value->type == PMIX_STRING && strcmp(value->data.string, expected) == 0,
          "host of %s rank %u: expected %s", proc->nspace, proc->rank, expected);
    PMIX_VALUE_RELEASE(value);
}

/* What the host says of a process of another job, beside what that process was told of itself. */
static void check_proc(const pmix_proc_t *proc)
{
    const char *const keys[] = {PMIX_LOCAL_RANK, PMIX_NODE_RANK, PMIX_APP_RANK};
    char *told = text_of(proc, "join.host", NULL, 0);
    check_host(proc, told);
    CHECK_EQ(number_of(proc, "join.number"), mix(proc->rank + 1), "a committed number");
    for (int i = 0; i < 3; i++) {
        char key[64];
        snprintf(key, sizeof key, "join.%s", keys[i]);
        CHECK_EQ(number_of(proc, keys[i]), number_of(proc, key), keys[i]);
    }
    /* A node's keys are its job's, asked for by the node's name. */
    pmix_proc_t all = *proc;
    pmix_info_t info[2];
    all.rank = PMIX_RANK_WILDCARD;
    bool yes = true;
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_INFO, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_HOSTNAME, told, PMIX_STRING);
    char *peers = text_of(proc, "join.peers", NULL, 0);
    char *seen = text_of(&all, PMIX_LOCAL_PEERS, info, 2);
    CHECK(strcmp(peers, seen) == 0, "peers of %s rank %u: expected %s, found %s", proc->nspace,
          proc->rank, peers, seen);
    PMIX_INFO_DESTRUCT(&info[1]);
    free(peers);
    free(seen);
    free(told);
}

static void check_job(const struct job *job)
{
    CHECK_EQ(number_of(&job->all, PMIX_JOB_SIZE), job->n, "size of another job");
    for (uint32_t rank = 0; rank < job->n; rank++) {
        pmix_proc_t proc = job->all;
        proc.rank = rank;
        check_proc(&proc);
        CHECK_EQ(number_of(&proc, "join.size"), job->n, "size that a process of it was told");
    }
}

/* All ranks of all jobs, each once, and those of one job in order. The order of jobs is open:
 * leaders come before those that they add. @return the jobs */
static struct job *split(const struct group_result *result)
{
    struct job *found = calloc((size_t)jobs, sizeof *found);
    long n = 0;
    CHECK_EQ(result->nmembers, total, "members");
    for (size_t i = 0; i < result->nmembers; i++) {
        const pmix_proc_t *proc = &result->members[i];
        long k = 0;
        while (k < n && !PMIX_CHECK_NSPACE(found[k].all.nspace, proc->nspace))
            k++;
        CHECK(k < jobs, "members: expected %ld jobs, found more", jobs);
        if (k == n) {
            found[k].all = *proc;
            found[k].all.rank = PMIX_RANK_WILDCARD;
            found[k].mine = PMIX_CHECK_NSPACE(proc->nspace, client.me.nspace);
            n++;
        }
        CHECK_EQ(proc->rank, found[k].n, "rank of a member");
        found[k].n++;
    }
    CHECK_EQ(n, jobs, "jobs in the membership");
    for (long i = 0; i < n; i++)
        CHECK(!found[i].mine || found[i].n == client.size, "my job: expected %u members, found %u",
              client.size, found[i].n);
    return found;
}

static void form(const char *id, bool leader, struct group_ask ask, struct group_result *result)
{
    struct group_call call;
    step("construct of %s", id);
    group_run(&call, id, &client.me, leader ? 1 : 0, ask, PMIX_SUCCESS);
    CHECK(call.result.has_context && call.result.context, "%s: expected a context id", id);
    *result = call.result;
}

/* Every member of every job saw the same context id and order. */
static void compare(const struct group_result *result, const char *key)
{
    step("comparison of %s", key);
    put_u64(PMIX_GLOBAL, result->context, "%s.context", key);
    put_u64(PMIX_GLOBAL, group_order(result), "%s.order", key);
    commit();
    fence_of(result->members, result->nmembers, true);
    for (size_t i = 0; i < result->nmembers; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.context", key);
        CHECK_EQ(number_of(&result->members[i], name), result->context, "context id");
        snprintf(name, sizeof name, "%s.order", key);
        CHECK_EQ(number_of(&result->members[i], name), group_order(result), "order of members");
    }
}

/* The first process of the first job tells all others. */
static void tell_members(const struct group_result *result)
{
    const pmix_status_t code = EVENT_CODE(9);
    step("an event for members in several jobs");
    if (PMIX_CHECK_PROCID(&client.me, &result->members[0])) {
        pmix_info_t range;
        event_target(&range, result->members, result->nmembers);
        CHECK_OK(event_raise(code, PMIX_RANGE_CUSTOM, 9, &range, 1), "event_raise");
        PMIX_INFO_DESTRUCT(&range);
        return;
    }
    listen_wait(heard, code, 0, 1);
}

static void all_lead(long round, size_t *context)
{
    struct group_result result;
    char key[32];
    snprintf(key, sizeof key, "all.%ld", round);
    form("join.all", true, (struct group_ask){.leaders = (size_t)total}, &result);
    struct job *found = split(&result);
    step("keys of the other jobs");
    for (long i = 0; i < jobs; i++)
        if (!found[i].mine)
            check_job(&found[i]);
    compare(&result, key);
    if (round == 0)
        tell_members(&result);
    step("destruct");
    group_destruct("join.all");
    *context = result.context;
    free(found);
    group_result_free(&result);
}

static void wait_until(void)
{
    step("the end of process %ld", until);
    while (kill((pid_t)until, 0) == 0 || errno == EPERM)
        sleep_ms(50);
}

/* The first rank of each job leads and adds the others of its job. */
static void one_leads(size_t *context)
{
    struct group_result result;
    struct group_ask ask = {0};
    bool leader = client.me.rank == 0;
    pmix_proc_t *added = calloc(client.size, sizeof *added);
    for (pmix_rank_t r = 1; leader && r < client.size; r++)
        added[ask.nadded++] = proc_of(r);
    ask.added = added;
    ask.leaders = leader ? (size_t)jobs : 0;
    if (until != 0 && client.me.rank == client.size - 1)
        wait_until();
    form("join.first", leader, ask, &result);
    free(split(&result));
    compare(&result, "first");
    step("destruct of join.first");
    group_destruct("join.first");
    *context = result.context;
    free(added);
    group_result_free(&result);
}

/* A job ends while the other one waits for it: that is an answer, and comes soon. */
static void outlive(void)
{
    struct group_result result;
    form("join.quit", true, (struct group_ask){.leaders = (size_t)total}, &result);
    free(split(&result));
    if (part == 1 && quit == 2 && client.me.rank == 0)
        raise(SIGKILL);
    if (part == 1)
        return; /* PMIx_Finalize, with the group standing */
    uint64_t start = now_ns();
    step("fence with a job that ends");
    pmix_status_t status = PMIx_Fence(result.members, result.nmembers, NULL, 0);
    CHECK(status != PMIX_SUCCESS, "fence with a job that has ended: expected a failure, found %s",
          PMIx_Error_string(status));
    CHECK(now_ns() - start < 30000000000u, "fence: failed after %llu ms, expected it at once",
          (unsigned long long)(now_ns() - start) / 1000000);
    fence_all(false); /* our own job is none the worse for it */
    group_result_free(&result);
}

/* A member in another job is killed: all others are told, once. */
static void survive(void)
{
    struct group_result result;
    form("join.lost", true, (struct group_ask){.leaders = (size_t)total, .notify = true}, &result);
    free(split(&result));
    compare(&result, "lost");
    if (part == 1 && client.me.rank == 0)
        raise(SIGKILL);
    step("the event about the lost member");
    listen_wait(heard, PMIX_GROUP_MEMBER_FAILED, 0, 1);
    if (part == 0) /* what else is on its way comes before */
        fence_all(false);
    CHECK_EQ(listen_count(heard, PMIX_GROUP_MEMBER_FAILED, PMIX_RANK_WILDCARD), 1, "events");
    group_result_free(&result);
}

/* The leaders' word to their own job: the namespaces of all jobs, and how many processes each has.
 */
static void tell_own(const struct group_result *result)
{
    put_u64(PMIX_GLOBAL, result->nmembers, "meet.jobs");
    for (size_t i = 0; i < result->nmembers; i++) {
        pmix_proc_t all = result->members[i];
        all.rank = PMIX_RANK_WILDCARD;
        put_string(PMIX_GLOBAL, all.nspace, "meet.name.%zu", i);
        put_u64(PMIX_GLOBAL, number_of(&all, PMIX_JOB_SIZE), "meet.size.%zu", i);
    }
    commit();
}

/* @return all processes of all jobs, in one order everywhere */
static pmix_proc_t *all_told(size_t *n)
{
    pmix_proc_t *procs = calloc((size_t)total, sizeof *procs);
    uint64_t told = get_u64(0, "meet.jobs");
    *n = 0;
    CHECK_EQ(told, jobs, "jobs that the leader has met");
    for (size_t i = 0; i < told; i++) {
        char *name = get_string(0, "meet.name.%zu", i);
        uint64_t size = get_u64(0, "meet.size.%zu", i);
        for (uint64_t rank = 0; rank < size && *n < (size_t)total; rank++)
            PMIX_LOAD_PROCID(&procs[(*n)++], name, (pmix_rank_t)rank);
        free(name);
    }
    CHECK_EQ(*n, total, "processes of all jobs");
    return procs;
}

static void leaders_meet(void)
{
    struct group_result result = {0};
    struct group_call call;
    size_t n;
    if (client.me.rank == 0) {
        form("join.leaders", true, (struct group_ask){.leaders = (size_t)jobs}, &result);
        tell_own(&result);
    }
    step("what the leader has learnt");
    fence_all(true);
    pmix_proc_t *procs = all_told(&n);
    step("construct of join.meet");
    group_run(&call, "join.meet", procs, n, (struct group_ask){.timeout = 60}, PMIX_SUCCESS);
    compare(&call.result, "meet");
    step("keys of the other jobs");
    struct job *found = split(&call.result);
    for (long i = 0; i < jobs; i++)
        if (!found[i].mine)
            check_job(&found[i]);
    step("destruct of join.meet");
    group_destruct("join.meet");
    if (client.me.rank == 0)
        group_destruct("join.leaders");
    free(found);
    free(procs);
    group_result_free(&call.result);
    group_result_free(&result);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"total", &total, "processes of all jobs", NULL},
        {"jobs", &jobs, "jobs", NULL},
        {"part", &part, "number of this job", NULL},
        {"meet", &meet, "1: the first rank of each job leads alone", NULL},
        {"until", &until, "process that a member waits for, 0: none", NULL},
        {"quit", &quit, "1: job 1 ends first; 2: it is killed; 3: its rank 0 is", NULL},
        {0}};
    size_t contexts[3];
    client_init("groups_join", options, argc, argv);
    if (!GROUP_HAS_ADDED)
        return client_skip("this libpmix knows no bootstrap");
    heard = listen_to((pmix_status_t[]){EVENT_CODE(9), PMIX_GROUP_MEMBER_FAILED}, 2, NULL, 0);
    put_own();
    if (meet) {
        leaders_meet();
        return client_pass("%u of %ld processes of %ld jobs met", client.size, total, jobs);
    }
    if (until) {
        one_leads(&contexts[0]);
        return client_pass("%u of %ld processes of %ld jobs formed a group", client.size, total,
                           jobs);
    }
    all_lead(0, &contexts[0]);
    all_lead(1, &contexts[1]); /* the same id again */
    one_leads(&contexts[2]);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            CHECK(contexts[i] != contexts[k], "context id %zu: expected once, found twice",
                  contexts[i]);
    CHECK(listen_count(heard, EVENT_CODE(9), PMIX_RANK_WILDCARD) <= 1, "an event came twice");
    if (quit == 3)
        survive();
    else if (quit)
        outlive();
    return client_pass("%u of %ld processes of %ld jobs formed groups", client.size, total, jobs);
}
