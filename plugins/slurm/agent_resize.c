/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for nodes and time: their order, their states and their answers. resize_words.c has what
 * is said to Slurm's commands, and what these say. */
#include "plugins/slurm/agent_resize.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "plugins/slurm/resize_words.h"
#include "plugins/slurm/spawn_srun.h"
#include "plugins/slurm/srun_env.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    SPARE_MS = 3000,   /* beyond the request's own time, for the command to see by itself */
    CONTROL_MS = 20000 /* for scontrol and scancel at most */
};

enum resize_state { RESIZE_IDLE, RESIZE_LEARNS, RESIZE_ASKS, RESIZE_UNDOES };

struct resize {
    uint64_t caller; /* 0: gone */
    struct alloc_order order;
    int64_t until; /* now_ms() */
};

struct resizes {
    struct resize_env env;
    char **variables;
    struct resize list[RESIZES_MAX]; /* the first one is worked on */
    unsigned n;
    enum resize_state state;
    struct tool tool;
    struct job_nodes before;   /* the job's nodes when the request was begun */
    struct resize_job job;     /* what scontrol has said */
    char *keep;                /* of a release: the nodes that stay */
    struct rm_alloc_news news; /* RESIZE_UNDOES: the answer then */
    char text[ALLOC_TEXT_MAX];
    bool stopping;
};

struct resizes *resizes_new(const struct resize_env *env)
{
    struct resizes *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->env = *env;
    r->tool.pidfd = r->tool.out = -1;
    r->variables = srun_env(env->variables);
    if (r->variables != NULL)
        return r;
    free(r);
    return NULL;
}

/* ---- answers ---- */

static void tell(struct resizes *r, uint64_t caller, const struct rm_alloc_news *news)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_ALLOCATED);
    alloc_put_news(&frame, news);
    agent_frame_end(&frame, begin);
    if (!frame.failed && caller != 0)
        r->env.tell(r->env.arg, caller, &frame);
    wire_out_free(&frame);
}

/* Of the first request, which is done with. */
static void answer(struct resizes *r, const struct rm_alloc_news *news)
{
    struct resize *first = &r->list[0];
    tell(r, first->caller, news);
    if (first->order.what.kind == RM_ALLOC_RELEASE)
        r->env.hold(r->env.arg, false);
    alloc_order_free(&first->order);
    memmove(first, first + 1, --r->n * sizeof *first);
    job_nodes_free(&r->before);
    free(r->keep);
    r->keep = NULL;
    r->state = RESIZE_IDLE;
}

static void fail(struct resizes *r, enum rm_alloc_result result, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct resizes *r, enum rm_alloc_result result, const char *fmt, ...)
{
    char text[ALLOC_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer(r, &(struct rm_alloc_news){.result = result, .text = text});
}

/* ---- commands ---- */

/* @param argv taken over; its first word is the command */
static void run(struct resizes *r, enum resize_state state, char **argv, int64_t ms)
{
    char *program = argv != NULL ? text_format("%s/%s", r->env.directory, argv[0]) : NULL;
    int rc = program != NULL ? tool_start(&r->tool, program, argv, r->variables, ms) : ENOMEM;
    r->state = state;
    if (rc != 0)
        fail(r, RM_ALLOC_REFUSED, "%s cannot be run: %s",
             program != NULL ? program : "a command of Slurm", strerror(rc));
    free(program);
    spawn_list_free(argv);
}

static int64_t time_of(const struct resizes *r)
{
    int64_t left = r->list[0].until - now_ms();
    return left > 0 ? left : 0;
}

static void run_control(struct resizes *r, enum resize_state state, char **argv)
{
    run(r, state, argv, CONTROL_MS);
}

static void ask(struct resizes *r)
{
    const struct rm_alloc *what = &r->list[0].order.what;
    int64_t left = time_of(r);
    if (what->kind == RM_ALLOC_TIME)
        run_control(r, RESIZE_ASKS, resize_time_argv(r->env.job, what->seconds));
    else if (what->kind == RM_ALLOC_RELEASE)
        run_control(r, RESIZE_ASKS, resize_keep_argv(r->env.job, r->keep));
    else
        run(r, RESIZE_ASKS,
            resize_extend_argv(r->env.job, r->env.directory, what, &r->job, &r->before,
                               (unsigned)(left / 1000) + 1),
            left + SPARE_MS);
}

/* ---- what is to go ---- */

/* Marks the nodes that the request names. @return false: it was refused */
static bool mark_named(struct resizes *r, bool *gone)
{
    const struct rm_alloc *what = &r->list[0].order.what;
    char *names = r->env.split(what->nodes), *save = NULL;
    bool good = names != NULL;
    if (!good)
        fail(r, RM_ALLOC_WRONG, "%.200s is no list of nodes", what->nodes);
    for (char *name = good ? strtok_r(names, ",", &save) : NULL; name != NULL && good;
         name = strtok_r(NULL, ",", &save)) {
        const struct job_node *node = job_nodes_find(&r->before, name);
        good = node != NULL && !node->in_use;
        if (good)
            gone[node - r->before.nodes] = true;
        else if (node == NULL)
            fail(r, RM_ALLOC_WRONG, "node %.200s is not one of job %u", name, r->env.job);
        else
            fail(r, RM_ALLOC_IN_USE, "node %s has processes of a step of the job", name);
    }
    free(names);
    return good;
}

/* Marks so many nodes without processes, the last ones. @return false: it was refused */
static bool mark_last(struct resizes *r, bool *gone)
{
    uint32_t wanted = r->list[0].order.what.nnodes, found = 0;
    for (uint32_t i = r->before.n; i-- > 0 && found < wanted;)
        if (!r->before.nodes[i].in_use)
            gone[i] = (++found, true);
    if (found == wanted && wanted > 0)
        return true;
    if (wanted == 0)
        fail(r, RM_ALLOC_WRONG, "it does not say which nodes, or how many");
    else
        fail(r, RM_ALLOC_IN_USE, "%u of the nodes of job %u have no processes, and %u are to go",
             found, r->env.job, wanted);
    return false;
}

/* @return whether it is known what stays; else the request was refused */
static bool choose(struct resizes *r)
{
    bool *gone = calloc(r->before.n, sizeof *gone);
    if (gone == NULL) {
        fail(r, RM_ALLOC_FAILED, "out of memory");
        return false;
    }
    bool good = r->list[0].order.what.nodes != NULL ? mark_named(r, gone) : mark_last(r, gone);
    char *keep = good ? strdup("") : NULL;
    for (uint32_t i = 0; good && i < r->before.n; i++)
        if (!gone[i])
            keep = text_append(keep, ",", r->before.nodes[i].name);
    free(gone);
    if (good && (keep == NULL || keep[0] == '\0')) {
        fail(r, RM_ALLOC_IN_USE, "a job cannot give back all of its nodes");
        good = false;
    }
    if (good)
        r->keep = keep;
    else
        free(keep);
    return good;
}

/* ---- the first request ---- */

static void begin(struct resizes *r)
{
    enum rm_alloc_kind kind = r->list[0].order.what.kind;
    if (kind == RM_ALLOC_RELEASE && !r->env.hold(r->env.arg, true) && time_of(r) > 0)
        return; /* until it is known where the steps run that are just being started */
    if (time_of(r) == 0)
        fail(r, RM_ALLOC_LATE, "its time was over before the requests before it were done");
    else if (r->env.nodes(r->env.job, &r->before) != 0 ||
             (kind == RM_ALLOC_RELEASE && r->env.use(r->env.job, &r->before) != 0))
        fail(r, RM_ALLOC_FAILED, "slurmctld does not tell of the nodes of job %u", r->env.job);
    else if (kind == RM_ALLOC_EXTEND)
        run_control(r, RESIZE_LEARNS, resize_learn_argv(r->env.job));
    else if (kind == RM_ALLOC_TIME || choose(r))
        ask(r);
}

static void learnt(struct resizes *r)
{
    const struct rm_alloc *what = &r->list[0].order.what;
    if (!resize_learn(r->tool.text, &r->job))
        fail(r, RM_ALLOC_FAILED, "scontrol does not tell of job %u: %.200s", r->env.job,
             r->tool.text);
    else if (what->queue != NULL && strcmp(what->queue, r->job.partition) != 0)
        fail(r, RM_ALLOC_REFUSED, "job %u is in partition %s, where alone it can grow", r->env.job,
             r->job.partition);
    else if (!r->job.whole) /* seen with 22.05 to 26.05 */
        fail(r, RM_ALLOC_REFUSED,
             "job %u shares its nodes with other jobs, and Slurm would give the processors of new "
             "nodes to these, too; start it with --exclusive",
             r->env.job);
    else
        ask(r);
}

/* ---- how it went ---- */

/* What one list has, and not the other. @param names owned by the caller, or NULL */
static struct rm_alloc_news difference(const struct job_nodes *a, const struct job_nodes *b,
                                       char **names)
{
    struct rm_alloc_news news = {.result = RM_ALLOC_DONE};
    char *list = strdup("");
    for (uint32_t i = 0; i < a->n; i++) {
        if (job_nodes_find(b, a->nodes[i].name) != NULL)
            continue;
        list = text_append(list, ",", a->nodes[i].name);
        news.nnodes++;
        news.ncpus += a->nodes[i].cpus;
    }
    *names = list;
    news.nodes = list;
    return news;
}

/* No caller waits for the answer. */
static bool is_unwanted(const struct resizes *r)
{
    return r->stopping || r->list[0].caller == 0;
}

/* The answer comes when this command has ended. */
static void undo(struct resizes *r, char **argv, enum rm_alloc_result result, const char *text)
{
    snprintf(r->text, sizeof r->text, "%s", text);
    r->news = (struct rm_alloc_news){.result = result, .text = r->text};
    log_info("a change of job %u is undone: %s", r->env.job, text);
    run_control(r, RESIZE_UNDOES, argv);
}

static void failed(struct resizes *r, int status)
{
    char why[ALLOC_TEXT_MAX];
    uint32_t expander = resize_expander(r->tool.text);
    enum rm_alloc_result result =
        resize_reason(r->tool.text, r->tool.signals > 0 || time_of(r) == 0, why, sizeof why);
    if (r->list[0].order.what.kind == RM_ALLOC_EXTEND && expander != 0 && WIFSIGNALED(status))
        undo(r, resize_cancel_argv(expander), result, why); /* salloc could not do that */
    else
        fail(r, result, "%s", why);
}

/* What has become of a change of nodes, by slurmctld's record. */
static void look_at_nodes(struct resizes *r, int status)
{
    struct job_nodes after;
    bool grows = r->list[0].order.what.kind == RM_ALLOC_EXTEND;
    if (r->env.nodes(r->env.job, &after) != 0) {
        fail(r, RM_ALLOC_FAILED, "slurmctld does not tell of the nodes of job %u", r->env.job);
        return;
    }
    char *names, *keep = NULL;
    struct rm_alloc_news news =
        grows ? difference(&after, &r->before, &names) : difference(&r->before, &after, &names);
    job_nodes_free(&after);
    if (news.nnodes == 0) {
        failed(r, status);
    } else if (grows && is_unwanted(r)) {
        for (uint32_t i = 0; i < r->before.n; i++)
            keep = text_append(i == 0 ? strdup("") : keep, ",", r->before.nodes[i].name);
        undo(r, resize_keep_argv(r->env.job, keep), RM_ALLOC_FAILED, "nobody waits for it");
    } else {
        log_debug("job %u %s %u nodes: %s", r->env.job, grows ? "has got" : "has given back",
                  news.nnodes, names);
        if (grows)
            r->env.grown(r->env.arg);
        answer(r, &news);
    }
    free(keep);
    free(names);
}

static void asked(struct resizes *r, int status)
{
    if (r->list[0].order.what.kind != RM_ALLOC_TIME)
        look_at_nodes(r, status);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        answer(r, &(struct rm_alloc_news){.result = RM_ALLOC_DONE});
    else
        failed(r, status);
}

static void ended(struct resizes *r, int status)
{
    if (r->state == RESIZE_UNDOES)
        answer(r, &r->news);
    else if (r->state == RESIZE_LEARNS)
        learnt(r);
    else
        asked(r, status);
}

/* ---- the loop ---- */

void resizes_start(struct resizes *r, uint64_t caller, struct wire_in *body)
{
    static const struct rm_alloc_news full = {.result = RM_ALLOC_NO_RESOURCES,
                                              .text = "too many requests wait, or srun ends"},
                                      bad = {.result = RM_ALLOC_FAILED,
                                             .text = "srun cannot read the request"};
    if (r->n == RESIZES_MAX || r->stopping) {
        tell(r, caller, &full);
        return;
    }
    struct resize *last = &r->list[r->n];
    *last = (struct resize){.caller = caller};
    if (!alloc_get(body, &last->order)) {
        alloc_order_free(&last->order);
        tell(r, caller, &bad);
        return;
    }
    last->until = now_ms() + (int64_t)last->order.what.timeout * 1000;
    r->n++;
    resizes_tick(r, now_ms());
}

void resizes_poll(const struct resizes *r, struct pollfd *fds)
{
    tool_poll(&r->tool, fds);
}

void resizes_ready(struct resizes *r, const struct pollfd *fds)
{
    int status;
    if (tool_ready(&r->tool, fds, &status))
        ended(r, status);
}

int64_t resizes_next(const struct resizes *r)
{
    if (r->state == RESIZE_IDLE)
        return r->n > 0 ? r->list[0].until : INT64_MAX;
    return tool_next(&r->tool);
}

void resizes_tick(struct resizes *r, int64_t now)
{
    tool_tick(&r->tool, now);
    while (r->state == RESIZE_IDLE && r->n > 0) {
        unsigned n = r->n;
        if (is_unwanted(r))
            fail(r, RM_ALLOC_FAILED, "nobody waits for it");
        else
            begin(r);
        if (r->n == n)
            break; /* it waits, or a command runs */
    }
}

void resizes_caller_gone(struct resizes *r, uint64_t caller)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->list[i].caller == caller)
            r->list[i].caller = 0;
    if (r->n > 0 && r->list[0].caller == 0 && r->state != RESIZE_UNDOES)
        tool_end(&r->tool);
}

bool resizes_has(const struct resizes *r, uint64_t caller)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->list[i].caller == caller)
            return true;
    return false;
}

void resizes_stop(struct resizes *r)
{
    r->stopping = true;
    if (r->n > 0 && r->state != RESIZE_UNDOES)
        tool_end(&r->tool);
}

unsigned resizes_count(const struct resizes *r)
{
    return r->n;
}

void resizes_free(struct resizes *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->n; i++)
        alloc_order_free(&r->list[i].order);
    job_nodes_free(&r->before);
    free(r->keep);
    spawn_list_free(r->variables);
    free(r);
}
