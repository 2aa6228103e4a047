/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Builds such a server from stand-ins for clock, namespace and link, and checks fields of its
 * state by their path.
 */
#include "common/server/status/test_status_kit.h"

#include "common/nspace/foreign.h"
#include "common/server/peers/ask_all.h"
#include "common/server/status/status.h"
#include "common/util/test_cmocka.h"
#include "common/view/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t clock_of(void *arg)
{
    const struct kit *kit = arg;
    return kit->now;
}

static int servers(void *arg, const struct signature *sig, struct places *places)
{
    const struct kit *kit = arg;
    return nspace_servers(kit->server.nspace, sig, places);
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    (void)arg, (void)sig;
    return 0;
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    (void)arg, (void)sig, (void)gone;
}

static const char *name_of(void *arg, uint32_t node)
{
    const struct kit *kit = arg;
    return nspace_name(kit->server.nspace, node);
}

/* Ranks are dealt in turn. */
static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    const struct kit *kit = arg;
    (void)nspace;
    *node = rank % kit->server.boot.nnodes;
    return 0;
}

static void ranks(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap)
{
    const struct kit *kit = arg;
    nspace_ranks(kit->server.nspace, sig, nodes, n, some, buf, cap);
}

static void send_shared(void *arg, uint32_t node, struct wire_out *frame, struct shared_bytes *body)
{
    struct kit *kit = arg;
    struct wire_in in;
    (void)node, (void)body;
    wire_in_init(&in, frame->data, frame->len);
    kit->sent++;
    if (wire_get_u8(&in) == FRAME_ASK)
        kit->ask = wire_get_u64(&in);
    wire_out_free(frame);
}

static void describe(void *arg, uint32_t node, enum ask_topic topic, const void *body, size_t len,
                     char *buf, size_t cap)
{
    (void)arg, (void)topic;
    snprintf(buf, cap, "question \"%.*s\" for %u", (int)len, (const char *)body, node);
}

static void send_frame(void *arg, uint32_t node, struct wire_out *frame)
{
    send_shared(arg, node, frame, NULL);
}

static void native(void *arg, uint32_t node)
{
    (void)arg, (void)node;
}

static void send_of_view(void *arg, uint32_t node, enum frame_type type, struct wire_out *body)
{
    struct kit *kit = arg; /* whose first member the server is */
    struct wire_in in;
    (void)node, (void)type;
    wire_in_init(&in, body->data, body->len);
    kit->sent++;
    enum view_kind kind = wire_get_u8(&in);
    kit->view = view_get_name(&in).number;
    if (kind == VIEW_SAID)
        kit->ask = wire_get_u64(&in);
    wire_out_free(body);
}

static void hear(void *arg, uint32_t origin, const void *text, size_t len)
{
    (void)arg, (void)origin, (void)text, (void)len;
}

static void settled(void *arg)
{
    (void)arg;
}

static void changed(void *arg, const struct ranges *lost, const struct ranges *left)
{
    (void)arg, (void)lost, (void)left;
}

static void over(void *arg, enum view_over how, const char *why)
{
    (void)arg, (void)how, (void)why;
}

static int32_t answer(struct server *server, enum ask_topic topic, const void *body, size_t len,
                      struct wire_out *out)
{
    (void)body, (void)len;
    assert_int_equal(topic, ASK_STATUS);
    return status_answer(server, out);
}

static const struct server_hooks hooks = {.answer = answer};

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole)
{
    (void)arg, (void)from, (void)type, (void)body, (void)len, (void)whole;
}

static struct rm_peer peer(struct rm *rm, uint32_t node)
{
    const struct kit *kit = (struct kit *)rm;
    (void)node;
    return kit->peer;
}

static const struct rm_ops ops = {.name = "none", .peer = peer};

static void fill_boot(struct boot *boot, uint32_t nnodes, uint32_t ntasks)
{
    char name[32];
    boot->session = strdup("4711");
    boot->nspace = strdup("rm.4711.0");
    boot->label = strdup("4711.0");
    boot->tmpdir = strdup("/nonexistent");
    boot->nnodes = nnodes;
    boot->ntasks = nnodes * ntasks;
    boot->nodes = calloc(nnodes, sizeof *boot->nodes);
    for (uint32_t i = 0; i < nnodes; i++) {
        snprintf(name, sizeof name, "c%03u", i);
        boot->nodes[i] = (struct boot_node){
            .name = strdup(name), .ntasks = ntasks, .ranks = calloc(ntasks, sizeof(uint32_t))};
        for (uint32_t k = 0; k < ntasks; k++)
            boot->nodes[i].ranks[k] = k * nnodes + i;
    }
}

struct kit *kit_new(uint32_t nnodes, uint32_t ntasks)
{
    struct kit *kit = calloc(1, sizeof *kit);
    struct server *server = &kit->server;
    const struct engine_env engine = {.arg = kit,
                                      .nnodes = nnodes,
                                      .arity = 16,
                                      .library = 4 << 16 | 2 << 8 | 2,
                                      .id_step = 1,
                                      .codes = {.closing = -25},
                                      .timers = &server->timers,
                                      .servers = servers,
                                      .local_status = local_status,
                                      .local_gone = local_gone,
                                      .send = send_shared,
                                      .node_of = node_of,
                                      .name = name_of,
                                      .ranks = ranks};
    const struct ask_env asks = {.arg = kit,
                                 .timeout = -24, /* PMIX_ERR_TIMEOUT */
                                 .lost = -61,
                                 .closing = -25,
                                 .timers = &server->timers,
                                 .send = send_frame,
                                 .describe = describe};
    const struct view_env view = {.arg = server,
                                  .nnodes = nnodes,
                                  .arity = 16,
                                  .timers = &server->timers,
                                  .send = send_of_view,
                                  .hear = hear,
                                  .answer = ask_all_serve,
                                  .settled = settled,
                                  .changed = changed,
                                  .over = over};
    const struct link_env link = {
        .arg = kit, .nnodes = nnodes, .step = 1, .native = native, .deliver = deliver};
    kit->now = 1000000;
    server->timers = (struct timers){.now = clock_of, .arg = kit};
    fill_boot(&server->boot, nnodes, ntasks);
    server->nspace = nspace_new(&server->boot);
    server->tasks = calloc(ntasks, sizeof *server->tasks);
    server->engine = engine_new(&engine);
    server->asks = asks_new(&asks);
    server->view = view_new(&view);
    server->link = link_new(&link);
    server->library = engine.library;
    server->hooks = &hooks;
    server->rm_ops = &ops;
    server->rm = (struct rm *)kit;
    server->base = event_base_new();
    return kit;
}

void kit_free(struct kit *kit)
{
    struct server *server = &kit->server;
    engine_close(server->engine);
    view_mute(server->view);
    asks_close(server->asks);
    status_close(server->status);
    engine_free(server->engine);
    asks_free(server->asks);
    view_free(server->view);
    link_free(server->link);
    nspaces_free(server->nspace);
    event_base_free(server->base);
    boot_free(&server->boot);
    free(server->tasks);
    for (uint32_t i = 0; i < kit->ncalls; i++)
        free(kit->calls[i].sig);
    procset_free(&kit->caller);
    free(kit);
}

static void done(struct engine_call *call, const struct engine_result *result)
{
    (void)call, (void)result;
}

void kit_construct(struct kit *kit, const char *id, uint32_t timeout)
{
    struct engine_call *call = &kit->calls[kit->ncalls++];
    struct procset all = {0};
    struct wire_out sig;
    char name[64];
    int n = 0;
    assert_int_equal(procset_add(&all, kit->server.boot.nspace, 0, kit->server.boot.ntasks - 1), 0);
    procset_canonical(&all);
    do { /* the root comes by the hash: see tracker_new() */
        sig = (struct wire_out){0};
        snprintf(name, sizeof name, "%s%d", id, n++);
        signature_write(&sig, COLL_CONSTRUCT, name, &all);
        call->sig = wire_out_take(&sig, &call->siglen);
        if (signature_hash(call->sig, call->siglen) % kit->server.boot.nnodes == 0)
            break;
        free(call->sig);
    } while (true);
    call->timeout = timeout;
    call->done = done;
    procset_free(&all);
    engine_call(kit->server.engine, call);
}

void kit_wait(struct kit *kit, const char *id, uint32_t leaders, uint32_t timeout)
{
    struct engine_call *call = &kit->calls[kit->ncalls++];
    procset_add(&kit->caller, kit->server.boot.nspace, 0, 0);
    procset_canonical(&kit->caller);
    call->id = id;
    call->caller = &kit->caller;
    call->timeout = timeout;
    call->leaders = leaders;
    call->done = done;
    if (leaders > 0)
        engine_lead(kit->server.engine, call);
    else
        engine_join(kit->server.engine, call);
}

json_object *kit_state(struct kit *kit)
{
    size_t len;
    char *text = status_text(&kit->server, &len);
    assert_non_null(text);
    assert_int_equal(len, strlen(text));
    assert_null(strchr(text, '\n'));
    json_object *o = json_tokener_parse(text);
    assert_non_null(o);
    free(text);
    return o;
}

json_object *kit_field(json_object *o, const char *path)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, ".", &rest); key != NULL; key = strtok_r(NULL, ".", &rest)) {
        if (json_object_is_type(o, json_type_array))
            o = json_object_array_get_idx(o, (size_t)atoi(key));
        else if (!json_object_object_get_ex(o, key, &o))
            fail_msg("there is no %s of %s", key, path);
    }
    return o;
}

void kit_assert_text(json_object *o, const char *path, const char *text)
{
    assert_string_equal(json_object_get_string(kit_field(o, path)), text);
}

void kit_assert_number(json_object *o, const char *path, double number)
{
    double found = json_object_get_double(kit_field(o, path));
    if (found < number - 1e-6 || found > number + 1e-6)
        fail_msg("%s is %g, not %g", path, found, number);
}
