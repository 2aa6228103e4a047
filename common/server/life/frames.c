/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames on their way out, directly or through the RM's back end, and in, to the part that each is
 * for.
 */
#include "common/server/life/frames.h"

#include "common/notify/event.h"
#include "common/server/ending.h"
#include "common/server/peers/agreed.h"
#include "common/server/peers/departed.h"
#include "common/server/process/limits.h"
#include "common/server/spawned/execs.h"
#include "common/server/status/stalled.h"
#include "common/server/status/status.h"
#include "common/server/status/stopped.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/signals.h"
#include "common/server/tasks/tasks.h"
#include "common/server/totals.h"
#include "common/server/trace.h"
#include "common/transport/seal/load.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <dlfcn.h>

enum { TELL_MAX = 512 };

void frames_send(void *arg, uint32_t node, struct wire_out *frame)
{
    steps_send(arg, node, frame, NULL);
}

void frames_send_shared(void *arg, uint32_t node, struct wire_out *frame, struct shared_bytes *body)
{
    steps_send(arg, node, frame, body);
}

void frames_native(void *arg, uint32_t node)
{
    struct server *server = arg;
    if (server->rm != NULL) /* else we are leaving */
        server->rm_ops->ready(server->rm, node);
}

static bool direct_only(const struct server *server)
{
    return server->conf.direct.mode == CONF_DIRECT_REQUIRE;
}

bool frames_connect(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return node < server->boot.nnodes && direct_connect(server->direct, node);
}

void frames_ready(void *arg, uint32_t node)
{
    const struct server *server = arg;
    direct_ready(server->direct, node);
}

void frames_stuck(void *arg, uint32_t node)
{
    const struct server *server = arg;
    direct_stuck(server->direct, node);
}

static void on_ending(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    char tell[TELL_MAX];
    wire_in_init(&in, body, len);
    uint32_t told = wire_get_u32(&in);
    wire_get_str(&in, tell, sizeof tell);
    if (in.bad)
        return;
    bool ours = told == ENDING_ALL_TELL || told == server->boot.node;
    bool may = server->leaving || !server->ending; /* one that leaves has no tasks left */
    if (ours && tell[0] != '\0' && may && tasks_tell_for_others(server))
        log_error("%s", tell);
    log_debug("%s has the step ended", nspace_name(server->nspace, from));
    if (server->leaving)
        return;
    if (told == ENDING_RM_TELLS)
        server->ending = true;
    else
        server_is_to_end(server);
}

static void on_announcement(struct server *server, uint32_t from, const void *body, size_t len)
{
    direct_announced(server->direct, from, body, len);
}

static void on_signal(struct server *server, uint32_t from, const void *body, size_t len)
{
    (void)from;
    signals_receive(server, body, len);
    stopped_signalled(server);
}

static void on_cancel(struct server *server, uint32_t from, const void *body, size_t len)
{
    engine_take(server->engine, from, FRAME_CANCEL, body, len);
}

static void on_stalled(struct server *server, uint32_t from, const void *body, size_t len)
{
    (void)from;
    stalled_receive(server, body, len);
}

static void on_last(struct server *server, uint32_t from, const void *body, size_t len)
{
    if (len == 1 && *(const unsigned char *)body != 0) /* else it answers */
        link_answer(server->link, from);
}

typedef void take_fn(struct server *server, uint32_t from, const void *body, size_t len);

/* This table says which part takes a frame, and from whom. The engine has a table of its own for
 * frames of operations (tracker/frames.c), and ask.c takes questions and answers. frame_care() says
 * what it is worth that a frame arrives. */
static const struct row {
    enum { NOBODY, STEP = 1, OTHERS = 2, ALL = 3 } from; /* servers of the own step, or of others */
    enum { BY_US, ENGINE, ASKS } part;
    take_fn *take, *said; /* sent to this server; said to all of the step */
} rows[] = {
    [FRAME_CONTRIB] = {ALL, ENGINE, NULL, NULL},
    [FRAME_RELEASE] = {ALL, ENGINE, NULL, NULL},
    [FRAME_WANTED] = {ALL, ENGINE, NULL, NULL},
    [FRAME_LEAD] = {ALL, ENGINE, NULL, NULL},
    [FRAME_CLAIM] = {ALL, ENGINE, NULL, NULL},
    [FRAME_JOINED] = {ALL, ENGINE, NULL, NULL},
    [FRAME_OUTCOME] = {ALL, ENGINE, NULL, NULL},
    [FRAME_DOUBT] = {ALL, ENGINE, NULL, NULL},
    [FRAME_HAVE] = {ALL, ENGINE, NULL, NULL},
    [FRAME_PIECE] = {ALL, ENGINE, NULL, NULL},
    [FRAME_CANCEL] = {NOBODY, BY_US, NULL, on_cancel},
    [FRAME_ASK] = {ALL, ASKS, NULL, NULL}, /* of others: steps_may_ask() */
    [FRAME_ANSWER] = {ALL, ASKS, NULL, NULL},
    [FRAME_EVENT] = {ALL, BY_US, notification_receive, notification_receive},
    [FRAME_NSPACE] = {ALL, BY_US, steps_nspace, NULL},
    [FRAME_LEAVING] = {OTHERS, BY_US, steps_leaving, steps_ended},
    [FRAME_VIEW] = {STEP, BY_US, agreed_receive, NULL},
    [FRAME_OUTSIDE] = {STEP, BY_US, agreed_receive, NULL},
    [FRAME_LAST] = {ALL, BY_US, on_last, NULL},
    [FRAME_EARLY] = {STEP, BY_US, agreed_early_report, agreed_early},
    [FRAME_SPREAD] = {NOBODY, BY_US, NULL, spread_hear},
    [FRAME_STARTED] = {STEP, BY_US, execs_receive, NULL},
    [FRAME_STATS] = {STEP, BY_US, totals_receive, NULL},
    [FRAME_STALLED] = {STEP, BY_US, on_stalled, NULL},
    [FRAME_STOPPED] = {STEP, BY_US, stopped_receive, stopped_said},
    [FRAME_ANNOUNCE] = {STEP, BY_US, on_announcement, NULL},
    [FRAME_ENDING] = {NOBODY, BY_US, NULL, on_ending},
    [FRAME_SIGNAL] = {NOBODY, BY_US, NULL, on_signal},
    /* FRAME_GREETING goes ahead of a first frame, and is the link's. */
};

static const struct row *row_of(unsigned type)
{
    static const struct row none;
    return type < sizeof rows / sizeof *rows ? &rows[type] : &none;
}

/* A message that a server has sent to all servers of the step. */
void frames_deliver_said(struct server *server, uint32_t speaker, const void *message, size_t len)
{
    const unsigned char *bytes = message;
    const struct row *row = row_of(bytes[0]);
    if (speaker == server->boot.node && bytes[0] != FRAME_SPREAD && bytes[0] != FRAME_SIGNAL)
        return; /* it has done itself what it tells others to do */
    if (row->said != NULL)
        row->said(server, speaker, bytes + 1, len - 1);
    else
        log_warning("a message for all of type %u of %s was dropped", bytes[0],
                    nspace_name(server->nspace, speaker));
}

void frames_deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole)
{
    struct server *server = arg;
    const struct row *row = row_of(type);
    bool own = from < server->boot.nnodes;
    /* A server that leaves is in the view until it is let go, and hears which steps are to hear of
     * the end. */
    if (server->leaving && type != FRAME_LAST &&
        !(own && (type == FRAME_VIEW || type == FRAME_OUTSIDE || type == FRAME_EARLY ||
                  type == FRAME_NSPACE || type == FRAME_STATS ||
                  (type == FRAME_ANNOUNCE && direct_only(server)))))
        return;
    if ((row->from & (own ? STEP : OTHERS)) == 0 ||
        (!own && type == FRAME_ASK && !steps_may_ask(body, len))) {
        log_warning("a frame of type %d of %s, which is not for it to send, was dropped", (int)type,
                    nspace_name(server->nspace, from));
        return;
    }
    if (own)
        server_learn(server, from, RM_HEARD);
    if (row->part == ENGINE && own && !view_admits(server->view, from))
        log_debug("a frame of %s, which is not in the view, was dropped",
                  nspace_name(server->nspace, from));
    else if (row->part == ENGINE)
        engine_take_shared(server->engine, from, type, body, len, whole);
    else if (row->part == ASKS)
        asks_frame(server->asks, from, type, body, len);
    else
        row->take(server, from, body, len);
    if (server->leaving && (type == FRAME_NSPACE || type == FRAME_STATS))
        agreed_hand_over(server);
}

static void on_native(void *arg, const void *data, size_t len)
{
    const struct server *server = arg;
    link_receive(server->link, data, len, NULL, false);
}

const char *frames_name(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return nspace_name(server->nspace, node);
}

static void on_heard(void *arg, uint32_t node)
{
    server_learn(arg, node, RM_HEARD);
}

static bool turn(void *arg, int64_t ms)
{
    return server_turn(arg, ms);
}

/* A step of one node needs no connections. */
static int open_direct(struct server *server, struct err *err)
{
    const struct boot *boot = &server->boot;
    const struct direct_env env = {
        .arg = server,
        .self = boot->node,
        .step = nspace_hash(boot->nspace, boot->run),
        .conf = &server->conf.direct,
        .connections = limits_connections((unsigned)server->conf.tree_arity,
                                          boot_here(boot)->ntasks, boot_spawned(boot)),
        .ops = server->rm_ops->vouch,
        .sockets = dlsym(RTLD_DEFAULT, SOCKETS_SYMBOL),
        .seal = seal_load,
        .base = server->base,
        .timers = &server->timers,
        .turn = turn,
        .link = server->link,
        .unreachable = agreed_lost,
        .patience = (int64_t)server->conf.timeouts.peer * 1000,
        .heard = on_heard,
        .name = frames_name,
        .native_name = server->rm_ops->native,
    };
    struct err why = {0};
    if (boot->nnodes > 1)
        server->direct = direct_open(&env, &why);
    if (server->direct != NULL || why.text[0] == '\0')
        return 0;
    if (direct_only(server))
        return err_set(err, "muster.json requires direct connections, and this node has none: %s",
                       why.text);
    log_warning("transport: there are no direct connections: %s; messages go by %s", why.text,
                server->rm_ops->native);
    return 0;
}

static uint64_t next(void *arg, uint32_t node, size_t max, struct wire_out *out)
{
    const struct server *server = arg;
    return link_batch(server->link, node, max, out);
}

static void arrived(void *arg, uint32_t node, uint64_t ticket)
{
    const struct server *server = arg;
    link_arrived(server->link, node, ticket);
}

static bool failed(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return link_failed(server->link, node);
}

static int open_backend(struct server *server, struct err *err)
{
    const struct rm_host host = {.arg = server,
                                 .receive = on_native,
                                 .next = next,
                                 .arrived = arrived,
                                 .failed = failed,
                                 .lost = agreed_lost,
                                 .state = status_operations};
    server->rm = server->rm_ops->open(&server->boot, &server->conf, server->base, &host, err);
    return server->rm == NULL ? err_set(err, "the back end %s does not start", server->rm_ops->name)
                              : 0;
}

/* Asks the RM how servers are to hang together, if the RM has an opinion. */
static int take_parents(struct server *server, struct err *err)
{
    const uint32_t *parents = server->rm_ops->parents(server->rm);
    if (parents == NULL)
        return 0;
    if (engine_shape(server->engine, parents) != 0)
        return err_set(err, "the back end %s does not say how servers hang together",
                       server->rm_ops->name);
    server->tree = signature_hash(parents, server->boot.nnodes * sizeof *parents);
    uint32_t above = parents[server->boot.node];
    log_info("trees of servers: %s%s", above < server->boot.nnodes ? "below " : "at the root",
             above < server->boot.nnodes ? server->boot.nodes[above].name : "");
    return 0;
}

int frames_open(struct server *server, struct err *err)
{
    if (open_backend(server, err) != 0)
        return -1;
    if (open_direct(server, err) != 0)
        return -1;
    totals_open(server);
    trace_open(server);
    return server->rm_ops->parents != NULL ? take_parents(server, err) : 0;
}
