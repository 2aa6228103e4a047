/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that tell each other their names; see parts.h. */
#include "parts.h"

static void tell_name(long part)
{
    char path[512], whole[512];
    snprintf(path, sizeof path, "%s/part%ld.new", getenv("CONNECT_MEET"), part);
    snprintf(whole, sizeof whole, "%s/part%ld", getenv("CONNECT_MEET"), part);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fputs(client.me.nspace, f) >= 0 && fclose(f) == 0 &&
              rename(path, whole) == 0,
          "expected to write %s", path);
}

static void read_name(long job, char *name, size_t cap)
{
    char path[512];
    FILE *f;
    snprintf(path, sizeof path, "%s/part%ld", getenv("CONNECT_MEET"), job);
    step("waiting for %s", path);
    while ((f = fopen(path, "r")) == NULL)
        sleep_ms(50);
    CHECK(fgets(name, (int)cap, f) != NULL, "expected a name in %s", path);
    fclose(f);
}

bool parts_may_meet(long jobs)
{
    return jobs <= PARTS_MAX && (jobs == 1 || getenv("CONNECT_MEET") != NULL);
}

void parts_meet(pmix_proc_t whole[PARTS_MAX], long part, long jobs)
{
    if (client.me.rank == 0 && jobs > 1)
        tell_name(part);
    for (long i = 0; i < jobs && client.me.rank == 0; i++) {
        char name[PMIX_MAX_NSLEN + 1];
        snprintf(name, sizeof name, "%s", client.me.nspace);
        if (jobs > 1)
            read_name(i, name, sizeof name);
        put_string(PMIX_GLOBAL, name, "parts.job%ld", i);
    }
    commit();
    fence_all(true);
    for (long i = 0; i < jobs; i++) {
        char *name = get_string(0, "parts.job%ld", i);
        PMIX_LOAD_PROCID(&whole[i], name, PMIX_RANK_WILDCARD);
        free(name);
    }
}
