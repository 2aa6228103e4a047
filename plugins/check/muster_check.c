/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster-check: one table of whether muster is right on all nodes. man/muster-check.1 has the rest.
 *
 * Run by hand it starts itself on each node, by srun or flux exec, with --node; each prints one
 * line of JSON. A shell in front says which nodes do not have the tool at all. When all is right, a
 * step of muster itself is tried, which finds a slurmd that was not restarted.
 */
#include "include/muster.h"
#include "muster_version.h"
#include "plugins/check/node.h"
#include "plugins/check/report.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 64, EXIT_FAULTS = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: muster-check [--json] [--no-step] SRUN-OPTION...\n"
    "       muster-check [--json] [--no-step] --flux [FLUX-EXEC-OPTION...]\n"
    "\n"
    "Looks at muster on all nodes that the options of srun name, such as -N500: whether plugin,\n"
    "server, back end, libpmix, settings, spool directory and tmpdir are right, and the same\n"
    "everywhere. Says the remedy of each fault. Then it runs one step under muster.\n"
    "In an allocation no option is needed; under Flux all brokers are looked at.\n"
    "\n"
    "  --json     what was found, as one JSON object\n"
    "  --no-step  run no step under muster\n"
    "  --flux     by flux exec; the default where FLUX_URI is set\n"
    "\n"
    "Exit status: 0 all is right, 1 there are faults, 2 wrong arguments.\n";

/* For nodes that are busy, or still completing a step that could not start. */
#define WAIT_SECONDS "60"
/* By which squeue finds the job, unless SRUN-OPTION has another. */
#define JOB_NAME "muster-check"

enum { SILENT_MS = 8000 /* of all nodes, until the user is told which of them say nothing */ };

struct options {
    bool json, no_step, flux;
    char *rest[ARGS_MAX]; /* srun's or flux exec's, up to a NULL */
    int nrest;
    struct node_places places;
    bool node;
};

/* ---- starting programs ---- */

/* @return its process, with its standard output in @p out; -1 with errno set */
static pid_t start(char *const argv[], FILE **out)
{
    int fds[2];
    if (pipe(fds) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execvp(argv[0], argv);
        fprintf(stderr, "muster-check: cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(fds[1]);
    *out = pid > 0 ? fdopen(fds[0], "r") : NULL;
    if (*out == NULL)
        close(fds[0]);
    return pid;
}

/* Ends what start() began, when its output has been read. @param line of getline(), freed
 * @return its exit status; 127: it was not started */
static int end(pid_t pid, FILE *in, char *line)
{
    int status;
    free(line);
    if (in != NULL)
        fclose(in);
    if (pid <= 0)
        return 127;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What runs on each node: $0 is this program. A node without it says so. */
static char script[] =
    "if [ -x \"$0\" ]; then exec \"$0\" \"$@\"; fi; "
    "printf '{\"node\":\"%s\",\"faults\":[\"muster: %s is not there; install muster on this "
    "node\"]}\\n' \"${SLURMD_NODENAME:-$(hostname)}\" \"$0\"";

struct line {
    char *argv[ARGS_MAX + 16];
    int n;
};

static void add(struct line *line, const char *arg)
{
    if (arg != NULL)
        line->argv[line->n++] = (char *)arg;
}

static void add_rest(struct line *line, const struct options *options)
{
    for (int i = 0; i < options->nrest; i++)
        add(line, options->rest[i]);
}

static void build_line(struct line *line, const struct options *options)
{
    if (options->flux) {
        add(line, "flux");
        add(line, "exec");
        if (options->nrest == 0) {
            add(line, "-r");
            add(line, "all");
        }
    } else {
        add(line, "srun");
        add(line, "--mpi=none");
        add(line, "--job-name=" JOB_NAME);
        add(line, "--ntasks-per-node=1");
        add(line,
            "--immediate=" WAIT_SECONDS); /* the last one counts: SRUN-OPTION may have another */
    }
    add_rest(line, options);
    add(line, "/bin/sh");
    add(line, "-c");
    add(line, script);
    add(line, CHECK_PATH);
    add(line, "--node");
    add(line, options->flux ? "--flux" : NULL);
    add(line, options->places.plugins);
    add(line, options->places.spool);
    add(line, options->places.tmpfs);
}

/* ---- Slurm's configuration ---- */

/* "KEY    = VALUE" of scontrol show config. @return "OPTIONVALUE", or NULL: another line */
static char *value_of(const char *line, const char *key, const char *option)
{
    size_t len = strlen(key);
    const char *value = strchr(line, '=');
    char *text = NULL;
    if (strncmp(line, key, len) != 0 || line[len] != ' ' || value == NULL)
        return NULL;
    value += 1 + strspn(value + 1, " ");
    if (asprintf(&text, "%s%.*s", option, (int)strcspn(value, "\n"), value) < 0)
        return NULL;
    return text;
}

/* Nodes are told, so that not each of them asks slurmctld. */
static void read_configuration(struct node_places *places)
{
    char *const argv[] = {"scontrol", "show", "config", NULL};
    char *line = NULL, *found;
    size_t cap = 0;
    FILE *in = NULL;
    pid_t pid = start(argv, &in);
    while (in != NULL && getline(&line, &cap, in) >= 0) {
        if ((found = value_of(line, "PluginDir", "--plugins=")) != NULL)
            places->plugins = found;
        else if ((found = value_of(line, "SlurmdSpoolDir", "--spool=")) != NULL)
            places->spool = found;
        else if ((found = value_of(line, "TmpFS", "--tmpfs=")) != NULL)
            places->tmpfs = found;
    }
    end(pid, in, line);
}

/* ---- nodes that say nothing ---- */

/* Notes each node of a list such as "node[1-4]" that has not answered yet. */
static void note_silent(const char *list, struct report *report)
{
    char *const argv[] = {"scontrol", "show", "hostnames", (char *)list, NULL};
    char *line = NULL;
    size_t cap = 0;
    FILE *in = NULL;
    pid_t pid = start(argv, &in);
    while (in != NULL && getline(&line, &cap, in) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        report_silent(report, line);
    }
    end(pid, in, line);
}

/* Runs squeue for this user. @param format of which the first field is a name, and the rest is
 * shown when that is ours @return whether there was such a line */
static bool ask_squeue(const char *what, const char *format, struct report *report,
                       void (*take)(const char *rest, struct report *report))
{
    char user[32], *line = NULL;
    size_t cap = 0;
    FILE *in = NULL;
    bool found = false;
    snprintf(user, sizeof user, "--user=%u", (unsigned)geteuid());
    char *const argv[] = {"squeue", "--noheader", (char *)what, user, (char *)format, NULL};
    pid_t pid = start(argv, &in);
    while (in != NULL && getline(&line, &cap, in) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, JOB_NAME " ", strlen(JOB_NAME " ")) != 0)
            continue;
        take(line + strlen(JOB_NAME " "), report);
        found = true;
    }
    end(pid, in, line);
    return found;
}

static void tell_pending(const char *why, struct report *report)
{
    (void)report;
    fprintf(stderr, "muster-check: Slurm has not started the step yet: %s\n", why);
}

/* srun waits without a word for a node whose slurmd hangs or has ended. squeue knows which nodes
 * the step has, or why there is none. */
static void look_for_silent(struct report *report)
{
    if (ask_squeue("--steps", "--format=%j %N", report, note_silent))
        report_tell_silent(report);
    else
        ask_squeue("--states=all", "--format=%j %R", report, tell_pending);
}

/* Reads what comes, as it comes. */
static ssize_t next_line(const struct options *options, struct report *report, FILE *in,
                         char **text, size_t *cap, bool *told)
{
    struct pollfd fd = {.fd = fileno(in), .events = POLLIN};
    if (!options->flux && !*told && poll(&fd, 1, SILENT_MS) == 0) {
        look_for_silent(report);
        *told = true;
    }
    return getline(text, cap, in);
}

/* ---- the nodes' answers ---- */

static int collect(const struct options *options, struct report *report)
{
    struct line line = {.n = 0};
    char *text = NULL;
    size_t cap = 0;
    FILE *in = NULL;
    build_line(&line, options);
    bool told = false;
    pid_t pid = start(line.argv, &in);
    if (in != NULL)
        setvbuf(in, NULL, _IONBF, 0); /* else poll() does not see what is in the buffer */
    while (in != NULL && next_line(options, report, in, &text, &cap, &told) >= 0)
        report_add(report, text);
    int status = end(pid, in, text);
    report_faults_of_silent(report);
    if (status != 0)
        report_fault(report, "%s ended with status %d; a node without a row has not answered",
                     line.argv[0], status);
    else if (report_nodes(report) == 0)
        report_fault(report, "no node has answered");
    return status;
}

static void try_step(const struct options *options, struct report *report)
{
    struct line line = {.n = 0};
    char nodes[32], *text = NULL;
    size_t cap = 0;
    FILE *in = NULL;
    snprintf(nodes, sizeof nodes, "-N%u", report_nodes(report));
    add(&line, "timeout");
    add(&line, "90");
    add(&line, options->flux ? "flux" : "srun");
    add(&line, options->flux ? "run" : "--mpi=muster");
    if (options->flux) {
        add(&line, "-opmi=muster");
        add(&line, nodes);
    } else {
        add(&line, "--ntasks-per-node=1");
        add_rest(&line, options);
    }
    add(&line, "/bin/sh");
    add(&line, "-c");
    add(&line, "exec true");
    pid_t pid = start(line.argv, &in);
    while (in != NULL && getline(&text, &cap, in) >= 0)
        ; /* its errors stand on the terminal */
    int status = end(pid, in, text);
    if (status != 0)
        report_fault(report,
                     "a step under muster ended with status %d: where the lines above name a node, "
                     "restart its slurmd, which reads the list of plugins at its start",
                     status);
}

/* ---- the command line ---- */

static bool takes(const char *arg, const char *name, const char **value)
{
    size_t len = strlen(name);
    if (strncmp(arg, name, len) != 0)
        return false;
    *value = arg + len;
    return true;
}

/* @return 0: go on, else the exit status and one */
static int read_options(struct options *options, int argc, char **argv)
{
    struct node_places *places = &options->places;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 1;
        } else if (strcmp(argv[i], "--version") == 0) {
            puts("muster-check " MUSTER_VERSION);
            return 1;
        } else if (strcmp(argv[i], "--json") == 0) {
            options->json = true;
        } else if (strcmp(argv[i], "--no-step") == 0) {
            options->no_step = true;
        } else if (strcmp(argv[i], "--flux") == 0) {
            options->flux = true;
        } else if (strcmp(argv[i], "--node") == 0) {
            options->node = true;
        } else if (options->node && (takes(argv[i], "--plugins=", &places->plugins) ||
                                     takes(argv[i], "--spool=", &places->spool) ||
                                     takes(argv[i], "--tmpfs=", &places->tmpfs))) {
            continue;
        } else if (options->nrest == ARGS_MAX) {
            fprintf(stderr, "muster-check: more than %d options\n", ARGS_MAX);
            return 1 + EXIT_USAGE;
        } else {
            options->rest[options->nrest++] = argv[i];
        }
    }
    return 0;
}

static int one_node(const struct options *options)
{
    struct node_places places = options->places;
    places.flux = options->flux;
    json_object *node = node_look(&places);
    puts(json_object_to_json_string_ext(node, JSON_C_TO_STRING_PLAIN));
    json_object_put(node);
    return fflush(stdout) != 0;
}

/* srun itself would start this program once for each node, and each would start srun. */
static bool is_task(void)
{
    const char *nodes = getenv("SLURM_STEP_NUM_NODES"), *tasks = getenv("SLURM_STEP_NUM_TASKS");
    return (nodes != NULL && atoi(nodes) > 1) || (tasks != NULL && atoi(tasks) > 1);
}

int main(int argc, char **argv)
{
    struct options options = {.flux =
                                  getenv("FLUX_URI") != NULL && getenv("SLURM_STEP_ID") == NULL};
    struct report report = {0};
    int done = read_options(&options, argc, argv);
    if (done != 0)
        return done - 1;
    if (options.node)
        return one_node(&options);
    if (is_task()) {
        fprintf(stderr,
                "muster-check: start it without srun: it runs srun itself, with the options "
                "that you give it, such as -N500\n");
        return EXIT_USAGE;
    }
    if (!options.flux && options.nrest == 0 && getenv("SLURM_JOB_ID") == NULL) {
        fprintf(stderr,
                "muster-check: which nodes? Give srun's options, such as -N500 or -w node1; "
                "see --help\n");
        return EXIT_USAGE;
    }
    if (!options.flux)
        read_configuration(&options.places);
    if (collect(&options, &report) == 0)
        report_compare(&report);
    if (!options.no_step && report_is_right(&report))
        try_step(&options, &report);
    if (options.json)
        report_json(&report);
    else
        report_table(&report);
    done = report_is_right(&report) ? 0 : EXIT_FAULTS;
    report_free(&report);
    free((char *)options.places.plugins);
    free((char *)options.places.spool);
    free((char *)options.places.tmpfs);
    return done;
}
