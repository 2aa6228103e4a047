/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-attach: runs a command beside the tasks of a step, on each of its nodes.
 * man/muster-attach.1 has the rest. Started by hand, it starts itself on the nodes, with --here. */
#include "common/server/status/status.h"
#include "common/status/attach.h"
#include "common/status/commands.h"
#include "common/status/here.h"
#include "common/status/options.h"
#include "common/status/reach.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 1000 * (STATUS_LIFE_S + 1), WORDS_MAX = 12 };

struct options {
    bool here;         /* on a node, started by another one */
    const char *ranks; /* NULL: all */
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
    const struct options_row rows[] = {{"here", no_argument, &options->here, NULL, NULL, NULL},
                                       {"ranks", required_argument, NULL, &options->ranks,
                                        attach_is_ranks, "no list such as 0-3,5"},
                                       {NULL, 0, NULL, NULL, NULL, NULL}};
    const struct options_tool tool = {"muster-attach", "+", usage, rows};
    int done = options_read(&tool, argc, argv, find);
    if (done == 0 && (optind + 2 >= argc || strcmp(argv[optind + 1], "--") != 0))
        done = options_refuse(&tool);
    if (done != 0)
        return done;
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
    char uid[16] = "";
    if (geteuid() == 0 && find->uid != (uid_t)-1)
        snprintf(uid, sizeof uid, "%u", (unsigned)find->uid);
    const char *const given[][2] = {{"--ranks", options->ranks},
                                    {"--user", uid[0] != '\0' ? uid : NULL},
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
    struct options_room room;
    struct err err = {0};
    int status = -1, done = read_options(argc, argv, &find, &options);
    if (done != 0)
        return done - 1;
    if (options_complete(&find, &room, &err) == 0)
        status = options.here ? attach_here(&find, options.ranks, options.command, &err)
                              : everywhere(&find, &options, &err);
    return status >= 0 ? status : options_fail("muster-attach", &err);
}
