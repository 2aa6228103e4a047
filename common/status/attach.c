/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's guard stands while commands run: they may be debuggers.
 */
#include "common/status/attach.h"

#include "common/status/commands.h"
#include "common/status/fields.h"
#include "common/status/here.h"
#include "common/status/process.h"
#include "common/status/reach.h"
#include "common/tracker/values/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { NOT_STARTED = 127 /* a shell's status for that */ };

static int parse(struct ranges *ranks, const char *list)
{
    return ranges_parse(ranks, list, strlen(list), UINT32_MAX);
}

bool attach_is_ranks(const char *list)
{
    struct ranges ranks = {0};
    bool is = parse(&ranks, list) == 0 && ranks.n > 0;
    ranges_free(&ranks);
    return is;
}

bool attach_is_for_ranks(char *const argv[])
{
    for (; *argv != NULL; argv++)
        for (const char *at = *argv; (at = strchr(at, '%')) != NULL; at += at[1] != '\0' ? 2 : 1)
            if (at[1] == 'r' || at[1] == 'p')
                return true;
    return false;
}

char *attach_expand(const char *word, const struct attach_place *place)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (; out != NULL && *word != '\0'; word++) {
        char kind = word[0] == '%' ? word[1] : '\0';
        word += kind == '%' || kind == 'n' || kind == 'r' || kind == 'p';
        if (kind == 'n')
            fputs(place->node, out);
        else if (kind == 'r')
            fprintf(out, "%" PRId64, place->rank);
        else if (kind == 'p')
            fprintf(out, "%" PRId64, place->pid);
        else
            putc(*word, out); /* of "%%" the second one */
    }
    if (out == NULL || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char **expand_all(char *const argv[], const struct attach_place *place)
{
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    char **words = calloc(n + 1, sizeof *words);
    for (size_t i = 0; words != NULL && i < n; i++)
        if ((words[i] = attach_expand(argv[i], place)) == NULL) {
            reach_free_list(words);
            return NULL;
        }
    return words;
}

/* @return 0, or the status of one that could not be started */
static int start(struct commands *commands, char *const argv[], const struct attach_place *place)
{
    char tag[80];
    char **words = expand_all(argv, place);
    const struct command_plan plan = {.argv = words, .tag = tag, .death = SIGKILL};
    if (place->rank < 0)
        snprintf(tag, sizeof tag, "%s", place->node);
    else
        snprintf(tag, sizeof tag, "%" PRId64, place->rank);
    int rc = words != NULL && commands_start(commands, &plan) == 0 ? 0 : NOT_STARTED;
    if (rc != 0)
        fprintf(stderr, "[%s] muster-attach: cannot start %s on %s: %s\n", tag, argv[0],
                place->node, strerror(errno));
    reach_free_list(words);
    return rc;
}

/* Two pipes for each command. */
static void raise_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Starts it for each rank, or once for the node, if one of the ranks is here.
 * @return 0, or the status of one that could not be started */
static int start_all(struct commands *commands, json_object *node, const struct ranges *ranks,
                     char *const argv[])
{
    json_object *tasks = field_list(node, "tasks");
    const char *name = field_text(node, "node");
    struct attach_place place = {.node = name != NULL ? name : "?", .rank = -1};
    bool each = attach_is_for_ranks(argv);
    struct proctab tab = {0};
    int rc = 0;
    proctab_read(&tab);
    for (size_t i = 0; i < field_length(tasks); i++) {
        json_object *task = field_at(tasks, i);
        int64_t rank = field_number(task, "rank", -1), pid = field_number(task, "pid", -1);
        if (pid <= 0 || rank < 0 || (ranks->n > 0 && !ranges_have(ranks, (uint32_t)rank)))
            continue;
        if (each) {
            place.rank = rank;
            place.pid = process_of_task(&tab, (pid_t)pid);
        }
        int failed = start(commands, argv, &place);
        rc = failed > rc ? failed : rc;
        if (!each)
            break;
    }
    proctab_free(&tab);
    return rc;
}

/* A number that is no rank of the step's would do nothing anywhere: the node of rank 0 says so. */
static int check_ranks(json_object *node, const struct ranges *ranks, struct err *err)
{
    json_object *tasks = field_list(node, "tasks");
    int64_t size = field_number(node, "size", -1);
    bool speaks = false;
    for (size_t i = 0; i < field_length(tasks); i++)
        speaks |= field_number(field_at(tasks, i), "rank", -1) == 0;
    uint32_t last = ranks->n > 0 ? ranks->v[ranks->n - 1].last : 0;
    if (!speaks || size <= 0 || last < size)
        return 0;
    return err_set(err, "--ranks: there is no rank %u; the ranks are 0-%" PRId64, last, size - 1);
}

int attach_here(const struct find *find, const char *ranks, char *const argv[], struct err *err)
{
    struct ranges only = {0};
    struct found found;
    int failed = 0, worst = 0;
    bool well = true;
    json_object *node, *state = here_begin(find, &found, &node, err);
    if (state == NULL)
        return -1;
    json_object *tasks = field_list(node, "tasks");
    raise_limit();
    struct commands *commands = commands_new(field_length(tasks));
    if (commands == NULL || (ranks != NULL && parse(&only, ranks) != 0)) {
        err_set(err, "out of memory");
    } else if (tasks != NULL && check_ranks(node, &only, err) == 0) {
        failed = start_all(commands, node, &only, argv);
        worst = commands_run(commands);
        well = commands_were_well(commands);
    }
    find_let_go(&found, well);
    json_object_put(state);
    ranges_free(&only);
    if (commands != NULL)
        commands_free(commands);
    return err->text[0] != '\0' ? -1 : worst > failed ? worst : failed;
}
