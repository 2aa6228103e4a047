#include "common/transport/loopback_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 4711, START = 1000, LIBRARY = 4 << 16 | 2 << 8 | 2 };

struct node {
    struct loopback *net;
    uint32_t index;
    struct engine_env env;
    struct engine *engine;
    struct link *link;
    struct asks *asks;
    bool dead;
    int32_t local_status;
    uint64_t due;     /* of engine and asks; UINT64_MAX: never */
    bool *told;       /* whose loss it knows */
    uint64_t *latest; /* per sender: arrival of its last frame */
};

struct loopback {
    struct loopback_conf conf;
    struct loopback_random random;
    uint64_t now, cut_until;
    struct node *nodes;
    uint8_t *sides;
    struct loopback_events events;
};

struct loss {
    uint32_t node, lost;
};

static uint64_t clock_of(void *arg)
{
    const struct node *node = arg;
    return node->net->now;
}

static void send_frame(void *arg, uint32_t to, struct wire_out *frame)
{
    struct node *node = arg;
    link_send(node->link, to, frame);
}

/* Puts one copy of a frame on its way. */
static void launch(struct node *from, uint32_t to, const void *data, size_t len)
{
    struct loopback *net = from->net;
    const struct loopback_conf *conf = &net->conf;
    bool cut = net->now < net->cut_until && net->sides[from->index] != net->sides[to];
    uint64_t *latest = &net->nodes[to].latest[from->index];
    uint64_t at = (cut ? net->cut_until : net->now) + conf->delay_min +
                  loopback_below(&net->random, conf->delay_max - conf->delay_min + 1);
    if (!conf->reorder && at < *latest)
        at = *latest;
    *latest = at;
    struct loopback_event event = {.at = at, .from = from->index, .to = to, .len = len};
    event.data = memcpy(loopback_must(malloc(len)), data, len);
    loopback_push(&net->events, event);
}

static void send_bytes(void *arg, uint32_t to, void *data, size_t len)
{
    struct node *node = arg;
    struct loopback *net = node->net;
    const struct loopback_conf *conf = &net->conf;
    bool lost =
        node->dead || (conf->filter && !conf->filter(conf->arg, node->index, to, data, len));
    if (!lost && loopback_below(&net->random, 1000) >= conf->drop) {
        launch(node, to, data, len);
        if (loopback_below(&net->random, 1000) < conf->duplicate)
            launch(node, to, data, len);
    }
    free(data);
}

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len)
{
    struct node *node = arg;
    if (type == FRAME_CONTRIB)
        engine_contrib(node->engine, from, body, len);
    else if (type == FRAME_RELEASE)
        engine_release(node->engine, from, body, len);
    else
        asks_frame(node->asks, from, type, body, len);
}

static int servers(void *arg, const struct signature *sig, uint32_t **nodes, uint32_t *n)
{
    const struct node *node = arg;
    uint32_t nnodes = node->net->conf.nnodes;
    *nodes = loopback_must(calloc(nnodes, sizeof **nodes));
    *n = 0;
    for (uint32_t i = 0; i < sig->members.nparts; i++) {
        const struct procset_part *part = &sig->members.parts[i];
        if (part->ranges[part->nranges - 1].last >= nnodes)
            return -1;
    }
    for (uint32_t rank = 0; rank < nnodes; rank++)
        for (uint32_t i = 0; i < sig->members.nparts; i++)
            if (procset_has(&sig->members, sig->members.parts[i].nspace, rank)) {
                (*nodes)[(*n)++] = rank;
                break;
            }
    return 0;
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    const struct node *node = arg;
    (void)sig;
    return node->local_status;
}

static void missing(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                    char *buf, size_t cap)
{
    size_t len = 0;
    (void)arg;
    (void)sig;
    for (uint32_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(buf + len, cap - len, "%srank %u", i > 0 ? ", " : "", nodes[i]);
}

static void serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    conf->serve(conf->arg, node->index, from, id, body, len);
}

static void open_node(struct loopback *net, uint32_t index)
{
    struct node *node = &net->nodes[index];
    uint32_t n = net->conf.nnodes;
    struct ask_env asks = {node,
                           n,
                           LOOPBACK_TIMEOUT,
                           LOOPBACK_LOST,
                           LOOPBACK_UNSUPPORTED,
                           LOOPBACK_CLOSING,
                           clock_of,
                           send_frame,
                           {[ASK_MODEX] = net->conf.serve != NULL ? serve : NULL}};
    struct link_env link = {node, index, n, STEP, send_bytes, deliver};
    node->net = net;
    node->index = index;
    node->env = (struct engine_env){
        .arg = node,
        .self = index,
        .arity = net->conf.arity,
        .library = LIBRARY,
        .ids = index,
        .id_step = n,
        .stall = net->conf.stall,
        .codes = {LOOPBACK_TIMEOUT, LOOPBACK_LOST, LOOPBACK_INVALID, LOOPBACK_LIBRARY,
                  LOOPBACK_CLOSING},
        .now = clock_of,
        .servers = servers,
        .local_status = local_status,
        .send = send_frame,
        .missing = missing,
    };
    node->engine = loopback_must(engine_new(&node->env));
    node->link = loopback_must(link_new(&link));
    node->asks = loopback_must(asks_new(&asks));
    node->told = loopback_must(calloc(n, sizeof *node->told));
    node->latest = loopback_must(calloc(n, sizeof *node->latest));
}

static void tell_loss(struct loopback *net, void *arg)
{
    const struct loss *loss = arg;
    struct node *node = &net->nodes[loss->node];
    node->told[loss->lost] = true;
    if (!node->dead) {
        engine_lost(node->engine, loss->lost);
        asks_lost(node->asks, loss->lost);
    }
    free(arg);
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
        open_node(net, i);
    return net;
}

void loopback_free(struct loopback *net)
{
    for (uint32_t i = 0; i < net->conf.nnodes; i++) {
        struct node *node = &net->nodes[i];
        engine_free(node->engine);
        asks_free(node->asks);
        link_free(node->link);
        free(node->told);
        free(node->latest);
    }
    while (net->events.n > 0) {
        struct loopback_event event = loopback_pop(&net->events);
        free(event.data);
        if (event.run == tell_loss)
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

static void set_due(struct node *node)
{
    int64_t a = engine_next(node->engine), b = asks_next(node->asks);
    int64_t ms = a < 0 || (b >= 0 && b < a) ? b : a;
    node->due = node->dead || ms < 0 ? UINT64_MAX : node->net->now + (uint64_t)ms;
}

static void set_all_due(struct loopback *net)
{
    for (uint32_t i = 0; i < net->conf.nnodes; i++)
        set_due(&net->nodes[i]);
}

static void run_event(struct loopback *net, struct loopback_event *event)
{
    if (event->data == NULL) {
        event->run(net, event->arg);
        set_all_due(net); /* it may have touched any of them */
        return;
    }
    struct node *to = &net->nodes[event->to];
    if (!to->dead && !to->told[event->from]) {
        link_receive(to->link, event->data, event->len);
        set_due(to);
    }
    free(event->data);
}

void loopback_run(struct loopback *net, uint64_t ms)
{
    uint64_t end = net->now + ms;
    set_all_due(net);
    for (;;) {
        struct node *next = &net->nodes[0];
        for (uint32_t i = 1; i < net->conf.nnodes; i++)
            if (net->nodes[i].due < next->due)
                next = &net->nodes[i];
        uint64_t event_at = net->events.n > 0 ? net->events.heap[0].at : UINT64_MAX;
        if (event_at > end && next->due > end)
            break;
        if (event_at <= next->due) {
            struct loopback_event event = loopback_pop(&net->events);
            net->now = event.at;
            run_event(net, &event);
        } else {
            net->now = next->due;
            engine_tick(next->engine);
            asks_tick(next->asks);
            set_due(next);
        }
    }
    net->now = end;
}

void loopback_kill(struct loopback *net, uint32_t node, uint32_t min, uint32_t max)
{
    net->nodes[node].dead = true;
    engine_close(net->nodes[node].engine);
    asks_close(net->nodes[node].asks);
    for (uint32_t i = 0; i < net->conf.nnodes; i++) {
        if (i == node)
            continue;
        struct loss *loss = loopback_must(malloc(sizeof *loss));
        *loss = (struct loss){i, node};
        loopback_at(net, net->now + min + loopback_below(&net->random, max - min + 1), tell_loss,
                    loss);
    }
}

bool loopback_dead(const struct loopback *net, uint32_t node)
{
    return net->nodes[node].dead;
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

void loopback_library(struct loopback *net, uint32_t node, uint32_t library)
{
    struct node *n = &net->nodes[node];
    n->env.library = library;
    engine_free(n->engine);
    n->engine = loopback_must(engine_new(&n->env));
}
