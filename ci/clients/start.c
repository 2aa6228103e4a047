/* SPDX-License-Identifier: BSD-3-Clause */
/* start: PMIx_Init and PMIx_Finalize and nothing between, for how long a step takes to start and
 * end. With --say each rank prints what PMIx_Init has taken of time and of the processor, in µs,
 * and whether it found the node's hardware in memory that others have, too, or looked for it by
 * itself. With --served it calls no PMIx, and prints what the processes that would serve it have of
 * memory.
 *
 * Without the watchdog thread and the questions of the other clients.
 */
#include "served.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static long long wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long long cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

static bool has_shared_topology(void)
{
    char line[4096];
    bool found = false;
    FILE *in = fopen("/proc/self/maps", "re");
    while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
        found = strstr(line, "/hwloc.sm") != NULL;
    if (in != NULL)
        fclose(in);
    return found;
}

int main(int argc, char **argv)
{
    pmix_proc_t me;
    if (argc > 1 && strcmp(argv[1], "--served") == 0) {
        printf("BENCH hostname-memory %lu\n", (unsigned long)served_now().own_kb);
        return 0;
    }
    long long wall = wall_us(), cpu = cpu_us();
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    wall = wall_us() - wall;
    cpu = cpu_us() - cpu;
    if (status == PMIX_SUCCESS && argc > 1 && strcmp(argv[1], "--say") == 0)
        printf("START rank %u init %lld cpu %lld topology %s\n", me.rank, wall, cpu,
               has_shared_topology() ? "shared" : "own");
    if (status == PMIX_SUCCESS)
        status = PMIx_Finalize(NULL, 0);
    if (status != PMIX_SUCCESS) {
        printf("FAIL start: expected SUCCESS, found %s\n", PMIx_Error_string(status));
        return 1;
    }
    return 0;
}
