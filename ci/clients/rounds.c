/* SPDX-License-Identifier: BSD-3-Clause */
/* rounds: PMIx_Init, a fence with data, a fence without, a group, PMIx_Finalize, several times in
 * one process, as a test suite's script does or MPI libraries that start and stop sessions.
 *
 * Nothing but the fences keeps ranks together, so some begin the next round while others still end
 * the last one. With --late one rank of each round waits so long before it finalizes.
 */
#include <pmix.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;
static const char *volatile now = "start";
static volatile long in_round;
static long rounds = 4, late_ms, seconds = 60;
static bool with_group = true;

/* What comes next, for the watchdog. */
static void begin(const char *what, long round)
{
    now = what;
    in_round = round;
}

static void on_alarm(int sig)
{
    char text[128];
    (void)sig;
    int n = snprintf(text, sizeof text, "FAIL rounds: rank %u, watchdog: still in: round %ld, %s\n",
                     me.rank, in_round, now);
    _exit(write(STDOUT_FILENO, text, (size_t)n) == n ? 124 : 125);
}

static void expect(const char *what, long round, pmix_status_t status)
{
    if (status == PMIX_SUCCESS)
        return;
    printf("FAIL rounds: rank %u, round %ld, %s: expected SUCCESS, found %s\n", me.rank, round,
           what, PMIx_Error_string(status));
    fflush(stdout);
    _exit(1);
}

static void fence(const char *what, long round, bool collect)
{
    pmix_proc_t all;
    pmix_info_t info;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    begin(what, round);
    expect(what, round, PMIx_Fence(&all, 1, &info, 1));
}

static void put_and_get(long round)
{
    char key[32];
    pmix_value_t value = {.type = PMIX_UINT32, .data.uint32 = (uint32_t)round}, *got;
    pmix_proc_t first;
    PMIX_LOAD_PROCID(&first, me.nspace, 0);
    snprintf(key, sizeof key, "round.%ld", round);
    begin("put", round);
    expect("put", round, PMIx_Put(PMIX_GLOBAL, key, &value));
    begin("commit", round);
    expect("commit", round, PMIx_Commit());
    fence("fence with data", round, true);
    begin("get", round);
    expect("get", round, PMIx_Get(&first, key, NULL, 0, &got));
    if (got->data.uint32 != (uint32_t)round)
        expect("get's value", round, PMIX_ERROR);
    PMIX_VALUE_RELEASE(got);
}

static void group(long round)
{
    char id[32];
    pmix_proc_t all;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    snprintf(id, sizeof id, "round.%ld", round);
    pmix_info_t info;
    bool yes = true;
    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    begin("construct", round);
    expect("construct", round, PMIx_Group_construct(id, &all, 1, &info, 1, &results, &nresults));
    begin("destruct", round);
    expect("destruct", round, PMIx_Group_destruct(id, NULL, 0));
}

/* Another rank each round: with --late the others are in the next round before it has left this
 * one. */
static void be_late(long round)
{
    pmix_proc_t all;
    pmix_value_t *size;
    if (late_ms <= 0)
        return;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    expect("size", round, PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &size));
    if (me.rank == (uint64_t)round % size->data.uint32) {
        struct timespec t = {.tv_sec = late_ms / 1000, .tv_nsec = late_ms % 1000 * 1000000};
        nanosleep(&t, NULL);
    }
    PMIX_VALUE_RELEASE(size);
}

static bool option(const char *name, const char *value)
{
    static const struct {
        const char *name;
        long *value;
    } numbers[] = {{"--rounds", &rounds}, {"--late", &late_ms}, {"--seconds", &seconds}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].value = strtol(value, NULL, 10);
            return true;
        }
    if (strcmp(name, "--group") != 0)
        return false;
    with_group = strcmp(value, "no") != 0;
    return true;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !option(argv[i], argv[i + 1])) {
            fprintf(stderr, "usage: rounds [--rounds N] [--late MS] [--seconds S] [--group no]\n");
            return 2;
        }
    signal(SIGALRM, on_alarm);
    alarm((unsigned)seconds);
    for (long round = 1; round <= rounds; round++) {
        begin("init", round);
        expect("init", round, PMIx_Init(&me, NULL, 0));
        put_and_get(round);
        fence("fence", round, false);
        if (with_group)
            group(round);
        be_late(round);
        begin("finalize", round);
        expect("finalize", round, PMIx_Finalize(NULL, 0));
    }
    if (me.rank == 0)
        printf("PASS rounds: %ld rounds\n", rounds);
    return 0;
}
