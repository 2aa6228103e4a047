/* SPDX-License-Identifier: BSD-3-Clause */
/* losses: what survivors are told of a rank that was killed, wherever they run: one event of each
 * kind that they have asked for, with who it was. Needs a host that lets the job go on
 * ("on_task_loss": "continue"), and a launcher that does, too.
 *
 * --who member: a rank that nothing waits for; invitee: one that was invited to a group, and whose
 * loss ends the invitation; leader: who has invited the others, whose joins then fail. One of them
 * declares itself the leader in its place, and invites once more. group: a member of two groups, of
 * which one of its members alone has asked to be told, and another has left one; then the others
 * name it once more, in a construct, fences and a get.
 */
#include "event.h"
#include "group.h"

enum { MEMBER, INVITEE, LEADER, GROUP };

static long who = MEMBER;

/* What tells the invitee that is lost to go ahead. */
#define GO EVENT_CODE(0)

static const pmix_status_t codes[] = {PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_PROC_TERMINATED,
                                      PMIX_EVENT_PROC_TERMINATED, PMIX_ERR_PROC_ABORTED,
                                      PMIX_ERR_PROC_ABORTED_BY_SIG};
enum { NCODES = sizeof codes / sizeof *codes };

static pmix_rank_t victim(void)
{
    return who == LEADER ? 0 : client.size - 1;
}

/* ---- group ---- */

static pmix_rank_t leaver(void)
{
    return client.size - 2;
}

/* Two groups of all ranks; one leaves the second. */
static void make_groups(struct listener *l, const pmix_proc_t *procs)
{
    static const char *const ids[] = {"losses.kept", "losses.left"};
    struct group_call call;
    step("groups");
    put_u64(PMIX_REMOTE, 1000 + client.me.rank, "losses.put");
    CHECK_OK(PMIx_Commit(), "PMIx_Commit");
    for (size_t i = 0; i < 2; i++) {
        struct group_ask ask = {.notify = client.me.rank == 0};
        group_run(&call, ids[i], procs, client.size, ask, PMIX_SUCCESS);
        group_result_free(&call.result);
    }
    fence_all(false);
    if (client.me.rank == leaver())
        CHECK_OK(PMIx_Group_leave(ids[1], NULL, 0), "PMIx_Group_leave");
    else
        listen_wait(l, PMIX_GROUP_LEFT, leaver(), 1);
    fence_all(false);
}

static void check_groups(struct listener *l, const pmix_proc_t *procs)
{
    size_t n = client.me.rank == leaver() ? 1 : 2;
    step("PMIX_GROUP_MEMBER_FAILED of %zu groups", n);
    listen_wait(l, PMIX_GROUP_MEMBER_FAILED, PMIX_RANK_WILDCARD, n);
    fence_of(procs, client.size - 1, false);
    CHECK_EQ(listen_count(l, PMIX_GROUP_MEMBER_FAILED, PMIX_RANK_WILDCARD), n, "events");
    step("destruct of a group that has lost one");
    CHECK_OK(PMIx_Group_destruct("losses.kept", NULL, 0), "PMIx_Group_destruct");
    step("operations that name one that is lost already");
    struct group_call call;
    struct group_ask ask = {0};
    group_run(&call, "losses.late", procs, client.size, ask, PMIX_GROUP_CONSTRUCT_ABORT);
    group_result_free(&call.result);
    CHECK_STATUS(PMIx_Fence(procs, client.size, NULL, 0), PMIX_ERR_PROC_TERM_WO_SYNC, "PMIx_Fence");
    CHECK_STATUS(PMIx_Fence(NULL, 0, NULL, 0), PMIX_ERR_PROC_TERM_WO_SYNC, "PMIx_Fence of all");
    if (client.me.rank != leaver()) { /* which is on its node: see PMIX_REMOTE */
        step("what the lost one has put");
        CHECK_EQ(get_u64(victim(), "losses.put"), 1000 + victim(), "losses.put");
    }
}

/* ---- invitations ---- */

/* The end of the invitation. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    pmix_status_t status;
} invited = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, PMIX_SUCCESS};

/* @thread PMIx's */
static void on_invited(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                       pmix_release_cbfunc_t release, void *release_cbdata)
{
    (void)info, (void)ninfo, (void)cbdata;
    if (release)
        release(release_cbdata);
    pthread_mutex_lock(&invited.lock);
    invited.status = status;
    invited.is_done = true;
    pthread_cond_signal(&invited.done);
    pthread_mutex_unlock(&invited.lock);
}

/* Rank 0 invites all. No rank is lost before all others have accepted: libpmix hands a process
 * events once more when it registers for their codes again, as PMIx_Group_join does. */
static void lead(const pmix_proc_t *procs)
{
    const pmix_status_t accepted = PMIX_GROUP_INVITE_ACCEPTED;
    struct listener *l = listen_to(&accepted, 1, NULL, 0);
    CHECK_OK(PMIx_Group_invite_nb("losses", procs, client.size, NULL, 0, on_invited, NULL),
             "PMIx_Group_invite_nb");
    listen_wait(l, 0, PMIX_RANK_WILDCARD, client.size - 2); /* the last one is silent */
    if (who == LEADER)
        client_die();
    pmix_info_t target;
    event_target(&target, &procs[victim()], 1);
    CHECK_OK(event_raise(GO, PMIX_RANGE_CUSTOM, 1, &target, 1), "PMIx_Notify_event");
    PMIX_INFO_DESTRUCT(&target);
    pthread_mutex_lock(&invited.lock);
    while (!invited.is_done)
        pthread_cond_wait(&invited.done, &invited.lock);
    CHECK_STATUS(invited.status, PMIX_GROUP_CONSTRUCT_ABORT,
                 "PMIx_Group_invite_nb, one of whose processes is lost");
    pthread_mutex_unlock(&invited.lock);
}

static void follow(struct listener *invitations)
{
    pmix_proc_t leader = proc_of(0);
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    listen_wait(invitations, PMIX_GROUP_INVITED, 0, 1);
    if (who == INVITEE && client.me.rank == victim()) {
        listen_wait(invitations, GO, 0, 1);
        client_die();
    }
    if (client.me.rank == client.size - 1)
        return;
    CHECK_STATUS(
        PMIx_Group_join("losses", &leader, PMIX_GROUP_ACCEPT, NULL, 0, &results, &nresults),
        who == LEADER ? PMIX_GROUP_LEADER_FAILED : PMIX_GROUP_CONSTRUCT_ABORT, "PMIx_Group_join");
    if (who == LEADER)
        listen_wait(invitations, PMIX_GROUP_LEADER_FAILED, PMIX_RANK_WILDCARD, 1);
}

static void check_told(struct listener *l)
{
    for (size_t k = 0; k < NCODES; k++) {
        step("the event %s", PMIx_Error_string(codes[k]));
        listen_wait(l, codes[k], PMIX_RANK_WILDCARD, 1);
    }
    pthread_mutex_lock(&l->lock);
    CHECK_EQ(l->n, NCODES, "events about a loss");
    for (size_t i = 0; i < l->n; i++)
        CHECK_EQ(l->seen[i].affected, victim(), "the affected rank");
    pthread_mutex_unlock(&l->lock);
}

/* The leader that is chosen invites by another id: libpmix 7.0.0rc1 takes the first one for known
 * (docs/limits.md). @param procs all ranks but the first leader, @p n of them */
static void reselect(struct listener *l, const pmix_proc_t *procs, size_t n)
{
    struct group_result group = {0};
    pmix_info_t target, *results = NULL;
    size_t nresults = 0;
    step("the choice of another leader");
    if (client.me.rank == procs[0].rank) {
        event_target(&target, procs, n);
        CHECK_OK(event_raise(PMIX_GROUP_LEADER_SELECTED, PMIX_RANGE_CUSTOM, 1, &target, 1),
                 "PMIx_Notify_event");
        PMIX_INFO_DESTRUCT(&target);
    }
    listen_wait(l, PMIX_GROUP_LEADER_SELECTED, procs[0].rank, 1);
    step("the invitation of another leader");
    if (client.me.rank == procs[0].rank) {
        CHECK_OK(PMIx_Group_invite("losses.2", procs, n, NULL, 0, &results, &nresults),
                 "PMIx_Group_invite");
    } else {
        listen_wait(l, PMIX_GROUP_INVITED, procs[0].rank, 1);
        CHECK_OK(
            PMIx_Group_join("losses.2", procs, PMIX_GROUP_ACCEPT, NULL, 0, &results, &nresults),
            "PMIx_Group_join");
    }
    group_result_read(&group, results, nresults);
    CHECK_EQ(group.nmembers, n, "members");
    group_check_members(&group, procs, n);
    group_result_free(&group);
    PMIX_INFO_FREE(results, nresults);
    fence_of(procs, n, false);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"who", &who, "is lost", "member|invitee|leader|group"},
                                            {0}};
    const pmix_status_t group_codes[] = {
        PMIX_GROUP_INVITED, PMIX_GROUP_LEADER_FAILED, PMIX_GROUP_LEADER_SELECTED, GO,
        PMIX_GROUP_LEFT,    PMIX_GROUP_MEMBER_FAILED};
    const pmix_status_t last = INT32_MIN; /* see events.c */
    client_init("losses", options, argc, argv);
    if (client.size < 4 || (who != MEMBER && LIBPMIX < 70000))
        return client_skip(client.size < 4 ? "needs four ranks"
                           : who == GROUP  ? "libpmix 7 has PMIX_GROUP_NOTIFY_TERMINATION"
                                           : "libpmix 7 watches invitations");
    pmix_proc_t *procs = calloc(client.size, sizeof *procs);
    for (pmix_rank_t r = 0; r < client.size; r++)
        procs[r] = proc_of(r);
    step("registrations");
    if (LIBPMIX < 70000)
        listen_to(&last, 1, NULL, 0);
    struct listener *invitations =
        listen_to(group_codes, sizeof group_codes / sizeof *group_codes, NULL, 0);
    struct listener *l = listen_to(codes, NCODES, NULL, 0), *any = listen_to(NULL, 0, NULL, 0);
    fence_all(false);
    if (who == GROUP)
        make_groups(invitations, procs);
    step("loss of rank %u", victim());
    if ((who == MEMBER || who == GROUP) && client.me.rank == victim())
        client_die();
    if ((who == INVITEE || who == LEADER) && client.me.rank == 0)
        lead(procs);
    else if (who == INVITEE || who == LEADER)
        follow(invitations);
    check_told(l);
    if (who == GROUP)
        check_groups(invitations, procs);
    step("fence of the survivors");
    if (who == LEADER)
        fence_of(procs + 1, client.size - 1, false);
    else
        fence_of(procs, client.size - 1, false);
    /* A default handler is for what no other handler of this process takes. */
    CHECK_EQ(listen_count(any, PMIX_PROC_TERMINATED, PMIX_RANK_WILDCARD), 0,
             "events that are kept from default handlers");
    CHECK(l->n == NCODES, "more events came");
    if (who == LEADER)
        reselect(invitations, procs + 1, client.size - 1);
    free(procs);
    int status = client_pass("all survivors of %u ranks were told of the loss", client.size);
    if (who == LEADER && client.me.rank == 1)
        printf("PASS losses: all survivors of %u ranks were told that the leader is lost, and "
               "joined another\n",
               client.size);
    return status;
}
