/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What Flux's own modules on rank 0 serve, as far as muster uses it:
 *
 *     groups.get          which brokers are online; answered anew at each change
 *     overlay.topology    the tree of brokers
 *     event.pub           an event for all brokers
 *     job-manager.raise   the end of the job
 *     job-manager.getattr whether it is under way
 *     overlay.lost        a broker tells of one below it that is lost; between brokers only
 */
#include "shims/flux/standin/broker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell_online(struct broker *broker, const flux_msg_t *request)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    const char *comma = "";
    if (!out) {
        overlay_answer(broker, request, ENOMEM, NULL);
        return;
    }
    fputs("{\"members\":\"", out);
    for (uint32_t rank = 0; rank < broker->run->step.nnodes; rank++) {
        if (broker->offline[rank])
            continue;
        fprintf(out, "%s%u", comma, rank);
        comma = ",";
    }
    fputs("\"}", out);
    fclose(out);
    overlay_answer(broker, request, 0, text);
    free(text);
}

static void groups_get(struct broker *broker, const flux_msg_t *msg)
{
    struct waiting *watcher = calloc(1, sizeof(*watcher));
    if (!watcher || !flux_msg_is_streaming(msg)) {
        free(watcher);
        overlay_answer(broker, msg, EPROTO, NULL);
        return;
    }
    watcher->msg = (flux_msg_t *)flux_msg_incref(msg);
    watcher->next = broker->watchers;
    broker->watchers = watcher;
    tell_online(broker, msg);
}

static struct json_object *show_broker(uint32_t rank, uint32_t size)
{
    struct json_object *broker = json_object_new_object(), *children = json_object_new_array();
    for (uint32_t below = 2 * rank + 1; below <= 2 * rank + 2 && below < size; below++)
        json_object_array_add(children, show_broker(below, size));
    json_object_object_add(broker, "rank", json_object_new_int64(rank));
    json_object_object_add(broker, "children", children);
    return broker;
}

static void overlay_topology(struct broker *broker, const flux_msg_t *msg)
{
    struct json_object *json = show_broker(0, broker->run->step.nnodes);
    overlay_answer(broker, msg, 0, json_object_to_json_string(json));
    json_object_put(json);
}

/* A broker below a lost one is lost too. */
static void overlay_lost(struct broker *broker, const flux_msg_t *msg)
{
    uint32_t lost;
    if (msg->head.data_len != sizeof(lost))
        return;
    memcpy(&lost, msg->data, sizeof(lost));
    for (uint32_t rank = 0; rank < broker->run->step.nnodes; rank++)
        broker->offline[rank] |= tree_below(rank, lost);
    for (struct waiting *watcher = broker->watchers; watcher; watcher = watcher->next)
        tell_online(broker, watcher->msg);
}

static void event_pub(struct broker *broker, const flux_msg_t *msg)
{
    struct json_object *json = standin_msg_json(msg), *topic, *payload;
    flux_msg_t *event;
    if (!json || !json_object_object_get_ex(json, "topic", &topic) ||
        !json_object_object_get_ex(json, "payload", &payload)) {
        overlay_answer(broker, msg, EPROTO, NULL);
        return;
    }
    const char *text = json_object_to_json_string(payload);
    event =
        standin_msg_new(FLUX_MSGTYPE_EVENT, json_object_get_string(topic), text, strlen(text) + 1);
    if (event) {
        event->head.userid = msg->head.userid;
        event->head.rolemask = msg->head.rolemask;
    }
    overlay_route(broker, event);
    overlay_answer(broker, msg, 0, NULL);
}

static void tell_run(const struct broker *broker, int what, int32_t value)
{
    struct run_event event = {.what = what, .value = value};
    if (write(((struct flux_run *)broker->run->state)->events, &event, sizeof(event)) < 0)
        say_error("cannot tell musterrun: %s", strerror(errno));
}

/* As with Flux, the first exception says how the job ends, and with status 0 flux run ends with 1.
 */
static void end_job(struct broker *broker, struct json_object *wait_status)
{
    int status = json_object_get_int(wait_status);
    if (wait_status && !broker->raised)
        tell_run(broker, EVENT_STATUS, status == 0 ? 1 : WEXITSTATUS(status));
    broker->raised = true;
    tell_run(broker, EVENT_SIGNAL, SIGTERM);
}

/* As with Flux, tasks are sent SIGTERM first, and killed if they do not heed it. */
static void job_raise(struct broker *broker, const flux_msg_t *msg)
{
    struct json_object *json = standin_msg_json(msg), *id, *type, *severity, *note,
                       *wait_status = NULL;
    if (!json || !json_object_object_get_ex(json, "id", &id) ||
        !json_object_object_get_ex(json, "type", &type) ||
        !json_object_object_get_ex(json, "severity", &severity) ||
        !json_object_object_get_ex(json, "note", &note)) {
        overlay_answer(broker, msg, EPROTO, NULL);
        return;
    }
    if (json_object_get_int64(id) != broker->run->step.job) {
        overlay_answer(broker, msg, ENOENT, "unknown job");
        return;
    }
    json_object_object_get_ex(json, "wait_status", &wait_status);
    say_error("job.exception type=%s severity=%d %s", json_object_get_string(type),
              json_object_get_int(severity), json_object_get_string(note));
    if (json_object_get_int(severity) == 0)
        end_job(broker, wait_status);
    overlay_answer(broker, msg, 0, NULL);
}

/* Of the eventlog, what muster looks for: whether the job is being ended. */
static void job_getattr(struct broker *broker, const flux_msg_t *msg)
{
    overlay_answer(broker, msg, 0,
                   broker->raised ? "{\"eventlog\":[{\"name\":\"exception\",\"context\":"
                                    "{\"type\":\"exec\",\"severity\":0}}]}"
                                  : "{\"eventlog\":[{\"name\":\"start\"}]}");
}

void services_request(struct broker *broker, const flux_msg_t *msg)
{
    static const struct {
        const char *topic;
        void (*call)(struct broker *broker, const flux_msg_t *msg);
    } services[] = {{"groups.get", groups_get},           {"event.pub", event_pub},
                    {"job-manager.getattr", job_getattr}, {"job-manager.raise", job_raise},
                    {"overlay.lost", overlay_lost},       {"overlay.topology", overlay_topology}};

    for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++) {
        if (strcmp(services[i].topic, msg->topic) != 0)
            continue;
        if ((msg->head.rolemask & FLUX_ROLE_OWNER) == 0)
            overlay_answer(broker, msg, EPERM, NULL);
        else
            services[i].call(broker, msg);
        return;
    }
    overlay_answer(broker, msg, ENOSYS, NULL);
}
