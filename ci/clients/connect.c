/* SPDX-License-Identifier: BSD-3-Clause */
/* connect: processes connect and disconnect.
 *
 * --mode job: all ranks of the job, several times; then the even and the odd ones at once, each by
 * rank; then without those of the last node, who come too late for the deadline, and again with
 * them.
 *
 * --mode lost: the last rank is killed while the others wait for it in a connect.
 */
#include "client.h"

enum mode { JOB, LOST };
static long mode = JOB, rounds = 3;

/* Up to libpmix 6 a connect within one node is libpmix's own, and partly succeeds without the lost.
 */
static const pmix_status_t lost_codes[] = {PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_LOST_CONNECTION,
                                           PMIX_ERR_PARTIAL_SUCCESS};

static pmix_status_t connect_of(const pmix_proc_t *procs, size_t nprocs, int timeout)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout, PMIX_INT);
    return PMIx_Connect(procs, nprocs, &info, timeout > 0);
}

static void connect_all(const char *what)
{
    step("connect: %s", what);
    CHECK_OK(connect_of(&client.all, 1, 0), what);
    step("disconnect: %s", what);
    CHECK_OK(PMIx_Disconnect(&client.all, 1, NULL, 0), what);
}

/* Ranks of my parity, in falling order: the order is none of the operation's. */
static void connect_half(void)
{
    pmix_proc_t *half = calloc(client.size, sizeof *half);
    size_t n = 0;
    for (pmix_rank_t r = client.size; r-- > 0;)
        if (r % 2 == client.me.rank % 2)
            half[n++] = proc_of(r);
    step("connect of every second rank");
    CHECK_OK(connect_of(half, n, 0), "connect of every second rank");
    step("disconnect of every second rank");
    CHECK_OK(PMIx_Disconnect(half, n, NULL, 0), "disconnect of every second rank");
    free(half);
}

static bool is_late(void)
{
    return nodes_of_ranks()[client.me.rank] == nodes_of_ranks()[client.size - 1];
}

static void expect_timeout(void)
{
    enum { DEADLINE_S = 2, LIMIT_S = 30 };
    step("connect without the last node");
    uint64_t begin = now_ns();
    CHECK_STATUS(connect_of(&client.all, 1, DEADLINE_S), PMIX_ERR_TIMEOUT,
                 "connect that the last node does not make");
    uint64_t ms = (now_ns() - begin) / 1000000;
    CHECK(ms > 1000 * (DEADLINE_S - 1) && ms < 1000 * LIMIT_S,
          "deadline: expected %d s, found %llu ms", DEADLINE_S, (unsigned long long)ms);
}

/* The failure that the others had is that of the late calls, too. Within a node libpmix has
 * deadlines of its own, hence whole nodes. */
static void connect_late(void)
{
    if (!is_late())
        expect_timeout();
    step("fence after the deadline");
    fence_all(false);
    if (is_late()) {
        step("connect that is too late");
        CHECK_STATUS(connect_of(&client.all, 1, 20), PMIX_ERR_TIMEOUT, "connect that is too late");
    }
    step("fence after the late ones");
    fence_all(false);
}

static int run_job(void)
{
    for (long i = 0; i < rounds; i++)
        connect_all("all ranks");
    connect_half();
    if (nodes_of_ranks()[0] != nodes_of_ranks()[client.size - 1])
        connect_late();
    connect_all("all ranks, after the deadline");
    put_u64(PMIX_GLOBAL, mix(client.me.rank), "connect.number");
    commit();
    fence_all(true);
    CHECK_EQ(get_u64(0, "connect.number"), mix(0), "a number after it all");
    return client_pass("%u ranks", client.size);
}

static int run_lost(void)
{
    pmix_rank_t victim = client.size - 1;
    const uint64_t *nodes = nodes_of_ranks();
    step("fence before the loss");
    fence_all(false);
    if (client.me.rank == victim) {
        sleep_ms(300); /* so that most wait already; both orders have to work */
        client_die();
    }
    step("connect with one that is killed");
    pmix_status_t status = connect_of(&client.all, 1, 0);
    bool is_loss = false, one_node = nodes[0] == nodes[victim] && LIBPMIX < 70000;
    for (size_t i = 0; i < (one_node ? 3 : 2); i++)
        is_loss |= status == lost_codes[i];
    CHECK(is_loss, "connect with one that is killed: found %s", PMIx_Error_string(status));
    return client_pass("%u ranks were told", client.size - 1);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"mode", &mode, "what to do", "job|lost"},
        {"rounds", &rounds, "times that all connect", NULL},
        {NULL, NULL, NULL, NULL},
    };
    client_init("connect", options, argc, argv);
    return mode == JOB ? run_job() : run_lost();
}
