/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a question: u8 topic, then the body of an ASK of that topic. */
#include "common/server/peers/ask_all.h"

#include "common/server/server.h"
#include "common/view/view.h"

#include <pmix_common.h>
#include <stdlib.h>

enum { MS_PER_S = 1000 };

/* One that is under way. */
struct gathering {
    struct server *server;
    struct wire_out text;
    uint32_t timeout;
    ask_all_answer_fn *answer;
    void *arg;
    uint32_t open; /* servers that are asked by themselves, and 1 */
};

/* A server whose answer has not come up the tree: one above it may hang. */
struct missed {
    struct gathering *of;
    uint32_t node;
};

static void let_go(struct gathering *g)
{
    if (--g->open > 0)
        return;
    wire_out_free(&g->text);
    free(g);
}

static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct missed *missed = arg;
    struct gathering *g = missed->of;
    g->answer(g->arg, missed->node, status, data, len);
    free(missed);
    let_go(g);
}

static void ask_one(struct gathering *g, uint32_t node)
{
    if (!view_has(g->server->view, node)) {
        g->answer(g->arg, node, PMIX_ERR_LOST_CONNECTION, NULL, 0);
        return;
    }
    struct missed *missed = calloc(1, sizeof *missed);
    *missed = (struct missed){g, node};
    g->open++;
    asks_send(g->server->asks, node, (enum ask_topic)g->text.data[0], g->text.data + 1,
              g->text.len - 1, g->timeout, on_answer, missed);
}

static void on_answers(void *arg, const void *answers, size_t len)
{
    struct gathering *g = arg;
    struct ranges heard = {0};
    struct wire_in in;
    wire_in_init(&in, answers, len);
    while (in.p < in.end) {
        size_t size;
        uint32_t node = wire_get_u32(&in);
        int32_t status = wire_get_i32(&in);
        const void *data = wire_get_block(&in, &size);
        if (in.bad)
            break;
        if (node < g->server->boot.nnodes && !ranges_have(&heard, node) &&
            ranges_put(&heard, node) == 0)
            g->answer(g->arg, node, status, status == 0 ? data : NULL, status == 0 ? size : 0);
    }
    for (uint32_t node = 0; node < g->server->boot.nnodes; node++)
        if (!ranges_have(&heard, node))
            ask_one(g, node);
    ranges_free(&heard);
    let_go(g);
}

void ask_all(struct server *server, enum ask_topic topic, const void *body, size_t len,
             uint32_t timeout, ask_all_answer_fn *answer, void *arg)
{
    struct gathering *g = calloc(1, sizeof *g);
    struct wire_out text = {0};
    wire_put_u8(&text, (uint8_t)topic);
    wire_put_raw(&text, body, len);
    *g = (struct gathering){server, text, timeout, answer, arg, 1};
    view_gather(server->view, text.data, text.len, timeout * MS_PER_S, on_answers, g);
}

int32_t ask_all_serve(void *arg, uint32_t origin, const void *text, size_t len,
                      struct wire_out *out)
{
    struct server *server = arg;
    struct wire_in in;
    (void)origin;
    wire_in_init(&in, text, len);
    enum ask_topic topic = (enum ask_topic)wire_get_u8(&in);
    if (server->leaving)
        return PMIX_ERR_UNREACH;
    return server->hooks->answer(server, topic, in.p, (size_t)(in.end - in.p), out);
}
