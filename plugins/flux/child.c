/* SPDX-License-Identifier: BSD-3-Clause */
/* A spawned job: its log, its deadlines, its end (children.h has the states). */
#include "plugins/flux/child.h"

#include "common/util/log.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    WORDS_S = 2,   /* after a job has failed, for its server to say why */
    OUTPUT_S = 10, /* after a job has ended, for the rest of what it has printed */
};

/* ---- what the server that has asked is told ---- */

void child_tell(struct child *child, const struct rm_spawn_news *news)
{
    struct wire_out out = {0};
    spawn_put_news(&out, news);
    if (out.failed ||
        flux_respond_raw(child->children->h, child->request, out.data, (int)out.len) < 0)
        log_warning("the server that has spawned job %s cannot be told what becomes of it: %s",
                    child->label, strerror(errno));
    wire_out_free(&out);
}

/* A failure, once. The server shows it to the user. */
void child_tell_failure(struct child *child, enum rm_spawn_result result, const char *text)
{
    if (child->told)
        return;
    child->told = true;
    child_tell(child, &(struct rm_spawn_news){.result = result, .text = text});
}

/* ---- timers ---- */

static void on_timer(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg);

void child_stop_timer(struct child *child)
{
    if (child->timer)
        flux_watcher_destroy(child->timer);
    child->timer = NULL;
}

void child_set_timer(struct child *child, double seconds)
{
    child_stop_timer(child);
    child->timer = flux_timer_watcher_create(flux_get_reactor(child->children->h), seconds, 0.,
                                             on_timer, child);
    if (child->timer)
        flux_watcher_start(child->timer);
    else
        log_warning("job %s has no deadline: out of memory", child->label);
}

/* ---- the end of one ---- */

void child_forget(struct child *child)
{
    struct child **at = &child->children->list;
    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    child_stop_timer(child);
    if (child->submit)
        flux_future_destroy(child->submit);
    if (child->events)
        flux_future_destroy(child->events);
    child_output_close(&child->output);
    flux_msg_decref(child->request);
    spawn_order_free(&child->order);
    free(child);
}

static uint32_t shell_status(int status)
{
    return WIFSIGNALED(status) ? 128 + (uint32_t)WTERMSIG(status) : (uint32_t)WEXITSTATUS(status);
}

/* All is said of it, and the shell may end. Its record stays while output is under way. */
void child_finish(struct child *child)
{
    struct children *c = child->children;
    if (child->state == CHILD_SAID)
        return;
    child->state = CHILD_SAID;
    child_stop_timer(child);
    child_tell_failure(child, child->no_place ? RM_SPAWN_NO_RESOURCES : RM_SPAWN_FAILED,
                       child->words[0] != '\0'
                           ? child->words
                           : "the job ended before all of its processes were started");
    child_tell(child, &(struct rm_spawn_news){.result = RM_SPAWN_ENDED,
                                              .status = shell_status(child->status)});
    flux_respond_error(c->h, child->request, ENODATA, NULL);
    c->count--;
    flux_shell_remove_completion_ref(c->shell, CHILD_REFERENCE);
}

/* The job has ended, as its log says, or there is no log any more. */
static void set_over(struct child *child)
{
    if (child->state < CHILD_OVER)
        child->state = CHILD_OVER;
}

/* @return whether the child is gone */
static bool look(struct child *child)
{
    if (child->state < CHILD_OVER || child->prints)
        return false;
    child_finish(child);
    child_forget(child);
    return true;
}

void child_end(struct child *child, const char *why)
{
    if (child->state >= CHILD_ENDS)
        return;
    child->state = CHILD_ENDS;
    child_stop_timer(child);
    if (child->id == 0)
        return; /* not yet */
    flux_future_t *f = flux_job_raise(child->children->h, child->id, "cancel", 0, why);
    if (f)
        flux_future_destroy(f); /* where it has ended there is none to end */
    else
        log_error("job %s cannot be ended: %s; end it with: flux cancel %s", child->label,
                  strerror(errno), child->label);
}

void child_fail(struct child *child, enum rm_spawn_result result, const char *text)
{
    child_tell_failure(child, result, text);
    child_end(child, text);
}

static void on_timer(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct child *child = arg;
    char text[256];
    (void)r, (void)w, (void)events;
    child_stop_timer(child);
    switch (child->state) {
    case CHILD_OVER:
        log_warning("the end of what job %s has printed is not shown: it has not come in time",
                    child->label);
        child_finish(child);
        break;
    case CHILD_SAID:
        break;
    case CHILD_QUEUED:
        snprintf(text, sizeof(text),
                 "Flux has no free processors for %u processes: job %s did not begin within %d s",
                 child->order.what.ntasks, child->label, CHILD_QUEUED_S);
        child_fail(child, RM_SPAWN_NO_RESOURCES, text);
        break;
    case CHILD_RUNS:
        child_end(child, "the program that has spawned it has ended, and spawn_linger is over");
        break;
    case CHILD_SUBMITS:
    case CHILD_BEGINS:
    case CHILD_ENDS:
        if (child->words[0] != '\0') {
            child_fail(child, child->no_place ? RM_SPAWN_NO_RESOURCES : RM_SPAWN_FAILED,
                       child->words);
            break;
        }
        snprintf(text, sizeof(text), "a spawned job was not started within %u s",
                 child->order.what.timeout);
        child_fail(child, RM_SPAWN_TIMEOUT, text);
    }
}

/* ---- its log ---- */

static void on_output_ended(void *arg)
{
    struct child *child = arg;
    child->prints = false;
    look(child);
}

static void begin_output(struct child *child)
{
    const struct rm_spawn *what = &child->order.what;
    if (child->prints)
        return;
    child->output = (struct child_output){.h = child->children->h,
                                          .job = child->id,
                                          .label = child->label,
                                          .rank = what->rank,
                                          .merge = what->merge,
                                          .tag = what->tag,
                                          .ended = on_output_ended,
                                          .arg = child};
    child->prints = child_output_open(&child->output) == 0;
}

static void take_exception(struct child *child, json_t *event)
{
    const char *type = "", *note = "";
    int severity = 1;
    if (json_unpack(event, "{s:{s:s s:i s?s}}", "context", "type", &type, "severity", &severity,
                    "note", &note) < 0 ||
        severity != 0 || child->words[0] != '\0')
        return;
    child->no_place = strcmp(type, "alloc") == 0;
    if (child->no_place)
        snprintf(child->words, sizeof(child->words), "Flux cannot start %u processes: %s",
                 child->order.what.ntasks, note);
    else
        snprintf(child->words, sizeof(child->words), "spawned job %s: %s", child->label, note);
    if (!child->told)
        child_set_timer(child, WORDS_S);
}

static void take_event(struct child *child, json_t *event)
{
    const char *name;
    if (json_unpack(event, "{s:s}", "name", &name) < 0)
        return;
    if (strcmp(name, "alloc") == 0 && child->state == CHILD_QUEUED) {
        child->state = CHILD_BEGINS;
        child_set_timer(child, child->order.what.timeout);
    } else if (strcmp(name, "start") == 0) {
        begin_output(child);
    } else if (strcmp(name, "exception") == 0) {
        take_exception(child, event);
    } else if (strcmp(name, "finish") == 0) {
        json_unpack(event, "{s:{s:i}}", "context", "status", &child->status);
    } else if (strcmp(name, "clean") == 0) {
        set_over(child);
    }
}

static void on_event(flux_future_t *f, void *arg)
{
    struct child *child = arg;
    const char *text;
    if (flux_job_event_watch_get(f, &text) < 0) {
        if (errno != ENODATA)
            log_warning("job %s is not watched any more: %s", child->label, strerror(errno));
        flux_future_destroy(f);
        child->events = NULL;
        set_over(child);
        if (!look(child))
            child_set_timer(child, OUTPUT_S);
        return;
    }
    json_t *event = json_loads(text, 0, NULL);
    if (event) {
        take_event(child, event);
        json_delete(event);
    }
    flux_future_reset(f);
}

void child_watch(struct child *child)
{
    struct children *c = child->children;
    child->events = flux_job_event_watch(c->h, child->id, "eventlog", 0);
    if (child->events && flux_future_then(child->events, -1., on_event, child) == 0)
        return;
    child_fail(child, RM_SPAWN_FAILED, "the spawned job cannot be watched");
    set_over(child);
    look(child);
}
