/* SPDX-License-Identifier: BSD-3-Clause */
/* late: fences without data, before each of which one rank sleeps; with --other two ranks do so in
 * turn. Then rank 0 says so, and all stay for a while, so that somebody may ask the servers.
 */
#include "client.h"

#include <stdio.h>

static long rank = 5, other = -1, ms = 50, fences = 200, stay_s = 0;

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"rank", &rank, "that sleeps; of no process: nobody does", NULL},
        {"other", &other, "that sleeps in its place before every other fence; -1: none", NULL},
        {"ms", &ms, "that it sleeps", NULL},
        {"fences", &fences, "how many", NULL},
        {"stay", &stay_s, "s before the end", NULL},
        {0}};
    client_init("late", options, argc, argv);
    for (long i = 0; i < fences; i++) {
        step("fence %ld", i);
        if ((long)client.me.rank == (other >= 0 && i % 2 == 1 ? other : rank))
            sleep_ms(ms);
        fence_all(false);
    }
    if (client.me.rank == 0 && stay_s > 0) {
        puts("STAYS late");
        fflush(stdout);
    }
    for (long i = 0; i < stay_s * 10; i++)
        sleep_ms(100);
    return client_pass("%ld fences of %u ranks", fences, client.size);
}
