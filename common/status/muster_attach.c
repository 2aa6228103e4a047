/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-attach: runs a command beside the tasks of a step, on each of its nodes.
 * man/muster-attach.1 has the rest. Started by hand, it starts itself on the nodes, with --here. */
#include "common/server/status/status.h"
#include "common/status/attach.h"
#include "common/status/commands.h"
#include "common/status/here.h"
#include "common/status/options.h"
#include "common/status/reach.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 1000 * (STATUS_LIFE_S + 1) };

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

/* Starts this program on all nodes of the step, for its owner. */
static int everywhere(const struct find *find, const struct options *options, struct err *err)
{
    char path[PATH_MAX];
    const char *const words[] = {path, "--here", options->ranks != NULL ? "--ranks" : NULL,
                                 options->ranks, NULL};
    size_t count = 0;
    while (options->command[count] != NULL)
        count++;
    const char **rest = calloc(count + 2, sizeof *rest);
    if (here_program(path, sizeof path, err) == NULL || rest == NULL)
        return err_set(err, "out of memory");
    rest[0] = "--";
    memcpy(rest + 1, options->command, count * sizeof *rest);
    struct reach reach = {
        .program = words, .rest = rest, .uid = find->uid, .dir = find->only ? find->dir : NULL};
    int status = reach_find(&reach, find->places, find->step, err) == 0
                     ? commands_reach(&reach, &(struct command_plan){.tag = NULL}, 0, err)
                     : -1;
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
