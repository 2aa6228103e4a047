/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the parts of a server that know neither PMIx nor the RM: the engine, the questions and
 * the link. Each gets an environment, a struct of functions by which it asks
 * this server. */
#include "common/server/life/core.h"

#include "common/notify/connection.h"
#include "common/notify/debug.h"
#include "common/notify/loss.h"
#include "common/server/life/control.h"
#include "common/server/life/frames.h"
#include "common/server/peers/agreed.h"
#include "common/server/peers/ask_far.h"
#include "common/server/peers/departed.h"
#include "common/server/peers/greeting.h"
#include "common/server/spawned/streams.h"
#include "common/server/status/stalled.h"
#include "common/server/status/status.h"
#include "common/server/status/stopped.h"
#include "common/server/steps/meeting.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/signals.h"
#include "common/server/tasks/stranded.h"
#include "common/server/tasks/tasks.h"
#include "common/server/trace.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>

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

static int32_t local_status(void *arg, const struct signature *sig)
{
    int32_t status = tasks_status(arg, sig);
    if (status != 0) {
        upcall_forget_ended(arg, &sig->members);
        stranded_note(arg, sig);
    }
    return status;
}

static int32_t left_status(void *arg, enum coll_kind kind)
{
    return tasks_loss_status(arg, kind);
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    tasks_gone(arg, sig, gone);
}

static void ranks(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap)
{
    struct server *server = arg;
    nspace_ranks(server->nspace, sig, nodes, n, some, buf, cap);
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
        snprintf(buf, cap, "%s: no answer of %s",
                 topic == ASK_OUTPUT       ? "output for the process that has spawned this one"
                 : topic == ASK_INPUT      ? "input for a spawned process"
                 : topic == ASK_READY      ? "whether spawned processes are ready for a debugger"
                 : topic == ASK_FAR        ? "a question for processes of another step"
                 : topic == ASK_CHECKPOINT ? "a checkpoint"
                 : topic == ASK_CONTROL    ? "what job control has all servers do"
                 : topic == ASK_USAGE      ? "what the nodes use"
                 : topic == ASK_QUERY      ? "a question for groups and sets"
                                           : "a question for the state",
                 name);
}

static void say(void *arg, struct wire_out *frame)
{
    server_say(arg, frame);
}

static struct engine_env engine_env(struct server *server)
{
    const struct boot *boot = &server->boot;
    struct engine_env engine = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .arity = (uint32_t)server->conf.tree_arity,
        .library = server->library,
        .ids = nspace_ids(boot->nspace, boot->run) + boot->node,
        .id_step = boot->nnodes,
        .stall = (uint32_t)server->conf.stall_report,
        .large = server->conf.direct.mode == CONF_DIRECT_ON ? ENGINE_LARGE : 0,
        .few = ENGINE_FEW,
        .piece = ENGINE_PIECE,
        .codes = {.timeout = PMIX_ERR_TIMEOUT,
                  .lost = PMIX_ERR_LOST_CONNECTION,
                  .invalid = PMIX_ERR_NOT_FOUND,
                  .library = ENGINE_MISFIT,
                  .closing = PMIX_ERR_UNREACH,
                  .count = PMIX_ERR_BAD_PARAM},
        .timers = &server->timers,
        .stalled = stalled_operation,
        .ended = boot_setting(boot, BOOT_TRACE) != NULL ? trace_ended : NULL,
        .servers = servers_of,
        .node_of = server_node_of,
        .members_on = members_on,
        .local_status = local_status,
        .local_gone = local_gone,
        .left_status = left_status,
        .name = frames_name,
        .send = frames_send_shared,
        .say = say,
        .ranks = ranks,
    };
    if (server->rm_ops->rendezvous != NULL) { /* the session may have more than one step */
        engine.home = steps_home;
        engine.acquaint = steps_acquaint;
    }
    return engine;
}

static int32_t answer(struct server *server, enum ask_topic topic, const void *body, size_t len,
                      struct wire_out *out)
{
    switch (topic) {
    case ASK_QUERY:
        return upcall_answer_query(server, body, len, out);
    case ASK_STATUS:
        return status_answer(server, out);
    case ASK_CONTROL:
        return upcall_answer_control(server, body, len);
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
}

static void reply(struct server *server, enum ask_topic topic, uint32_t from, uint64_t id,
                  const void *body, size_t len)
{
    struct wire_out out = {0};
    int32_t status = answer(server, topic, body, len, &out);
    asks_reply(server->asks, from, id, status, out.data, out.len);
    wire_out_free(&out);
}

static void serve_query(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    reply(arg, ASK_QUERY, from, id, body, len);
}

static void serve_status(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    reply(arg, ASK_STATUS, from, id, body, len);
}

static bool is_under_way(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return link_owed(server->link, node).frames > 0;
}

static struct ask_env ask_env(struct server *server)
{
    return (struct ask_env){
        .arg = server,
        .timeout = PMIX_ERR_TIMEOUT,
        .lost = PMIX_ERR_LOST_CONNECTION,
        .unsupported = PMIX_ERR_NOT_SUPPORTED,
        .closing = PMIX_ERR_UNREACH,
        .full = PMIX_ERR_OUT_OF_RESOURCE,
        .stall = (uint32_t)server->conf.stall_report,
        .timers = &server->timers,
        .stalled = stalled,
        .send = frames_send,
        .is_under_way = is_under_way,
        .describe = describe_ask,
        .serve = {[ASK_MODEX] = upcall_serve_modex,
                  [ASK_QUERY] = serve_query,
                  [ASK_STATUS] = serve_status,
                  [ASK_DATA] = meeting_serve,
                  [ASK_OUTPUT] = upcall_serve_output,
                  [ASK_INPUT] = streams_serve_input,
                  [ASK_READY] = stopped_serve,
                  [ASK_FAR] = ask_far_serve,
                  [ASK_CHECKPOINT] = checkpoint_serve,
                  [ASK_USAGE] = upcall_serve_usage},
    };
}

static struct link_env link_env(struct server *server)
{
    const struct boot *boot = &server->boot;
    struct link_env link = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .step = nspace_hash(boot->nspace, boot->run),
        .native = frames_native,
        .required = server->conf.direct.mode == CONF_DIRECT_REQUIRE,
        .deliver = frames_deliver,
        .greet = greeting_write,
        .fits = greeting_fits,
        .timers = &server->timers,
        .connect = frames_connect,
        .ready = frames_ready,
        .stuck = frames_stuck,
    };
    if (server->rm_ops->rendezvous != NULL) {
        link.find = steps_find;
        link.introduce = steps_introduce;
    }
    return link;
}

static void nspace_ended(struct server *server, const char *nspace)
{
    connection_nspace_ended(server, nspace);
    debug_nspace_ended(server, nspace);
    forwards_nspace_ended(server->forwards, nspace);
    pushes_nspace_ended(server, nspace);
}

static void task_gone(struct server *server, uint32_t slot)
{
    control_task_gone(server, slot, 0, BOOT_CODE_UNKNOWN);
}

static void server_lost(struct server *server, uint32_t node, const char *why)
{
    signals_server_lost(server, node);
    loss_server(server, node, why);
}

static const struct server_hooks hooks = {
    .task_gone = task_gone,
    .task_lost = loss_task,
    .server_lost = server_lost,
    .said = frames_deliver_said,
    .answer = answer,
    .nspace_ended = nspace_ended,
    .ready = debug_ready,
    .stopped = stopped_ready,
    .view_changed = stopped_view_changed,
};

/* Servers of other steps are reached by way of the resource manager alone. */
static void leave_out_others(struct server *server)
{
    server->own_step = *server->rm_ops;
    server->own_step.rendezvous = NULL;
    server->own_step.resolve = NULL;
    server->own_step.others = NULL;
    server->own_step.attach = NULL;
    server->own_step.spawn = NULL;
    server->own_step.let_go = NULL;
    server->own_step.started = NULL;
    server->rm_ops = &server->own_step;
}

int core_open(struct server *server, struct err *err)
{
    if (server->conf.direct.mode == CONF_DIRECT_REQUIRE)
        leave_out_others(server);
    const struct boot *boot = &server->boot;
    const struct engine_env engine = engine_env(server);
    const struct ask_env asks = ask_env(server);
    const struct link_env link = link_env(server);
    server->hooks = &hooks;
    server->nspace = nspace_new(boot);
    server->registry = registry_new();
    server->tasks = calloc(boot_here(boot)->ntasks + 1, sizeof *server->tasks);
    tasks_open(server);
    server->engine = engine_new(&engine);
    server->asks = asks_new(&asks);
    server->link = link_new(&link);
    agreed_open(server);
    steps_open(server);
    meeting_open(server);
    return stopped_open(server, err);
}
