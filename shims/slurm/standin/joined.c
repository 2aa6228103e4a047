/* SPDX-License-Identifier: BSD-3-Clause */
/* musterrun as the srun of a spawned step. */
#include "shims/slurm/standin/joined.h"

#include "common/util/io_all.h"
#include "shims/standin/layout.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define JOIN_ENV "MUSTERRUN_JOIN" /* "JOB VERBOSE DIR" */

static int connection = -1; /* to the slurmd that keeps our step */

int joined_announce(const struct standin_step *step, struct err *err)
{
    char text[sizeof step->dir + 32];
    snprintf(text, sizeof text, "%u %d %s", step->job, step->verbose, step->dir);
    return setenv(JOIN_ENV, text, 1) == 0 ? 0 : err_set(err, "out of memory");
}

bool joined_is(char **argv)
{
    return getenv(JOIN_ENV) != NULL && strcmp(argv[0], "srun") == 0;
}

/* ---- the command line: what plugins/slurm/spawn_srun.c writes ---- */

enum {
    OPT_TASKS = 256,
    OPT_NODES,
    OPT_NODELIST,
    OPT_DISTRIBUTION,
    OPT_PER_NODE,
    OPT_EXACT,
    OPT_OVERCOMMIT,
    OPT_INPUT,
    OPT_LABEL,
    OPT_OUTPUT,
    OPT_ERROR,
    OPT_IGNORED
};

static const struct option options[] = {
    {"ntasks", required_argument, NULL, OPT_TASKS},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"nodelist", required_argument, NULL, OPT_NODELIST},
    {"distribution", required_argument, NULL, OPT_DISTRIBUTION},
    {"ntasks-per-node", required_argument, NULL, OPT_PER_NODE},
    {"exact", no_argument, NULL, OPT_EXACT},
    {"overcommit", no_argument, NULL, OPT_OVERCOMMIT},
    {"input", required_argument, NULL, OPT_INPUT},
    {"label", no_argument, NULL, OPT_LABEL},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"error", required_argument, NULL, OPT_ERROR},
    /* There is one machine, whose processors and memory all share. */
    {"jobid", required_argument, NULL, OPT_IGNORED},
    {"mpi", required_argument, NULL, OPT_IGNORED},
    {"mem", required_argument, NULL, OPT_IGNORED},
    {"overlap", no_argument, NULL, OPT_IGNORED},
    {"immediate", required_argument, NULL, OPT_IGNORED},
    {"cpu-bind", required_argument, NULL, OPT_IGNORED},
    {0},
};

static void take(struct run *run, struct standin_join *join, const char **list, int option)
{
    switch (option) {
    case OPT_TASKS:
        join->ntasks = (uint32_t)strtoul(optarg, NULL, 10);
        break;
    case OPT_NODES:
        join->nnodes = (uint32_t)strtoul(optarg, NULL, 10);
        break;
    case OPT_PER_NODE:
        join->per_node = (uint32_t)strtoul(optarg, NULL, 10);
        break;
    case OPT_NODELIST:
        *list = optarg;
        break;
    case OPT_DISTRIBUTION:
        if (strcmp(optarg, "cyclic") == 0)
            join->flags |= STANDIN_CYCLIC;
        break;
    case OPT_EXACT:
        join->flags |= STANDIN_FREE_CPUS;
        break;
    case OPT_OVERCOMMIT:
        join->flags |= STANDIN_OVERCOMMIT;
        break;
    case OPT_INPUT:
        run->input = strcmp(optarg, "none") == 0 ? IO_INPUT_NONE : strtol(optarg, NULL, 10);
        break;
    case OPT_LABEL:
        run->label = true;
        break;
    case OPT_OUTPUT:
    case OPT_ERROR:
        run->outputs[option == OPT_ERROR] = optarg;
        break;
    default:
        break;
    }
}

/* "node1,node1,node0", by rank. A name that no node can have becomes STANDIN_NODES_MAX, a node that
 * the first musterrun then refuses. */
static bool read_list(const char *list, struct standin_join *join, uint32_t *node_of)
{
    while (join->listed < join->ntasks) {
        size_t len = strcspn(list, ",");
        char *end;
        unsigned long n = strncmp(list, "node", 4) == 0 && isdigit((unsigned char)list[4])
                              ? strtoul(list + 4, &end, 10)
                              : STANDIN_NODES_MAX;
        node_of[join->listed++] =
            n < STANDIN_NODES_MAX && end == list + len ? (uint32_t)n : STANDIN_NODES_MAX;
        if (list[len] == '\0')
            break;
        list += len + 1;
    }
    return join->listed == join->ntasks;
}

/* ---- the first musterrun ---- */

static bool get(int fd, void *to, size_t len)
{
    return recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

/* @return 0 or an error number */
static int ask(struct standin_step *step, const struct standin_join *join, uint32_t *node_of)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct standin_head head = {.kind = STANDIN_JOIN, .join = *join};
    struct standin_joined joined;
    int32_t code;
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/node0/slurmd", step->dir);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        !send_all(connection, &head, sizeof head) ||
        !send_all(connection, node_of, join->listed * sizeof *node_of) ||
        !get(connection, &code, sizeof code))
        return STANDIN_CONNECTION_ERROR;
    if (code != 0)
        return code;
    if (!get(connection, &joined, sizeof joined))
        return STANDIN_CONNECTION_ERROR;
    step->cpus = calloc(joined.nnodes, sizeof *step->cpus);
    if (step->cpus == NULL)
        return ENOMEM;
    if (!get(connection, step->cpus, joined.nnodes * sizeof *step->cpus) ||
        !get(connection, node_of, join->ntasks * sizeof *node_of))
        return STANDIN_CONNECTION_ERROR;
    step->step = joined.step;
    step->start = joined.start;
    step->job_nodes = joined.nnodes;
    step->limited = joined.limited != 0;
    return 0;
}

/* The nodes of the step are those of the job that have a task. */
static int lay_out(struct standin_step *step, uint32_t *node_of)
{
    uint32_t which[STANDIN_NODES_MAX], index[STANDIN_NODES_MAX];
    for (uint32_t n = 0; n < step->job_nodes; n++) {
        if (!layout_has_task(step, node_of, n))
            continue;
        which[step->nnodes] = n;
        index[n] = step->nnodes++;
    }
    for (uint32_t i = 0; i < step->ntasks; i++)
        node_of[i] = index[node_of[i]];
    return layout_nodes(step, node_of, which);
}

/* As srun says it, since muster's agent reads it. */
static int refuse(const struct standin_step *step, int code)
{
    const char *why = code == STANDIN_TOO_MANY   ? "More processors requested than permitted"
                      : code == STANDIN_BUSY     ? "Requested nodes are busy"
                      : code == STANDIN_NO_NODES ? "Requested node configuration is not available"
                      : code == STANDIN_CONNECTION_ERROR ? "musterrun is not there any more"
                                                         : strerror(code);
    fprintf(stderr, "musterrun: error: Unable to create step for job %u: %s%s\n", step->job, why,
            code == STANDIN_TOO_MANY ? " (musterrun --slots)" : "");
    return 1;
}

int joined_read(struct run *run, int argc, char **argv)
{
    static uint32_t node_of[STANDIN_TASKS_MAX];
    struct standin_step *step = &run->step;
    struct standin_join join = {0};
    const char *list = NULL;
    int option, at = 0, rc;
    if (sscanf(getenv(JOIN_ENV), "%u %d %n", &step->job, &step->verbose, &at) != 2 ||
        strlen(getenv(JOIN_ENV) + at) >= sizeof step->dir)
        return refuse(step, EINVAL);
    strcpy(step->dir, getenv(JOIN_ENV) + at);
    unsetenv(JOIN_ENV); /* the tasks are no part of it */
    run->input = IO_INPUT_ALL;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == '?')
            return 2;
        take(run, &join, &list, option);
    }
    if (join.ntasks == 0 || join.ntasks > STANDIN_TASKS_MAX || optind == argc ||
        (list != NULL && !read_list(list, &join, node_of)))
        return refuse(step, STANDIN_TOO_MANY);
    if (run->outputs[1] == NULL)
        run->outputs[1] = run->outputs[0]; /* as srun does */
    step->joined = true;
    step->ntasks = join.ntasks;
    rc = ask(step, &join, node_of);
    if (rc != 0)
        return refuse(step, rc);
    run->programs[run->nprograms++] = (struct program){.argv = argv + optind};
    run->plugin_path = run->rm->plugin_path;
    return lay_out(step, node_of) == 0 ? -1 : refuse(step, ENOMEM);
}

/* ---- while it runs ---- */

static void *take_signals(void *arg)
{
    int events = (int)(intptr_t)arg;
    struct run_event event = {.what = EVENT_SIGNAL};
    while (get(connection, &event.value, sizeof event.value))
        if (write(events, &event, sizeof event) < 0)
            say_error("cannot tell the main thread: %s", strerror(errno));
    /* The first musterrun has ended, and its directory goes. */
    event.value = SIGKILL;
    if (write(events, &event, sizeof event) < 0)
        say_error("cannot tell the main thread: %s", strerror(errno));
    return NULL;
}

int joined_start(int events, struct err *err)
{
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, take_signals, (void *)(intptr_t)events);
    if (rc != 0)
        return err_set(err, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);
    return 0;
}

void joined_leave(void)
{
    close(connection);
}

void joined_clean(const struct standin_step *step)
{
    for (uint32_t n = 0; n < step->nnodes; n++) {
        char path[sizeof step->dir + 80];
        stepd_path(step, &step->nodes[n], path, sizeof path);
        unlink(path);
    }
}
