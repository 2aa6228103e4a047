/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_many: many groups with different, overlapping members, all under construction at once from
 * one thread, then all under destruction at once.
 *
 * The calls are made in one thread with PMIx_Group_construct_nb; on each rank in an order of its
 * own, so that no group is complete early.
 */
#include "group.h"

#include <pthread.h>

static long groups = 50, rounds = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static long in_flight; /* under lock */

struct group {
    char id[64];
    pmix_proc_t *members;
    size_t nmembers;
    pmix_status_t status;
    struct group_result result;
};

static void one_done(void)
{
    pthread_mutex_lock(&lock);
    in_flight--;
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
}

/* PMIx's thread. */
static void constructed(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                        pmix_release_cbfunc_t release, void *release_cbdata)
{
    struct group *group = cbdata;
    group->status = status;
    group_result_read(&group->result, info, ninfo);
    if (release)
        release(release_cbdata);
    one_done();
}

/* PMIx's thread. */
static void destructed(pmix_status_t status, void *cbdata)
{
    struct group *group = cbdata;
    group->status = status;
    one_done();
}

static void add_in_flight(void)
{
    pthread_mutex_lock(&lock);
    in_flight++;
    pthread_mutex_unlock(&lock);
}

static void wait_for_all(void)
{
    pthread_mutex_lock(&lock);
    while (in_flight)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

/* Each rank is in or out by a hash; two ranks that the group's number names are always in. */
static void choose_members(struct group *group, long round, long g)
{
    snprintf(group->id, sizeof group->id, "many.%ld.%ld", round, g);
    group->members = calloc(client.size, sizeof *group->members);
    group->nmembers = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if ((mix((uint64_t)g * 1000 + r) & 1) || r == g % client.size ||
            r == (3 * g + 1) % client.size)
            group->members[group->nmembers++] = proc_of(r);
}

static bool mine(const struct group *group)
{
    return group_contains(group->members, group->nmembers, client.me.rank);
}

static void construct_all(struct group *all)
{
    pmix_info_t info;
    bool yes = true;
    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    for (long i = 0; i < groups; i++) {
        struct group *group = &all[(i + (long)client.me.rank * 7) % groups];
        if (!mine(group))
            continue;
        add_in_flight();
        CHECK_OK(PMIx_Group_construct_nb(group->id, group->members, group->nmembers, &info, 1,
                                         constructed, group),
                 "PMIx_Group_construct_nb");
    }
    wait_for_all();
    PMIX_INFO_DESTRUCT(&info);
}

static void destruct_all(struct group *all)
{
    for (long i = 0; i < groups; i++) {
        struct group *group = &all[(i + (long)client.me.rank * 11) % groups];
        if (!mine(group))
            continue;
        add_in_flight();
        CHECK_OK(PMIx_Group_destruct_nb(group->id, NULL, 0, destructed, group),
                 "PMIx_Group_destruct_nb");
    }
    wait_for_all();
}

static void check_statuses(const struct group *all, const char *what)
{
    for (long g = 0; g < groups; g++)
        CHECK(!mine(&all[g]) || all[g].status == PMIX_SUCCESS,
              "%s of \"%s\": expected SUCCESS, found %s", what, all[g].id,
              PMIx_Error_string(all[g].status));
}

static void run_round(long round, uint64_t *contexts)
{
    struct group *all = calloc((size_t)groups, sizeof *all);
    struct group_seen *seen = calloc((size_t)groups, sizeof *seen);
    char key[64];
    for (long g = 0; g < groups; g++)
        choose_members(&all[g], round, g);
    step("round %ld, construct of %ld groups at once", round, groups);
    construct_all(all);
    check_statuses(all, "construct");
    for (long g = 0; g < groups; g++) {
        if (!mine(&all[g]))
            continue;
        CHECK(all[g].result.has_context && all[g].result.context,
              "construct of \"%s\": expected a context id, found none", all[g].id);
        group_check_members(&all[g].result, all[g].members, all[g].nmembers);
        seen[g] = (struct group_seen){all[g].result.context, group_order(&all[g].result)};
    }
    step("round %ld, destruct of %ld groups at once", round, groups);
    destruct_all(all);
    check_statuses(all, "destruct");
    step("round %ld, comparison", round);
    snprintf(key, sizeof key, "many.%ld", round);
    group_compare(seen, (size_t)groups, contexts, key);
    for (long g = 0; g < groups; g++) {
        group_result_free(&all[g].result);
        free(all[g].members);
    }
    free(seen);
    free(all);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"groups", &groups, "groups at once", NULL},
                                            {"rounds", &rounds, "times that is done", NULL},
                                            {0}};
    client_init("groups_many", options, argc, argv);
    uint64_t *contexts = calloc((size_t)(groups * rounds + 1), sizeof *contexts);
    for (long round = 0; round < rounds; round++)
        run_round(round, contexts + round * groups);
    group_check_distinct(contexts, (size_t)(groups * rounds));
    free(contexts);
    return client_pass("%ld overlapping groups of %u ranks constructed at once, %ld times", groups,
                       client.size, rounds);
}
