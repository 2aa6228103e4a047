/* SPDX-License-Identifier: BSD-3-Clause */
/* The network as a whole: its clock, its events, its losses. */
#include "ci/loopback/loopback_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START = 1000 };

static void on_notice(struct loopback *net, void *arg)
{
    const struct loopback_loss *loss = arg;
    struct loopback_node *node = &net->nodes[loss->node];
    node->told[loss->lost] = true;
    if (!node->dead) {
        if (node->view == NULL)
            loopback_tell(node, loss->lost, false);
        link_again(node->link, loopback_handle(node, loss->lost), true);
        if (node->view != NULL) {
            link_forget(node->link, loopback_handle(node, loss->lost));
            view_accuse(node->view, loss->lost, loss->left);
        }
    }
    free(arg);
}

void loopback_notice(struct loopback *net, uint32_t node, uint32_t lost, bool left, uint32_t min,
                     uint32_t max)
{
    struct loopback_loss *loss = loopback_must(malloc(sizeof *loss));
    *loss = (struct loopback_loss){node, lost, left};
    loopback_at(net, net->now + min + loopback_below(&net->random, max - min + 1), on_notice, loss);
}

struct loopback *loopback_new(const struct loopback_conf *conf)
{
    struct loopback *net = loopback_must(calloc(1, sizeof *net));
    net->conf = *conf;
    net->random.state = conf->seed;
    net->now = START;
    net->nodes = loopback_must(calloc(conf->nnodes, sizeof *net->nodes));
    net->sides = loopback_must(calloc(conf->nnodes, 1));
    for (uint32_t i = 0; i < conf->nnodes; i++)
        loopback_open_node(net, i);
    return net;
}

void loopback_free(struct loopback *net)
{
    /* All of them close before any is freed: an engine that closes tells the others. */
    for (uint32_t i = 0; i < net->conf.nnodes; i++) {
        engine_close(net->nodes[i].engine);
        asks_close(net->nodes[i].asks);
    }
    for (uint32_t i = 0; i < net->conf.nnodes; i++) /* nothing is sent to those that are closed */
        net->nodes[i].dead = net->nodes[i].gone = true;
    for (uint32_t i = 0; i < net->conf.nnodes; i++)
        loopback_close_node(&net->nodes[i]);
    while (net->events.n > 0) {
        struct loopback_event event = loopback_pop(&net->events);
        free(event.data);
        if (event.run == on_notice)
            free(event.arg);
    }
    free(net->events.heap);
    free(net->nodes);
    free(net->sides);
    free(net);
}

struct engine *loopback_engine(struct loopback *net, uint32_t node)
{
    return net->nodes[node].engine;
}

struct link *loopback_link(struct loopback *net, uint32_t node)
{
    return net->nodes[node].link;
}

struct asks *loopback_asks(struct loopback *net, uint32_t node)
{
    return net->nodes[node].asks;
}

uint64_t loopback_now(const struct loopback *net)
{
    return net->now;
}

struct loopback_random *loopback_numbers(struct loopback *net)
{
    return &net->random;
}

void loopback_at(struct loopback *net, uint64_t at, void (*run)(struct loopback *net, void *arg),
                 void *arg)
{
    struct loopback_event event = {.at = at, .run = run, .arg = arg};
    loopback_push(&net->events, event);
}

/* UINT64_MAX: never. */
static uint64_t due_at(const struct loopback_node *node)
{
    const struct timer *first = node->timers.first;
    uint64_t at = node->dead || first == NULL ? UINT64_MAX : (uint64_t)first->at;
    return at < node->net->now ? node->net->now : at;
}

bool loopback_is_empty(const struct loopback *net, uint32_t node)
{
    const struct loopback_node *at = &net->nodes[node];
    return loopback_wait(net, node) < 0 && engine_counts(at->engine).trackers == 0 &&
           (at->view == NULL || view_pending(at->view) == 0);
}

int64_t loopback_wait(const struct loopback *net, uint32_t node)
{
    return timers_wait(&net->nodes[node].timers);
}

static void run_event(struct loopback *net, struct loopback_event *event)
{
    if (event->data == NULL) {
        event->run(net, event->arg);
        return;
    }
    struct loopback_node *to = &net->nodes[event->to];
    struct shared_bytes *data = shared_bytes_take(event->data, event->len);
    /* With a view, what a server has sent that was given up here counts until it is out. */
    if (data != NULL && !event->lost && !to->dead && (to->view != NULL || !to->told[event->from]))
        link_receive(to->link, data->data, data->len, data, !event->native);
    shared_bytes_drop(data);
}

void loopback_run(struct loopback *net, uint64_t ms)
{
    uint64_t end = net->now + ms;
    for (;;) {
        struct loopback_node *next = &net->nodes[0];
        for (uint32_t i = 1; i < net->conf.nnodes; i++)
            if (due_at(&net->nodes[i]) < due_at(next))
                next = &net->nodes[i];
        uint64_t due = due_at(next);
        uint64_t event_at = net->events.n > 0 ? net->events.heap[0].at : UINT64_MAX;
        if (event_at > end && due > end)
            break;
        if (event_at <= due) {
            struct loopback_event event = loopback_pop(&net->events);
            net->now = event.at;
            run_event(net, &event);
        } else {
            net->now = due;
            timers_run(&next->timers);
        }
    }
    net->now = end;
}

void loopback_kill(struct loopback *net, uint32_t node, uint32_t min, uint32_t max)
{
    loopback_end_node(&net->nodes[node]);
    for (uint32_t i = 0; i < net->conf.nnodes; i++)
        if (i != node)
            loopback_notice(net, i, node, false, min, max);
}

void loopback_leave(struct loopback *net, uint32_t node, uint32_t min, uint32_t max)
{
    struct loopback_node *leaver = &net->nodes[node];
    engine_close(leaver->engine);
    if (leaver->view == NULL) {
        loopback_kill(net, node, min, max);
        return;
    }
    leaver->gone = true;
    asks_close(leaver->asks);
    loopback_try_to_leave(net, leaver);
}

void loopback_part(struct loopback *net, uint32_t a, uint32_t b, uint32_t min, uint32_t max)
{
    net->nodes[a].parted[b] = net->nodes[b].parted[a] = true;
    loopback_notice(net, a, b, false, min, max);
    loopback_notice(net, b, a, false, min, max);
}

void loopback_rerun(struct loopback *net, uint32_t node, const char *nspace)
{
    uint32_t runs = net->nodes[node].runs + 1;
    loopback_close_node(&net->nodes[node]);
    net->nodes[node] = (struct loopback_node){.runs = runs};
    loopback_open_node(net, node);
    for (uint32_t i = 0; i < net->conf.nnodes; i++)
        if (i != node) {
            engine_nspace_ended(net->nodes[i].engine, nspace);
            loopback_meet_again(&net->nodes[i], node);
        }
}

uint32_t loopback_count(const struct loopback *net)
{
    return net->conf.nnodes;
}

bool loopback_dead(const struct loopback *net, uint32_t node)
{
    return net->nodes[node].gone;
}

void loopback_partition(struct loopback *net, const uint8_t *sides, uint64_t until)
{
    memcpy(net->sides, sides, net->conf.nnodes);
    net->cut_until = until;
}

void loopback_local_status(struct loopback *net, uint32_t node, int32_t status)
{
    net->nodes[node].local_status = status;
    engine_local_loss(net->nodes[node].engine);
}

static void renew(struct loopback_node *node)
{
    engine_free(node->engine);
    node->engine = loopback_must(engine_new(&node->env));
}

void loopback_shape(struct loopback *net, uint32_t node, const uint32_t *parents)
{
    renew(&net->nodes[node]);
    if (engine_shape(net->nodes[node].engine, parents) != 0)
        abort();
}

void loopback_library(struct loopback *net, uint32_t node, uint32_t library)
{
    net->nodes[node].env.library = library;
    renew(&net->nodes[node]);
}

void loopback_arity(struct loopback *net, uint32_t node, uint32_t arity)
{
    net->nodes[node].env.arity = arity;
    renew(&net->nodes[node]);
}
