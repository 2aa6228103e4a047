/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: measures operations in steps of some sizes, prints what they cost, and checks that
 * the costs that must not grow with the step do not. sim.h has the rest. */
#include "ci/sim/measures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 8, FEWEST = 64, MOST = 1 << 20, RESULTS_MAX = 128 };

/* The bars; where nothing else is said, in bytes. */
enum {
    RELEASE_MAX = 512,   /* to each server */
    ROOT_MAX = 64 << 10, /* out of the root */
    MEMORY_MAX = 4352,   /* of a server, for one operation */
    HEAD_MAX = 16,       /* ahead of what a server brings */
    SIZE_FACTOR = 2,     /* CPU of a frame: of that in a small step */
    MANY_FACTOR = 4,     /* and of that with ten operations */
    SMALL = 1024,        /* servers of the step that times of larger ones are compared with */
};

static struct {
    uint32_t sizes[SIZES_MAX], nsizes;
    const char *only; /* names between commas; NULL: all */
    FILE *json;       /* NULL: none */
    bool check;
} options = {.sizes = {1024, 4096, 16384, 65536}, .nsizes = 4};

static struct measure results[RESULTS_MAX];
static uint32_t nresults, broken;

static void usage(FILE *to)
{
    fputs("usage: scale [--sizes N,...] [--only OPERATION,...] [--json FILE] [--check]\n"
          "Runs real engines, as many as a step has servers, in one process, and prints what each\n"
          "operation costs them. --json: the same as lines of JSON. --check: status 1 if a cost\n"
          "is above its bar.\n",
          to);
    for (uint32_t i = 0; i < nmeasures; i++)
        fprintf(to, "  %-16s%s\n", measures[i].name, measures[i].about);
}

/* ---- what has to hold ---- */

static void at_most(const struct measure *m, const char *what, double value, double bar)
{
    if (value <= bar)
        return;
    fprintf(stderr, "scale: %s at %u servers: %s is %.0f, and must be at most %.0f\n", m->name,
            m->servers, what, value, bar);
    broken++;
}

static const struct measure *find(const char *name, uint32_t servers)
{
    for (uint32_t i = 0; i < nresults; i++)
        if (strcmp(results[i].name, name) == 0 && results[i].servers == servers)
            return &results[i];
    return NULL;
}

static bool is(const struct measure *m, const char *name)
{
    return strcmp(m->name, name) == 0;
}

/* Operations in which all servers take part, each once. */
static bool is_plain(const struct measure *m)
{
    return strncmp(m->name, "groups-", 7) != 0 && strncmp(m->name, "lost-", 5) != 0 &&
           !is(m, "bootstrap");
}

/* What holds for every size, by counts alone. What each server brings is in each result and, until
 * the result is sent, twice at the root; nothing else may grow with the step. */
static void check_counts(const struct measure *m)
{
    double n = m->servers, data = m->data > 0 ? (m->data + HEAD_MAX) * n : 0;
    at_most(m, "the number of operations that went wrong", !m->good, 0);
    if (is(m, "groups-10000"))
        at_most(m, "frames, of all servers", (double)m->frames, 2 * 15 * 10000);
    if (!is_plain(m))
        return;
    at_most(m, "frames, of all servers", (double)m->frames, 2 * (n - 1));
    at_most(m, "frames to one server", m->frames_in, 17);
    at_most(m, "the longest release", (double)m->release, RELEASE_MAX + data);
    at_most(m, "bytes out of one server", (double)m->bytes_out, ROOT_MAX + 16 * data);
    at_most(m, "memory of one server", (double)m->memory, MEMORY_MAX + 3 * data);
}

/* A loss costs those around it more, and no other server. */
static void check_losses(const struct measure *m)
{
    if (strncmp(m->name, "lost-", 5) != 0)
        return;
    at_most(m, "frames to one server", m->frames_in, 64);
    at_most(m, "bytes to one server", (double)m->bytes_in, ROOT_MAX);
    at_most(m, "memory of one server", (double)m->memory, MEMORY_MAX);
}

/* CPU of a frame does not depend on the size of the step, nor on how many operations there are, but
 * for memory that is farther away: 10,000 operations are 14 MB. */
static void check_times(const struct measure *m)
{
    double factor = is(m, "groups-10000") ? MANY_FACTOR : SIZE_FACTOR;
    const struct measure *small = find(m->name, is_plain(m) ? SMALL : m->servers);
    if (is(m, "groups-10000"))
        small = find("groups-10", m->servers);
    if (small != NULL && m->data == 0)
        at_most(m, "ns of CPU for a frame", m->frame_us * 1000, factor * small->frame_us * 1000);
}

static void check_all(void)
{
    for (uint32_t i = 0; i < nresults; i++) {
        check_counts(&results[i]);
        check_losses(&results[i]);
        if (options.nsizes > 1) /* else nothing is compared, as in the unit tests */
            check_times(&results[i]);
    }
}

/* ---- output ---- */

static void print_json(FILE *to, const struct measure *m)
{
    fprintf(to,
            "{\"operation\":\"%s\",\"servers\":%u,\"data\":%u,\"sampled\":%s,\"good\":%s,"
            "\"frames\":%llu,\"bytes\":%llu,\"frames_in_max\":%u,\"bytes_in_max\":%llu,"
            "\"bytes_out_max\":%llu,\"release\":%llu,\"hops\":%u,\"memory_max\":%zu,"
            "\"memory_mean\":%zu,\"kept_max\":%zu,\"call_us\":%.2f,\"frame_us\":%.2f}\n",
            m->name, m->servers, m->data, m->sampled ? "true" : "false", m->good ? "true" : "false",
            (unsigned long long)m->frames, (unsigned long long)m->bytes, m->frames_in,
            (unsigned long long)m->bytes_in, (unsigned long long)m->bytes_out,
            (unsigned long long)m->release, m->hops, m->memory, m->memory_mean, m->kept, m->call_us,
            m->frame_us);
}

static void print_head(void)
{
    printf("%-15s %7s %9s %5s %12s %12s %12s %10s %5s %10s %10s %10s %8s %8s\n", "operation",
           "servers", "frames", "in", "bytes", "in at most", "out at most", "release", "hops",
           "memory", "mean", "kept", "us/call", "us/frame");
}

static void print_row(const struct measure *m)
{
    printf(
        "%-15s %7u %9llu %5u %12llu %12llu %12llu %10llu %5u %10zu %10zu %10zu %8.1f %8.1f%s%s\n",
        m->name, m->servers, (unsigned long long)m->frames, m->frames_in,
        (unsigned long long)m->bytes, (unsigned long long)m->bytes_in,
        (unsigned long long)m->bytes_out, (unsigned long long)m->release, m->hops, m->memory,
        m->memory_mean, m->kept, m->call_us, m->frame_us, m->sampled ? " *" : "",
        m->good ? "" : " WRONG");
}

/* ---- the program ---- */

static bool wanted(const char *name)
{
    size_t len = strlen(name);
    const char *at = options.only;
    while (at != NULL && at[0] != '\0') {
        size_t n = strcspn(at, ",");
        if (n == len && strncmp(at, name, n) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    return options.only == NULL;
}

static bool read_sizes(const char *text)
{
    char *end;
    options.nsizes = 0;
    do {
        unsigned long n = strtoul(text, &end, 10);
        if (end == text || n < FEWEST || n > MOST || options.nsizes == SIZES_MAX)
            return false;
        options.sizes[options.nsizes++] = (uint32_t)n;
        text = end + 1;
    } while (*end == ',');
    return *end == '\0';
}

static bool read_option(const char *name, const char *value)
{
    if (strcmp(name, "--sizes") == 0)
        return read_sizes(value);
    if (strcmp(name, "--only") == 0) {
        options.only = value;
        return true;
    }
    if (strcmp(name, "--json") != 0)
        return false;
    if ((options.json = fopen(value, "we")) == NULL)
        perror(value);
    return options.json != NULL;
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            options.check = true;
        else if (i + 1 == argc || !read_option(argv[i], argv[i + 1]))
            return false;
        else
            i++;
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (!read_options(argc, argv)) {
        usage(stderr);
        return 2;
    }
    print_head();
    for (uint32_t i = 0; i < nmeasures; i++)
        for (uint32_t k = 0; k < options.nsizes && nresults < RESULTS_MAX; k++) {
            struct measure *m = &results[nresults];
            if (!wanted(measures[i].name))
                continue;
            *m = (struct measure){
                .name = measures[i].name, .servers = options.sizes[k], .data = measures[i].data};
            measures[i].run(m);
            nresults++;
            print_row(m);
            fflush(stdout);
            if (options.json != NULL)
                print_json(options.json, m);
        }
    if (options.check)
        check_all();
    if (options.json != NULL && fclose(options.json) != 0)
        broken++;
    return broken > 0 || nresults == 0;
}
