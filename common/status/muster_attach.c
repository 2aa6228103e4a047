/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-attach: runs a command beside the tasks of a step, on each of its nodes.
 * man/muster-attach.1 has the rest. Started by hand, it starts itself on the nodes, with --here. */
#include "common/conf/conf_file.h"
#include "common/server/status/status.h"
#include "common/status/attach.h"
#include "common/status/commands.h"
#include "common/status/here.h"
#include "common/status/reach.h"
#include "common/status/user.h"
#include "common/util/log.h"
#include "muster_version.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 1000 * (STATUS_LIFE_S + 1), EXIT_USAGE = 2, WORDS_MAX = 12 };

struct options {
    bool here;         /* on a node, started by another one */
    const char *ranks; /* NULL: all */
    const char *user;  /* as given; NULL: not */
    char **command;    /* up to a NULL */
};

static void usage(FILE *out)
{
    fprintf(out,
            "usage: muster-attach [--ranks RANKS] [--user USER] [--dir DIR]\n"
            "                     STEP -- COMMAND [ARGUMENT]...\n"
            "\n"
            "Runs COMMAND beside the tasks of a step that runs, such as 4711.0, as the step's "
            "owner,\n"
            "on each of its nodes. In COMMAND and its arguments stand\n"
            "\n"
            "  %%p  for the process of a rank\n"
            "  %%r  for the rank\n"
            "  %%n  for the node\n"
            "  %%%%  for one %%\n"
            "\n"
            "With %%p or %%r it runs once for each rank, else once on each node. Each line that "
            "it\n"
            "writes begins with [RANK] or [NODE]. It reads nothing.\n"
            "\n"
            "  --ranks RANKS  only beside these ranks, such as 0-3,5\n"
            "  --user USER    the step's user, name or number; root alone needs it, when two\n"
            "                 users' servers claim it\n"
            "  --dir DIR      where the servers' directories are: see muster-status(1)\n"
            "  --version      print the version\n"
            "  --help         print this\n"
            "\n"
            "Exit status: the greatest one of all; 2 wrong options, 1 the step cannot be "
            "reached.\n");
}

/* @return 0 and the options, or the status to end with + 1 */
static int read_options(int argc, char **argv, struct find *find, struct options *options)
{
    static const struct option names[] = {{"here", no_argument, NULL, 'H'},
                                          {"ranks", required_argument, NULL, 'r'},
                                          {"user", required_argument, NULL, 'u'},
                                          {"dir", required_argument, NULL, 'd'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "+h", names, NULL)) != -1) {
        switch (c) {
        case 'H':
            options->here = true;
            break;
        case 'r':
            options->ranks = optarg;
            if (attach_is_ranks(optarg))
                break;
            fprintf(stderr, "muster-attach: --ranks: %s is no list such as 0-3,5\n", optarg);
            return 1 + EXIT_USAGE;
        case 'u':
            options->user = optarg;
            if (user_read(optarg, &find->uid))
                break;
            fprintf(stderr, "muster-attach: --user: there is no user %s\n", optarg);
            return 1 + EXIT_USAGE;
        case 'd':
            find->dir = optarg;
            find->only = true;
            break;
        case 'V':
            puts("muster-attach " MUSTER_VERSION);
            return 1;
        case 'h':
            usage(stdout);
            return 1;
        default:
            usage(stderr);
            return 1 + EXIT_USAGE;
        }
    }
    if (optind + 2 >= argc || strcmp(argv[optind + 1], "--") != 0) {
        usage(stderr);
        return 1 + EXIT_USAGE;
    }
    find->step = argv[optind];
    options->command = argv + optind + 2;
    return 0;
}

/* The command lines of a place, to their end. A Ctrl-C comes to us alone: srun would ask for a
 * second one. @return the greatest status, or -1 with the reason in @p err */
static int run(const struct reach *reach, struct err *err)
{
    struct commands *commands = commands_new(reach->n);
    if (commands == NULL)
        return err_set(err, "out of memory");
    for (size_t i = 0; i < reach->n && err->text[0] == '\0'; i++) {
        const struct command_plan plan = {.argv = reach->lines[i].argv,
                                          .env = reach->lines[i].env,
                                          .owner = reach->owner,
                                          .death = reach->death};
        if (commands_start(commands, &plan) != 0)
            err_set(err, "cannot start %s: %s", reach->lines[i].argv[0], strerror(errno));
    }
    if (err->text[0] != '\0')
        raise(SIGTERM); /* which ends the others */
    int status = commands_run(commands);
    commands_free(commands);
    return err->text[0] == '\0' ? status : -1;
}

/* Starts this program on all nodes of the step, for its owner. */
static int everywhere(const struct find *find, const struct options *options, struct err *err)
{
    char path[PATH_MAX];
    const char *words[WORDS_MAX] = {here_program(path, sizeof path, err), "--here"};
    size_t n = 2, count = 0;
    while (options->command[count] != NULL)
        count++;
    const char **rest = calloc(count + 2, sizeof *rest);
    if (words[0] == NULL || rest == NULL)
        return err_set(err, "out of memory");
    const char *const given[][2] = {{"--ranks", options->ranks},
                                    {"--user", geteuid() == 0 ? options->user : NULL},
                                    {"--dir", find->only ? find->dir : NULL}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i][1] != NULL) {
            words[n++] = given[i][0];
            words[n++] = given[i][1];
        }
    rest[0] = "--";
    memcpy(rest + 1, options->command, count * sizeof *rest);
    struct reach reach = {.program = words, .rest = rest, .uid = find->uid};
    int status = reach_find(&reach, find->places, find->step, err) == 0 ? run(&reach, err) : -1;
    reach_free(&reach);
    free(rest);
    return status;
}

int main(int argc, char **argv)
{
    struct find find = {.places = status_places, .ms = ANSWER_MS};
    struct options options = {0};
    char tmpdir[CONF_PATH_SIZE], name[FIND_STEP_MAX + 1];
    struct err err = {0};
    int status = -1;
    find.uid = geteuid() == 0 ? (uid_t)-1 : geteuid();
    int done = read_options(argc, argv, &find, &options);
    if (done != 0)
        return done - 1;
    if (find_job(&find, find.step, name, sizeof name))
        find.step = name;
    if (find.dir == NULL)
        find.dir = user_dir(tmpdir, &err);
    if (find.dir != NULL && options.here)
        status = attach_here(&find, options.ranks, options.command, &err);
    else if (find.dir != NULL)
        status = everywhere(&find, &options, &err);
    if (status >= 0)
        return status;
    log_mask(err.text);
    fprintf(stderr, "muster-attach: %s\n", err.text);
    return 1;
}
