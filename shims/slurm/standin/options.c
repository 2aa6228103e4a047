/** @file
 * The command line, and the layout of the step that follows from it.
 */
#include "shims/slurm/standin/run.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES_MAX = 999, TASKS_MAX = 10000, EXIT_USAGE = 2 };

enum {
    OPT_DISTRIBUTION = 256,
    OPT_FAULT,
    OPT_SEED,
    OPT_PLUGIN,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option options[] = {
    {"nodes", required_argument, NULL, 'N'},
    {"ntasks", required_argument, NULL, 'n'},
    {"label", no_argument, NULL, 'l'},
    {"input", required_argument, NULL, 'i'},
    {"kill-on-bad-exit", no_argument, NULL, 'K'},
    {"verbose", no_argument, NULL, 'v'},
    {"distribution", required_argument, NULL, 'm'},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"plugin", required_argument, NULL, OPT_PLUGIN},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

static const char usage[] =
    "usage: musterrun [OPTION]... PROGRAM [ARG]...\n"
    "\n"
    "Runs PROGRAM as the tasks of a step on several nodes that are all this machine, served by\n"
    "muster as under srun --mpi=muster. Needs no Slurm and no root; see musterrun(1).\n"
    "\n"
    "  -N, --nodes=N             nodes node0 to nodeN-1 (default 1)\n"
    "  -n, --ntasks=N            tasks (default: as many as nodes)\n"
    "  -m, --distribution=HOW    block (default): neighbours on one node; or cyclic\n"
    "  -l, --label               \"RANK: \" before each line of output\n"
    "  -i, --input=WHO           who reads our standard input: all (default), none, or a rank\n"
    "  -K, --kill-on-bad-exit    end the step when a task ends with a status that is not 0\n"
    "  -v, --verbose             information; twice: debug lines too\n"
    "      --plugin=FILE         another plugin file than the installed one\n"
    "      --fault=KIND[:K=N,..] do something wrong: late, duplicate, lost, refused, uid, die\n"
    "      --seed=N              which messages are hit by faults (default 1)\n"
    "  -h, --help; -V, --version\n";

struct numbers {
    long nodes, tasks, seed; /* 0: not given */
    bool cyclic;
};

static int wrong(const char *what, const char *value, const char *expected)
{
    fprintf(stderr, "musterrun: %s: \"%s\" is not %s; see --help\n", what, value, expected);
    return EXIT_USAGE;
}

/* @return whether text is a number from min to max */
static bool number(const char *text, long min, long max, long *value)
{
    char *end;

    *value = strtol(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == '\0' && *value >= min && *value <= max;
}

static int take(struct run *run, struct numbers *numbers, int option, const char *value)
{
    struct err err = {0};

    switch (option) {
    case 'N':
        return number(value, 1, NODES_MAX, &numbers->nodes) ? -1 : wrong("-N", value, "1 to 999");
    case 'n':
        return number(value, 1, TASKS_MAX, &numbers->tasks) ? -1 : wrong("-n", value, "1 to 10000");
    case 'm':
        numbers->cyclic = strcmp(value, "cyclic") == 0;
        return numbers->cyclic || strcmp(value, "block") == 0
                   ? -1
                   : wrong("--distribution", value, "block or cyclic");
    case 'i':
        if (strcmp(value, "all") == 0)
            run->input = IO_INPUT_ALL;
        else if (strcmp(value, "none") == 0)
            run->input = IO_INPUT_NONE;
        else if (!number(value, 0, TASKS_MAX - 1, &run->input))
            return wrong("--input", value, "all, none or a rank");
        return -1;
    case 'l':
        run->label = true;
        return -1;
    case 'K':
        run->kill_on_bad_exit = true;
        return -1;
    case 'v':
        run->step.verbose++;
        return -1;
    case OPT_PLUGIN:
        run->plugin_path = value;
        return -1;
    case OPT_SEED:
        return number(value, 0, 1000000000, &numbers->seed)
                   ? -1
                   : wrong("--seed", value, "0 to 1000000000");
    case OPT_FAULT:
        if (faults_add(&run->faults, value, &err) == 0)
            return -1;
        fprintf(stderr, "musterrun: %s; see musterrun(1)\n", err.text);
        return EXIT_USAGE;
    case 'h':
        fputs(usage, stdout);
        return 0;
    case 'V':
        printf("musterrun %s, as Slurm %u.%02u.%u\n", MUSTER_VERSION, MUSTER_SLURM_VERSION >> 16,
               MUSTER_SLURM_VERSION >> 8 & 255, MUSTER_SLURM_VERSION & 255);
        return 0;
    default: /* getopt has said why */
        return EXIT_USAGE;
    }
}

/* As many tasks on each node as on any other, the first ones taking what is left over. */
static int lay_out(struct standin_step *step, bool cyclic)
{
    uint32_t rank = 0;

    step->nodes = calloc(step->nnodes, sizeof(*step->nodes));
    if (!step->nodes)
        return -1;
    for (uint32_t n = 0; n < step->nnodes; n++) {
        struct standin_node *node = &step->nodes[n];

        snprintf(node->name, sizeof(node->name), "node%u", n);
        node->ntasks = (uint16_t)(step->ntasks / step->nnodes + (n < step->ntasks % step->nnodes));
        node->ranks = calloc(node->ntasks, sizeof(*node->ranks));
        if (!node->ranks)
            return -1;
        for (uint32_t slot = 0; slot < node->ntasks; slot++)
            node->ranks[slot] = cyclic ? n + slot * step->nnodes : rank++;
    }
    return 0;
}

static int finish(struct run *run, const struct numbers *numbers)
{
    struct standin_step *step = &run->step;

    step->nnodes = numbers->nodes > 0 ? (uint32_t)numbers->nodes : 1;
    step->ntasks = numbers->tasks > 0 ? (uint32_t)numbers->tasks : step->nnodes;
    step->job = (uint32_t)getpid(); /* no other run has it at the same time */
    run->faults.seed = (uint64_t)numbers->seed;
    if (step->ntasks < step->nnodes) {
        fprintf(stderr, "musterrun: warning: %u tasks run on %u nodes, not on %u\n", step->ntasks,
                step->ntasks, step->nnodes);
        step->nnodes = step->ntasks;
    }
    if (run->input >= (long)step->ntasks) {
        fprintf(stderr, "musterrun: --input=%ld: there are ranks 0 to %u\n", run->input,
                step->ntasks - 1);
        return EXIT_USAGE;
    }
    for (unsigned i = 0; i < run->faults.n; i++) {
        if (run->faults.list[i].node >= (long)step->nnodes) {
            fprintf(stderr, "musterrun: --fault: there are nodes 0 to %u\n", step->nnodes - 1);
            return EXIT_USAGE;
        }
    }
    if (lay_out(step, numbers->cyclic) < 0) {
        fprintf(stderr, "musterrun: out of memory\n");
        return 1;
    }
    return -1;
}

int options_read(struct run *run, int argc, char **argv)
{
    struct numbers numbers = {.seed = 1};
    int option, status = -1;

    run->input = IO_INPUT_ALL;
    run->plugin_path = MUSTER_SLURM_PLUGIN;
    /* "+": what follows the program is the program's */
    while (status < 0 && (option = getopt_long(argc, argv, "+N:n:li:Kvm:hV", options, NULL)) != -1)
        status = take(run, &numbers, option, optarg);
    if (status >= 0)
        return status;
    if (optind == argc) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    run->argv = argv + optind;
    return finish(run, &numbers);
}
