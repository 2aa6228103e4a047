/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Messages: made, read, and as bytes.
 */
#include "shims/flux/standin/flux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

flux_msg_t *standin_msg_new(int type, const char *topic, const void *data, size_t len)
{
    flux_msg_t *msg = calloc(1, sizeof(*msg));
    if (!msg)
        return NULL;
    msg->refs = 1;
    msg->head = (struct msg_head){.type = type,
                                  .nodeid = (uint32_t)FLUX_NODEID_ANY,
                                  .userid = geteuid(),
                                  .rolemask = FLUX_ROLE_OWNER,
                                  .topic_len = topic ? (uint32_t)strlen(topic) : 0,
                                  .data_len = data ? (uint32_t)len : 0};
    msg->topic = strdup(topic ? topic : "");
    if (data && (msg->data = malloc(len + 1))) {
        memcpy(msg->data, data, len);
        msg->data[len] = '\0';
    }
    if (msg->topic && (!data || msg->data))
        return msg;
    flux_msg_decref(msg);
    errno = ENOMEM;
    return NULL;
}

flux_msg_t *standin_msg_copy(const flux_msg_t *msg)
{
    flux_msg_t *copy = standin_msg_new(msg->head.type, msg->topic, msg->data, msg->head.data_len);
    if (copy)
        copy->head = msg->head;
    return copy;
}

flux_msg_t *standin_msg_answer(const flux_msg_t *request, int errnum, const void *data, size_t len)
{
    flux_msg_t *msg = standin_msg_new(FLUX_MSGTYPE_RESPONSE, request->topic, data, len);
    if (!msg)
        return NULL;
    msg->head.errnum = errnum;
    msg->head.matchtag = request->head.matchtag;
    msg->head.nroutes = request->head.nroutes;
    memcpy(msg->head.routes, request->head.routes, sizeof(msg->head.routes));
    return msg;
}

int standin_msg_put(struct evbuffer *out, const flux_msg_t *msg)
{
    struct msg_head head = msg->head;
    head.flags = msg->data ? head.flags | 1U << 31 : head.flags;
    return evbuffer_add(out, &head, sizeof(head)) == 0 &&
                   evbuffer_add(out, msg->topic, head.topic_len) == 0 &&
                   evbuffer_add(out, msg->data, head.data_len) == 0
               ? 0
               : -1;
}

flux_msg_t *standin_msg_take(struct evbuffer *in)
{
    struct msg_head head;
    flux_msg_t *msg;
    errno = EAGAIN;
    if (evbuffer_copyout(in, &head, sizeof(head)) != (ssize_t)sizeof(head))
        return NULL;
    if (head.nroutes > ROUTES_MAX || head.topic_len > 1024 || head.data_len > MESSAGE_MAX) {
        errno = EPROTO;
        return NULL;
    }
    if (evbuffer_get_length(in) < sizeof(head) + head.topic_len + head.data_len)
        return NULL;
    msg = calloc(1, sizeof(*msg));
    char *topic = malloc(head.topic_len + 1);
    if (msg && topic && head.flags >> 31)
        msg->data = malloc(head.data_len + 1);
    if (!msg || !topic || (head.flags >> 31 && !msg->data)) {
        free(msg);
        free(topic);
        errno = ENOMEM;
        return NULL;
    }
    evbuffer_drain(in, sizeof(head));
    evbuffer_remove(in, topic, head.topic_len);
    topic[head.topic_len] = '\0';
    if (msg->data) {
        evbuffer_remove(in, msg->data, head.data_len);
        msg->data[head.data_len] = '\0';
    }
    head.flags &= ~(1U << 31);
    msg->refs = 1;
    msg->head = head;
    msg->topic = topic;
    return msg;
}

struct json_object *standin_msg_json(const flux_msg_t *msg)
{
    flux_msg_t *its = (flux_msg_t *)msg;
    if (!its->json && its->data)
        its->json = json_tokener_parse(its->data);
    if (!its->json)
        errno = EPROTO;
    return its->json;
}

const flux_msg_t *flux_msg_incref(const flux_msg_t *msg)
{
    ((flux_msg_t *)msg)->refs++;
    return msg;
}

void flux_msg_decref(const flux_msg_t *msg)
{
    flux_msg_t *its = (flux_msg_t *)msg;
    int saved = errno;
    if (!its || --its->refs > 0)
        return;
    json_object_put(its->json);
    free(its->topic);
    free(its->data);
    free(its);
    errno = saved;
}

void flux_msg_destroy(flux_msg_t *msg)
{
    flux_msg_decref(msg);
}

int flux_msg_get_cred(const flux_msg_t *msg, struct flux_msg_cred *cred)
{
    *cred = (struct flux_msg_cred){msg->head.userid, msg->head.rolemask};
    return 0;
}

bool flux_msg_is_local(const flux_msg_t *msg)
{
    return (msg->head.flags & MSG_DISTANT) == 0;
}

bool flux_msg_is_streaming(const flux_msg_t *msg)
{
    return (msg->head.flags & MSG_STREAMING) != 0;
}

int flux_msg_set_streaming(flux_msg_t *msg)
{
    msg->head.flags |= MSG_STREAMING;
    return 0;
}

int flux_msg_set_noresponse(flux_msg_t *msg)
{
    msg->head.flags |= MSG_NORESPONSE;
    msg->head.matchtag = FLUX_MATCHTAG_NONE;
    return 0;
}

int flux_msg_set_matchtag(flux_msg_t *msg, uint32_t matchtag)
{
    msg->head.matchtag = matchtag;
    return 0;
}

int flux_msg_set_nodeid(flux_msg_t *msg, uint32_t nodeid)
{
    msg->head.nodeid = nodeid;
    return 0;
}

int flux_msg_get_matchtag(const flux_msg_t *msg, uint32_t *matchtag)
{
    *matchtag = msg->head.matchtag;
    return 0;
}

const char *flux_msg_route_first(const flux_msg_t *msg)
{
    flux_msg_t *its = (flux_msg_t *)msg;
    if (its->head.nroutes == 0)
        return NULL;
    snprintf(its->uuid, sizeof(its->uuid), "%016llx", (unsigned long long)its->head.routes[0]);
    return its->uuid;
}

flux_msg_t *flux_request_encode(const char *topic, const char *s)
{
    return standin_msg_new(FLUX_MSGTYPE_REQUEST, topic, s, s ? strlen(s) + 1 : 0);
}

flux_msg_t *flux_request_encode_raw(const char *topic, const void *data, size_t len)
{
    return standin_msg_new(FLUX_MSGTYPE_REQUEST, topic, data, len);
}

static int decode(const flux_msg_t *msg, int type, const char **topic, const void **data,
                  size_t *len)
{
    if (msg->head.type != type) {
        errno = EPROTO;
        return -1;
    }
    if (topic)
        *topic = msg->topic;
    *data = msg->data;
    *len = msg->head.data_len;
    return 0;
}

int flux_request_decode_raw(const flux_msg_t *msg, const char **topic, const void **data,
                            size_t *len)
{
    return decode(msg, FLUX_MSGTYPE_REQUEST, topic, data, len);
}

int flux_response_decode_raw(const flux_msg_t *msg, const char **topic, const void **data,
                             size_t *len)
{
    if (msg->head.type == FLUX_MSGTYPE_RESPONSE && msg->head.errnum != 0) {
        errno = msg->head.errnum;
        return -1;
    }
    return decode(msg, FLUX_MSGTYPE_RESPONSE, topic, data, len);
}

int flux_response_decode_error(const flux_msg_t *msg, const char **errstr)
{
    if (msg->head.errnum == 0 || !msg->data) {
        errno = ENOENT;
        return -1;
    }
    *errstr = msg->data;
    return 0;
}
