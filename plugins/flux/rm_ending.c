/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's end, as an exception with its exit status.
 *
 * Flux ends a job by itself, too: flux cancel, flux job raise, a lost broker, or another server's
 * word. Tasks that die of that look to their server as if they were lost. So the job manager is
 * asked first, by the server before it blames a task, and here before each exception: where the job
 * has a fatal exception already, no second one is raised. The job manager notes an exception before
 * anything is done to the tasks, so its answer to a server that has lost one is right.
 *
 *     state    what happens                         next
 *
 *     NONE     abort, or the server asks            ASKED
 *     ASKED    the job has an exception             DONE
 *              it has none, or an error comes       RAISED after abort, else FREE
 *     FREE     the server is told: abort            RAISED
 *              it does nothing                      NONE
 *     RAISED   taken, or the job has ended          DONE
 *              refused                              RAISED again, after RAISE_MAX_MS at most
 */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { RAISE_MAX_MS = 10000 /* between two tries */ };

/* Flux takes the status as wait(2) has it. Releases before 0.84 ignore it. */
static char *make_exception(const struct rm *rm, const struct rm_ending *ending)
{
    struct json_object *e = json_object_new_object();
    char *why = strdup(ending->why);
    log_mask(why);
    json_object_object_add(e, "id", json_object_new_int64((int64_t)rm->job));
    json_object_object_add(e, "type", json_object_new_string("exec"));
    json_object_object_add(e, "severity", json_object_new_int(0));
    json_object_object_add(e, "wait_status", json_object_new_int((int)ending->status << 8));
    json_object_object_add(e, "note", json_object_new_string(why));
    char *text = strdup(json_object_to_json_string(e));
    json_object_put(e);
    free(why);
    return text;
}

static void ask(struct rm *rm)
{
    char text[80];
    snprintf(text, sizeof text, "{\"id\":%llu,\"attrs\":[\"eventlog\"]}",
             (unsigned long long)rm->job);
    rm->raise.state = RAISE_ASKED;
    rm->raise.tag = broker_tag(rm);
    broker_send(rm, flux_request_encode("job-manager.getattr", text), rm->raise.tag);
}

static void raise_now(struct rm *rm)
{
    rm->raise.state = RAISE_RAISED;
    rm->raise.again = 0;
    rm->raise.tag = broker_tag(rm);
    broker_send(rm, flux_request_encode("job-manager.raise", rm->raise.text), rm->raise.tag);
}

void raise_begin(struct rm *rm, const struct rm_ending *ending)
{
    struct rm_raise *raise = &rm->raise;
    if (raise->text != NULL || raise->state == RAISE_DONE)
        return;
    raise->text = make_exception(rm, ending);
    if (raise->state == RAISE_NONE)
        ask(rm);
    else if (raise->state == RAISE_FREE)
        raise_now(rm);
}

void raise_look(struct rm *rm, rm_ending_fn *done, void *arg)
{
    struct rm_raise *raise = &rm->raise;
    if (rm->broker == BROKER_GONE || raise->state >= RAISE_RAISED) {
        done(arg, raise->state >= RAISE_RAISED);
        return;
    }
    raise->done = done;
    raise->arg = arg;
    if (raise->state == RAISE_NONE)
        ask(rm);
}

/* Whether an entry of a job's eventlog is an exception that ends it. */
static bool is_fatal(struct json_object *entry)
{
    struct json_object *name, *context, *severity;
    return json_object_object_get_ex(entry, "name", &name) &&
           strcmp(json_object_get_string(name), "exception") == 0 &&
           json_object_object_get_ex(entry, "context", &context) &&
           json_object_object_get_ex(context, "severity", &severity) &&
           json_object_get_int(severity) == 0;
}

/* Whether the job manager says that the job is being ended. */
static bool has_exception(const char *data, size_t len)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *answer = len > 0 ? json_tokener_parse_ex(tokener, data, (int)len) : NULL;
    struct json_object *log;
    bool found = false;
    if (json_object_object_get_ex(answer, "eventlog", &log) &&
        json_object_is_type(log, json_type_array))
        for (size_t i = 0; i < json_object_array_length(log) && !found; i++)
            found = is_fatal(json_object_array_get_idx(log, i));
    json_object_put(answer);
    json_tokener_free(tokener);
    return found;
}

/* The question is answered; when it fails, the answer to the exception counts. */
static void looked(struct rm *rm, bool ending)
{
    struct rm_raise *raise = &rm->raise;
    rm_ending_fn *done = raise->done;
    raise->done = NULL;
    raise->state = ending ? RAISE_DONE : RAISE_FREE;
    if (ending)
        log_debug("the job has an exception already");
    else if (raise->text != NULL)
        raise_now(rm);
    if (done != NULL && !rm->closing)
        done(raise->arg, ending);
    if (raise->state == RAISE_FREE)
        raise->state = RAISE_NONE;
}

static void refused(struct rm *rm, const char *why)
{
    struct rm_raise *raise = &rm->raise;
    if (raise->ms == 0)
        log_error("job %s could not be ended: %s; muster tries again until it ends; to end it by "
                  "hand: flux cancel %s",
                  rm->boot->label, why, rm->boot->label);
    raise->ms = raise->ms == 0 ? RM_RETRY_MAX_MS : raise->ms * 2;
    if (raise->ms > RAISE_MAX_MS)
        raise->ms = RAISE_MAX_MS;
    raise->again = now_ms() + raise->ms;
}

bool raise_answer(struct rm *rm, uint32_t tag, int rc, const char *why, const void *data,
                  size_t len)
{
    struct rm_raise *raise = &rm->raise;
    if (raise->tag == 0 || tag != raise->tag)
        return false;
    raise->tag = 0;
    if (raise->state == RAISE_ASKED) {
        looked(rm, rc == 0 && has_exception(data, len));
    } else if (rc == 0 || rc == ENOENT) {
        raise->state = RAISE_DONE; /* the latter: it has ended */
    } else {
        refused(rm, why);
    }
    return true;
}

int64_t raise_tick(struct rm *rm, int64_t now)
{
    if (rm->raise.again == 0)
        return INT64_MAX;
    if (now < rm->raise.again)
        return rm->raise.again;
    raise_now(rm);
    return INT64_MAX;
}

bool raise_idle(const struct rm *rm)
{
    return rm->raise.state == RAISE_NONE || rm->raise.state == RAISE_DONE;
}
