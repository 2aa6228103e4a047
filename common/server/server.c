/* SPDX-License-Identifier: BSD-3-Clause */
/* What lives on the loop, wired together: frames in and out, deadlines, the launcher's messages. */
#include "common/server/server.h"

#include "common/notify/connection.h"
#include "common/notify/event.h"
#include "common/nspace/binding.h"
#include "common/nspace/command.h"
#include "common/nspace/topology.h"
#include "common/server/absent.h"
#include "common/server/broadcast.h"
#include "common/server/departed.h"
#include "common/server/ending.h"
#include "common/server/execs.h"
#include "common/server/greeting.h"
#include "common/server/limits.h"
#include "common/server/meeting.h"
#include "common/server/sets.h"
#include "common/server/stalled.h"
#include "common/server/status.h"
#include "common/server/steps.h"
#include "common/server/stranded.h"
#include "common/server/tasks.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_MAX = 512 };

/* Steps of one session have ranges of their own, so that no id comes twice in a session. */
enum { CONTEXT_ID_STEP_SHIFT = 40 };

static uint64_t clock_of(void *arg)
{
    (void)arg;
    return (uint64_t)now_ms();
}

static void send_frame(void *arg, uint32_t node, struct wire_out *frame)
{
    steps_send(arg, node, frame, NULL);
}

static void send_shared(void *arg, uint32_t node, struct wire_out *frame, struct shared_bytes *body)
{
    steps_send(arg, node, frame, body);
}

static void send_natively(void *arg, uint32_t node, void *data, size_t len, enum frame_care care)
{
    struct server *server = arg;
    if (server->rm != NULL)
        server->rm_ops->send(server->rm, node, data, len, care);
    else
        free(data); /* we are leaving */
}

/* Directly, where that is possible. */
static void send_bytes(void *arg, uint32_t node, void *data, size_t len, enum frame_care care)
{
    struct server *server = arg;
    if (server->direct != NULL && node < server->boot.nnodes)
        direct_send(server->direct, node, data, len, care);
    else
        send_natively(server, node, data, len, care);
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
    if (ours && tell[0] != '\0' && !server->ending && tasks_tell_for_others(server))
        log_error("%s", tell);
    log_debug("%s has the step ended", nspace_name(server->nspace, from));
    if (!server->ending)
        tasks_are_to_end(server);
    server->ending = true;
}

/* What a server says to all. */
static void deliver_said(void *arg, uint32_t speaker, const void *message, size_t len)
{
    struct server *server = arg;
    const unsigned char *bytes = message;
    if (bytes[0] == FRAME_EVENT)
        notification_receive(server, speaker, bytes + 1, len - 1);
    else if (bytes[0] == FRAME_ENDING)
        on_ending(server, speaker, bytes + 1, len - 1);
    else
        log_warning("a message for all of unknown type %u of %s was dropped", bytes[0],
                    nspace_name(server->nspace, speaker));
}

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len)
{
    struct server *server = arg;
    /* While we say goodbye, others may say it to us alone. */
    if ((server->leaving && type != FRAME_ABSENT) || !steps_may(server, from, type, body, len))
        return;
    if (from < server->boot.nnodes)
        absent_heard(server, from, type);
    switch (type) {
    case FRAME_CONTRIB:
        engine_contrib(server->engine, from, body, len);
        return;
    case FRAME_RELEASE:
        engine_release(server->engine, from, body, len);
        return;
    case FRAME_WANTED:
        engine_wanted(server->engine, from, body, len);
        return;
    case FRAME_LEAD:
    case FRAME_CLAIM:
    case FRAME_JOINED:
    case FRAME_OUTCOME:
        engine_assembly(server->engine, from, type, body, len);
        return;
    case FRAME_CANCEL:
        engine_cancelled(server->engine, from, body, len);
        return;
    case FRAME_DOUBT:
        engine_doubt(server->engine, from, body, len);
        return;
    case FRAME_HAVE:
        engine_have(server->engine, from, body, len);
        return;
    case FRAME_ASK:
    case FRAME_ANSWER:
        asks_frame(server->asks, from, type, body, len);
        return;
    case FRAME_ABSENT:
        absent_receive(server, from, body, len);
        return;
    case FRAME_BROADCAST:
        broadcast_receive(server->broadcasts, from, body, len);
        return;
    case FRAME_NSPACE:
        steps_nspace(server, from, body, len);
        return;
    case FRAME_LEAVING:
        steps_leaving(server, from);
        return;
    case FRAME_SPREAD:
        steps_spread(server, from, body, len);
        return;
    case FRAME_EVENT:
        notification_receive(server, from, body, len);
        return;
    case FRAME_STARTED:
        execs_receive(server, from, body, len);
        return;
    case FRAME_STALLED:
        stalled_receive(server, body, len);
        return;
    case FRAME_ANNOUNCE:
        direct_announced(server->direct, from, body, len);
        return;
    case FRAME_ENDING:   /* only said to all */
    case FRAME_GREETING: /* not ahead of a first frame */
        break;
    }
    log_warning("a frame of unknown type %d of node %u was dropped", (int)type, from);
}

static void on_receive(void *arg, const void *data, size_t len)
{
    struct server *server = arg;
    link_receive(server->link, data, len);
}

static int servers_of(void *arg, const struct signature *sig, struct places *places)
{
    struct server *server = arg;
    return nspace_servers(server->nspace, sig, places);
}

static int members_on(void *arg, const struct procset *set, uint32_t node, struct procset *there)
{
    struct server *server = arg;
    return nspace_members_on(server->nspace, set, node, there);
}

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    struct server *server = arg;
    return nspace_node(server->nspace, nspace, rank, node);
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    int32_t status = tasks_status(arg, sig);
    if (status != 0) {
        upcall_forget_ended(arg, &sig->members);
        stranded_note(arg, sig);
    }
    return status;
}

static bool is_lost(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return engine_is_lost(server->engine, node);
}

static int32_t left_status(void *arg, enum coll_kind kind)
{
    return tasks_loss_status(arg, kind);
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    tasks_gone(arg, sig, gone);
}

static const char *name_of(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return nspace_name(server->nspace, node);
}

static void missing(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                    char *buf, size_t cap)
{
    struct server *server = arg;
    nspace_missing(server->nspace, sig, nodes, n, buf, cap);
}

static void describe_ask(void *arg, uint32_t node, enum ask_topic topic, const void *body,
                         size_t len, char *buf, size_t cap)
{
    const struct server *server = arg;
    const char *name = nspace_name(server->nspace, node);
    if (topic == ASK_MODEX)
        upcall_describe_modex(name, body, len, buf, cap);
    else if (topic == ASK_DATA)
        meeting_describe(name, body, len, buf, cap);
    else
        snprintf(buf, cap, "a question for %s: no answer of %s",
                 topic == ASK_QUERY ? "groups and sets" : "the state", name);
}

static int open_core(struct server *server, struct err *err)
{
    const struct boot *boot = &server->boot;
    struct engine_env engine = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .arity = (uint32_t)server->conf.tree_arity,
        .library = server->library,
        .ids = ((uint64_t)boot->step << CONTEXT_ID_STEP_SHIFT) + boot->node,
        .id_step = boot->nnodes,
        .stall = (uint32_t)server->conf.stall_report,
        .codes = {.timeout = PMIX_ERR_TIMEOUT,
                  .lost = PMIX_ERR_LOST_CONNECTION,
                  .invalid = PMIX_ERR_NOT_FOUND,
                  .library = PMIX_ERR_NOT_SUPPORTED,
                  .closing = PMIX_ERR_UNREACH,
                  .count = PMIX_ERR_BAD_PARAM},
        .now = clock_of,
        .stalled = stalled,
        .servers = servers_of,
        .node_of = node_of,
        .members_on = members_on,
        .local_status = local_status,
        .local_gone = local_gone,
        .left_status = left_status,
        .name = name_of,
        .send = send_shared,
        .missing = missing,
    };
    struct ask_env asks = {
        .arg = server,
        .timeout = PMIX_ERR_TIMEOUT,
        .lost = PMIX_ERR_LOST_CONNECTION,
        .unsupported = PMIX_ERR_NOT_SUPPORTED,
        .closing = PMIX_ERR_UNREACH,
        .stall = (uint32_t)server->conf.stall_report,
        .now = clock_of,
        .stalled = stalled,
        .send = send_frame,
        .describe = describe_ask,
        .serve = {[ASK_MODEX] = upcall_serve_modex,
                  [ASK_QUERY] = upcall_serve_query,
                  [ASK_STATUS] = status_serve,
                  [ASK_DATA] = meeting_serve},
    };
    struct link_env link = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .step = nspace_hash(boot->nspace, boot->run),
        .send = send_bytes,
        .deliver = deliver,
        .greet = greeting_write,
        .fits = greeting_fits,
    };
    if (server->rm_ops->rendezvous != NULL) { /* the session may have more than one step */
        engine.home = steps_home;
        engine.acquaint = steps_acquaint;
        link.find = steps_find;
        link.introduce = steps_introduce;
    }
    const struct broadcast_env broadcast = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .arity = (uint32_t)server->conf.tree_arity,
        .is_lost = is_lost,
        .send = send_shared,
        .deliver = deliver_said,
    };
    server->broadcasts = broadcast_new(&broadcast);
    server->nspace = nspace_new(boot);
    server->registry = registry_new();
    server->tasks = calloc(boot->nodes[boot->node].ntasks + 1, sizeof *server->tasks);
    server->engine = engine_new(&engine);
    server->asks = asks_new(&asks);
    server->link = link_new(&link);
    if (server->nspace == NULL || server->registry == NULL || server->tasks == NULL ||
        server->engine == NULL || server->asks == NULL || server->link == NULL ||
        server->broadcasts == NULL || absent_open(server) != 0 || steps_open(server) != 0 ||
        meeting_open(server) != 0)
        return err_set(err, "out of memory");
    return 0;
}

/* Nothing is sent to a server that was given up. */
static void on_lost(void *arg, uint32_t node, const char *why)
{
    struct server *server = arg;
    direct_forget(server->direct, node);
    departed(server, node, why);
}

static void on_heard(void *arg, uint32_t node)
{
    const struct server *server = arg;
    if (server->rm_ops->learn != NULL && server->rm != NULL)
        server->rm_ops->learn(server->rm, node, RM_HEARD);
}

/* A step of one node needs no connections. */
static void open_direct(struct server *server)
{
    const struct boot *boot = &server->boot;
    const struct direct_env env = {
        .arg = server,
        .self = boot->node,
        .step = nspace_hash(boot->nspace, boot->run),
        .conf = &server->conf.direct,
        .connections =
            limits_connections((unsigned)server->conf.tree_arity, boot->nodes[boot->node].ntasks),
        .ops = server->rm_ops->vouch,
        .base = server->base,
        .native = send_natively,
        .receive = on_receive,
        .heard = on_heard,
        .name = name_of,
        .native_name = server->rm_ops->native,
    };
    if (boot->nnodes > 1)
        server->direct = direct_open(&env);
}

static int open_backend(struct server *server, struct err *err)
{
    const struct rm_host host = {
        .arg = server, .receive = on_receive, .lost = on_lost, .state = status_operations};
    server->rm = server->rm_ops->open(&server->boot, &server->conf, server->base, &host, err);
    return server->rm == NULL ? err_set(err, "the back end %s does not start", server->rm_ops->name)
                              : 0;
}

/* How the RM would have servers hang together, if it matters to it. */
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

/* The launcher may hold tasks until libpmix knows where all of the node are bound. A launcher that
 * has told that of other processes tells of the tasks themselves later. */
static void task_started(struct server *server, uint32_t slot, pid_t pid, bool own)
{
    uint32_t ntasks = server->boot.nodes[server->boot.node].ntasks;
    if (own && slot < ntasks)
        server->tasks[slot].pid = pid;
    if (server->ntold >= ntasks)
        return;
    binding_learn(server->nspace, slot, pid);
    if (++server->ntold != ntasks)
        return;
    binding_complete(server->nspace);
    topology_share(server->topology, &server->boot, server->library, pid);
    if (!server_tell_launcher(BOOT_SAYS_BOUND))
        log_warning("the launcher cannot be told that tasks may go on: %s", strerror(errno));
}

static void task_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    handoff_run(server->handoff); /* it may have finalized just before */
    execs_ended(server, slot, sig, code);
    tasks_ended(server, slot, sig, code);
    if (slot >= here->ntasks)
        return;
    upcall_client_ended(server, slot);
    upcall_task_gone(server, here->ranks[slot]);
    connection_task_ended(server, slot);
    holder_ended(server->holder, server->boot.nspace, here->ranks[slot]);
}

/* @param record of boot.h @param text that belongs to it */
static void take_record(struct server *server, const uint32_t *record, const char *text)
{
    uint32_t slot = record[0];
    if (slot == BOOT_LEAVE)
        server->told_to_leave = true;
    else if (slot == BOOT_WDIR)
        command_wdir(server->nspace, text);
    else if (slot & BOOT_TASK_STARTED)
        task_started(server, slot & ~(uint32_t)BOOT_TASK_STARTED, (pid_t)record[1],
                     record[2] == BOOT_PID_OWN);
    else
        task_ended(server, slot, record[1], record[2]);
}

/* @return whether the launcher's next message is there as a whole; it is done then */
static bool next_record(struct server *server)
{
    unsigned char head[12];
    uint32_t record[3];
    char text[BOOT_WDIR_MAX + 1];
    struct wire_in in;
    if (evbuffer_copyout(server->control_in, head, sizeof head) < (ev_ssize_t)sizeof head)
        return false;
    wire_in_init(&in, head, sizeof head);
    for (int i = 0; i < 3; i++)
        record[i] = wire_get_u32(&in);
    size_t len = record[0] == BOOT_WDIR ? record[1] : 0;
    if (len > BOOT_WDIR_MAX) { /* it is of our own build */
        log_error("the launcher tells of a working directory of %zu bytes: leaving", len);
        event_base_loopbreak(server->base);
        return false;
    }
    if (evbuffer_get_length(server->control_in) < sizeof head + len)
        return false;
    evbuffer_drain(server->control_in, sizeof head);
    evbuffer_remove(server->control_in, text, len);
    text[len] = '\0';
    take_record(server, record, text);
    return true;
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    int n = evbuffer_read(server->control_in, fd, -1);
    while (next_record(server))
        ;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        log_debug("the launcher has shut the control socket: leaving");
        event_base_loopbreak(server->base);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)fd;
    (void)what;
    engine_tick(server->engine);
    asks_tick(server->asks);
    absent_tick(server, now_ms());
    stranded_tick(server, now_ms());
    departed_tick(server, now_ms());
    steps_tick(server);
    holder_tick(server->holder);
    tasks_tick(server, now_ms());
}

int server_open(struct server *server, struct err *err)
{
    if (server_load(server, err) != 0 || open_core(server, err) != 0)
        return -1;
    server->base = event_base_new();
    server->control_in = evbuffer_new();
    if (server->base == NULL || server->control_in == NULL)
        return err_set(err, "libevent does not start");
    server->handoff = handoff_new(server->base);
    server->control =
        event_new(server->base, BOOT_FD_CONTROL, EV_READ | EV_PERSIST, on_control, server);
    server->timer = evtimer_new(server->base, on_timer, server);
    if (server->handoff == NULL || server->control == NULL || server->timer == NULL)
        return err_set(err, "libevent does not start");
    if (open_backend(server, err) != 0)
        return -1;
    open_direct(server);
    if (server->rm_ops->ids != NULL)
        engine_ids(server->engine, server->rm_ops->ids(server->rm), 1);
    if (server->rm_ops->parents != NULL && take_parents(server, err) != 0)
        return -1;
    server->started = now_ms();
    server->status = status_open(server);
    return execs_open(server, err);
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

void server_run(struct server *server)
{
    evutil_make_socket_nonblocking(BOOT_FD_CONTROL);
    event_add(server->control, NULL);
    while (!event_base_got_break(server->base)) {
        int64_t now = now_ms(), ms = earliest(engine_next(server->engine), asks_next(server->asks));
        ms = earliest(ms, earliest(absent_next(server, now), stranded_next(server, now)));
        ms = earliest(ms, earliest(steps_next(server), holder_next(server->holder)));
        ms = earliest(ms, earliest(departed_next(server, now), tasks_next(server, now)));
        if (ms >= 0) {
            struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
            evtimer_add(server->timer, &tv);
        } else {
            evtimer_del(server->timer);
        }
        if (event_base_loop(server->base, EVLOOP_ONCE) != 0)
            break;
    }
}

void server_hold(struct server *server, struct handoff_item *item)
{
    struct handoff_item **end = &server->held;
    while (*end != NULL)
        end = &(*end)->next;
    item->next = NULL;
    *end = item;
}

void server_resume(struct server *server)
{
    struct handoff_item *item = server->held;
    server->held = NULL;
    while (item != NULL) {
        struct handoff_item *next = item->next;
        item->run(item);
        item = next;
    }
}

void server_close(struct server *server)
{
    status_close(server->status);
    server_close_backend(server, 0);
    if (server->handoff != NULL)
        handoff_run(server->handoff);
    handoff_free(server->handoff);
    departed_free(server);
    absent_close(server);
    broadcast_free(server->broadcasts);
    stranded_free(server);
    upcall_free_served(server);
    upcall_free_kept(server);
    upcall_free_spawns(server);
    engine_free(server->engine);
    asks_free(server->asks);
    holder_free(server->holder);
    steps_close(server);
    sets_close(server);
    book_free(&server->book);
    link_free(server->link);
    registry_free(server->registry);
    nspace_free(server->nspace);
    topology_free(server->topology);
    free(server->tasks);
    if (server->control != NULL)
        event_free(server->control);
    if (server->timer != NULL)
        event_free(server->timer);
    if (server->control_in != NULL)
        evbuffer_free(server->control_in);
    if (server->base != NULL)
        event_base_free(server->base);
    boot_free(&server->boot);
}
