/* SPDX-License-Identifier: BSD-3-Clause */
/* Output is a log of events, RFC 24 of Flux. Each event of the spawned job's log that has data is
 * written anew, as an event of this job's log, which its flux run shows. */
#include "plugins/flux/child_output.h"

#include "common/util/log.h"
#include "common/util/text.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void append(struct child_output *o, const json_t *event)
{
    char *text = json_dumps(event, 0), *line = text != NULL ? text_format("%s\n", text) : NULL;
    flux_kvs_txn_t *txn = line != NULL ? flux_kvs_txn_create() : NULL;
    flux_future_t *f = NULL;
    if (txn != NULL && flux_kvs_txn_put(txn, FLUX_KVS_APPEND, "output", line) == 0)
        f = flux_kvs_commit(o->h, NULL, 0, txn);
    flux_kvs_txn_destroy(txn);
    free(line);
    free(text);
    if (f != NULL && flux_future_then(f, -1., on_commit, o) == 0) {
        o->commits++;
        return;
    }
    log_warning("output of job %s is lost: %s", o->label, strerror(errno));
    if (f != NULL)
        flux_future_destroy(f);
}

/* Makes an event of this job's log of one of the spawned job's: the streams of this one end with
 * its own tasks. @param context of the event */
static void make_own(const struct child_output *o, json_t *context)
{
    const char *rank, *data;
    char own[16];
    size_t len;
    if (o->tag && json_unpack(context, "{s:s s:s%}", "rank", &rank, "data", &data, &len) == 0)
        json_object_set_new(context, "data", json_pack("s++%", rank, ": ", data, len));
    if (o->merge)
        json_object_set_new(context, "stream", json_string("stdout"));
    snprintf(own, sizeof own, "%u", o->rank);
    json_object_set_new(context, "rank", json_string(own));
    json_object_del(context, "eof");
}

static void take_event(struct child_output *o, json_t *event)
{
    const char *name, *data, *message, *component = "";
    json_t *context;
    size_t len;
    int level = 0;
    if (json_unpack(event, "{s:s s:o}", "name", &name, "context", &context) != 0)
        return;
    if (strcmp(name, "data") == 0 && json_unpack(context, "{s:s%}", "data", &data, &len) == 0) {
        make_own(o, context);
        append(o, event);
    } else if (strcmp(name, "log") == 0 &&
               json_unpack(context, "{s:i s:s s?s}", "level", &level, "message", &message,
                           "component", &component) == 0 &&
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
