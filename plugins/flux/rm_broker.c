/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the local broker. Messages are made and read by hand instead of by Flux's
 * futures, whose reactor would be a second loop within ours. */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/states.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum broker_event { BROKER_ASK, BROKER_WELCOME, BROKER_REFUSE, BROKER_DELAY, BROKER_LOSE, EVENTS };

static const char *const state_names[BROKER_STATES] = {"apart", "busy", "asked", "knows us",
                                                       "gone"};
static const char *const event_names[EVENTS] = {"ask", "welcome", "refuse", "delay", "lose"};

static const int table[BROKER_STATES][EVENTS] = {
    /*                  ASK           WELCOME       REFUSE        DELAY        LOSE */
    [BROKER_APART] = {BROKER_ASKED, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
    [BROKER_BUSY] = {BROKER_ASKED, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
    [BROKER_ASKED] = {STATES_NONE, BROKER_KNOWS, BROKER_APART, BROKER_BUSY, BROKER_GONE},
    [BROKER_KNOWS] = {STATES_NONE, BROKER_KNOWS, BROKER_APART, BROKER_BUSY, BROKER_GONE},
    [BROKER_GONE] = {STATES_NONE, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
};

static const struct states life = {state_names, event_names, &table[0][0], EVENTS};

static void move(struct rm *rm, enum broker_event event)
{
    int to = states_next(&life, (int)rm->broker, event, "transport: the broker's module");
    if (to != STATES_NONE)
        rm->broker = (enum broker_state)to;
}

/* @return a socket, or -1 with errno */
static int connect_to(const char *uri)
{
    static const char scheme[] = "local://";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = uri + sizeof scheme - 1;
    errno = EINVAL;
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0 || strlen(path) >= sizeof addr.sun_path)
        return -1;
    strcpy(addr.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* The socket is ours, so that the loop can await what is to be read: flux_pollfd() is ready for
 * writing, too, whenever the broker has read something, which costs a wake for each message. */
int broker_connect(struct rm *rm, const char *uri, struct err *err)
{
    char name[32];
    flux_error_t error = {.text = ""};
    rm->fd = connect_to(uri);
    if (rm->fd < 0)
        return err_set(err, "the broker at %s cannot be reached: %s", uri, strerror(errno));
    snprintf(name, sizeof name, "fd://%d", rm->fd);
    rm->h = flux_open_ex(name, 0, &error); /* which then closes it */
    if (rm->h != NULL)
        return 0;
    close(rm->fd);
    return err_set(err, "the broker at %s cannot be reached: %s", uri, error.text);
}

static void broker_lost(struct rm *rm)
{
    if (rm->broker == BROKER_GONE)
        return;
    move(rm, BROKER_LOSE);
    event_del(rm->ready);
    peers_lose(rm, "the connection to our own broker was lost");
    err_set(&rm->refused, "the broker closed the connection");
    rm_wake(rm);
}

uint32_t broker_tag(struct rm *rm)
{
    if (++rm->last_tag == FLUX_MATCHTAG_NONE)
        rm->last_tag++;
    return rm->last_tag;
}

void broker_send(struct rm *rm, flux_msg_t *msg, uint32_t tag)
{
    bool gone = rm->broker == BROKER_GONE;
    int rc = msg == NULL || gone ? -1
             : tag != 0          ? flux_msg_set_matchtag(msg, tag)
                                 : flux_msg_set_noresponse(msg);
    if (rc < 0 && !gone)
        log_error("a message to the broker cannot be made: %s", strerror(errno));
    else if (rc == 0 && flux_send(rm->h, msg, 0) < 0)
        broker_lost(rm);
    flux_msg_destroy(msg);
}

flux_msg_t *broker_request(const char *topic, uint32_t broker, struct wire_out *out)
{
    flux_msg_t *msg = out->failed ? NULL : flux_request_encode_raw(topic, out->data, out->len);
    wire_out_free(out);
    if (msg != NULL && flux_msg_set_nodeid(msg, broker) < 0) {
        flux_msg_destroy(msg);
        msg = NULL;
    }
    return msg;
}

void broker_ask(struct rm *rm, const char *topic, struct wire_out *out, uint32_t tag)
{
    broker_send(rm, broker_request(topic, rm->brokers[rm->boot->node], out), tag);
}

void broker_register(struct rm *rm)
{
    struct wire_out out = {0};
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, rm->job);
    wire_put_u32(&out, rm->boot->node);
    wire_put_u32(&out, rm->boot->nnodes);
    for (uint32_t node = 0; node < rm->boot->nnodes; node++)
        wire_put_u32(&out, rm->brokers[node]);
    flux_msg_t *msg = broker_request("muster.register", rm->brokers[rm->boot->node], &out);
    rm->stream = broker_tag(rm);
    move(rm, BROKER_ASK);
    if (msg != NULL)
        flux_msg_set_streaming(msg);
    broker_send(rm, msg, rm->stream);
}

/* The module was unloaded, or was not there, or refuses us. It may come again. */
static void stream_failed(struct rm *rm, int rc, const char *why)
{
    rm->stream = 0;
    move(rm, rc == EAGAIN ? BROKER_DELAY : BROKER_REFUSE);
    memset(&rm->refused, 0, sizeof rm->refused);
    if (rc == ENOSYS)
        err_set(&rm->refused, "muster's module is not loaded in this node's broker: " LOAD_MODULE);
    else
        err_set(&rm->refused, "the broker's module refuses: %s", why);
    if (rm->silent_since == 0) {
        rm->silent_since = now_ms();
        rm->register_ms = RM_RETRY_FIRST_MS;
        log_debug("transport: %s", rm->refused.text);
    }
    rm->register_at = now_ms() + rm->register_ms;
    rm->register_ms = rm->register_ms * 2 > RM_RETRY_MAX_MS ? RM_RETRY_MAX_MS : rm->register_ms * 2;
}

int64_t broker_tick(struct rm *rm, int64_t now)
{
    struct wire_out out = {0};
    bool full = rm->taken >= PACKET_WINDOW_MESSAGES || rm->taken_bytes >= PACKET_WINDOW_BYTES;
    if (rm->took_at == 0 || (now < rm->took_at && !full))
        return rm->took_at == 0 ? INT64_MAX : rm->took_at;
    rm->taken = 0;
    rm->taken_bytes = 0;
    rm->took_at = 0;
    wire_put_u64(&out, rm->job);
    wire_put_u64(&out, rm->ticket);
    broker_ask(rm, "muster.took", &out, 0);
    return INT64_MAX;
}

static void say_state(struct rm *rm)
{
    struct wire_out out = {0};
    size_t len = 0;
    char *text = rm->host.state(rm->host.arg, PACKET_STATE_MAX, &len);
    wire_put_u64(&out, rm->job);
    wire_put_raw(&out, text, len);
    broker_ask(rm, "muster.state", &out, 0);
    free(text);
}

static void take_bytes(struct rm *rm, struct wire_in *in)
{
    size_t len;
    uint64_t ticket = wire_get_u64(in);
    const void *data = packet_rest(in, &len);
    if (in->bad)
        return;
    if (!rm->closing)
        rm->host.receive(rm->host.arg, data, len);
    int64_t now = now_ms();
    rm->ticket = ticket;
    rm->taken++;
    rm->taken_bytes += len;
    if (rm->took_at == 0)
        rm->took_by = now + PACKET_TOOK_MAX_MS;
    rm->took_at = now + PACKET_TOOK_MS < rm->took_by ? now + PACKET_TOOK_MS : rm->took_by;
    broker_tick(rm, now);
}

/* The first one counts: later ones are of a module that was loaded anew. One that is malformed is
 * none. */
static void take_welcome(struct rm *rm, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, 4), *parents = NULL;
    if (n == rm->boot->nnodes)
        parents = calloc(n, sizeof *parents);
    for (uint32_t node = 0; node < n && parents != NULL; node++)
        parents[node] = wire_get_u32(in);
    if (!wire_end(in) || (n != 0 && parents == NULL)) {
        log_error(
            "transport: the broker's module accepts this server in a way that it cannot read");
        free(parents);
        return;
    }
    move(rm, BROKER_WELCOME);
    rm->silent_since = 0;
    if (rm->warned)
        log_warning("muster's module is loaded again in this node's broker");
    rm->warned = false;
    if (rm->opening) {
        rm->parents = parents;
    } else {
        free(parents);
        others_find_again(rm);
    }
    for (uint32_t node = 0; node < rm->npeers; node++)
        peer_push(rm, node);
}

static void take_packet(struct rm *rm, const void *data, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    switch (wire_get_u8(&in)) {
    case PACKET_WELCOME:
        take_welcome(rm, &in);
        return;
    case PACKET_BYTES:
        take_bytes(rm, &in);
        return;
    case PACKET_STATE:
        say_state(rm);
        return;
    case PACKET_GONE: {
        uint64_t job = wire_get_u64(&in);
        uint32_t node = wire_get_u32(&in);
        uint8_t loss = wire_get_u8(&in);
        if (wire_end(&in))
            peer_gone(rm, job, node, loss);
        return;
    }
    case PACKET_OFFLINE: {
        uint32_t broker = wire_get_u32(&in);
        if (wire_end(&in))
            peers_offline(rm, broker);
        return;
    }
    }
}

static void take_response(struct rm *rm, const flux_msg_t *msg)
{
    uint32_t tag;
    const void *data = NULL;
    size_t len = 0;
    if (flux_msg_get_matchtag(msg, &tag) < 0 || tag == FLUX_MATCHTAG_NONE)
        return;
    bool ours = tag == rm->stream || tag == rm->raise.tag;
    int rc = ours && flux_response_decode_raw(msg, NULL, &data, &len) < 0 ? errno : 0;
    const char *why = NULL;
    if (rc != 0 && (flux_response_decode_error(msg, &why) < 0 || why == NULL))
        why = strerror(rc);
    if (!ours) {
        if (!others_answer(rm, tag, msg) && !spawns_answer(rm, tag, msg))
            peer_answer(rm, tag, msg);
    } else if (raise_answer(rm, tag, rc, why, data, len)) {
        return;
    } else if (rc != 0) {
        stream_failed(rm, rc, why);
    } else {
        take_packet(rm, data, len);
    }
}

void broker_receive(struct rm *rm)
{
    const struct flux_match responses = {.typemask = FLUX_MSGTYPE_RESPONSE};
    while (rm->broker != BROKER_GONE && !(rm->opening && rm->broker == BROKER_KNOWS)) {
        flux_msg_t *msg = flux_recv(rm->h, responses, FLUX_O_NONBLOCK);
        if (msg == NULL) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                broker_lost(rm);
            return;
        }
        take_response(rm, msg);
        flux_msg_destroy(msg);
    }
}
