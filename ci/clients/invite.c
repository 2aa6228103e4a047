/* SPDX-License-Identifier: BSD-3-Clause */
/* invite: groups by invitation. Rank 0 invites, the others accept, decline or stay silent; then
 * there is the group that the standard wants, with one context id and one membership, or none.
 *
 * libpmix up to 6.1 knows neither a context id nor a refusal here, and a join that returns says
 * nothing; there the members learn of the group by its event alone.
 */
#include "event.h"
#include "group.h"

static long rounds = 3;

#define HAS_ALL (LIBPMIX >= 70000)

static const pmix_status_t codes[] = {PMIX_GROUP_INVITED, PMIX_GROUP_CONSTRUCT_COMPLETE,
                                      PMIX_GROUP_LEFT};

/* What became of one. */
struct outcome {
    pmix_status_t status;
    struct group_result result; /**< of the completion's event */
};

static bool is_of(const struct event_seen *e, pmix_status_t code, const char *id)
{
    for (size_t i = 0; e->code == code && i < e->ninfo; i++)
        if (PMIX_CHECK_KEY(&e->info[i], PMIX_GROUP_ID) && e->info[i].value.type == PMIX_STRING)
            return strcmp(e->info[i].value.data.string, id) == 0;
    return false;
}

/* Waits for an event of a group. */
static struct event_seen await(struct listener *l, pmix_status_t code, const char *id)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0;; i++) {
        while (i == l->n)
            pthread_cond_wait(&l->came, &l->lock);
        if (is_of(&l->seen[i], code, id)) {
            struct event_seen e = l->seen[i];
            pthread_mutex_unlock(&l->lock);
            return e;
        }
    }
}

static size_t seen(struct listener *l, pmix_status_t code, const char *id)
{
    size_t n = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n; i++)
        n += is_of(&l->seen[i], code, id);
    pthread_mutex_unlock(&l->lock);
    return n;
}

static pmix_status_t invite(const char *id, const pmix_proc_t *procs, size_t n, bool optional,
                            int timeout)
{
    pmix_info_t info[3], *results = NULL;
    size_t ninfo = 0, nresults = 0;
    PMIX_INFO_LOAD(&info[ninfo++], PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
    if (optional)
        PMIX_INFO_LOAD(&info[ninfo++], PMIX_GROUP_OPTIONAL, NULL, PMIX_BOOL);
    if (timeout > 0)
        PMIX_INFO_LOAD(&info[ninfo++], PMIX_TIMEOUT, &timeout, PMIX_INT);
    pmix_status_t status = PMIx_Group_invite(id, procs, n, info, ninfo, &results, &nresults);
    if (results)
        PMIX_INFO_FREE(results, nresults);
    return status;
}

enum answer { ACCEPT, DECLINE, SILENT };

/* One invitation of all ranks; the last one answers with @p last. */
static struct outcome play(struct listener *l, const char *id, enum answer last, bool optional,
                           int timeout)
{
    struct outcome o = {PMIX_SUCCESS, {0}};
    pmix_proc_t *procs = calloc(client.size, sizeof *procs), leader = proc_of(0);
    bool is_last = client.me.rank == client.size - 1;
    for (pmix_rank_t r = 0; r < client.size; r++)
        procs[r] = proc_of(r);
    step("%s", id);
    if (client.me.rank == 0) {
        o.status = invite(id, procs, client.size, optional, timeout);
    } else {
        struct event_seen invited = await(l, PMIX_GROUP_INVITED, id);
        CHECK_EQ(invited.source.rank, 0, "who invites");
        if (!is_last || last != SILENT) {
            pmix_info_t *results = NULL;
            size_t nresults = 0;
            o.status = PMIx_Group_join(
                id, &leader, is_last && last == DECLINE ? PMIX_GROUP_DECLINE : PMIX_GROUP_ACCEPT,
                NULL, 0, &results, &nresults);
            if (results)
                PMIX_INFO_FREE(results, nresults);
        }
    }
    free(procs);
    return o;
}

static void read_complete(struct listener *l, const char *id, struct outcome *o)
{
    struct event_seen e = await(l, PMIX_GROUP_CONSTRUCT_COMPLETE, id);
    group_result_read(&o->result, e.info, e.ninfo);
    if (HAS_ALL)
        CHECK(o->result.has_context && o->result.context != 0, "expected a context id");
}

/* The group's members as the host knows them; 0: it does not know the group. */
static size_t queried(const char *id)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t nresults = 0, n = 0;
    PMIX_QUERY_CONSTRUCT(&query);
    pmix_status_t status;
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_GROUP_MEMBERSHIP);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_GROUP_ID, id, PMIX_STRING);
    status = PMIx_Query_info(&query, 1, &results, &nresults);
    CHECK(status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND, "query of %s: %s", id,
          PMIx_Error_string(status));
    for (size_t i = 0; i < nresults; i++)
        if (PMIX_CHECK_KEY(&results[i], PMIX_QUERY_GROUP_MEMBERSHIP) &&
            results[i].value.type == PMIX_DATA_ARRAY)
            n = results[i].value.data.darray->size;
    PMIX_QUERY_DESTRUCT(&query);
    if (results)
        PMIX_INFO_FREE(results, nresults);
    return n;
}

static void accepted(struct listener *l, long round, struct group_seen *mine)
{
    char id[64];
    snprintf(id, sizeof id, "invite.%ld", round);
    struct outcome o = play(l, id, ACCEPT, false, 0);
    CHECK_OK(o.status, "invite or join");
    read_complete(l, id, &o);
    if (HAS_ALL)
        CHECK_EQ(o.result.nmembers, client.size, "members");
    *mine = (struct group_seen){o.result.context, group_order(&o.result)};
    group_result_free(&o.result);
    fence_all(false);
    CHECK_EQ(queried(id), client.size, "members by a query");
    fence_all(false);
    if (!HAS_ALL || round % 2 == 0)
        return;
    step("%s: leave", id);
    if (client.me.rank == client.size - 1) {
        CHECK_OK(PMIx_Group_leave(id, NULL, 0), "PMIx_Group_leave");
    } else {
        struct event_seen left = await(l, PMIX_GROUP_LEFT, id);
        CHECK_EQ(left.affected, client.size - 1, "who has left");
    }
    fence_all(false);
    CHECK_EQ(queried(id), client.size - 1, "members by a query after one has left");
    fence_all(false);
}

/* Not all accept. */
static void refused(struct listener *l, const char *id, enum answer last, bool optional)
{
    bool is_last = client.me.rank == client.size - 1;
    struct outcome o = play(l, id, last, optional, last == SILENT ? 2 : 0);
    if (!is_last)
        CHECK_STATUS(o.status, optional ? PMIX_SUCCESS : PMIX_GROUP_CONSTRUCT_ABORT,
                     "invite or join");
    if (optional && !is_last) {
        read_complete(l, id, &o);
        CHECK_EQ(o.result.nmembers, client.size - 1, "members");
        group_result_free(&o.result);
    }
    fence_all(false);
    CHECK_EQ(seen(l, PMIX_GROUP_CONSTRUCT_COMPLETE, id), optional && !is_last, "completions");
    CHECK_EQ(queried(id), optional ? client.size - 1 : 0, "members by a query");
    fence_all(false);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "groups that all join", NULL}, {0}};
    client_init("invite", options, argc, argv);
    if (client.size < 3)
        return client_skip("needs three ranks, found %u", client.size);
    struct group_seen *mine = calloc((size_t)rounds, sizeof *mine);
    uint64_t *contexts = calloc((size_t)rounds, sizeof *contexts);
    struct listener *l = listen_to(codes, sizeof codes / sizeof *codes, NULL, 0);
    if (!HAS_ALL) /* what comes before its handler is not told as it was: docs/limits.md */
        fence_all(false);
    for (long round = 0; round < rounds; round++)
        accepted(l, round, &mine[round]);
    if (HAS_ALL) {
        step("comparison");
        group_compare(mine, (size_t)rounds, contexts, "invite");
        group_check_distinct(contexts, (size_t)rounds);
        refused(l, "invite.declined", DECLINE, false);
        refused(l, "invite.smaller", DECLINE, true);
        refused(l, "invite.silent", SILENT, false);
        refused(l, "invite.late", SILENT, true);
    }
    free(contexts);
    free(mine);
    return client_pass("%ld groups of %u ranks%s", rounds, client.size,
                       HAS_ALL ? ", context ids, leave, decline, timeout" : "");
}
