/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_lost: group operations one of whose participants is lost, or too late.
 *
 * All ranks pass a barrier. Rank --victim, or with --node 1 all ranks of its node, then does not
 * take part in a construct or (of a group that was made before) a destruct: it is killed while the
 * others wait, once it has contributed or before, or it is late; the ranks of a lost node wait to
 * be killed from outside. The others say what they were told, and try the id again among those who
 * are left (all, when the victim was only late). With --as added the victim is an added member,
 * with --as leader the ranks of the last node are, and in a bootstrap all are leaders. Rank
 * --second, of the victim's node, contributes to the destruct and is killed after the victim.
 *
 * Expected: by default, an error; with --mode ft, and in a destruct with --mode notify, success
 * without the lost; success with them when they had contributed. A bootstrap that lacks a leader
 * ends at its deadline. That all were told the same is for the script to see that starts it: the
 * line "rank R: STATUS members M context C".
 */
#include "group.h"

#include <stdatomic.h>
#include <unistd.h>

enum op { CONSTRUCT, DESTRUCT, BOOTSTRAP };
enum mode { ABORT, FT, NOTIFY };
enum how { KILL, LATE };
enum role { PARTICIPANT, ADDED, LEADER };
enum { DEADLINE_S = 8 /* of a bootstrap */ };
/* Before, libpmix hands up the processes of a failed construct when its id is used again. */
enum { KEEPS_NO_MEMBERS_FROM = 50000 };

static long victim = 3, op = CONSTRUCT, mode = ABORT, how = KILL, after = 0, node = 0, as = 0,
            events = -1, second = -1, deadline = 0;
static const char *id = "lost";
static pmix_proc_t *leaders, *added, *survivors, *all;
static size_t nleaders, nadded, nsurvivors;
static atomic_uint told, told_second; /* events about the victim, and the second one */

static bool is_lost(pmix_rank_t rank)
{
    return rank == (pmix_rank_t)victim || (second >= 0 && rank == (pmix_rank_t)second) ||
           (node && nodes_of_ranks()[rank] == nodes_of_ranks()[victim]);
}

static bool is_added(pmix_rank_t rank)
{
    return (as == ADDED && is_lost(rank)) ||
           (as == LEADER && nodes_of_ranks()[rank] == nodes_of_ranks()[client.size - 1]);
}

static void choose(void)
{
    leaders = calloc(client.size, sizeof *leaders);
    added = calloc(client.size, sizeof *added);
    survivors = calloc(client.size, sizeof *survivors);
    all = calloc(client.size, sizeof *all);
    nodes_of_ranks(); /* all take part in the first call */
    for (pmix_rank_t r = 0; r < client.size; r++) {
        all[r] = proc_of(r);
        if (is_added(r))
            added[nadded++] = proc_of(r);
        else
            leaders[nleaders++] = proc_of(r);
        if (!is_lost(r) || how == LATE)
            survivors[nsurvivors++] = proc_of(r);
    }
}

/* @thread PMIx's */
static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source,
                     pmix_info_t info[], size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)status, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC)) {
            pmix_rank_t rank = info[i].value.data.proc->rank;
            atomic_fetch_add(&told, rank == (pmix_rank_t)victim);
            atomic_fetch_add(&told_second, second >= 0 && rank == (pmix_rank_t)second);
        }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void listen_for_losses(void)
{
    pmix_status_t code = PMIX_GROUP_MEMBER_FAILED;
    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0,
          "PMIx_Register_event_handler");
}

static size_t directives(pmix_info_t *info, int timeout)
{
    size_t n = 0;
    bool yes = true;
    if (mode != ABORT)
        PMIX_INFO_LOAD(&info[n++],
                       mode == FT ? PMIX_GROUP_FT_COLLECTIVE : PMIX_GROUP_NOTIFY_TERMINATION, &yes,
                       PMIX_BOOL);
    if (timeout > 0)
        PMIX_INFO_LOAD(&info[n++], PMIX_TIMEOUT, &timeout, PMIX_INT);
    return n;
}

/* What the construct that loses somebody asks for. */
static size_t lossy(pmix_info_t *info, int timeout)
{
    pmix_data_array_t array = {.type = PMIX_PROC, .size = nadded, .array = added};
    size_t n = directives(info, op == BOOTSTRAP ? DEADLINE_S : timeout), count = client.size;
    if (nadded > 0 && !is_added(client.me.rank))
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_ADD_MEMBERS, &array, PMIX_DATA_ARRAY);
    if (op == BOOTSTRAP)
        PMIX_INFO_LOAD(&info[n++], PMIX_GROUP_BOOTSTRAP, &count, PMIX_SIZE);
    return n;
}

static pmix_status_t construct(const pmix_proc_t *members, size_t n, struct group_result *result,
                               bool loses, int timeout)
{
    pmix_info_t info[6], *results = NULL;
    size_t nresults = 0, ninfo = loses ? lossy(info, timeout) : directives(info, timeout);
    bool yes = true;
    PMIX_INFO_LOAD(&info[ninfo++], PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    *result = (struct group_result){0};
    pmix_status_t status =
        PMIx_Group_construct(id, n ? members : NULL, n, info, ninfo, &results, &nresults);
    if (status == PMIX_SUCCESS)
        group_result_read(result, results, nresults);
    return status;
}

static void answered(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                     pmix_release_cbfunc_t release, void *release_cbdata)
{
    (void)status, (void)info, (void)ninfo, (void)cbdata;
    if (release)
        release(release_cbdata);
}

static void destructed(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

/* Contributes when it is told to, and is killed. */
static _Noreturn void end_myself(void)
{
    pmix_info_t info[6];
    size_t n = op == DESTRUCT ? directives(info, 0) : lossy(info, 0);
    if (node) {
        step("wait for the node's end");
        sleep_ms(120000);
        _exit(1);
    }
    bool calls = after || client.me.rank == (pmix_rank_t)second;
    if (client.me.rank != (pmix_rank_t)second)
        sleep_ms(1500); /* the others are in it by then */
    if (calls && op != DESTRUCT)
        CHECK_OK(PMIx_Group_construct_nb(id, op == BOOTSTRAP ? &client.me : leaders,
                                         op == BOOTSTRAP ? 1 : nleaders, info, n, answered, NULL),
                 "PMIx_Group_construct_nb");
    else if (calls)
        CHECK_OK(PMIx_Group_destruct_nb(id, info, n, destructed, NULL), "PMIx_Group_destruct_nb");
    sleep_ms(after ? 500 : calls ? 3000 : 0); /* the contribution is on its way */
    client_die();
}

/* The operation that loses somebody. @return whether it ended as it should */
static bool lose(struct group_result *result)
{
    bool beside = nodes_of_ranks()[client.me.rank] == nodes_of_ranks()[victim];
    bool late = (after || second >= 0) && client.me.rank == client.size - 1;
    pmix_status_t status;
    uint64_t begin = now_ns();
    if (late) /* somebody has to be awaited when the victim ends */
        sleep_ms(second >= 0 ? 8000 : 6000);
    if (op == BOOTSTRAP) {
        status = construct(&client.me, 1, result, true, 0);
    } else if (op == CONSTRUCT) {
        bool is_leader = !is_added(client.me.rank);
        int seconds = how == LATE && beside ? 3 : (int)deadline;
        status = construct(leaders, is_leader ? nleaders : 0, result, true, seconds);
    } else {
        pmix_info_t info[6];
        size_t n = directives(info, (int)deadline);
        status = PMIx_Group_destruct(id, info, n);
    }
    printf("rank %u: %s members %zu context %zu\n", client.me.rank, PMIx_Error_string(status),
           result->nmembers, result->context);
    printf("LOST rank %u: after %.1f s\n", client.me.rank, (double)(now_ns() - begin) / 1e9);
    fflush(stdout);
    bool survives = after || (mode == FT && op != BOOTSTRAP) || (mode == NOTIFY && op == DESTRUCT);
    if ((status == PMIX_SUCCESS) != survives)
        return false;
    if (survives && op != DESTRUCT) {
        group_check_members(result, after ? all : survivors, after ? client.size : nsurvivors);
        CHECK_EQ(result->nmembers, after ? client.size : nsurvivors, "members");
    }
    return true;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"victim", &victim, "rank that is lost", NULL},
        {"node", &node, "1: with all ranks of its node, which is lost from outside", NULL},
        {"op", &op, "does it happen in", "construct|destruct|bootstrap"},
        {"mode", &mode, "is asked for", "abort|ft|notify"},
        {"how", &how, "does the victim do", "kill|late"},
        {"after", &after, "1: once it has contributed", NULL},
        {"as", &as, "is the victim", "participant|added|leader"},
        {"second", &second, "rank that is lost after it; of its node; -1: none", NULL},
        {"deadline", &deadline, "s, of the others; 0: none", NULL},
        {"events", &events, "about the victim that each survivor gets, no more; -1: any", NULL},
        {0}};
    struct group_result result = {0};
    char own[PMIX_MAX_NSLEN + 8];
    client_init("groups_lost", options, argc, argv);
    snprintf(own, sizeof own, "lost.%s", client.me.nspace);
    if (op == BOOTSTRAP) /* it would meet that of another step */
        id = own;
    choose();
    listen_for_losses();
    if (op == DESTRUCT)
        CHECK_OK(construct(leaders, nleaders, &result, false, 0), "the construct before");
    group_result_free(&result);
    result = (struct group_result){0};
    step("barrier");
    fence_all(false);
    printf("HOLD rank %u pid %d\n", client.me.rank, (int)getpid());
    fflush(stdout);
    if (is_lost(client.me.rank) && how == KILL)
        end_myself();
    if (!is_lost(client.me.rank)) {
        step("the operation that loses rank %ld", victim);
        bool right = lose(&result);
        CHECK(right, "the operation did not end as it should");
        group_result_free(&result);
    } else {
        sleep_ms(12000);
    }
    step("the id again");
    if (LIBPMIX < KEEPS_NO_MEMBERS_FROM)
        id = "lost.again";
    CHECK_OK(construct(survivors, nsurvivors, &result, false, 60), "the id again");
    group_check_members(&result, survivors, nsurvivors);
    for (int i = 0; i < 600 && events > 0 && atomic_load(&told) < (unsigned)events; i++)
        sleep_ms(100);
    if (events >= 0 && !is_lost(client.me.rank))
        CHECK_EQ(atomic_load(&told), events, "events about the victim");
    for (int i = 0; i < 600 && second >= 0 && atomic_load(&told_second) == 0; i++)
        sleep_ms(100);
    if (second >= 0 && !is_lost(client.me.rank))
        CHECK_EQ(atomic_load(&told_second), 1, "events about the second one");
    client_pass("%zu of %u ranks are left", nsurvivors, client.size);
    _exit(0); /* the job is broken: finalize may wait for the dead */
}
