/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The command line.
 */
#include "muster_version.h"
#include "shims/standin/habits.h"
#include "shims/standin/plan.h"

#include <ctype.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    OPT_SLOTS,
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
    {"slots", required_argument, NULL, OPT_SLOTS},
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
    "      --slots=N             processors of each node, for what the tasks spawn (default: no "
    "limit)\n"
    "  -x NAME[=VALUE]           sets a variable of the tasks; without VALUE nothing changes\n"
    "  -D, --wdir=DIR            the tasks' directory; --chdir is the same\n"
    "      --timeout=SECONDS     ends the run then, with status 124\n"
    "      --output=FILE, --error=FILE   standard output and error; %t is the rank\n"
    "  -l, --label               \"RANK: \" before each line of output\n"
    "  -i, --input=RANKS         which tasks read standard input: all (default), none, or a rank\n"
    "  -K, --kill-on-bad-exit    end the step when a task ends with a status that is not 0\n"
    "  -v, --verbose             information; twice: debug lines too\n"
    "  -o, --setopt=muster.K=V   of --rm=flux: a setting of muster for this run\n"
    "      --plugin=FILE         another plugin file than the installed one\n"
    "      --pset=NAME=RANKS:... process sets, as MUSTER_PSETS has them: ocean=0-3:ice=4-7\n"
    "      --conf=NODE=FILE      another muster.json for a node, by its number\n"
    "      --fault=KIND[:K=N,..] do something wrong: late, duplicate, lost, refused, uid, die;\n"
    "                            on direct connections cut, flipped, silent, unreachable,\n"
    "                            repeated, swapped, inserted, read\n"
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
        return plan_wrong("--distribution", value,
                          "block, cyclic, plane=SIZE or arbitrary=NODE,NODE,...");
    return -1;
}

/* Of the options of Flux's job shell these are played. */
static int setopt(struct numbers *numbers, const char *value)
{
    struct run *run = numbers->run;
    if (strncmp(value, "muster.", 7) != 0 || !strchr(value, '=') ||
        run->noptions == RUN_OPTIONS_MAX)
        return plan_wrong("-o", value, "muster.KEY=VALUE, as muster.json(5) has them");
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
        return plan_wrong("--conf", value, "NODE=FILE, a number and an absolute path");
    return -1;
}

static int input(struct numbers *numbers, const char *value)
{
    if (strcmp(value, "all") == 0)
        numbers->run->input = IO_INPUT_ALL;
    else if (strcmp(value, "none") == 0)
        numbers->run->input = IO_INPUT_NONE;
    else if (!number(value, 0, TASKS_MAX - 1, &numbers->run->input))
        return plan_wrong("--input", value, "all, none or a rank");
    return -1;
}

/* The tasks have our environment. */
static int variable(struct numbers *numbers, const char *value)
{
    (void)numbers;
    if (value[0] == '=' || value[0] == '\0')
        return plan_wrong("-x", value, "NAME or NAME=VALUE");
    if (strchr(value, '='))
        putenv((char *)value);
    return -1;
}

static int psets(struct numbers *numbers, const char *value)
{
    (void)numbers;
    return setenv("MUSTER_PSETS", value, 1) == 0 ? -1
                                                 : plan_wrong("--pset", value, "kept: no memory");
}

static int hosts(struct numbers *numbers, const char *value)
{
    return hosts_read(&numbers->hosts, value) ? -1
                                              : plan_wrong("--host", value, "NAME[:TASKS],...");
}

static int hostfile(struct numbers *numbers, const char *value)
{
    struct err err = {0};
    if (hosts_read_file(&numbers->hosts, value, &err) == 0)
        return -1;
    fprintf(stderr, "musterrun: %s\n", err.text);
    return EXIT_USAGE;
}

static int fault(struct numbers *numbers, const char *value)
{
    struct err err = {0};
    if (faults_add(numbers->run->faults, value, &err) == 0)
        return -1;
    fprintf(stderr, "musterrun: %s; see musterrun(1)\n", err.text);
    return EXIT_USAGE;
}

static int resource_manager(struct numbers *numbers, const char *value)
{
    numbers->run->rm = find_rm(value);
    return numbers->run->rm ? -1 : plan_wrong("--rm", value, "one of: " RM_NAMES);
}

static int help(struct numbers *numbers, const char *value)
{
    (void)numbers;
    (void)value;
    fputs(usage, stdout);
    return 0;
}

static int version(struct numbers *numbers, const char *value)
{
    (void)numbers;
    (void)value;
    printf("musterrun %s", MUSTER_VERSION);
    for (size_t i = 0; i < sizeof(rms) / sizeof(*rms); i++)
        printf("%s %s", i == 0 ? ", as" : " and", rms[i]->about);
    putchar('\n');
    return 0;
}

/* What an option sets, where it is no more than a number or a text. */
static const struct number_option {
    int option;
    const char *name;
    long min, max;
    const char *expected;
    size_t to; /* in struct numbers */
} number_options[] = {
    {'N', "-N", 1, NODES_MAX, "1 to 999", offsetof(struct numbers, nodes)},
    {'n', "-n", 1, TASKS_MAX, "1 to 10000", offsetof(struct numbers, tasks)},
    {OPT_SLOTS, "--slots", 1, UINT16_MAX, "1 to 65535", offsetof(struct numbers, slots)},
    {OPT_SEED, "--seed", 0, 1000000000, "0 to 1000000000", offsetof(struct numbers, seed)},
    {OPT_TIMEOUT, "--timeout", 1, 1000000, "1 to 1000000 seconds",
     offsetof(struct numbers, timeout)},
};

static const struct text_option {
    int option;
    size_t to; /* in struct run */
} text_options[] = {
    {'D', offsetof(struct run, wdir)},
    {OPT_OUTPUT, offsetof(struct run, outputs)},
    {OPT_ERROR, offsetof(struct run, outputs) + sizeof(const char *)},
    {OPT_PLUGIN, offsetof(struct run, plugin_path)},
};

/* The others. Each returns what options_read() does. */
static const struct other_option {
    int option;
    int (*take)(struct numbers *numbers, const char *value);
} other_options[] = {
    {'m', distribution},
    {'i', input},
    {'o', setopt},
    {'x', variable},
    {'H', hosts},
    {OPT_HOSTFILE, hostfile},
    {OPT_RM, resource_manager},
    {OPT_PSET, psets},
    {OPT_CONF, conf},
    {OPT_FAULT, fault},
    {'h', help},
    {'V', version},
};

#define EACH(entry, table)                                                                         \
    for (const struct entry *o = (table); o < (table) + sizeof(table) / sizeof *(table); o++)

static int take(struct numbers *numbers, int option, const char *value)
{
    EACH(number_option, number_options)
    if (o->option == option)
        return number(value, o->min, o->max, (long *)((char *)numbers + o->to))
                   ? -1
                   : plan_wrong(o->name, value, o->expected);
    EACH(text_option, text_options)
    if (o->option == option) {
        *(const char **)((char *)numbers->run + o->to) = value;
        return -1;
    }
    EACH(other_option, other_options)
    if (o->option == option)
        return o->take(numbers, value);
    switch (option) {
    case 'l':
        numbers->run->label = true;
        return -1;
    case 'K':
        numbers->run->kill_on_bad_exit = true;
        return -1;
    case 'v':
        numbers->run->step.verbose++;
        return -1;
    default: /* getopt has said why */
        return EXIT_USAGE;
    }
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

int options_read(struct run *run, int argc, char **argv)
{
    struct numbers numbers = {.run = run, .seed = 1};
    int option, status = -1;
    run->input = IO_INPUT_ALL;
    for (size_t i = 0; i < sizeof(rms) / sizeof(*rms); i++) {
        run->rm = rms[i];
        if (rms[i]->joins && rms[i]->joins(argv))
            return rms[i]->join(run, argc, argv);
    }
    run->rm = rms[0];
    opterr = 0;
    /* "+": what follows the program is the program's */
    while (status < 0 &&
           (option = getopt_long(argc, argv, "+:N:n:li:Kvm:o:x:D:H:w:hV", options, NULL)) != -1) {
        const char *number = mpirun_option(option, argv);
        status = option == '?' || option == ':'
                     ? no_option(option, argv)
                     : take(&numbers, option == 'w' ? 'H' : option, number ? number : optarg);
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
    return plan(&numbers, argv + optind);
}
