/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a module does with messages: handlers, answers, events, settings.
 */
#include "shims/flux/standin/handle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

static void handler_free(flux_msg_handler_t *handler)
{
    flux_msg_handler_t **at = &handler->h->handlers;
    while (*at && *at != handler)
        at = &(*at)->next;
    if (*at)
        *at = handler->next;
    free(handler->topic);
    free(handler);
}

static flux_msg_handler_t *handler_new(flux_t *h, const char *service,
                                       const struct flux_msg_handler_spec *spec, void *arg)
{
    flux_msg_handler_t *handler = calloc(1, sizeof(*handler));
    if (!handler)
        return NULL;
    if (asprintf(&handler->topic, "%s%s%s", service ? service : "", service ? "." : "",
                 spec->topic_glob) < 0) {
        free(handler);
        return NULL;
    }
    handler->h = h;
    handler->spec = *spec;
    handler->arg = arg;
    handler->next = h->handlers;
    h->handlers = handler;
    return handler;
}

int flux_msg_handler_addvec_ex(flux_t *h, const char *service_name,
                               const struct flux_msg_handler_spec tab[], void *arg,
                               flux_msg_handler_t **hp[])
{
    size_t n = 0;
    while (tab[n].typemask != 0)
        n++;
    flux_msg_handler_t **handlers = calloc(n + 1, sizeof(flux_msg_handler_t *));
    for (size_t i = 0; handlers && i < n; i++) {
        handlers[i] = handler_new(h, service_name, &tab[i], arg);
        if (handlers[i])
            continue;
        flux_msg_handler_delvec(handlers);
        handlers = NULL;
    }
    if (!handlers) {
        errno = ENOMEM;
        return -1;
    }
    *hp = handlers;
    return 0;
}

void flux_msg_handler_delvec(flux_msg_handler_t *msg_handlers[])
{
    for (size_t i = 0; msg_handlers && msg_handlers[i]; i++)
        handler_free(msg_handlers[i]);
    free(msg_handlers);
}

static flux_msg_handler_t *find(const flux_t *h, const flux_msg_t *msg)
{
    for (flux_msg_handler_t *handler = h->handlers; handler; handler = handler->next)
        if ((handler->spec.typemask & msg->head.type) != 0 &&
            strcmp(handler->topic, msg->topic) == 0)
            return handler;
    return NULL;
}

bool standin_serves(const flux_t *h, const flux_msg_t *msg)
{
    for (flux_msg_handler_t *handler = h->handlers; handler; handler = handler->next) {
        size_t len = strcspn(handler->topic, ".");
        if (strncmp(handler->topic, msg->topic, len) == 0 && msg->topic[len] == '.')
            return true;
    }
    return false;
}

/* Others than the instance's owner have to be let in by the handler. */
static bool allowed(const flux_msg_handler_t *handler, const flux_msg_t *msg)
{
    return ((handler->spec.rolemask | FLUX_ROLE_OWNER) & msg->head.rolemask) != 0;
}

static bool wanted(const flux_t *h, const flux_msg_t *msg)
{
    return h->subscribed && strncmp(msg->topic, h->subscribed, strlen(h->subscribed)) == 0;
}

void standin_deliver(flux_t *h, const flux_msg_t *msg)
{
    if (msg->head.type == FLUX_MSGTYPE_RESPONSE) {
        future_take(h, msg);
        return;
    }
    flux_msg_handler_t *handler = find(h, msg);
    if (msg->head.type == FLUX_MSGTYPE_EVENT) {
        if (handler && wanted(h, msg) && allowed(handler, msg))
            handler->spec.cb(h, handler, msg, handler->arg);
    } else if (!handler) {
        flux_respond_error(h, msg, ENOSYS, NULL);
    } else if (!allowed(handler, msg)) {
        flux_log(h, LOG_INFO, "%s of user %u is refused", msg->topic, msg->head.userid);
        flux_respond_error(h, msg, EPERM, "only the owner of this instance may ask for this");
    } else {
        handler->spec.cb(h, handler, msg, handler->arg);
    }
}

/* ---- answers ---- */

static int answer(flux_t *h, const flux_msg_t *request, int errnum, const void *data, size_t len)
{
    if ((request->head.flags & MSG_NORESPONSE) != 0)
        return 0;
    flux_msg_t *msg = standin_msg_answer(request, errnum, data, len);
    int rc = msg ? flux_send(h, msg, 0) : -1;
    flux_msg_destroy(msg);
    return rc;
}

int flux_respond(flux_t *h, const flux_msg_t *request, const char *s)
{
    return answer(h, request, 0, s, s ? strlen(s) + 1 : 0);
}

int flux_respond_raw(flux_t *h, const flux_msg_t *request, const void *data, int len)
{
    return answer(h, request, 0, data, (size_t)len);
}

int flux_respond_error(flux_t *h, const flux_msg_t *request, int errnum, const char *errstr)
{
    return answer(h, request, errnum, errstr, errstr ? strlen(errstr) + 1 : 0);
}

/* ---- events ---- */

int flux_event_subscribe(flux_t *h, const char *topic)
{
    if (!h->broker || h->subscribed) {
        errno = ENOSYS;
        return -1;
    }
    h->subscribed = strdup(topic);
    return h->subscribed ? 0 : -1;
}

int flux_event_unpack(const flux_msg_t *msg, const char **topic, const char *fmt, ...)
{
    struct json_object *json = standin_msg_json(msg);
    va_list ap;
    if (topic)
        *topic = msg->topic;
    if (!json)
        return -1;
    va_start(ap, fmt);
    int rc = standin_vunpack(json, fmt, ap);
    va_end(ap);
    return rc;
}

flux_future_t *flux_event_publish_pack(flux_t *h, const char *topic, int flags, const char *fmt,
                                       ...)
{
    struct json_object *payload, *event = json_object_new_object();
    flux_future_t *f = NULL;
    va_list ap;
    va_start(ap, fmt);
    payload = standin_vpack(fmt, ap);
    va_end(ap);
    if (event && payload &&
        json_object_object_add(event, "topic", json_object_new_string(topic)) == 0 &&
        json_object_object_add(event, "payload", json_object_get(payload)) == 0)
        f = flux_rpc(h, "event.pub", json_object_to_json_string(event), 0, flags);
    json_object_put(payload);
    json_object_put(event);
    return f;
}

/* ---- settings ---- */

const flux_conf_t *flux_get_conf(flux_t *h)
{
    return h->conf;
}

int flux_set_conf_new(flux_t *h, const flux_conf_t *conf)
{
    flux_conf_decref(h->conf);
    h->conf = (flux_conf_t *)conf;
    return 0;
}

int flux_conf_unpack(const flux_conf_t *conf, flux_error_t *error, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = standin_vunpack(conf->table, fmt, ap);
    va_end(ap);
    if (rc < 0 && error)
        snprintf(error->text, sizeof(error->text), "a setting is missing or of another type");
    return rc;
}

void flux_conf_decref(const flux_conf_t *conf)
{
    flux_conf_t *its = (flux_conf_t *)conf;
    if (!its || --its->refs > 0)
        return;
    json_object_put(its->table);
    free(its);
}

int flux_module_config_request_decode(const flux_msg_t *msg, flux_conf_t **conf)
{
    struct json_object *json = standin_msg_json(msg);
    if (!json)
        return -1;
    *conf = calloc(1, sizeof(**conf));
    if (!*conf)
        return -1;
    **conf = (flux_conf_t){.refs = 1, .table = json_object_get(json)};
    return 0;
}

/* jansson's, of whose type the settings are. */
char *json_dumps(const json_t *json, size_t flags)
{
    struct json_object *object = (struct json_object *)json;
    (void)flags;
    if (!json_object_is_type(object, json_type_object) &&
        !json_object_is_type(object, json_type_array))
        return NULL;
    return strdup(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
}
