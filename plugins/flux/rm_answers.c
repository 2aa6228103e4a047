/* SPDX-License-Identifier: BSD-3-Clause */
/* What the broker sends: what its module says, and answers to all that was asked. */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The module was unloaded, or was not there, or refuses us. It may come again. */
static void stream_failed(struct rm *rm, int rc, const char *why)
{
    rm->stream = 0;
    broker_move(rm, rc == EAGAIN ? BROKER_DELAY : BROKER_REFUSE);
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
    broker_move(rm, BROKER_WELCOME);
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
