/* SPDX-License-Identifier: BSD-3-Clause */
/* groups: many groups one after the other, and what they cost the host.
 *
 * Constructs --groups groups, each with a context id, and destructs them: the whole job in several
 * orders, halves and every second rank in turn. Context ids are never 0, equal on all members and
 * different for all groups ever seen; members come in one order on all ranks. With --same-id 1 all
 * groups are of the whole job and have one id.
 *
 * With --leak 1 rank 0 samples, after --warmup groups and at the end, the descriptors and the
 * memory of the servers: processes of my user named muster-server. That is no part of the PMIx
 * standard; where there are none it is left out.
 */
#include "group.h"

#include <ctype.h>
#include <dirent.h>
#include <unistd.h>

static long groups = 1000, batch = 50, same_id, leak, warmup = 100, rss_kib = 512;

/* ---- the servers' cost ---- */

enum { SERVERS_MAX = 64 };

struct server {
    pid_t pid;
    size_t descriptors;
    long rss_kib;
};

static size_t count_entries(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static bool read_server(pid_t pid, struct server *server)
{
    char path[64], line[256];
    bool named = false, mine = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    *server = (struct server){.pid = pid, .rss_kib = -1};
    while (f && fgets(line, sizeof line, f)) {
        unsigned long uid;
        named = named || !strcmp(line, "Name:\tmuster-server\n");
        if (sscanf(line, "Uid: %lu", &uid) == 1)
            mine = uid == getuid();
        sscanf(line, "VmRSS: %ld", &server->rss_kib);
    }
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    server->descriptors = count_entries(path);
    return named && mine && server->rss_kib >= 0 && server->descriptors > 0;
}

static size_t sample(struct server *servers)
{
    size_t n = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir)) && n < SERVERS_MAX;)
        if (isdigit((unsigned char)e->d_name[0]) && read_server(atoi(e->d_name), &servers[n]))
            n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Whether a server has no more descriptors than before. Messages under way take some, so it is
 * asked again until it is true or two seconds have passed. */
static bool same_descriptors(const struct server *before, struct server *now)
{
    for (int i = 0; i < 200; i++) {
        if (now->descriptors <= before->descriptors)
            return true;
        usleep(10000);
        read_server(before->pid, now);
    }
    return false;
}

/* Compares the servers that were there both times: others may belong to other steps. */
static size_t check_leak(const struct server *before, size_t nbefore)
{
    struct server after[SERVERS_MAX];
    size_t nafter = sample(after), compared = 0;
    for (size_t i = 0; i < nbefore; i++)
        for (size_t j = 0; j < nafter; j++) {
            if (before[i].pid != after[j].pid)
                continue;
            long grown = after[j].rss_kib - before[i].rss_kib;
            compared++;
            CHECK(same_descriptors(&before[i], &after[j]),
                  "muster-server %d: expected %zu descriptors, found %zu", (int)after[j].pid,
                  before[i].descriptors, after[j].descriptors);
            CHECK(grown <= rss_kib,
                  "muster-server %d: expected to grow by at most %ld KiB, found "
                  "%ld KiB (from %ld)",
                  (int)after[j].pid, rss_kib, grown, before[i].rss_kib);
        }
    return compared;
}

/* ---- the groups ---- */

/* The members of group @p g, in one order on all ranks. */
static size_t members_of(long g, pmix_proc_t *members)
{
    pmix_rank_t n = client.size, half = (n + 1) / 2;
    size_t count = 0;
    for (pmix_rank_t i = 0; i < n; i++) {
        pmix_rank_t rank = (pmix_rank_t)((i + (uint64_t)g) % n); /* rotated */
        bool in = true;
        if (!same_id && g % 4 == 1)
            in = rank < half;
        if (!same_id && g % 4 == 2)
            in = rank % 2 == 0;
        if (g % 4 == 3)
            rank = n - 1 - i; /* backwards */
        if (in)
            members[count++] = proc_of(rank);
    }
    return count;
}

static struct group_seen one_group(long g, pmix_proc_t *members)
{
    struct group_result result;
    struct group_seen seen = {0};
    char id[64];
    size_t n = members_of(g, members);
    if (!group_contains(members, n, client.me.rank))
        return seen;
    snprintf(id, sizeof id, same_id ? "groups.same" : "groups.%ld", g);
    step("construct of group %ld", g);
    group_construct(id, members, n, &result);
    group_check_members(&result, members, n);
    seen = (struct group_seen){result.context, group_order(&result)};
    group_result_free(&result);
    step("destruct of group %ld", g);
    group_destruct(id);
    return seen;
}

/* Groups [begin, end), one after the other. */
static void make(long begin, long end, struct group_seen *seen)
{
    pmix_proc_t *members = calloc(client.size, sizeof *members);
    for (long g = begin; g < end; g++)
        seen[g] = one_group(g, members);
    free(members);
}

/* Compares groups [begin, end) over all ranks, a batch at a time. */
static void compare(long begin, long end, struct group_seen *seen, uint64_t *contexts)
{
    char key[64];
    for (long g = begin; g < end; g += batch) {
        long n = g + batch < end ? batch : end - g;
        step("comparison of groups %ld to %ld", g, g + n - 1);
        /* A new key each time: a get may take an old one's value from its cache. */
        snprintf(key, sizeof key, "groups.%ld", g);
        group_compare(seen + g, (size_t)n, contexts + g, key);
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"groups", &groups, "groups to construct and destruct", NULL},
        {"batch", &batch, "groups between two comparisons", NULL},
        {"same-id", &same_id, "1: one id for all, reused after each destruct", NULL},
        {"leak", &leak, "1: compare the servers' memory and descriptors too", NULL},
        {"warmup", &warmup, "groups before the first of these samples", NULL},
        {"rss", &rss_kib, "KiB that a server may grow by after it", NULL},
        {0}};
    struct server before[SERVERS_MAX];
    size_t nbefore = 0, compared = 0;
    client_init("groups", options, argc, argv);
    if (!leak)
        warmup = 0;
    long all = warmup + groups;
    uint64_t *contexts = calloc((size_t)all + 1, sizeof *contexts);
    struct group_seen *seen = calloc((size_t)all + 1, sizeof *seen);
    make(0, warmup, seen);
    if (leak && client.me.rank == 0)
        nbefore = sample(before);
    make(warmup, all, seen);
    if (leak && client.me.rank == 0)
        compared = check_leak(before, nbefore);
    /* Only now: libpmix keeps what collecting fences carry, in memory and in files. */
    compare(0, all, seen, contexts);
    step("last fence");
    fence_all(false);
    group_check_distinct(contexts, (size_t)all);
    free(contexts);
    free(seen);
    return client_pass("%ld groups, context ids distinct and equal on all members; %zu servers %s",
                       all, compared, compared ? "did not grow" : "sampled for leaks");
}
