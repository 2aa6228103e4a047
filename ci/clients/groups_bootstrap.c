/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_bootstrap: constructs whose leaders know only how many they are.
 *
 * All ranks lead (with 64 ranks, 64 leaders); two lead and add all others; one leads alone; two
 * groups at once; counts that disagree; a leader that calls twice; the same id after a destruct and
 * after a failure, also one that members had given up before; and one leader more than the count,
 * who is the first of the id's next construct.
 *
 * A library that knows no bootstrap has to refuse at once, and then this is skipped.
 */
#include "group.h"

static long rounds = 3;
static pmix_proc_t *everybody;

/* One group, which @p ask is about; @p n members are expected in it. */
static struct group_seen form(const char *id, bool leader, struct group_ask ask,
                              const pmix_proc_t *expected, size_t n)
{
    struct group_call call;
    struct group_seen seen;
    group_run(&call, id, &client.me, leader ? 1 : 0, ask, PMIX_SUCCESS);
    group_check_members(&call.result, expected, n);
    CHECK(call.result.has_context && call.result.context, "expected a context id, found none");
    if (ask.info)
        for (size_t i = 0; i < n; i++)
            group_check_info(expected[i].rank, call.result.context, 100 + expected[i].rank);
    seen = (struct group_seen){call.result.context, group_order(&call.result)};
    group_result_free(&call.result);
    return seen;
}

static struct group_seen all_lead(long round)
{
    step("round %ld, all lead", round);
    struct group_ask ask = {.leaders = client.size, .info = 100 + client.me.rank};
    struct group_seen seen = form("boot.all", true, ask, everybody, client.size);
    group_destruct("boot.all");
    return seen;
}

/* The first and the last rank lead; each adds every second of the others, and both the second. */
static struct group_seen two_lead(long round)
{
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    struct group_ask ask = {.leaders = first || last ? 2 : 0, .info = 100 + client.me.rank};
    pmix_proc_t *added = calloc(client.size, sizeof *added);
    step("round %ld, two lead", round);
    for (pmix_rank_t r = 1; r + 1 < client.size; r++)
        if ((first && r % 2 == 0) || (last && r % 2 == 1) || r == 1)
            added[ask.nadded++] = proc_of(r);
    ask.added = added;
    if (!first && !last)
        ask.nadded = 0;
    struct group_seen seen = form("boot.two", first || last, ask, everybody, client.size);
    free(added);
    step("round %ld, destruct of two", round);
    group_destruct("boot.two");
    return seen;
}

static struct group_seen alone(void)
{
    char id[32];
    snprintf(id, sizeof id, "boot.alone.%u", client.me.rank);
    step("one alone");
    struct group_seen seen = form(id, true, (struct group_ask){.leaders = 1}, &client.me, 1);
    group_destruct(id);
    return seen;
}

/* Two ids at once. */
static struct group_seen halves(void)
{
    pmix_proc_t *mine = calloc(client.size, sizeof *mine);
    size_t n = 0;
    for (pmix_rank_t r = client.me.rank % 2; r < client.size; r += 2)
        mine[n++] = proc_of(r);
    const char *id = client.me.rank % 2 ? "boot.odd" : "boot.even";
    step("two at once");
    struct group_seen seen = form(id, true, (struct group_ask){.leaders = n}, mine, n);
    group_destruct(id);
    free(mine);
    return seen;
}

/* Two counts: both fail. Then the same two and the same id: a group. */
static void disagree(void)
{
    struct group_call call;
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    const pmix_proc_t both[] = {proc_of(0), proc_of(client.size - 1)};
    step("counts that disagree");
    if (first || last)
        group_run(&call, "boot.count", &client.me, 1, (struct group_ask){.leaders = first ? 2 : 3},
                  PMIX_ERR_BAD_PARAM);
    fence_all(false);
    step("the same id after a failure");
    if (first || last) {
        form("boot.count", true, (struct group_ask){.leaders = 2}, both, 2);
        group_destruct("boot.count");
    }
    fence_all(false);
}

/* Leaders are counted, not calls: two calls of one leader are not the two that are awaited. */
static void twice(void)
{
    struct group_call calls[2];
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    const pmix_proc_t both[] = {proc_of(0), proc_of(client.size - 1)};
    const struct group_ask two = {.leaders = 2};
    step("a leader that calls twice");
    for (int i = 0; first && i < 2; i++)
        group_begin(&calls[i], "boot.twice", &client.me, 1, two);
    fence_all(false);
    if (last)
        form("boot.twice", true, two, both, 2);
    for (int i = 0; first && i < 2; i++) {
        CHECK_OK(group_end(&calls[i]), "each call of the leader that called twice");
        group_check_members(&calls[i].result, both, 2);
        CHECK_EQ(calls[i].result.context, calls[0].result.context, "its context id");
    }
    for (int i = 0; first && i < 2; i++)
        group_result_free(&calls[i].result);
    if (first || last)
        group_destruct("boot.twice");
    fence_all(false);
}

/* One leader of two does not call, and the other fails at its deadline: the late call is of the
 * next bootstrap. */
static void never(void)
{
    struct group_call call;
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    const pmix_proc_t both[] = {proc_of(0), proc_of(client.size - 1)};
    step("a leader that does not call");
    if (first)
        group_run(&call, "boot.never", &client.me, 1,
                  (struct group_ask){.leaders = 2, .timeout = 1}, PMIX_ERR_TIMEOUT);
    fence_all(false);
    step("the late one, and the other again");
    if (first || last) {
        form("boot.never", true, (struct group_ask){.leaders = 2}, both, 2);
        group_destruct("boot.never");
    }
    fence_all(false);
}

/* A member of "boot.late" calls again. The word on the failure may come behind that call, which is
 * then answered with the failure (docs/limits.md): the next call after that is for the others'. */
static void join_again(struct group_ask ask)
{
    struct group_call call;
    group_begin(&call, "boot.late", &client.me, 0, ask);
    pmix_status_t status = group_end(&call);
    if (status == PMIX_ERR_TIMEOUT) {
        printf("groups_bootstrap: rank %u got the failure for its second call\n", client.me.rank);
        group_begin(&call, "boot.late", &client.me, 0, ask);
        status = group_end(&call);
    }
    CHECK_OK(status, "boot.late");
    group_check_members(&call.result, everybody, client.size);
    group_result_free(&call.result);
}

/* One leader of two does not call, and the added members give up before the other does. That call
 * of theirs was of the construct that fails: with all there, the id works again. */
static void give_up(void)
{
    struct group_call call;
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    struct group_ask ask = {.leaders = first || last ? 2 : 0, .timeout = first ? 2 : last ? 0 : 1};
    pmix_proc_t *added = calloc(client.size, sizeof *added);
    step("members that give up");
    for (pmix_rank_t r = 1; first && r + 1 < client.size; r++)
        added[ask.nadded++] = proc_of(r);
    ask.added = added;
    if (!last)
        group_run(&call, "boot.late", &client.me, first, ask, PMIX_ERR_TIMEOUT);
    fence_all(false);
    step("the same id with all of them");
    ask.timeout = 0;
    if (first || last)
        form("boot.late", true, ask, everybody, client.size);
    else
        join_again(ask);
    group_destruct("boot.late");
    free(added);
}

/* A third leader of two waits for the next construct, which one of the two completes. */
static void surplus(void)
{
    struct group_call call;
    const pmix_proc_t pair[] = {proc_of(0), proc_of(client.size - 1)};
    const pmix_proc_t next[] = {proc_of(0), proc_of(1)};
    const struct group_ask two = {.leaders = 2};
    bool first = client.me.rank == 0, last = client.me.rank == client.size - 1;
    step("the first two leaders");
    if (first || last)
        form("boot.more", true, two, pair, 2);
    fence_all(false);
    if (client.me.rank == 1)
        group_begin(&call, "boot.more", &client.me, 1, two);
    fence_all(false);
    step("their destruct");
    if (first || last)
        group_destruct("boot.more");
    fence_all(false);
    step("the surplus leader's construct");
    if (first)
        form("boot.more", true, two, next, 2);
    if (client.me.rank == 1) {
        CHECK_OK(group_end(&call), "construct of the surplus leader");
        group_check_members(&call.result, next, 2);
        group_result_free(&call.result);
    }
    if (first || client.me.rank == 1)
        group_destruct("boot.more");
    fence_all(false);
}

/* A leader gives itself alone. libpmix before 6.1 takes that for a group of one node, and asks its
 * host only for a context id: without one no host can refuse. */
static void alone_refused(void)
{
    pmix_info_t info[2], *results = NULL;
    size_t nresults = 0, count = client.size;
    step("refusal of one that leads");
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_BOOTSTRAP, &count, PMIX_SIZE);
    PMIX_INFO_LOAD(&info[1], PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
    CHECK_STATUS(
        PMIx_Group_construct("boot.alone.refused", &client.me, 1, info, 2, &results, &nresults),
        PMIX_ERR_NOT_SUPPORTED, "bootstrap of one that leads");
    fence_all(false);
}

static void refused(void)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0, count = client.size;
    uint64_t start = now_ns();
    step("refusal");
    PMIX_INFO_LOAD(&info, PMIX_GROUP_BOOTSTRAP, &count, PMIX_SIZE);
    CHECK_STATUS(
        PMIx_Group_construct("boot.refused", everybody, client.size, &info, 1, &results, &nresults),
        PMIX_ERR_NOT_SUPPORTED, "bootstrap");
    CHECK(now_ns() - start < 60000000000u, "refused after %llu ms, expected it at once",
          (unsigned long long)(now_ns() - start) / 1000000);
    fence_all(false);
}

/* Each construct is one to compare; halves and loners have a place for each rank. */
static void run(struct group_seen *seen)
{
    for (long round = 0; round < rounds; round++) {
        seen[2 * round] = all_lead(round);
        seen[2 * round + 1] = two_lead(round);
    }
    fence_all(false);
    seen[2 * rounds + client.me.rank % 2] = halves();
    seen[2 * rounds + 2 + client.me.rank] = alone();
    fence_all(false);
    disagree();
    twice();
    never();
    give_up();
    /* One server answers all calls of one id at once: the three must be apart. */
    const uint64_t *node = nodes_of_ranks();
    if (client.size > 2 && node[1] != node[0] && node[1] != node[client.size - 1])
        surplus();
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"rounds", &rounds, "rounds", NULL}, {0}};
    client_init("groups_bootstrap", options, argc, argv);
    if (client.size < 2)
        return client_skip("needs two ranks");
    everybody = calloc(client.size, sizeof *everybody);
    for (pmix_rank_t r = 0; r < client.size; r++)
        everybody[r] = proc_of(r);
    if (!GROUP_HAS_ADDED) {
        if (nodes_of_ranks()[0] != nodes_of_ranks()[client.size - 1])
            refused(); /* an all-local construct is finished by old libraries themselves */
        alone_refused();
        return client_skip("libpmix %d.%d.%d knows no bootstrap; muster refuses it at once",
                           (int)(LIBPMIX / 10000), (int)(LIBPMIX / 100 % 100),
                           (int)(LIBPMIX % 100));
    }
    size_t n = 2 * (size_t)rounds + 2 + client.size;
    struct group_seen *seen = calloc(n, sizeof *seen);
    uint64_t *contexts = calloc(n, sizeof *contexts);
    run(seen);
    step("comparison");
    group_compare(seen, n, contexts, "boot");
    group_check_distinct(contexts, n);
    free(contexts);
    free(seen);
    free(everybody);
    return client_pass("%u ranks formed groups by bootstrap, %ld rounds", client.size, rounds);
}
