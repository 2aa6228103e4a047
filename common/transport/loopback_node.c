/* One server: its engine, link and asks, wired together and to the network. */
#include "common/transport/loopback_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 4711, LIBRARY = 4 << 16 | 2 << 8 | 2 };

static uint64_t clock_of(void *arg)
{
    const struct loopback_node *node = arg;
    return node->net->now;
}

static void send_frame(void *arg, uint32_t to, struct wire_out *frame)
{
    struct loopback_node *node = arg;
    link_send(node->link, to, frame);
}

/* Puts one copy of a frame on its way. */
static void launch(struct loopback_node *from, uint32_t to, const void *data, size_t len)
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
    struct loopback_node *node = arg;
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
    struct loopback_node *node = arg;
    if (type == FRAME_CONTRIB)
        engine_contrib(node->engine, from, body, len);
    else if (type == FRAME_RELEASE)
        engine_release(node->engine, from, body, len);
    else if (type == FRAME_WANTED)
        engine_wanted(node->engine, from, body, len);
    else if (type >= FRAME_LEAD)
        engine_assembly(node->engine, from, type, body, len);
    else
        asks_frame(node->asks, from, type, body, len);
}

static int servers(void *arg, const struct signature *sig, uint32_t **nodes, uint32_t *n)
{
    const struct loopback_node *node = arg;
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

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    const struct loopback_node *self = arg;
    (void)nspace;
    *node = rank;
    return rank < self->net->conf.nnodes ? 0 : -1;
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    const struct loopback_node *node = arg;
    (void)sig;
    return node->local_status;
}

static const char *name_of(void *arg, uint32_t index)
{
    const struct loopback_node *node = arg;
    return node->net->nodes[index].name;
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
    struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    conf->serve(conf->arg, node->index, from, id, body, len);
}

void loopback_open_node(struct loopback *net, uint32_t index)
{
    struct loopback_node *node = &net->nodes[index];
    uint32_t n = net->conf.nnodes;
    struct ask_env asks = {
        .arg = node,
        .nnodes = n,
        .timeout = LOOPBACK_TIMEOUT,
        .lost = LOOPBACK_LOST,
        .unsupported = LOOPBACK_UNSUPPORTED,
        .closing = LOOPBACK_CLOSING,
        .now = clock_of,
        .send = send_frame,
        .serve = {[ASK_MODEX] = net->conf.serve != NULL ? serve : NULL},
    };
    struct link_env link = {node, index, n, STEP, send_bytes, deliver};
    node->net = net;
    node->index = index;
    snprintf(node->name, sizeof node->name, "c%02u", index);
    node->env = (struct engine_env){
        .arg = node,
        .self = index,
        .nnodes = n,
        .arity = net->conf.arity,
        .library = LIBRARY,
        .ids = index,
        .id_step = n,
        .stall = net->conf.stall,
        .codes = {LOOPBACK_TIMEOUT, LOOPBACK_LOST, LOOPBACK_INVALID, LOOPBACK_LIBRARY,
                  LOOPBACK_CLOSING, LOOPBACK_COUNT},
        .now = clock_of,
        .servers = servers,
        .node_of = node_of,
        .local_status = local_status,
        .name = name_of,
        .send = send_frame,
        .missing = missing,
    };
    node->engine = loopback_must(engine_new(&node->env));
    node->link = loopback_must(link_new(&link));
    node->asks = loopback_must(asks_new(&asks));
    node->told = loopback_must(calloc(n, sizeof *node->told));
    node->latest = loopback_must(calloc(n, sizeof *node->latest));
}

void loopback_close_node(struct loopback_node *node)
{
    engine_free(node->engine);
    asks_free(node->asks);
    link_free(node->link);
    free(node->told);
    free(node->latest);
}
