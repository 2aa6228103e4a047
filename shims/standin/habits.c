/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Command lines as mpirun and srun have them.
 */
#include "shims/standin/habits.h"

#include "common/conf/conf_schema.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MAX = 10000, EDITS_MAX = 2 };

/* ---- hosts ---- */

static bool add_host(struct hosts *hosts, const char *slots)
{
    char *end = NULL;
    long n = slots == NULL ? 0 : strtol(slots, &end, 10);
    if (hosts->n == sizeof hosts->slots / sizeof *hosts->slots)
        return false;
    if (slots != NULL &&
        (!isdigit((unsigned char)*slots) || *end != '\0' || n < 1 || n > SLOTS_MAX))
        return false;
    hosts->slots[hosts->n++] = n;
    return true;
}

bool hosts_read(struct hosts *hosts, const char *list)
{
    char *copy = strdup(list), *rest = copy, *host;
    bool right = copy != NULL;
    while (right && (host = strsep(&rest, ",")) != NULL) {
        char *slots = strchr(host, ':');
        if (slots != NULL)
            *slots++ = '\0';
        right = host[0] != '\0' && add_host(hosts, slots);
    }
    free(copy);
    return right;
}

int hosts_read_file(struct hosts *hosts, const char *path, struct err *err)
{
    FILE *in = fopen(path, "re");
    char *line = NULL;
    unsigned at = 0;
    size_t cap = 0;
    int rc = in == NULL ? err_set(err, "--hostfile: %s: %s", path, strerror(errno)) : 0;
    while (rc == 0 && getline(&line, &cap, in) >= 0) {
        char *word, *slots = NULL, *name, *save;
        at++;
        line[strcspn(line, "#\n")] = '\0';
        name = strtok_r(line, " \t", &save);
        if (name == NULL)
            continue;
        if ((slots = strchr(name, ':')) != NULL)
            slots++;
        while ((word = strtok_r(NULL, " \t", &save)) != NULL)
            if (strncmp(word, "slots=", strlen("slots=")) == 0)
                slots = word + strlen("slots=");
        if (!add_host(hosts, slots))
            rc = err_set(err, "--hostfile: %s line %u: not NAME slots=TASKS, 1 to %d", path, at,
                         SLOTS_MAX);
    }
    if (rc == 0 && hosts->n == 0)
        rc = err_set(err, "--hostfile: %s names no host", path);
    free(line);
    if (in != NULL)
        fclose(in);
    return rc;
}

int hosts_place(const struct hosts *hosts, uint32_t ntasks, char **list)
{
    uint32_t placed = 0;
    size_t len;
    FILE *out = open_memstream(list, &len);
    for (uint32_t h = 0; out != NULL && h < hosts->n; h++) {
        long n = hosts->slots[h] == 0 ? 1 : hosts->slots[h];
        for (; n > 0 && (ntasks == 0 || placed < ntasks); n--)
            fprintf(out, "%s%u", placed++ == 0 ? "" : ",", h);
    }
    for (; out != NULL && placed < ntasks; placed++)
        fprintf(out, ",%u", hosts->n - 1);
    return out != NULL && fclose(out) == 0 ? 0 : -1;
}

/* ---- programs ---- */

/* "-n 2", "-np 2", "--ntasks=2" before the later programs. @return how many arguments; 0: none */
static int read_count(char **argv, long *count)
{
    static const char *const names[] = {"-n", "-np", "--np", "--ntasks"};
    char *end = NULL;
    for (size_t i = 0; argv[0] != NULL && i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        int used = 0;
        if (strcmp(argv[0], names[i]) == 0)
            used = 2;
        else if (strncmp(argv[0], names[i], len) == 0 && argv[0][len] == '=')
            used = 1;
        const char *value = used == 2 ? argv[1] : argv[0] + len + 1;
        if (used == 0 || value == NULL)
            continue;
        *count = strtol(value, &end, 10);
        return isdigit((unsigned char)*value) && *end == '\0' && *count > 0 && *count <= SLOTS_MAX
                   ? used
                   : 0;
    }
    return 0;
}

int programs_read(struct run *run, char **argv, long first, struct err *err)
{
    long count = first;
    for (run->nprograms = 0;; run->nprograms++) {
        if (run->nprograms == RUN_PROGRAMS_MAX)
            return err_set(err, "more than %d programs", RUN_PROGRAMS_MAX);
        if (*argv == NULL || strcmp(*argv, ":") == 0)
            return err_set(err, "there is no program %s \":\"",
                           *argv == NULL ? "behind" : "before");
        run->programs[run->nprograms] = (struct program){.argv = argv, .count = (uint32_t)count};
        while (*argv != NULL && strcmp(*argv, ":") != 0)
            argv++;
        if (*argv == NULL)
            break;
        *argv++ = NULL;
        int used = read_count(argv, &count);
        if (used == 0 || first == 0)
            return err_set(err,
                           "each of several programs begins with how many tasks it has: musterrun "
                           "-n 2 A : -n 6 B");
        argv += used;
        if (*argv != NULL && (*argv)[0] == '-')
            return err_set(err,
                           "%s: other options than -n stand before the first program, and hold "
                           "for all",
                           *argv);
    }
    run->nprograms++;
    return 0;
}

char **program_of(const struct run *run, uint32_t rank)
{
    unsigned i = 0;
    for (; i + 1 < run->nprograms && rank >= run->programs[i].count; i++)
        rank -= run->programs[i].count;
    return run->programs[i].argv;
}

/* ---- options that are none ---- */

static const struct {
    const char *name, *advice;
} foreign[] = {
    {"mpi", "it is muster always; leave the option out"},
    {"mca", "set OMPI_MCA_NAME=VALUE by -x or in the environment"},
    {"pmca", "set PMIX_MCA_NAME=VALUE by -x or in the environment"},
    {"prtemca", "musterrun is not PRRTE; leave the option out"},
    {"map-by", "--distribution says which tasks are on which node"},
    {"rank-by", "--distribution says which tasks are on which node"},
    {"bind-to", "musterrun binds no task; leave the option out"},
    {"cpu-bind", "musterrun binds no task; leave the option out"},
    {"oversubscribe", "any number of tasks may run; leave the option out"},
    {"overcommit", "any number of tasks may run; leave the option out"},
    {"overlap", "there is no other step; leave the option out"},
    {"allow-run-as-root", "root may run it; leave the option out"},
    {"npernode", "give -N NODES -n TASKS"},
    {"ppr", "give -N NODES -n TASKS"},
    {"ntasks-per-node", "give -N NODES -n TASKS"},
    {"tasks-per-node", "give -N NODES -n TASKS"},
    {"cpus-per-task", "musterrun binds no task; leave the option out"},
    {"tag-output", "--label has \"RANK: \" before each line"},
    {"stdin", "--input says which rank reads standard input"},
    {"time", "--timeout=SECONDS ends the run"},
    {"export", "the whole environment goes to the tasks; -x NAME=VALUE adds to it"},
    {"multi-prog", "give several programs: -n 2 A : -n 6 B"},
    {"output-filename", "--output=FILE, with %t for the rank"},
};

void option_unknown(const char *given, const struct option *known)
{
    size_t dashes = strspn(given, "-"), len = strcspn(given + dashes, "="), best = EDITS_MAX + 1;
    const char *name = given + dashes, *nearest = NULL;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (len != strlen(foreign[i].name) || strncmp(name, foreign[i].name, len) != 0)
            continue;
        fprintf(stderr, "musterrun: %s: %s; see --help\n", given, foreign[i].advice);
        return;
    }
    for (; known->name != NULL; known++) {
        size_t far = conf_row_distance(known->name, name, len);
        if (len > 2 && far < best) {
            best = far;
            nearest = known->name;
        }
    }
    if (nearest != NULL)
        fprintf(stderr, "musterrun: %s: unknown; did you mean --%s?\n", given, nearest);
    else
        fprintf(stderr, "musterrun: %s: unknown; see --help\n", given);
}
