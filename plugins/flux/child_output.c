/* SPDX-License-Identifier: BSD-3-Clause */
/* Output is a log of events, RFC 24 of Flux. Each event of the spawned job's log that has data is
 * written anew, as an event of this job's log, which its flux run shows. */
#include "plugins/flux/child_output.h"

#include "common/util/log.h"
#include "plugins/flux/json_text.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void look(struct child_output *o)
{
    if (o->events == NULL && o->commits == 0 && o->ended != NULL) {
        void (*ended)(void *arg) = o->ended;

        o->ended = NULL;
        ended(o->arg);
    }
}

/* A commit outlives what has asked for it when the shell ends in haste: then no function is called.
 */
static void on_commit(flux_future_t *f, void *arg)
{
    struct child_output *o = arg;
    if (flux_future_get(f, NULL) < 0)
        log_warning("output of job %s is lost: %s", o->label, flux_future_error_string(f));
    flux_future_destroy(f);
    o->commits--;
    look(o);
}

/* @param text one line of the log */
static void append(struct child_output *o, const char *text)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create();
    flux_future_t *f = NULL;
    if (txn != NULL && flux_kvs_txn_put(txn, FLUX_KVS_APPEND, "output", text) == 0)
        f = flux_kvs_commit(o->h, NULL, 0, txn);
    flux_kvs_txn_destroy(txn);
    if (f != NULL && flux_future_then(f, -1., on_commit, o) == 0) {
        o->commits++;
        return;
    }
    log_warning("output of job %s is lost: %s", o->label, strerror(errno));
    if (f != NULL)
        flux_future_destroy(f);
}

/* A line of the log, for what is printed by @p rank. @return malloc()ed, or NULL */
static char *make_event(const struct child_output *o, const char *stream, const char *rank,
                        const char *data, size_t n, const char *encoding)
{
    struct timespec now;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(out, "{\"timestamp\":%lld.%06ld,\"name\":\"data\",\"context\":{\"stream\":",
            (long long)now.tv_sec, now.tv_nsec / 1000);
    json_text(out, o->merge ? "stdout" : stream);
    fprintf(out, ",\"rank\":\"%u\"", o->rank);
    if (encoding != NULL) {
        fputs(",\"encoding\":", out);
        json_text(out, encoding);
    }
    fputs(",\"data\":\"", out);
    if (o->tag && encoding == NULL) {
        json_escape(out, rank, strlen(rank));
        fputs(": ", out);
    }
    json_escape(out, data, n);
    fputs("\"}}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void take_event(struct child_output *o, json_t *event)
{
    const char *name, *stream, *rank, *data = NULL, *encoding = NULL, *message = NULL;
    const char *component = "";
    size_t len = 0;
    int level = 0;
    if (json_unpack(event, "{s:s s:{s:s s:s s?s% s?s}}", "name", &name, "context", "stream",
                    &stream, "rank", &rank, "data", &data, &len, "encoding", &encoding) == 0) {
        char *text = data != NULL ? make_event(o, stream, rank, data, len, encoding) : NULL;
        if (text != NULL)
            append(o, text);
        free(text);
    } else if (json_unpack(event, "{s:s s:{s:i s:s s?s}}", "name", &name, "context", "level",
                           &level, "message", &message, "component", &component) == 0 &&
               level <= FLUX_SHELL_ERROR) {
        log_error("spawned job %s: %s: %s", o->label, component, message);
    }
}

static void on_event(flux_future_t *f, void *arg)
{
    struct child_output *o = arg;
    const char *text;
    if (flux_job_event_watch_get(f, &text) < 0) {
        if (errno != ENODATA)
            log_warning("what job %s prints is not shown any more: %s", o->label, strerror(errno));
        flux_future_destroy(f);
        o->events = NULL;
        look(o);
        return;
    }
    json_t *event = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (event != NULL) {
        take_event(o, event);
        json_delete(event);
    }
    flux_future_reset(f);
}

int child_output_open(struct child_output *o)
{
    o->events = flux_job_event_watch(o->h, o->job, "guest.output", FLUX_JOB_EVENT_WATCH_WAITCREATE);
    if (o->events != NULL && flux_future_then(o->events, -1., on_event, o) == 0)
        return 0;
    log_warning("what job %s prints cannot be shown: %s", o->label, strerror(errno));
    child_output_close(o);
    return -1;
}

void child_output_close(struct child_output *o)
{
    o->ended = NULL;
    if (o->events != NULL)
        flux_future_destroy(o->events);
    o->events = NULL;
}
