/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: runs seeds, and says how to run a failing one again. campaign.h has the rest. */
#include "ci/campaign.d/campaign.h"
#include "ci/campaign.d/holders/seed.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 600, FAULTS_MAX = 10 };

static void usage(FILE *to)
{
    fprintf(to,
            "usage: campaign [--holders] [--seeds N] [--first S] [--servers N] [--verbose]\n"
            "Runs the collective engine through the random schedules of seeds S to S+N-1 (by\n"
            "default 1 to %d) and checks its invariants. A seed draws how many servers there are, "
            "up to %d; --servers says\n"
            "it, up to %d, and the seed is another schedule then. --verbose tells what happens in "
            "each.\n"
            "With --holders the seeds are of jobs that meet: see ci/campaign.d/holders/holders.h.\n"
            "Status 1 when an invariant was broken, after %d seeds that did.\n",
            SEEDS, NODES_DRAWN, NODES_MAX, FAULTS_MAX);
}

static void sink(void *arg, enum log_level level, const char *text)
{
    trace(arg, "<%d> %s", (int)level, text);
}

static void free_calls(struct run *run)
{
    for (uint32_t i = 0; i < run->ncalls; i++) {
        struct call *call = run->calls[i];
        procset_free(&call->members);
        procset_free(&call->left);
        procset_free(&call->adds);
        procset_free(&call->gone);
        free(call->sig);
        procset_free(&call->identity);
        free((void *)call->call.added);
        free(call->used);
        free(call);
    }
    free(run->calls);
}

/* @return whether every invariant held */
static bool run_seed(uint64_t seed, uint32_t servers, bool verbose)
{
    struct run run = {.seed = seed, .verbose = verbose};
    plan(&run, servers);
    log_open(sink, &run, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, NULL);
    trace_plan(&run);
    play(&run);
    check_end(&run);
    run.ending = true;
    loopback_free(run.net);
    log_open(NULL, NULL, LOG_LEVEL_WARNING, NULL);
    plan_free(&run);
    free_calls(&run);
    if (run.fault[0] != '\0')
        fprintf(
            stderr,
            "seed %llu: %s\n    again: campaign --seeds 1 --first %llu --servers %u --verbose\n",
            (unsigned long long)seed, run.fault, (unsigned long long)seed, servers);
    return run.fault[0] == '\0';
}

/* @return whether @p text was a number */
static bool number(const char *text, uint64_t *value)
{
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    *value = strtoull(text, &end, 10);
    return *end == '\0';
}

int main(int argc, char **argv)
{
    uint64_t seeds = SEEDS, first = 1, servers = 0, done = 0;
    unsigned bad = 0;
    bool verbose = false, holders = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--holders") == 0) {
            holders = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && number(argv[i + 1], &seeds)) {
            i++;
        } else if (strcmp(argv[i], "--servers") == 0 && number(argv[i + 1], &servers) &&
                   servers <= NODES_MAX) {
            i++;
        } else if (strcmp(argv[i], "--first") == 0 && number(argv[i + 1], &first)) {
            i++;
        } else {
            bool help = strcmp(argv[i], "--help") == 0;
            usage(help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    for (; done < seeds && bad < FAULTS_MAX; done++)
        bad += holders ? !holders_seed(first + done, verbose)
                       : !run_seed(first + done, (uint32_t)servers, verbose);
    printf("%llu seeds from %llu on, %u of them with a fault\n", (unsigned long long)done,
           (unsigned long long)first, bad);
    return bad > 0 || done == 0;
}
