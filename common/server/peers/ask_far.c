/* SPDX-License-Identifier: BSD-3-Clause */
/* A question to all servers of another step. */
#include "common/server/peers/ask_far.h"

#include "common/server/steps/steps.h"
#include "common/tracker/values/tree.h"

#include <pmix_common.h>
#include <stdlib.h>

/* ---- asking ---- */

struct far {
    uint32_t nnodes;
    bool *said; /* by node: it was handed on */
    ask_all_answer_fn *answer;
    void *arg;
};

static void hand_on(struct far *far, uint32_t node, int32_t status, const void *data, size_t len)
{
    if (node >= far->nnodes || far->said[node])
        return;
    far->said[node] = true;
    far->answer(far->arg, node, status, status == 0 ? data : NULL, status == 0 ? len : 0);
}

/* Of a server of which nothing is said, its step has heard nothing. The last call may free what the
 * caller has, so it comes when nothing of it is needed any more. */
static void on_far(void *arg, int32_t status, const void *data, size_t len)
{
    struct far *far = arg;
    struct wire_in in;
    wire_in_init(&in, data, status == 0 ? len : 0);
    while (in.p < in.end && !in.bad) {
        size_t size;
        uint32_t node = wire_get_u32(&in);
        int32_t its = wire_get_i32(&in);
        const void *bytes = wire_get_block(&in, &size);
        if (!in.bad)
            hand_on(far, node, its, bytes, size);
    }
    for (uint32_t node = 0; node < far->nnodes; node++)
        hand_on(far, node, status != 0 ? status : PMIX_ERR_LOST_CONNECTION, NULL, 0);
    free(far->said);
    free(far);
}

void ask_far(struct server *server, const struct nspace *ns, enum ask_topic topic, const void *body,
             size_t len, uint32_t timeout, ask_all_answer_fn *answer, void *arg)
{
    uint32_t first = steps_server_there(server, ns, false), n = ns->nnodes;
    if (first == TREE_NONE) {
        for (uint32_t node = 0; node < n; node++)
            answer(arg, node, PMIX_ERR_LOST_CONNECTION, NULL, 0);
        return;
    }
    struct far *far = calloc(1, sizeof *far);
    *far = (struct far){n, calloc(n, sizeof *far->said), answer, arg};
    struct wire_out out = {0};
    wire_put_u8(&out, (uint8_t)topic);
    wire_put_u32(&out, timeout > 2 ? timeout / 2 : 1); /* a server that hangs takes twice that */
    wire_put_raw(&out, body, len);
    asks_send(server->asks, first, ASK_FAR, out.data, out.len, timeout, on_far, far);
    wire_out_free(&out);
}

/* ---- answering ---- */

struct served_far {
    struct server *server;
    uint32_t from, open; /* servers that have not answered */
    uint64_t id;
    struct wire_out out;
};

static void on_one(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct served_far *s = arg;
    wire_put_u32(&s->out, node);
    wire_put_i32(&s->out, status);
    wire_put_block(&s->out, data, status == 0 ? len : 0);
    if (--s->open > 0)
        return;
    asks_reply(s->server->asks, s->from, s->id, 0, s->out.data, s->out.len);
    wire_out_free(&s->out);
    free(s);
}

void ask_far_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint8_t topic = wire_get_u8(&in);
    uint32_t timeout = wire_get_u32(&in);
    if (in.bad || topic != ASK_QUERY) {
        asks_reply(server->asks, from, id, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
        return;
    }
    struct served_far *s = calloc(1, sizeof *s);
    *s = (struct served_far){.server = server, .from = from, .open = server->boot.nnodes, .id = id};
    ask_all(server, (enum ask_topic)topic, in.p, (size_t)(in.end - in.p), timeout, on_one, s);
}
