/* SPDX-License-Identifier: BSD-3-Clause */
/* hold: a job in which something goes wrong, for the fault tests.
 *
 * All ranks pass a barrier and print "HOLD rank R pid P"; then rank --victim comes to its end by
 * --how while the others are --in a fence, a construct or asleep, and print what they were told. A
 * fence or a construct that lacks a rank must not succeed. Without a victim (-1) all sleep and then
 * fence, as a step beside one that is lost.
 */
#include "group.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum how { BY_KILL, BY_EXIT, BY_ABORT, BY_MUTE_ABORT };
enum where { IN_SLEEP, IN_FENCE, IN_CONSTRUCT };

static long victim = -1, how = BY_KILL, where = IN_SLEEP, sleep_s = 60, delay_ms = 500,
            exit_status = 7, until = 0, late = -1, linger_ms = 0, odd = 0;

static _Noreturn void end_myself(void)
{
    step("end of the victim");
    sleep_ms(delay_ms); /* the others are in it by then */
    switch ((enum how)how) {
    case BY_ABORT:
    case BY_MUTE_ABORT:
        PMIx_Abort((int)exit_status, how == BY_ABORT ? "hold was told to abort" : NULL, NULL, 0);
        sleep_ms(1000 * sleep_s); /* the host ends the job */
        _exit(1);
    case BY_EXIT:
        _exit((int)exit_status);
    default:
        raise(SIGKILL);
        _exit(1);
    }
}

static pmix_status_t construct_all(void)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    bool yes = true;
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    for (pmix_rank_t r = 0; r < client.size; r++)
        members[r] = proc_of(r);
    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    pmix_status_t status =
        PMIx_Group_construct((long)client.me.rank < odd ? "odd" : "hold", members, client.size,
                             &info, 1, &results, &nresults);
    free(members);
    return status;
}

/* Sleeps for --sleep, or until the process --until has ended. */
static void sleep_long(void)
{
    bool waits = until != 0 && (late < 0 || (long)client.me.rank < late);
    if (!waits)
        sleep_ms(1000 * sleep_s);
    while (waits && (kill((pid_t)until, 0) == 0 || errno == EPERM))
        sleep_ms(50);
}

/* @return whether what was waited for ended as it should */
static bool wait_for_victim(void)
{
    static const char *const names[] = {"sleep", "fence", "construct"};
    pmix_status_t status = PMIX_SUCCESS;
    step("%s", names[where]);
    uint64_t begin = now_ns();
    if (where == IN_FENCE)
        status = PMIx_Fence(&client.all, 1, NULL, 0);
    else if (where == IN_CONSTRUCT)
        status = construct_all();
    else
        sleep_long();
    printf("rank %u: %s returned %s after %.1f s\n", client.me.rank, names[where],
           PMIx_Error_string(status), (double)(now_ns() - begin) / 1e9);
    return where == IN_SLEEP || victim < 0 || status != PMIX_SUCCESS;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"victim", &victim, "rank that comes to an end, -1: none", NULL},
        {"how", &how, "does it end", "kill|exit|abort|mute-abort"},
        {"in", &where, "are the others", "sleep|fence|construct"},
        {"sleep", &sleep_s, "s that a sleep takes", NULL},
        {"until", &until, "process on this machine that a sleep lasts as long as, 0: none", NULL},
        {"late", &late, "ranks that sleep so, from 0 on; the others --sleep; -1: all", NULL},
        {"odd", &odd, "ranks that construct another group, from 0 on", NULL},
        {"delay", &delay_ms, "ms before the victim's end", NULL},
        {"linger", &linger_ms, "ms from what the others were told to their end", NULL},
        {"status", &exit_status, "of an exit or an abort", NULL},
        {0}};
    client_init("hold", options, argc, argv);
    step("barrier");
    fence_all(false);
    printf("HOLD rank %u pid %d\n", client.me.rank, (int)getpid());
    fflush(stdout);
    if (victim == (long)client.me.rank)
        end_myself();
    bool right = wait_for_victim();
    CHECK(right, "without rank %ld: expected an error, found SUCCESS", victim);
    if (victim >= 0) {
        sleep_ms(linger_ms);
        _exit(0); /* the job is broken: finalize may wait for the dead */
    }
    step("fence after the sleep");
    fence_all(true);
    return client_pass("%u ranks slept %ld s", client.size, sleep_s);
}
