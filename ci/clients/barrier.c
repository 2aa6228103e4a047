/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier: a fence without data holds all ranks until the last one has come.
 *
 * Rank 0 is late by --late ms, then each rank in turn by a random short delay. Each rank notes when
 * it entered and left the fence. Then a fence with data exchanges the times: no rank may have left
 * before every rank had entered. CLOCK_MONOTONIC is one clock on one machine; ranks
 * of another machine (another boot id) are not compared.
 */
#include "client.h"

static long late_ms = 2000, turns = 1, short_ms = 50;

static char boot_id[40];

static void read_boot_id(void)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    CHECK(f && fgets(boot_id, sizeof boot_id, f), "boot id: expected to read it");
    fclose(f);
}

struct times {
    uint64_t enter, leave;
    char boot_id[40];
};

static void check_times(long round, pmix_rank_t late, uint64_t enter, uint64_t leave)
{
    struct times mine = {.enter = enter, .leave = leave};
    memcpy(mine.boot_id, boot_id, sizeof boot_id);
    put_bytes(PMIX_GLOBAL, &mine, sizeof mine, "b%ld", round);
    commit();
    step("round %ld, exchange of times", round);
    fence_all(true);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        struct times *theirs = get_bytes(r, sizeof *theirs, "b%ld", round);
        if (!memcmp(theirs->boot_id, boot_id, sizeof boot_id))
            CHECK(leave >= theirs->enter,
                  "round %ld, rank %u late: expected to leave the fence after rank %u entered it, "
                  "found %.3f ms before",
                  round, late, r, (double)(theirs->enter - leave) / 1e6);
        free(theirs);
    }
}

static void one_fence(long round, pmix_rank_t late, long delay_ms)
{
    step("round %ld, fence with rank %u late", round, late);
    if (client.me.rank == late)
        sleep_ms(delay_ms);
    uint64_t enter = now_ns();
    fence_all(false);
    check_times(round, late, enter, now_ns());
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"late", &late_ms, "ms that rank 0 is late by, once", NULL},
        {"turns", &turns, "times that each rank in turn is late", NULL},
        {"short", &short_ms, "longest of those delays, ms", NULL},
        {0}};
    client_init("barrier", options, argc, argv);
    long round = 0;
    read_boot_id();
    one_fence(round++, 0, late_ms);
    for (long turn = 0; turn < turns; turn++)
        for (pmix_rank_t late = 0; late < client.size; late++) {
            long delay = (long)(mix((uint64_t)round) % (uint64_t)(short_ms + 1));
            one_fence(round++, late, delay);
        }
    return client_pass("%ld fences without data of %u ranks, each held for the late rank", round,
                       client.size);
}
