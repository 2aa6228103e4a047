/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-status: shows what the muster-servers of a step wait for. man/muster-status.1 has the
 * rest. */
#include "common/server/status/status.h"
#include "common/status/fields.h"
#include "common/status/find.h"
#include "common/status/here.h"
#include "common/status/kept.h"
#include "common/status/mine.h"
#include "common/status/options.h"
#include "common/status/program.h"
#include "common/status/stacks.h"
#include "common/status/stats.h"
#include "common/status/trace_merge.h"
#include "common/status/words.h"
#include "common/util/log.h"
#include "include/muster.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MS = 1000 * (STATUS_LIFE_S + 1), /* the server has given up by then */
    MEMORY_MAX = 1 << 30,
    WATCH_MAX = 3600,
    EXIT_USAGE = 2,
};

struct output {
    bool json;
    bool stats;           /* what was counted, not what waits */
    bool openmetrics;     /* that in this form */
    char **traces;        /* files that are to be put together, up to a NULL; NULL: none are */
    int watch;            /* seconds between two looks; 0: one look */
    bool stacks, full;    /* what the ranks are doing; inside of MPI, too */
    bool pieces;          /* started on each node by a muster-status that gathers all */
    struct rlimit memory; /* of programs that are started */
};

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: muster-status [--stacks[=full] | --stats] [--json | --openmetrics]\n"
        "                     [--local] [--watch[=SECONDS]] [--user USER] [--dir DIR] [STEP]\n"
        "       muster-status --stats [--json] | --openmetrics FILE\n"
        "       muster-status --trace FILE... >trace.json"
        "\n"
        "\n"
        "Shows the muster-servers of a step, such as 4711.0, and the ranks they wait for. To be "
        "run\n"
        "by the step's owner or root, on one of its nodes. Without STEP: lists your steps that\n"
        "have a server on this node; root's list has all users' steps.\n"
        "\n"
        "  --stacks     what every rank is doing: stacks by eu-stack or gdb, equal ones as one;\n"
        "               from any host that has the resource manager's commands. Without STEP:\n"
        "               of the only one that you run. =full: also what MPI and PMIx do inside\n"
        "  --stats      how long operations have waited, and which node came last; also of a step\n"
        "               that has ended, if MUSTER_STATS=keep or MUSTER_STATS_DIR kept its counts\n"
        "  --json       print what the servers say, or with --stats the same, as JSON\n"
        "  --openmetrics\n"
        "               what --stats shows, for Prometheus and its like\n"
        "  --trace FILE...\n"
        "               put the files of MUSTER_TRACE together, for Perfetto\n"
        "  --local      this node's server only\n"
        "  --watch[=S]  again every S seconds (default 2), until the step has ended\n"
        "  --user USER  the step's user, name or number; root alone needs it, when two users'\n"
        "               servers claim it\n"
        "  --dir DIR    where the servers' directories are (default: tmpdir\n"
        "               of muster.json, else /tmp; and where the resource manager has them)\n"
        "  --version    print the version\n"
        "  --help       print this\n");
}

/* With the version that muster.h promises. */
static void print_json(json_object *o)
{
    json_object_object_add(o, "version", json_object_new_int(MUSTER_JSON_VERSION));
    const char *line = field_line(o);
    char *copy = line != NULL ? strdup(line) : NULL;
    if (copy == NULL) {
        fputs("muster-status: out of memory\n", stderr);
        return;
    }
    log_mask(copy);
    puts(copy);
    free(copy);
}

/* How long operations have waited. */
static void show_stats(json_object *state, const struct output *output, const char *owner,
                       struct err *err)
{
    struct stats stats = {0};
    if (stats_read(&stats, state) != 0) {
        err_set(err, "what the server on this node says is no state of a step");
    } else if (output->openmetrics) {
        stats_metrics(stdout, &stats, owner);
    } else if (output->json) {
        json_object *o = stats_json(&stats, owner);
        print_json(o);
        json_object_put(o);
    } else {
        stats_write(stdout, &stats, owner);
    }
    stats_free(&stats);
}

/* The server is its user's, so what it says is made harmless here too.
 * @param state let go of */
static void show(json_object *state, const struct output *output, uid_t uid, struct err *err)
{
    char owner[64];
    int rc = 0;
    find_user_name(uid, owner, sizeof owner);
    if (!json_object_is_type(state, json_type_object))
        err_set(err, "what the server on this node says makes no sense");
    else if (output->stats)
        show_stats(state, output, owner, err);
    else if (output->json)
        print_json(state);
    else if (output->stacks)
        rc = words_write_stacks(stdout, state, owner, output->full);
    else
        rc = words_write(stdout, state, owner);
    if (rc != 0)
        err_set(err, "what the server on this node says is no state of a step");
    json_object_put(state);
}

/* Whether a step is given as the file that it has left (kept.h). */
static bool is_file(const char *step)
{
    return strchr(step, '/') != NULL;
}

static bool is_full(const char *text)
{
    return strcmp(text, "full") == 0;
}

static bool is_watch(const char *text)
{
    return atoi(text) >= 1 && atoi(text) <= WATCH_MAX;
}

/* Whether options and step go together. @return 0, or the status to end with + 1 */
static int check(const struct find *find, const struct output *output)
{
    const char *what = output->openmetrics ? "--openmetrics"
                       : output->stats     ? "--stats"
                                           : "--stacks";
    if (output->stats && (output->stacks || (output->openmetrics && output->json)))
        fprintf(stderr, "muster-status: give %s or %s, not both\n",
                output->stacks ? "--stacks" : "--json", what);
    else if (find->step != NULL && is_file(find->step) && (!output->stats || output->watch > 0))
        fprintf(stderr,
                "muster-status: %s: a file is of a step that has ended: give --stats or "
                "--openmetrics, and no --watch\n",
                find->step);
    else if (find->step == NULL && (output->stats || output->pieces))
        fprintf(stderr, "muster-status: %s: give a step; without %s, muster-status lists yours\n",
                what, what);
    else
        return 0;
    return 1 + EXIT_USAGE;
}

/* @return 0 and the options in @p find, or the status to end with + 1 */
static int read_options(int argc, char **argv, struct find *find, struct output *output)
{
    bool watches = false, local = false, traces = false;
    const char *seconds = NULL, *full = NULL;
    const struct options_row rows[] = {
        {"json", no_argument, &output->json, NULL, NULL, NULL},
        {"stats", no_argument, &output->stats, NULL, NULL, NULL},
        {"openmetrics", no_argument, &output->openmetrics, NULL, NULL, NULL},
        {"stacks", optional_argument, &output->stacks, &full, is_full, "not \"full\""},
        {"pieces", no_argument, &output->pieces, NULL, NULL, NULL},
        {"local", no_argument, &local, NULL, NULL, NULL},
        {"trace", no_argument, &traces, NULL, NULL, NULL},
        {"watch", optional_argument, &watches, &seconds, is_watch, "not 1 to 3600 seconds"},
        {NULL, 0, NULL, NULL, NULL, NULL}};
    const struct options_tool tool = {"muster-status", "", usage, rows};
    int done = options_read(&tool, argc, argv, find);
    if (done != 0)
        return done;
    find->all = !local;
    output->stats |= output->openmetrics;
    output->full = full != NULL;
    output->watch = seconds != NULL ? atoi(seconds) : watches ? 2 : 0;
    output->traces = traces ? argv + optind : NULL;
    if (traces)
        return 0;
    if (optind < argc - 1)
        return options_refuse(&tool);
    find->step = argv[optind]; /* NULL: none is named */
    return check(find, output);
}

/* Without a step: all steps that have a server here, a line each. */
static void list(const struct find *find, bool json, struct err *err)
{
    size_t n = 0;
    char owner[64];
    struct find_step *steps = find_steps(find, &n, err);
    json_object *array = json_object_new_array(), *all = json_object_new_object();
    for (size_t i = 0; i < n && steps != NULL; i++) {
        json_object *o = field_add(array);
        find_user_name(steps[i].owner, owner, sizeof owner);
        if (!json)
            printf("%s %s of %s\n", find_unit(find, steps[i].name), steps[i].name, owner);
        field_put_text(o, "step", steps[i].name);
        field_put_text(o, "unit", find_unit(find, steps[i].name));
        field_put_text(o, "user", owner);
    }
    json_object_object_add(all, "steps", array);
    if (json && steps != NULL)
        print_json(all);
    json_object_put(all);
    free(steps);
}

static json_object *get_stacks(const struct find *find, const struct output *output,
                               struct found *found, struct err *err)
{
    char path[PATH_MAX];
    if (!find->all)
        return stacks_here(find, &output->memory, found, err);
    return here_program(path, sizeof path, err) != NULL
               ? stacks_everywhere(find, path, &output->memory, found, err)
               : NULL;
}

static json_object *get_state(const struct find *find, struct found *found, struct err *err)
{
    char name[FIND_STEP_MAX + 1], *answer = find_state(find, found, err);
    /* a job has one run; its servers here are those of several of its nodes */
    if (answer != NULL && found->runs > 1 && !find_job(find, find->step, name, sizeof name))
        fprintf(
            stderr,
            "muster-status: %u servers of %s %s are on this node; this is from the one that was "
            "started last\n",
            found->runs, find_unit(find, find->step), find->step);
    json_object *state = answer != NULL ? field_parse(answer) : NULL;
    if (answer != NULL && state == NULL)
        err_set(err, "what the server on this node says makes no sense");
    free(answer);
    return state;
}

/* One look. */
static void look(const struct find *find, const struct output *output, struct err *err)
{
    struct found found;
    if (find->step == NULL) {
        list(find, output->json, err);
        return;
    }
    json_object *state = NULL;
    struct err why = {0};
    if (output->stacks)
        state = get_stacks(find, output, &found, &why);
    else if (!is_file(find->step))
        state = get_state(find, &found, &why);
    if (state == NULL && output->stats && output->watch == 0)
        state = kept_read(find->step, find->uid, &found.owner, err);
    if (state == NULL && err->text[0] == '\0')
        *err = why;
    if (state != NULL)
        show(state, output, found.owner, err);
}

/* Of this node, for the muster-status that has started this one. */
static void say_pieces(const struct find *find, const struct output *output, struct err *err)
{
    struct found found;
    struct err why = {0};
    json_object *state = stacks_here(find, &output->memory, &found, &why);
    if (stacks_write_pieces(state, why.text) != 0)
        err_set(err, "cannot write: %s", strerror(errno));
}

/* The stacks without a step are of the only one. @param only gets its name */
static int choose(struct find *find, const struct output *output,
                  char only[static FIND_STEP_MAX + 1], struct err *err)
{
    if (!output->stacks || find->step != NULL)
        return 0;
    if (mine_find(find, only, err) != 0)
        return -1;
    find->step = only;
    return 0;
}

static void flush(struct err *err)
{
    if (err->text[0] == '\0' && (fflush(stdout) != 0 || ferror(stdout)))
        err_set(err, "cannot write: %s", strerror(errno));
}

/* Until there is nothing more to see, which is no error after the first look: the step has ended.
 */
static void watch(const struct find *find, const struct output *output, struct err *err)
{
    const char *home = isatty(STDOUT_FILENO) && !output->json ? "\033[H\033[2J" : "";
    struct err later = {0};
    fputs(home, stdout);
    look(find, output, err);
    flush(err);
    while (err->text[0] == '\0' && later.text[0] == '\0') {
        sleep((unsigned)output->watch);
        fputs(output->json ? "" : home[0] != '\0' ? home : "\n", stdout);
        look(find, output, &later);
        flush(err);
    }
    if (err->text[0] == '\0') {
        log_mask(later.text);
        puts(later.text);
    }
}

int main(int argc, char **argv)
{
    struct find find = {.places = status_places, .ms = ANSWER_MS};
    struct output output = {0};
    struct options_room room;
    char only[FIND_STEP_MAX + 1];
    struct err err = {0};
    /* An admin who asks for a hostile user's step must not run out of memory by what its server
     * answers. */
    output.memory = program_limit_memory(MEMORY_MAX);
    int done = read_options(argc, argv, &find, &output);
    if (done != 0)
        return done - 1;
    if (output.traces != NULL)
        trace_merge(stdout, stderr, output.traces, (size_t)(argc - optind), &err);
    else if (options_complete(&find, &room, &err) != 0 || choose(&find, &output, only, &err) != 0)
        ; /* the reason is in err */
    else if (output.pieces)
        say_pieces(&find, &output, &err);
    else if (output.watch > 0)
        watch(&find, &output, &err);
    else
        look(&find, &output, &err);
    flush(&err);
    return err.text[0] == '\0' ? 0 : options_fail("muster-status", &err);
}
