/* SPDX-License-Identifier: BSD-3-Clause */
/* The agreed view of one server, and what follows from it, as in common/server/peers/agreed.c. */
#include "ci/loopback/loopback_private.h"

#include <stdlib.h>

enum {
    ENDS_MS = 1000, /* a server that may go has ended by then */
    LOOK_MS = 20,   /* between looks whether all is taken */
};

void loopback_tell(struct loopback_node *node, uint32_t lost, bool left)
{
    uint32_t handle = loopback_handle(node, lost);
    if (left)
        engine_left(node->engine, handle);
    else
        engine_lost(node->engine, handle);
    asks_lost(node->asks, handle);
}

static void send_frame(void *arg, uint32_t to, enum frame_type type, struct wire_out *body)
{
    struct wire_out frame = {0};
    wire_put_u8(&frame, (uint8_t)type);
    wire_put_raw(&frame, body->data, body->len);
    wire_out_free(body);
    loopback_send(arg, to, &frame);
}

static void hear(void *arg, uint32_t origin, const void *text, size_t len)
{
    struct loopback_node *node = arg;
    const unsigned char *frame = text;
    if (origin != node->index && len > 0)
        engine_take(node->engine, origin, (enum frame_type)frame[0], frame + 1, len - 1);
}

static int32_t answer(void *arg, uint32_t origin, const void *text, size_t len,
                      struct wire_out *out)
{
    (void)arg, (void)origin, (void)text, (void)len, (void)out;
    return 0;
}

static void settled(void *arg)
{
    (void)arg;
}

/* Whether all that was sent is taken, by those that are left: see server_leave(). */
static bool is_taken(const struct loopback_node *node)
{
    for (uint32_t to = 0; to < node->net->conf.nnodes; to++)
        if (view_has(node->view, to) && link_owed(node->link, to).must > 0)
            return false;
    return true;
}

void loopback_try_to_leave(struct loopback *net, void *arg)
{
    struct loopback_node *node = arg;
    if (node->dead)
        return;
    link_hurry(node->link);
    if (is_taken(node))
        view_leave(node->view);
    else
        loopback_at(net, net->now + LOOK_MS, loopback_try_to_leave, node);
}

static void changed(void *arg, const struct ranges *lost, const struct ranges *left)
{
    struct loopback_node *node = arg;
    struct loopback *net = node->net;
    for (struct ranges_at at = {0}; ranges_next(left, &at);) {
        node->left[at.number] = true;
        loopback_tell(node, at.number, true);
    }
    for (struct ranges_at at = {0}; ranges_next(lost, &at);) {
        struct loopback_node *out = &net->nodes[at.number];
        node->told[at.number] = true;
        link_forget(node->link, at.number);
        if (!out->gone && net->conf.left_out != NULL)
            net->conf.left_out(net->conf.arg, at.number);
        out->gone = true; /* until it hears of it, it may give answers that count no more */
        loopback_tell(node, at.number, false);
    }
}

static void over(void *arg, enum view_over how, const char *why)
{
    struct loopback_node *node = arg;
    struct loopback *net = node->net;
    (void)why;
    loopback_end_node(node);
    for (uint32_t i = 0; i < net->conf.nnodes; i++) /* whatever is sent to it is refused */
        if (i != node->index)
            loopback_notice(net, i, node->index, how != VIEW_LEFT_OUT, 0, ENDS_MS);
}

void loopback_open_view(struct loopback_node *node)
{
    const struct view_env env = {.arg = node,
                                 .self = node->index,
                                 .nnodes = node->net->conf.nnodes,
                                 .arity = node->net->conf.arity,
                                 .timers = &node->timers,
                                 .send = send_frame,
                                 .hear = hear,
                                 .answer = answer,
                                 .settled = settled,
                                 .changed = changed,
                                 .over = over};
    node->view = loopback_must(view_new(&env));
}
