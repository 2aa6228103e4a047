/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Requests and their answers, watchers, and what else libflux-core tells a shell's plugin.
 */
#include "shims/flux/standin/handle.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* @param msg taken over */
static flux_future_t *request(flux_t *h, flux_msg_t *msg, uint32_t nodeid, int flags)
{
    flux_future_t *f = msg ? calloc(1, sizeof(*f)) : NULL;
    int rc = -1;
    if (f) {
        msg->head.nodeid = nodeid;
        if (flags & FLUX_RPC_NORESPONSE) {
            flux_msg_set_noresponse(msg);
        } else {
            if (++h->last_tag == FLUX_MATCHTAG_NONE)
                h->last_tag++;
            flux_msg_set_matchtag(msg, h->last_tag);
        }
        if (flags & FLUX_RPC_STREAMING)
            flux_msg_set_streaming(msg);
        f->h = h;
        f->matchtag = msg->head.matchtag;
        f->next = h->futures;
        h->futures = f;
        rc = flux_send(h, msg, 0);
    }
    flux_msg_destroy(msg);
    if (rc == 0)
        return f;
    flux_future_destroy(f);
    return NULL;
}

flux_future_t *flux_rpc(flux_t *h, const char *topic, const char *s, uint32_t nodeid, int flags)
{
    return request(h, flux_request_encode(topic, s), nodeid, flags);
}

flux_future_t *flux_rpc_raw(flux_t *h, const char *topic, const void *data, size_t len,
                            uint32_t nodeid, int flags)
{
    return request(h, flux_request_encode_raw(topic, data, len), nodeid, flags);
}

flux_future_t *flux_rpc_pack(flux_t *h, const char *topic, uint32_t nodeid, int flags,
                             const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct json_object *json = standin_vpack(fmt, ap);
    va_end(ap);
    if (!json)
        return NULL;
    flux_future_t *f = flux_rpc(h, topic, json_object_to_json_string(json), nodeid, flags);
    json_object_put(json);
    return f;
}

void future_take(flux_t *h, const flux_msg_t *response)
{
    flux_future_t *f = h->futures;
    while (f && (f->matchtag == FLUX_MATCHTAG_NONE || f->matchtag != response->head.matchtag))
        f = f->next;
    if (!f)
        return;
    flux_msg_decref(f->response);
    f->response = (flux_msg_t *)flux_msg_incref(response);
    if (f->then)
        f->then(f, f->arg);
}

/* Only for a module, which is given its messages by the broker's loop. */
int flux_future_then(flux_future_t *f, double timeout, flux_continuation_f cb, void *arg)
{
    if (!f->h->broker || timeout >= 0) {
        errno = ENOSYS;
        return -1;
    }
    f->then = cb;
    f->arg = arg;
    return 0;
}

void flux_future_reset(flux_future_t *f)
{
    flux_msg_decref(f->response);
    f->response = NULL;
}

void flux_future_destroy(flux_future_t *f)
{
    flux_future_t **at;
    if (!f)
        return;
    for (at = &f->h->futures; *at && *at != f; at = &(*at)->next)
        ;
    if (*at)
        *at = f->next;
    flux_msg_decref(f->response);
    free(f);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Only for a connection: nothing else that is waited for comes over it meanwhile. */
int flux_future_wait_for(flux_future_t *f, double timeout)
{
    const struct flux_match responses = {.typemask = FLUX_MSGTYPE_RESPONSE};
    double end = now() + timeout;
    while (!f->response) {
        struct pollfd ready = {f->h->fd, POLLIN, 0};
        flux_msg_t *msg = flux_recv(f->h, responses, FLUX_O_NONBLOCK);
        double left = end - now();
        if (msg) {
            future_take(f->h, msg);
            flux_msg_destroy(msg);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -1;
        if (timeout >= 0 && left <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        poll(&ready, 1, timeout < 0 ? -1 : (int)(left * 1000) + 1);
    }
    return 0;
}

int flux_rpc_get_raw(flux_future_t *f, const void **data, size_t *len)
{
    if (!f->response && flux_future_wait_for(f, -1) < 0)
        return -1;
    return flux_response_decode_raw(f->response, NULL, data, len);
}

int flux_rpc_get(flux_future_t *f, const char **s)
{
    const void *data;
    size_t len;
    if (flux_rpc_get_raw(f, &data, &len) < 0)
        return -1;
    if (s)
        *s = data;
    return 0;
}

int flux_rpc_get_unpack(flux_future_t *f, const char *fmt, ...)
{
    va_list ap;
    if (flux_rpc_get(f, NULL) < 0)
        return -1;
    struct json_object *json = standin_msg_json(f->response);
    if (!json)
        return -1;
    va_start(ap, fmt);
    int rc = standin_vunpack(json, fmt, ap);
    va_end(ap);
    return rc;
}

const char *flux_future_error_string(flux_future_t *f)
{
    const char *text;
    if (!f->response || f->response->head.errnum == 0)
        return "Success";
    return flux_response_decode_error(f->response, &text) == 0 ? text
                                                               : strerror(f->response->head.errnum);
}

/* ---- watchers ---- */

struct flux_watcher {
    struct event *event;
    struct timeval after;
    bool timed; /**< else of a descriptor, for good */
    flux_reactor_t *reactor;
    flux_watcher_f call;
    void *arg;
};

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    flux_watcher_t *w = arg;
    (void)fd;
    w->call(w->reactor, w,
            (what & EV_READ ? FLUX_POLLIN : 0) | (what & EV_WRITE ? FLUX_POLLOUT : 0), w->arg);
}

static flux_watcher_t *watcher_new(flux_reactor_t *r, int fd, short what, flux_watcher_f cb,
                                   void *arg)
{
    flux_watcher_t *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    *w = (flux_watcher_t){.reactor = r, .call = cb, .arg = arg};
    w->event = event_new((struct event_base *)r, fd, what, on_event, w);
    if (w->event)
        return w;
    free(w);
    return NULL;
}

flux_watcher_t *flux_fd_watcher_create(flux_reactor_t *r, int fd, int events, flux_watcher_f cb,
                                       void *arg)
{
    short what = EV_PERSIST;
    if (events & FLUX_POLLIN)
        what |= EV_READ;
    if (events & FLUX_POLLOUT)
        what |= EV_WRITE;
    return watcher_new(r, fd, what, cb, arg);
}

flux_watcher_t *flux_timer_watcher_create(flux_reactor_t *r, double after, double repeat,
                                          flux_watcher_f cb, void *arg)
{
    bool once = repeat == 0, known = once || (repeat >= after && repeat <= after);
    flux_watcher_t *w = known ? watcher_new(r, -1, once ? 0 : EV_PERSIST, cb, arg) : NULL;
    if (!w)
        return NULL;
    w->timed = true;
    w->after.tv_sec = (time_t)after;
    w->after.tv_usec = (suseconds_t)((after - (double)w->after.tv_sec) * 1e6);
    return w;
}

void flux_watcher_start(flux_watcher_t *w)
{
    event_add(w->event, w->timed ? &w->after : NULL);
}

void flux_watcher_stop(flux_watcher_t *w)
{
    event_del(w->event);
}

void flux_watcher_destroy(flux_watcher_t *w)
{
    if (!w)
        return;
    event_free(w->event);
    free(w);
}

/* Which Flux it stands in for. */
const char *flux_core_version_string(void)
{
    return "0.88.0";
}

int flux_core_version(int *major, int *minor, int *patch)
{
    *major = 0;
    *minor = 88;
    *patch = 0;
    return 88 << 8;
}
