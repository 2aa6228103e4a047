/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_add: constructs of the collective method whose leaders add members, who know only the id.
 *
 * In two arrangements. Apart: the ranks of the first half of the nodes are leaders and those of the
 * others are added, so that servers host only the one or only the other. Mixed: every second rank
 * is a leader, so that nodes have both. Two leaders add different halves of the members, both add
 * the first one, and one adds a leader. Added members call before, between and after the leaders.
 * Every second round they bring nothing along, and then libpmix does not tell the host who they
 * are.
 *
 * Then what fails: one that never calls; one that nobody adds. Where a node has
 * both, no member calls before a leader there: libpmix up to 7.0.0rc1 would hand the leaders up
 * never (docs/limits.md).
 *
 * A library that knows no added members has to refuse at once, and then this is skipped.
 */
#include "group.h"

static long rounds = 6;
static pmix_proc_t *leaders, *members, *everybody;
static size_t nleaders, nmembers;
static bool leads, apart; /* whether I do; whether no node has both */

/* The node from which on, in their order, ranks are added; 0: there is one node only. */
static uint64_t second_half(void)
{
    uint64_t *nodes = calloc(client.size, sizeof *nodes), half;
    size_t n = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        nodes[r] = nodes_of_ranks()[r];
    qsort(nodes, client.size, sizeof *nodes, compare_u64);
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (r == 0 || nodes[r] != nodes[r - 1])
            nodes[n++] = nodes[r];
    half = n > 1 ? nodes[n / 2] : 0;
    free(nodes);
    return half;
}

/* Leaders and members of an arrangement. */
static void arrange(bool is_apart)
{
    uint64_t half = second_half();
    apart = is_apart;
    nleaders = nmembers = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (apart ? nodes_of_ranks()[r] < half : r % 2 == 0)
            leaders[nleaders++] = proc_of(r);
        else
            members[nmembers++] = proc_of(r);
    leads = group_contains(leaders, nleaders, client.me.rank);
}

static bool is(const pmix_proc_t *proc)
{
    return proc->rank == client.me.rank;
}

/* What I add: the first leader every second member, and a leader; the last one the others; both
 * the first member. */
static size_t adds(pmix_proc_t *added)
{
    size_t n = 0;
    bool first = is(&leaders[0]), last = is(&leaders[nleaders - 1]);
    for (size_t i = 0; i < nmembers; i++)
        if ((first && i % 2 == 0) || (last && (i % 2 == 1 || i == 0)))
            added[n++] = members[i];
    if (first)
        added[n++] = leaders[nleaders - 1];
    return n;
}

static size_t info_of(pmix_rank_t rank, long round)
{
    return 1000u * (size_t)round + rank + 1;
}

static void begin(struct group_call *call, const char *id, long round, bool brings, int timeout)
{
    pmix_proc_t *added = calloc(client.size + 1, sizeof *added);
    struct group_ask ask = {.timeout = timeout,
                            .info = brings ? info_of(client.me.rank, round) : 0};
    ask.added = added;
    ask.nadded = leads ? adds(added) : 0;
    if (brings) {
        put_u64(PMIX_GLOBAL, info_of(client.me.rank, round), "add%ld", round);
        commit();
    }
    group_begin(call, id, leaders, leads ? nleaders : 0, ask);
    free(added);
}

/* What came along is there without a word to another node. */
static void check_brought(const struct group_call *call, long round)
{
    pmix_info_t now;
    bool yes = true;
    char key[32];
    PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    snprintf(key, sizeof key, "add%ld", round);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        pmix_value_t *value = get_value_with(r, &now, 1, key);
        CHECK_EQ(number_in(value, key), info_of(r, round), key);
        PMIX_VALUE_RELEASE(value);
        group_check_info(r, call->result.context, info_of(r, round));
    }
}

/* Three groups in time: members call before, between or after the leaders. */
static struct group_seen one_round(long round)
{
    struct group_call call;
    struct group_seen seen;
    bool brings = round % 2 == 0;
    long when = round / 2 % 3; /* the members call before, between or after the leaders */
    if (!apart && (when == 0 || nodes_of_ranks()[client.me.rank] != nodes_of_ranks()[0]))
        when = 2; /* a leader of my node has called then */
    const char *id = round < 3 ? "add.same" : "add.other";
    for (long turn = 0; turn < 5; turn++) {
        bool mine = turn == (leads ? (is(&leaders[0]) ? 1 : 3) : 2 * when);
        step("round %ld, turn %ld", round, turn);
        if (mine)
            begin(&call, id, round, brings, 0);
        fence_all(false);
    }
    step("round %ld, construct", round);
    CHECK_OK(group_end(&call), "construct with added members");
    group_check_members(&call.result, everybody, client.size);
    CHECK(call.result.has_context && call.result.context, "expected a context id, found none");
    if (brings)
        check_brought(&call, round);
    seen = (struct group_seen){call.result.context, group_order(&call.result)};
    group_result_free(&call.result);
    step("round %ld, destruct", round);
    group_destruct(id);
    return seen;
}

/* One member never calls, and all fail at the leaders' deadline: its next call is of their next
 * construct. */
static void never(void)
{
    struct group_call call;
    bool late = is(&members[nmembers - 1]);
    step("construct of which one never calls");
    if (!late && (apart || leads))
        begin(&call, "add.never", 0, true, leads ? 2 : 0);
    fence_all(false);
    if (!late && !(apart || leads))
        begin(&call, "add.never", 0, true, 0);
    if (!late)
        CHECK_STATUS(group_end(&call), PMIX_ERR_TIMEOUT, "construct of which one never calls");
    fence_all(false);
    step("the same id after a failure");
    if (leads)
        begin(&call, "add.never", 0, true, 0);
    fence_all(false);
    if (!leads)
        begin(&call, "add.never", 0, true, 0);
    CHECK_OK(group_end(&call), "the same id after a failure");
    group_check_members(&call.result, everybody, client.size);
    group_result_free(&call.result);
    group_destruct("add.never");
}

static void unadded(void)
{
    struct group_call call;
    step("call that nobody adds");
    if (is(&members[0]))
        group_run(&call, "add.nobody", NULL, 0, (struct group_ask){.timeout = 1}, PMIX_ERR_TIMEOUT);
    fence_all(false);
}

/* @return whether it was refused at once */
static void refused(void)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    uint64_t start = now_ns();
    pmix_data_array_t array = {.type = PMIX_PROC, .size = nmembers, .array = members};
    step("refusal");
    if (leads) {
        PMIX_INFO_LOAD(&info, PMIX_GROUP_ADD_MEMBERS, &array, PMIX_DATA_ARRAY);
        CHECK_STATUS(
            PMIx_Group_construct("add.refused", leaders, nleaders, &info, 1, &results, &nresults),
            PMIX_ERR_NOT_SUPPORTED, "construct with added members");
        CHECK(now_ns() - start < 10000000000u, "refused after %llu ms, expected it at once",
              (unsigned long long)(now_ns() - start) / 1000000);
        PMIX_INFO_DESTRUCT(&info);
    }
    fence_all(false);
}

/* @return behind what was seen of each round */
static struct group_seen *run(struct group_seen *seen)
{
    for (long round = 0; round < rounds; round++)
        *seen++ = one_round(round);
    never();
    unadded();
    return seen;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "constructs", NULL}, {0}};
    client_init("groups_add", options, argc, argv);
    if (client.size < 2)
        return client_skip("needs two ranks");
    leaders = calloc(client.size, sizeof *leaders);
    members = calloc(client.size, sizeof *members);
    everybody = calloc(client.size, sizeof *everybody);
    for (pmix_rank_t r = 0; r < client.size; r++)
        everybody[r] = proc_of(r);
    arrange(second_half() != 0);
    if (!GROUP_HAS_ADDED) {
        if (LIBPMIX >=
            50000) /* 4.2 finishes an all-local construct by itself, whatever it asks for */
            refused();
        return client_skip("libpmix %d.%d.%d knows no added members; muster refuses them at once",
                           (int)(LIBPMIX / 10000), (int)(LIBPMIX / 100 % 100),
                           (int)(LIBPMIX % 100));
    }
    struct group_seen *seen = calloc(2 * (size_t)rounds, sizeof *seen), *end = seen;
    uint64_t *contexts = calloc(2 * (size_t)rounds, sizeof *contexts);
    if (apart)
        end = run(end);
    arrange(false);
    end = run(end);
    step("comparison");
    group_compare(seen, (size_t)(end - seen), contexts, "added");
    group_check_distinct(contexts, (size_t)(end - seen));
    free(contexts);
    free(seen);
    free(everybody);
    free(members);
    free(leaders);
    return client_pass("%u ranks, leaders and added members apart and mixed, %ld times each",
                       client.size, rounds);
}
