/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The command line, and the layout of the step that follows from it.
 */
#include "muster_version.h"
#include "shims/standin/habits.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NODES_MAX = 999, TASKS_MAX = 10000, EXIT_USAGE = 2 };

enum {
    OPT_DISTRIBUTION = 256,
    OPT_FAULT,
    OPT_SEED,
    OPT_PLUGIN,
    OPT_RM,
    OPT_CONF,
    OPT_PSET,
    OPT_TIMEOUT,
    OPT_OUTPUT,
    OPT_ERROR,
    OPT_HOSTFILE,
};

static const struct option options[] = {
    {"rm", required_argument, NULL, OPT_RM},
    {"nodes", required_argument, NULL, 'N'},
    {"ntasks", required_argument, NULL, 'n'},
    {"np", required_argument, NULL, 'n'}, /* as mpirun has it; see mpirun_option() */
    {"label", no_argument, NULL, 'l'},
    {"input", required_argument, NULL, 'i'},
    {"kill-on-bad-exit", no_argument, NULL, 'K'},
    {"verbose", no_argument, NULL, 'v'},
    {"distribution", required_argument, NULL, 'm'},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"plugin", required_argument, NULL, OPT_PLUGIN},
    {"setopt", required_argument, NULL, 'o'},
    {"conf", required_argument, NULL, OPT_CONF},
    {"pset", required_argument, NULL, OPT_PSET},
    {"host", required_argument, NULL, 'H'},
    {"nodelist", required_argument, NULL, 'H'},
    {"hostfile", required_argument, NULL, OPT_HOSTFILE},
    {"machinefile", required_argument, NULL, OPT_HOSTFILE},
    {"wdir", required_argument, NULL, 'D'},
    {"wd", required_argument, NULL, 'D'},
    {"chdir", required_argument, NULL, 'D'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"error", required_argument, NULL, OPT_ERROR},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

static const char usage[] =
    "usage: musterrun [OPTION]... PROGRAM [ARG]... [: -n N PROGRAM [ARG]...]...\n"
    "\n"
    "Runs PROGRAM as the tasks of a step on several nodes that are all this machine, served by\n"
    "muster as under srun --mpi=muster or flux run -o pmi=muster. Needs neither Slurm nor Flux,\n"
    "and no root; see musterrun(1).\n"
    "\n"
    "      --rm=NAME             the resource manager to play: slurm (default) or flux\n"
    "  -N, --nodes=N             nodes node0 to nodeN-1 (default 1)\n"
    "  -n, -np, --ntasks=N       tasks (default: as many as nodes)\n"
    "  -m, --distribution=HOW    block (default), cyclic, plane=SIZE, or arbitrary=NODE,NODE,...\n"
    "  -H, --host=NAME[:N],...   a node for each name, with N tasks; --hostfile=FILE has them in "
    "lines\n"
    "  -x NAME[=VALUE]           sets a variable of the tasks; without VALUE nothing changes\n"
    "  -D, --wdir=DIR            the tasks' directory; --chdir is the same\n"
    "      --timeout=SECONDS     ends the run then, with status 124\n"
    "      --output=FILE, --error=FILE   standard output and error; %t is the rank\n"
    "  -l, --label               \"RANK: \" before each line of output\n"
    "  -i, --input=WHO           who reads our standard input: all (default), none, or a rank\n"
    "  -K, --kill-on-bad-exit    end the step when a task ends with a status that is not 0\n"
    "  -v, --verbose             information; twice: debug lines too\n"
    "  -o, --setopt=muster.K=V   of --rm=flux: a setting of muster for this run\n"
    "      --plugin=FILE         another plugin file than the installed one\n"
    "      --pset=NAME=RANKS:... process sets, as MUSTER_PSETS has them: ocean=0-3:ice=4-7\n"
    "      --conf=NODE=FILE      another muster.json for a node, by its number\n"
    "      --fault=KIND[:K=N,..] do something wrong: late, duplicate, lost, refused, uid, die\n"
    "      --seed=N              which messages are hit by faults (default 1)\n"
    "  -h, --help; -V, --version\n";

/* The first one is the default. */
static const struct standin_rm *const rms[] = {
#if MUSTER_WITH_SLURM
    &rm_slurm,
#endif
#if MUSTER_WITH_FLUX
    &rm_flux,
#endif
};

#if MUSTER_WITH_SLURM && MUSTER_WITH_FLUX
#define RM_NAMES "slurm flux"
#elif MUSTER_WITH_SLURM
#define RM_NAMES "slurm"
#else
#define RM_NAMES "flux"
#endif

static const struct standin_rm *find_rm(const char *name)
{
    for (size_t i = 0; i < sizeof(rms) / sizeof(*rms); i++)
        if (strcmp(rms[i]->name, name) == 0)
            return rms[i];
    return NULL;
}

struct numbers {
    long nodes, tasks, seed; /* 0: not given */
    long plane;              /* ranks that are dealt out together; 0: as many as a node has */
    const char *arbitrary;   /* the nodes of all ranks, or NULL */
    long conf_node;          /* that has another muster.json */
    const char *conf;        /* which; NULL: none has */
    struct hosts hosts;      /* none: as the other options say */
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

static int distribution(struct numbers *numbers, const char *value)
{
    numbers->plane = 0;
    numbers->arbitrary = NULL;
    if (strcmp(value, "cyclic") == 0)
        numbers->plane = 1;
    else if (strncmp(value, "arbitrary=", 10) == 0)
        numbers->arbitrary = value + 10;
    else if (strcmp(value, "block") != 0 && (strncmp(value, "plane=", 6) != 0 ||
                                             !number(value + 6, 1, TASKS_MAX, &numbers->plane)))
        return wrong("--distribution", value,
                     "block, cyclic, plane=SIZE or arbitrary=NODE,NODE,...");
    return -1;
}

/* Of the options of Flux's job shell these are played. */
static int setopt(struct run *run, const char *value)
{
    if (strncmp(value, "muster.", 7) != 0 || !strchr(value, '=') ||
        run->noptions == RUN_OPTIONS_MAX)
        return wrong("-o", value, "muster.KEY=VALUE, as muster.json(5) has them");
    run->options[run->noptions++] = value;
    return -1;
}

/* "NODE=FILE" */
static int conf(struct numbers *numbers, const char *value)
{
    char node[8] = "";

    snprintf(node, sizeof(node), "%.*s", (int)strcspn(value, "="), value);
    numbers->conf = strchr(value, '=');
    if (!number(node, 0, NODES_MAX - 1, &numbers->conf_node) || !numbers->conf ||
        *++numbers->conf != '/')
        return wrong("--conf", value, "NODE=FILE, a number and an absolute path");
    return -1;
}

static int take(struct run *run, struct numbers *numbers, int option, const char *value)
{
    struct err err = {0};
    long seconds;

    switch (option) {
    case 'N':
        return number(value, 1, NODES_MAX, &numbers->nodes) ? -1 : wrong("-N", value, "1 to 999");
    case 'n':
        return number(value, 1, TASKS_MAX, &numbers->tasks) ? -1 : wrong("-n", value, "1 to 10000");
    case 'm':
        return distribution(numbers, value);
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
    case 'o':
        return setopt(run, value);
    case 'x': /* the tasks have our environment */
        if (value[0] == '=' || value[0] == '\0')
            return wrong("-x", value, "NAME or NAME=VALUE");
        if (strchr(value, '='))
            putenv((char *)value);
        return -1;
    case 'D':
        run->wdir = value;
        return -1;
    case 'H':
        return hosts_read(&numbers->hosts, value) ? -1 : wrong("--host", value, "NAME[:TASKS],...");
    case OPT_HOSTFILE:
        if (hosts_read_file(&numbers->hosts, value, &err) == 0)
            return -1;
        fprintf(stderr, "musterrun: %s\n", err.text);
        return EXIT_USAGE;
    case OPT_TIMEOUT:
        if (!number(value, 1, 1000000, &seconds))
            return wrong("--timeout", value, "1 to 1000000 seconds");
        run->timeout = seconds * 1000;
        return -1;
    case OPT_OUTPUT:
    case OPT_ERROR:
        run->outputs[option == OPT_ERROR] = value;
        return -1;
    case OPT_RM:
        run->rm = find_rm(value);
        return run->rm ? -1 : wrong("--rm", value, "one of: " RM_NAMES);
    case OPT_PLUGIN:
        run->plugin_path = value;
        return -1;
    case OPT_PSET:
        return setenv("MUSTER_PSETS", value, 1) == 0 ? -1
                                                     : wrong("--pset", value, "kept: no memory");
    case OPT_CONF:
        return conf(numbers, value);
    case OPT_SEED:
        return number(value, 0, 1000000000, &numbers->seed)
                   ? -1
                   : wrong("--seed", value, "0 to 1000000000");
    case OPT_FAULT:
        if (faults_add(run->faults, value, &err) == 0)
            return -1;
        fprintf(stderr, "musterrun: %s; see musterrun(1)\n", err.text);
        return EXIT_USAGE;
    case 'h':
        fputs(usage, stdout);
        return 0;
    case 'V':
        printf("musterrun %s", MUSTER_VERSION);
        for (size_t i = 0; i < sizeof(rms) / sizeof(*rms); i++)
            printf("%s %s", i == 0 ? ", as" : " and", rms[i]->about);
        putchar('\n');
        return 0;
    default: /* getopt has said why */
        return EXIT_USAGE;
    }
}

/* By "0,0,1": which node each rank is on. @return how many ranks, or 0: that is no such list */
static uint32_t read_nodes(const char *list, uint32_t *node_of)
{
    uint32_t ntasks = 0;
    char *end = NULL;

    do {
        unsigned long node = isdigit((unsigned char)*list) ? strtoul(list, &end, 10) : NODES_MAX;

        if (node >= NODES_MAX || ntasks == TASKS_MAX || (*end != ',' && *end != '\0'))
            return 0;
        node_of[ntasks++] = (uint32_t)node;
        list = end + 1;
    } while (*end == ',');
    return ntasks;
}

/* As many ranks on each node as on any other, the first ones taking what is left over; or planes,
 * dealt out in turn. */
static void deal(const struct standin_step *step, long plane, uint32_t *node_of)
{
    uint32_t each = step->ntasks / step->nnodes, more = step->ntasks % step->nnodes;

    for (uint32_t rank = 0; rank < step->ntasks; rank++) {
        if (plane > 0)
            node_of[rank] = rank / (uint32_t)plane % step->nnodes;
        else if (rank < more * (each + 1))
            node_of[rank] = rank / (each + 1);
        else
            node_of[rank] = more + (rank - more * (each + 1)) / each;
    }
}

static bool has_task(const struct standin_step *step, const uint32_t *node_of, uint32_t node)
{
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        if (node_of[rank] == node)
            return true;
    return false;
}

static int lay_out(struct standin_step *step, const uint32_t *node_of)
{
    step->nodes = calloc(step->nnodes, sizeof(*step->nodes));
    if (!step->nodes)
        return -1;
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        step->nodes[node_of[rank]].ntasks++;
    for (uint32_t n = 0; n < step->nnodes; n++) {
        struct standin_node *node = &step->nodes[n];
        uint32_t slot = 0;

        snprintf(node->name, sizeof(node->name), "node%u", n);
        node->ranks = calloc(node->ntasks, sizeof(*node->ranks));
        if (!node->ranks)
            return -1;
        for (uint32_t rank = 0; rank < step->ntasks; rank++)
            if (node_of[rank] == n)
                node->ranks[slot++] = rank;
    }
    return 0;
}

/* How many tasks and nodes there are. @param node_of for TASKS_MAX; set where the user says it */
static int count(struct standin_step *step, const struct numbers *numbers, uint32_t *node_of)
{
    step->nnodes = numbers->nodes > 0 ? (uint32_t)numbers->nodes : 1;
    step->ntasks = numbers->tasks > 0 ? (uint32_t)numbers->tasks : step->nnodes;
    if (!numbers->arbitrary)
        return -1;
    step->ntasks = read_nodes(numbers->arbitrary, node_of);
    step->nnodes = 0;
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        if (node_of[rank] >= step->nnodes)
            step->nnodes = node_of[rank] + 1;
    if (step->ntasks == 0)
        return wrong("--distribution=arbitrary", numbers->arbitrary, "a list of 0 to 998");
    if ((numbers->tasks > 0 && numbers->tasks != (long)step->ntasks) ||
        (numbers->nodes > 0 && numbers->nodes != (long)step->nnodes)) {
        fprintf(stderr, "musterrun: --distribution=arbitrary is of %u tasks on %u nodes\n",
                step->ntasks, step->nnodes);
        return EXIT_USAGE;
    }
    return -1;
}

static int finish(struct run *run, const struct numbers *numbers)
{
    static uint32_t node_of[TASKS_MAX];
    struct standin_step *step = &run->step;
    int status = count(step, numbers, node_of);

    if (status >= 0)
        return status;
    step->job = (uint32_t)getpid(); /* no other run has it at the same time */
    step->start = time(NULL);
    run->faults->seed = (uint64_t)numbers->seed;
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
    for (unsigned i = 0; i < run->faults->n; i++) {
        if (run->faults->list[i].node >= (long)step->nnodes) {
            fprintf(stderr, "musterrun: --fault: there are nodes 0 to %u\n", step->nnodes - 1);
            return EXIT_USAGE;
        }
    }
    if (!numbers->arbitrary)
        deal(step, numbers->plane, node_of);
    for (uint32_t n = 0; n < step->nnodes; n++) {
        if (!has_task(step, node_of, n)) {
            fprintf(stderr, "musterrun: --distribution: no task is on node%u\n", n);
            return EXIT_USAGE;
        }
    }
    if (numbers->conf && numbers->conf_node >= (long)step->nnodes) {
        fprintf(stderr, "musterrun: --conf: there are nodes 0 to %u\n", step->nnodes - 1);
        return EXIT_USAGE;
    }
    if (lay_out(step, node_of) < 0) {
        fprintf(stderr, "musterrun: out of memory\n");
        return 1;
    }
    if (numbers->conf)
        step->nodes[numbers->conf_node].conf = numbers->conf;
    return -1;
}

/* mpirun's "-np 4" is "-n p" and a program called 4, by the rules of options.
 * @return the number that is meant, which is passed over then; NULL: it is not that */
static const char *mpirun_option(int option, char **argv)
{
    if (option != 'n' || strcmp(argv[optind - 1], "-np") != 0 || !argv[optind])
        return NULL;
    return argv[optind++];
}

/* getopt's own words do not say what is meant. */
static int no_option(int option, char **argv)
{
    const char *given = argv[optind - 1];

    if (option == ':')
        fprintf(stderr, "musterrun: %s needs a value; see --help\n", given);
    else
        option_unknown(given, options);
    return EXIT_USAGE;
}

/* What --host, and the programs behind ":", say of the number of tasks and their places. */
static int settle(struct run *run, struct numbers *numbers, char **argv)
{
    struct err err = {0};
    char *list;

    if (programs_read(run, argv, numbers->tasks, &err) < 0) {
        fprintf(stderr, "musterrun: %s\n", err.text);
        return EXIT_USAGE;
    }
    for (unsigned i = 1; i < run->nprograms; i++)
        numbers->tasks += run->programs[i].count;
    if (numbers->tasks > TASKS_MAX)
        return wrong("-n", "the sum of all programs", "1 to 10000");
    if (numbers->hosts.n == 0)
        return -1;
    if (numbers->nodes > 0 || numbers->arbitrary || numbers->plane > 0) {
        fprintf(stderr, "musterrun: --host goes without -N and --distribution\n");
        return EXIT_USAGE;
    }
    if (hosts_place(&numbers->hosts, (uint32_t)numbers->tasks, &list) < 0) {
        fprintf(stderr, "musterrun: out of memory\n");
        return 1;
    }
    numbers->arbitrary = list; /* until we end */
    return -1;
}

int options_read(struct run *run, int argc, char **argv)
{
    struct numbers numbers = {.seed = 1};
    int option, status = -1;

    run->input = IO_INPUT_ALL;
    run->rm = rms[0];
    opterr = 0;
    /* "+": what follows the program is the program's */
    while (status < 0 &&
           (option = getopt_long(argc, argv, "+:N:n:li:Kvm:o:x:D:H:w:hV", options, NULL)) != -1) {
        const char *number = mpirun_option(option, argv);

        status = option == '?' || option == ':'
                     ? no_option(option, argv)
                     : take(run, &numbers, option == 'w' ? 'H' : option, number ? number : optarg);
    }
    if (status >= 0)
        return status;
    if (optind == argc) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (run->noptions > 0 && strcmp(run->rm->name, "flux") != 0) {
        fprintf(stderr, "musterrun: -o is an option of --rm=flux; under Slurm a variable of the "
                        "environment says the same, for example MUSTER_ON_TASK_LOSS=continue\n");
        return EXIT_USAGE;
    }
    if (!run->plugin_path)
        run->plugin_path = run->rm->plugin_path;
    status = settle(run, &numbers, argv + optind);
    if (status >= 0)
        return status;
    return finish(run, &numbers);
}
