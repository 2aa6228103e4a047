/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for the state: the socket, and the collection of what other servers say. */
#include "common/server/peers/ask_all.h"
#include "common/server/server.h"
#include "common/server/status/guard.h"
#include "common/server/status/status.h"
#include "common/status/fields.h"
#include "common/util/local.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <json-c/json.h>
#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    TAILQ_ENTRY(connection) entry;
    struct status *status;
    struct bufferevent *bev;
    struct timer end;    /* of its life */
    bool waiting;        /* for the collection */
    struct guard *guard; /* it stands as long as a tool looks at tasks; NULL: it does not */
};

/* What all servers say, as it comes: text of JSON, with a comma after each element. Objects would
 * take many times that memory. */
struct collection {
    struct wire_out nodes, silent;
    uint64_t open; /* servers that have not answered */
};

struct status {
    struct server *server;
    struct evconnlistener *listener;
    struct status_signal *signal;
    struct guards *guards;
    TAILQ_HEAD(, connection) open;
    unsigned count;
    struct collection *collection; /* NULL: no client waits for one */
};

/* ---- connections ---- */

static void drop(struct connection *c)
{
    if (c->guard != NULL)
        guard_end(c->guard, false);
    TAILQ_REMOVE(&c->status->open, c, entry);
    c->status->count--;
    timer_stop(&c->end);
    bufferevent_free(c->bev);
    free(c);
}

static void on_end(void *arg, struct timer *timer)
{
    (void)timer;
    log_debug("a request for the state was given up after %d s", STATUS_LIFE_S);
    drop(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev, (void)what;
    drop(arg);
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    if (!c->waiting && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        drop(c);
}

/* The answer is the connection's end. */
static void reply(struct connection *c, const struct wire_out *text)
{
    c->waiting = false;
    bufferevent_disable(c->bev, EV_READ);
    bufferevent_setcb(c->bev, NULL, on_written, on_event, c);
    if (bufferevent_write(c->bev, text->data, text->len) != 0)
        drop(c);
}

/* ---- what is said ---- */

static void put_element(struct wire_out *array, const char *text)
{
    wire_put_raw(array, text, strlen(text));
    wire_put_raw(array, ",", 1);
}

/* Takes one server's state, once it is parsed. @return NULL, or why it does not count */
static const char *collection_add(struct collection *all, const char *data, size_t len)
{
    if (len > STATUS_NODE_MAX)
        return "its answer is too long";
    json_tokener *tokener = json_tokener_new_ex(STATUS_DEPTH_MAX);
    json_object *o = len > 0 ? json_tokener_parse_ex(tokener, data, (int)len) : NULL;
    bool good = json_object_is_type(o, json_type_object);
    json_tokener_free(tokener);
    if (good)
        put_element(&all->nodes, field_line(o));
    json_object_put(o);
    return good ? NULL : "its answer makes no sense";
}

static void put_array(struct wire_out *out, const char *before, const struct wire_out *array)
{
    wire_put_raw(out, before, strlen(before));
    wire_put_raw(out, array->data, array->len > 0 ? array->len - 1 : 0);
}

/* Frees what was collected. @return the answer */
static struct wire_out collection_end(struct collection *all)
{
    static const char end[] = "]}\n";
    struct wire_out out = {0};
    put_array(&out, "{\"nodes\":[", &all->nodes);
    put_array(&out, "],\"silent\":[", &all->silent);
    wire_put_raw(&out, end, strlen(end));
    wire_out_free(&all->nodes);
    wire_out_free(&all->silent);
    return out;
}

static void add_self(struct status *status, struct collection *all)
{
    size_t len;
    char *text = status_text(status->server, &len);
    put_element(&all->nodes, text);
    free(text);
}

static void finish(struct status *status)
{
    struct wire_out answer = collection_end(status->collection);
    struct connection *c, *next;
    free(status->collection);
    status->collection = NULL;
    for (c = TAILQ_FIRST(&status->open); c != NULL; c = next) {
        next = TAILQ_NEXT(c, entry);
        if (c->waiting)
            reply(c, &answer);
    }
    wire_out_free(&answer);
}

static void put_silent(struct status *status, uint32_t node, const char *why)
{
    json_object *o = json_object_new_object();
    field_put_text(o, "node", status->server->boot.nodes[node].name);
    field_put_text(o, "why", why);
    put_element(&status->collection->silent, field_line(o));
    json_object_put(o);
}

/* @param late what is said of a server that is late */
static const char *why_silent(const struct server *server, uint32_t node, int32_t code,
                              const char *late)
{
    switch (code) {
    case PMIX_ERR_TIMEOUT:
        return late;
    case PMIX_ERR_LOST_CONNECTION:
        /* The back end is told when the last messages must have come. */
        return ranges_have(&server->in_order, node) ||
                       server->rm_ops->peer(server->rm, node).state == RM_PEER_LEFT
                   ? "its tasks have ended"
                   : "its server is lost";
    case VIEW_TOO_LONG:
        return "all answers together are too long";
    default:
        return "it is leaving";
    }
}

static void on_answer(void *arg, uint32_t node, int32_t code, const void *data, size_t len)
{
    struct status *status = arg;
    struct collection *all = status->collection;
    const struct server *server = status->server;
    char late[64];
    snprintf(late, sizeof late, "no answer within %d s", STATUS_ANSWER_S);
    if (node != server->boot.node) { /* our own is there */
        const char *why =
            code == 0 ? collection_add(all, data, len) : why_silent(server, node, code, late);
        if (why != NULL)
            put_silent(status, node, why);
    }
    if (--all->open == 0)
        finish(status);
}

static void collect(struct status *status)
{
    struct server *server = status->server;
    struct collection *all = status->collection = calloc(1, sizeof *all);
    add_self(status, all);
    all->open = server->boot.nnodes;
    ask_all(server, ASK_STATUS, NULL, 0, STATUS_ANSWER_S, on_answer, status);
}

int32_t status_answer(struct server *server, struct wire_out *out)
{
    size_t size;
    char *text = status_text(server, &size);
    wire_put_raw(out, text, size);
    free(text);
    return PMIX_SUCCESS;
}

/* ---- requests ---- */

/* The state of this server, as for "local"; then the connection stands until the client says "end",
 * or is no more. */
static void begin_guard(struct connection *c)
{
    struct collection own = {0};
    c->guard = guard_begin(c->status->guards);
    if (c->guard == NULL) {
        log_warning("too many tools look at the tasks of this node; one was refused");
        drop(c);
        return;
    }
    timer_stop(&c->end);
    add_self(c->status, &own);
    struct wire_out answer = collection_end(&own);
    if (bufferevent_write(c->bev, answer.data, answer.len) != 0)
        drop(c);
    wire_out_free(&answer);
}

static void end_guard(struct connection *c, const char *word)
{
    guard_end(c->guard, strcmp(word, "end\n") == 0);
    c->guard = NULL;
    drop(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    char line[STATUS_REQUEST_MAX + 1] = "";
    size_t len = evbuffer_get_length(input);
    evbuffer_copyout(input, line, STATUS_REQUEST_MAX);
    if (len < STATUS_REQUEST_MAX && strchr(line, '\n') == NULL)
        return; /* more is to come */
    if (c->guard != NULL) {
        end_guard(c, line);
    } else if (strcmp(line, "guard\n") == 0) {
        evbuffer_drain(input, len);
        begin_guard(c);
    } else if (strcmp(line, "local\n") == 0) {
        struct collection own = {0};
        add_self(c->status, &own);
        struct wire_out answer = collection_end(&own);
        reply(c, &answer);
        wire_out_free(&answer);
    } else if (strcmp(line, "all\n") == 0) {
        evbuffer_drain(input, len);
        c->waiting = true;
        if (c->status->collection == NULL)
            collect(c->status);
    } else {
        log_debug("a request for the state that makes no sense was dropped");
        drop(c);
    }
}

static bool may_ask(int fd)
{
    uid_t uid = local_peer(fd);
    if (uid == geteuid() || uid == 0)
        return true;
    log_warning("a request of uid %d for the state was refused", (int)uid);
    return false;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int addrlen, void *arg)
{
    struct status *status = arg;
    (void)listener, (void)addr, (void)addrlen;
    if (!may_ask(fd) || status->count >= STATUS_CONNECTIONS_MAX) {
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    c->status = status;
    c->bev = bufferevent_socket_new(status->server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    TAILQ_INSERT_TAIL(&status->open, c, entry);
    status->count++;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, STATUS_REQUEST_MAX);
    bufferevent_enable(c->bev, EV_READ);
    timer_init(&c->end, &status->server->timers, on_end, c);
    timer_after(&c->end, STATUS_LIFE_S * 1000);
}

/* ---- opening and closing ---- */

/* Else libevent tries again for ever, at once. */
static void on_refused(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    log_warning("muster-status cannot ask this server any more: %s", strerror(errno));
    evconnlistener_disable(listener);
}

static int open_socket(struct status *status)
{
    int fd = local_bind(status->server->boot.tmpdir, STATUS_SOCKET);
    if (fd < 0)
        return -1;
    status->listener = evconnlistener_new(status->server->base, on_accept, status,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
                                          STATUS_CONNECTIONS_MAX, fd);
    if (status->listener == NULL) {
        close(fd);
        return -1;
    }
    evconnlistener_set_error_cb(status->listener, on_refused);
    return 0;
}

struct status *status_open(struct server *server)
{
    struct status *status = calloc(1, sizeof *status);
    status->server = server;
    TAILQ_INIT(&status->open);
    status->signal = status_signal_open(server);
    status->guards = guards_open(server);
    if (open_socket(status) != 0)
        log_warning("muster-status will not see this node: no socket in %s: %s",
                    server->boot.tmpdir, strerror(errno));
    return status;
}

void status_close(struct status *status)
{
    if (status == NULL)
        return;
    while (!TAILQ_EMPTY(&status->open))
        drop(TAILQ_FIRST(&status->open));
    guards_close(status->guards);
    if (status->listener != NULL)
        evconnlistener_free(status->listener);
    status_signal_close(status->signal);
    free(status);
}
