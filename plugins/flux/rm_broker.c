/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the local broker. Messages are made and read by hand instead of by Flux's
 * futures, whose reactor would be a second loop within ours. */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/states.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const state_names[BROKER_STATES] = {"apart", "busy", "asked", "knows us",
                                                       "gone"};
static const char *const event_names[BROKER_EVENTS] = {"ask", "welcome", "refuse", "delay", "lose"};

static const int table[BROKER_STATES][BROKER_EVENTS] = {
    /*                  ASK           WELCOME       REFUSE        DELAY        LOSE */
    [BROKER_APART] = {BROKER_ASKED, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
    [BROKER_BUSY] = {BROKER_ASKED, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
    [BROKER_ASKED] = {STATES_NONE, BROKER_KNOWS, BROKER_APART, BROKER_BUSY, BROKER_GONE},
    [BROKER_KNOWS] = {STATES_NONE, BROKER_KNOWS, BROKER_APART, BROKER_BUSY, BROKER_GONE},
    [BROKER_GONE] = {STATES_NONE, STATES_NONE, STATES_NONE, STATES_NONE, BROKER_GONE},
};

static const struct states life = {state_names, event_names, &table[0][0], BROKER_EVENTS};

void broker_move(struct rm *rm, enum broker_event event)
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

void broker_lost(struct rm *rm)
{
    if (rm->broker == BROKER_GONE)
        return;
    broker_move(rm, BROKER_LOSE);
    event_del(rm->ready);
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
    broker_move(rm, BROKER_ASK);
    if (msg != NULL)
        flux_msg_set_streaming(msg);
    broker_send(rm, msg, rm->stream);
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
