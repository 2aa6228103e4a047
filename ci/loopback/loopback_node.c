/* SPDX-License-Identifier: BSD-3-Clause */
/* One server: its engine, link, asks and view, wired together and to the network. */
#include "ci/loopback/loopback_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 4711, LIBRARY = 4 << 16 | 2 << 8 | 2 };

static int64_t clock_of(void *arg)
{
    const struct loopback_node *node = arg;
    return (int64_t)node->net->now;
}

uint32_t loopback_handle(const struct loopback_node *node, uint32_t index)
{
    return node->handle[index];
}

/* Servers of other steps are told first who we are. */
static void send_shared(void *arg, uint32_t to, struct wire_out *frame, struct shared_bytes *body)
{
    struct loopback_node *node = arg;
    struct wire_out hello = {0};
    if (node->net->conf.foreign && link_counts(node->link, to).frames_out == 0) {
        wire_put_u8(&hello, FRAME_NSPACE);
        link_send(node->link, to, &hello);
    }
    link_send_shared(node->link, to, frame, body);
}

static void say(void *arg, struct wire_out *frame)
{
    struct loopback_node *node = arg;
    if (node->view != NULL) {
        view_say(node->view, frame->data, frame->len);
        return;
    }
    for (uint32_t to = 0; to < node->env.nnodes; to++) {
        struct wire_out copy = {0};
        if (to == node->env.self || engine_is_lost(node->engine, to))
            continue;
        wire_put_raw(&copy, frame->data, frame->len);
        send_shared(arg, to, &copy, NULL);
        wire_out_free(&copy);
    }
}

void loopback_send(struct loopback_node *node, uint32_t to, struct wire_out *frame)
{
    send_shared(node, to, frame, NULL);
}

static void send_frame(void *arg, uint32_t to, struct wire_out *frame)
{
    send_shared(arg, to, frame, NULL);
}

static int find(void *arg, uint64_t step, uint32_t index, uint32_t *handle)
{
    const struct loopback_node *node = arg;
    uint32_t n = node->net->conf.nnodes;
    uint64_t server = (step - STEP) % n;
    if (step < STEP || (step - STEP) / n != node->net->nodes[server].runs)
        return 1; /* of a run before */
    if (index != 0 || !node->introduced[server])
        return -1;
    *handle = node->handle[server];
    return 0;
}

static bool introduce(void *arg, uint64_t step, const void *body, size_t len)
{
    struct loopback_node *node = arg;
    (void)body;
    return len == 0 && (node->introduced[(step - STEP) % node->net->conf.nnodes] = true);
}

static void home(void *arg, const char *id, uint64_t call)
{
    struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    uint32_t server = conf->home != NULL
                          ? conf->home(conf->arg, node->index)
                          : (uint32_t)(signature_hash(id, strlen(id)) % conf->nnodes);
    engine_home(node->engine, call, node->handle[server]);
}

/* Puts one copy of a frame on its way. */
static void launch(struct loopback_node *from, uint32_t to, const void *data, size_t len,
                   bool native)
{
    struct loopback *net = from->net;
    const struct loopback_conf *conf = &net->conf;
    bool cut = net->now < net->cut_until && net->sides[from->index] != net->sides[to];
    uint64_t *latest = &net->nodes[to].latest[from->index];
    uint64_t at = (cut ? net->cut_until : net->now) + conf->delay_min +
                  loopback_below(&net->random, conf->delay_max - conf->delay_min + 1);
    if (native && loopback_below(&net->random, 1000) < conf->unread)
        at += loopback_below(&net->random, 1000);
    if (!conf->reorder && at < *latest)
        at = *latest;
    *latest = at;
    struct loopback_event event = {
        .at = at, .from = from->index, .to = to, .len = len, .native = native};
    event.data = memcpy(loopback_must(malloc(len)), data, len);
    loopback_push(&net->events, event);
}

/* Cuts the direct connection to a server: some of what is under way on it is lost. The link sends
 * again what is not acknowledged, by another connection or natively. */
static void cut(struct loopback_node *from, uint32_t to)
{
    struct loopback *net = from->net;
    uint64_t end = net->now + loopback_below(&net->random, net->conf.delay_max + 1);
    for (size_t i = 0; i < net->events.n; i++) {
        struct loopback_event *event = &net->events.heap[i];
        if (event->data != NULL && event->from == from->index && event->to == to && !event->native)
            event->lost |= event->at > end;
    }
    link_again(from->link, from->handle[to], loopback_below(&net->random, 2) == 0);
}

/* Whether the frame is under way at all. */
static bool is_seen(struct loopback_node *node, uint32_t to, const void *data, size_t len)
{
    const struct loopback_conf *conf = &node->net->conf;
    return !node->dead && !node->parted[to] &&
           (!conf->filter || conf->filter(conf->arg, node->index, to, data, len));
}

/* A message is one frame. It counts as failed though it has arrived, or as arrived. */
static void send_natively(void *arg, uint32_t handle)
{
    struct loopback_node *node = arg;
    uint32_t to = node->server[handle];
    struct loopback *net = node->net;
    const struct loopback_conf *conf = &net->conf;
    struct wire_out out = {0};
    uint64_t ticket;
    bool again = node->handle[to] != handle; /* this was the run before */
    while ((ticket = link_batch(node->link, handle, 0, &out)) != 0) {
        bool failed = false;
        if (!again && is_seen(node, to, out.data, out.len) &&
            loopback_below(&net->random, 1000) >= conf->drop) {
            launch(node, to, out.data, out.len, true);
            failed = loopback_below(&net->random, 1000) < conf->duplicate;
        }
        if (failed)
            link_failed(node->link, handle);
        else
            link_arrived(node->link, handle, ticket);
        wire_out_free(&out);
    }
}

static bool is_connected(void *arg, uint32_t handle)
{
    const struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    return conf->cut > 0 && !conf->foreign && !node->told[node->server[handle]];
}

static void send_directly(void *arg, uint32_t handle)
{
    struct loopback_node *node = arg;
    uint32_t to = node->server[handle];
    struct outgoing *o;
    if (!is_connected(node, handle))
        return;
    if (loopback_below(&node->net->random, 1000) < node->net->conf.cut)
        cut(node, to);
    while ((o = link_next(node->link, handle)) != NULL) {
        size_t len = outgoing_len(o);
        unsigned char *data = memcpy(loopback_must(malloc(len)), o->data, o->len);
        if (o->body != NULL)
            memcpy(data + o->len, o->body->data, o->body->len);
        if (is_seen(node, to, data, len))
            launch(node, to, data, len, false);
        free(data);
        outgoing_drop(o);
    }
}

static void on_stuck(void *arg, uint32_t handle)
{
    struct loopback_node *node = arg;
    cut(node, node->server[handle]);
}

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole)
{
    struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    if (conf->too_late != NULL && node->left[node->server[from]] && frame_care(type) == CARE_MUST)
        conf->too_late(conf->arg, node->index, node->server[from]);
    bool of_view = type == FRAME_VIEW || type == FRAME_OUTSIDE;
    if (of_view && node->view == NULL)
        return; /* its sender lies */
    if (of_view)
        view_take(node->view, from, body, len);
    else if (type == FRAME_LAST && len == 1 && *(const unsigned char *)body != 0)
        link_answer(node->link, from);
    else if (node->view != NULL && !view_admits(node->view, from))
        return;
    else if (!engine_take_shared(node->engine, from, type, body, len, whole) &&
             type != FRAME_NSPACE && type != FRAME_LAST)
        asks_frame(node->asks, from, type, body, len);
}

static int servers(void *arg, const struct signature *sig, struct places *places)
{
    const struct loopback_node *node = arg;
    uint32_t nnodes = node->net->conf.nnodes;
    for (uint32_t i = 0; i < sig->members.nparts; i++) {
        const struct procset_part *part = &sig->members.parts[i];
        if (part->ranks.v[part->ranks.n - 1].last >= nnodes)
            return -1;
    }
    for (uint32_t rank = 0; rank < nnodes; rank++)
        for (uint32_t i = 0; i < sig->members.nparts; i++)
            if (procset_has(&sig->members, sig->members.parts[i].nspace, rank)) {
                if (places_add(places, node->handle[rank], 1) != 0)
                    return -1;
                break;
            }
    return 0;
}

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    const struct loopback_node *self = arg;
    (void)nspace;
    if (rank >= self->net->conf.nnodes)
        return -1;
    *node = self->handle[rank];
    return 0;
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    const struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    if (conf->local_status != NULL)
        return conf->local_status(conf->arg, node->index, sig);
    return node->local_status;
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    const struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    if (conf->local_gone != NULL) {
        conf->local_gone(conf->arg, node->index, sig, gone);
        return;
    }
    for (uint32_t i = 0; i < sig->members.nparts && node->local_status != 0; i++)
        if (procset_has(&sig->members, sig->members.parts[i].nspace, node->index))
            procset_add(gone, sig->members.parts[i].nspace, node->index, node->index);
    procset_canonical(gone);
}

static void missed(void *arg, const void *sig, size_t siglen, const struct engine_result *result)
{
    const struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    if (conf->missed != NULL)
        conf->missed(conf->arg, node->index, sig, siglen, result);
}

static const char *name_of(void *arg, uint32_t handle)
{
    const struct loopback_node *node = arg;
    return node->net->nodes[node->server[handle]].name;
}

static void ranks(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap)
{
    const struct loopback_node *node = arg;
    size_t len = 0;
    (void)sig, (void)some;
    for (uint32_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(buf + len, cap - len, "%srank %u", i > 0 ? ", " : "",
                                node->server[nodes[i]]);
}

static void serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct loopback_node *node = arg;
    const struct loopback_conf *conf = &node->net->conf;
    conf->serve(conf->arg, node->index, node->server[from], id, body, len);
}

/* What a server calls the others: their numbers, or itself 0 and the others in any order. */
static void name_servers(struct loopback_node *node)
{
    uint32_t n = node->net->conf.nnodes;
    struct loopback_random random = {node->net->conf.seed + node->index};
    node->nhandles = n;
    node->handle = loopback_must(calloc(n, sizeof *node->handle));
    node->server = loopback_must(calloc(n, sizeof *node->server));
    for (uint32_t i = 0; i < n; i++)
        node->server[i] = node->net->conf.foreign ? (node->index + i) % n : i;
    for (uint32_t i = n; node->net->conf.foreign && i > 2; i--) {
        uint32_t *a = &node->server[i - 1], *b = &node->server[1 + loopback_below(&random, i - 1)];
        uint32_t last = *a;
        *a = *b;
        *b = last;
    }
    for (uint32_t i = 0; i < n; i++)
        node->handle[node->server[i]] = i;
}

static int32_t left_status(void *arg, enum coll_kind kind)
{
    (void)arg;
    (void)kind;
    return LOOPBACK_LEFT;
}

void loopback_open_node(struct loopback *net, uint32_t index)
{
    struct loopback_node *node = &net->nodes[index];
    uint32_t n = net->conf.nnodes;
    bool foreign = net->conf.foreign;
    node->timers = (struct timers){.now = clock_of, .arg = node};
    struct ask_env asks = {
        .arg = node,
        .timeout = LOOPBACK_TIMEOUT,
        .lost = LOOPBACK_LOST,
        .unsupported = LOOPBACK_UNSUPPORTED,
        .closing = LOOPBACK_CLOSING,
        .timers = &node->timers,
        .send = send_frame,
        .serve = {[ASK_MODEX] = net->conf.serve != NULL ? serve : NULL},
    };
    struct link_env link = {.arg = node,
                            .self = foreign ? 0 : index,
                            .nnodes = foreign ? 1 : n,
                            .step = foreign ? STEP + index + n * node->runs : STEP,
                            .native = send_natively,
                            .deliver = deliver,
                            .find = foreign ? find : NULL,
                            .introduce = introduce,
                            .timers = &node->timers,
                            .connect = is_connected,
                            .ready = send_directly,
                            .stuck = on_stuck};
    node->net = net;
    node->index = index;
    name_servers(node);
    snprintf(node->name, sizeof node->name, "c%02u", index);
    node->env = (struct engine_env){
        .arg = node,
        .self = node->handle[index],
        .nnodes = n,
        .arity = net->conf.arity,
        .library = LIBRARY,
        .ids = index,
        .id_step = n,
        .stall = net->conf.stall,
        .large = net->conf.large,
        .few = 2,
        .piece = net->conf.piece,
        .codes = {LOOPBACK_TIMEOUT, LOOPBACK_LOST, LOOPBACK_INVALID, LOOPBACK_LIBRARY,
                  LOOPBACK_CLOSING, LOOPBACK_COUNT},
        .timers = &node->timers,
        .servers = servers,
        .node_of = node_of,
        .local_status = local_status,
        .local_gone = local_gone,
        .missed = missed,
        .left_status = left_status,
        .name = name_of,
        .home = foreign ? home : NULL,
        .send = send_shared,
        .say = say,
        .ranks = ranks,
    };
    node->engine = loopback_must(engine_new(&node->env));
    if (net->conf.parents != NULL && engine_shape(node->engine, net->conf.parents) != 0)
        abort();
    node->link = loopback_must(link_new(&link));
    node->asks = loopback_must(asks_new(&asks));
    node->told = loopback_must(calloc(n, sizeof *node->told));
    node->left = loopback_must(calloc(n, sizeof *node->left));
    node->parted = loopback_must(calloc(n, sizeof *node->parted));
    node->latest = loopback_must(calloc(n, sizeof *node->latest));
    node->introduced = loopback_must(calloc(n, sizeof *node->introduced));
    if (net->conf.agreed)
        loopback_open_view(node);
}

void loopback_end_node(struct loopback_node *node)
{
    node->dead = node->gone = true;
    engine_close(node->engine);
    asks_close(node->asks);
}

void loopback_meet_again(struct loopback_node *node, uint32_t index)
{
    size_t size = (node->nhandles + 1) * sizeof *node->server;
    node->server = loopback_must(realloc(node->server, size));
    node->server[node->nhandles] = index;
    node->handle[index] = node->nhandles++;
    node->told[index] = node->introduced[index] = false;
}

void loopback_close_node(struct loopback_node *node)
{
    engine_free(node->engine);
    asks_free(node->asks);
    link_free(node->link);
    view_free(node->view);
    free(node->told);
    free(node->left);
    free(node->parted);
    free(node->latest);
    free(node->introduced);
    free(node->handle);
    free(node->server);
}
