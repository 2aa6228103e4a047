/* What lives on the loop, wired together: frames in and out, deadlines, the launcher's messages. */
#include "common/server/server.h"

#include "common/nspace/binding.h"
#include "common/server/status.h"
#include "common/server/tasks.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <event2/buffer.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TELL_MAX = 512 };
enum { GOODBYE_MS = 1000 /* what frames under way may take once the step has ended */ };

/* Steps of one session have ranges of their own, so that no id comes twice in a session. */
enum { CONTEXT_ID_STEP_SHIFT = 40 };

static uint64_t clock_of(void *arg)
{
    (void)arg;
    return (uint64_t)now_ms();
}

static void send_frame(void *arg, uint32_t node, struct wire_out *frame)
{
    struct server *server = arg;
    link_send(server->link, node, frame);
}

static void send_bytes(void *arg, uint32_t node, void *data, size_t len)
{
    struct server *server = arg;
    server->rm_ops->send(server->rm, node, data, len);
}

static void on_ending(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    char tell[TELL_MAX];
    wire_in_init(&in, body, len);
    wire_get_str(&in, tell, sizeof tell);
    if (in.bad)
        return;
    if (tell[0] != '\0' && !server->ending)
        log_error("%s", tell);
    log_debug("%s has the step ended", server->boot.nodes[from].name);
    server->ending = true;
}

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len)
{
    struct server *server = arg;
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
    case FRAME_ASK:
    case FRAME_ANSWER:
        asks_frame(server->asks, from, type, body, len);
        return;
    case FRAME_ENDING:
        on_ending(server, from, body, len);
        return;
    }
    log_warning("a frame of unknown type %d of node %u was dropped", (int)type, from);
}

static void on_receive(void *arg, const void *data, size_t len)
{
    struct server *server = arg;
    link_receive(server->link, data, len);
}

static void on_lost(void *arg, uint32_t node, const char *why)
{
    struct server *server = arg;
    if (!server->ending)
        log_error("muster-server on %s is lost: %s", server->boot.nodes[node].name, why);
    engine_lost(server->engine, node);
    asks_lost(server->asks, node);
}

static int servers_of(void *arg, const struct signature *sig, uint32_t **nodes, uint32_t *n)
{
    struct server *server = arg;
    return nspace_servers(server->nspace, sig, nodes, n);
}

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    struct server *server = arg;
    return nspace_node(server->nspace, nspace, rank, node);
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    return tasks_status(arg, sig);
}

static const char *name_of(void *arg, uint32_t node)
{
    struct server *server = arg;
    return server->boot.nodes[node].name;
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
    const char *name = server->boot.nodes[node].name;
    if (topic == ASK_MODEX)
        upcall_describe_modex(name, body, len, buf, cap);
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
        .servers = servers_of,
        .node_of = node_of,
        .local_status = local_status,
        .name = name_of,
        .send = send_frame,
        .missing = missing,
    };
    struct ask_env asks = {
        .arg = server,
        .nnodes = boot->nnodes,
        .timeout = PMIX_ERR_TIMEOUT,
        .lost = PMIX_ERR_LOST_CONNECTION,
        .unsupported = PMIX_ERR_NOT_SUPPORTED,
        .closing = PMIX_ERR_UNREACH,
        .stall = (uint32_t)server->conf.stall_report,
        .now = clock_of,
        .send = send_frame,
        .describe = describe_ask,
        .serve = {[ASK_MODEX] = upcall_serve_modex,
                  [ASK_QUERY] = upcall_serve_query,
                  [ASK_STATUS] = status_serve},
    };
    struct link_env link = {
        .arg = server,
        .self = boot->node,
        .nnodes = boot->nnodes,
        .step = signature_hash(boot->nspace, strlen(boot->nspace)),
        .send = send_bytes,
        .deliver = deliver,
    };
    server->nspace = nspace_new(boot);
    server->registry = registry_new();
    server->tasks = calloc(boot->nodes[boot->node].ntasks + 1, sizeof *server->tasks);
    server->engine = engine_new(&engine);
    server->asks = asks_new(&asks);
    server->link = link_new(&link);
    if (server->nspace == NULL || server->registry == NULL || server->tasks == NULL ||
        server->engine == NULL || server->asks == NULL || server->link == NULL)
        return err_set(err, "out of memory");
    return 0;
}

/* The back end's name comes from the launcher, which root trusts as little as we need to. */
static int backend_path(const struct boot *boot, char *path, size_t cap, struct err *err)
{
    const char *name = boot_setting(boot, "backend");
    if (name == NULL || name[0] == '\0' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz") != strlen(name))
        return err_set(err, "the boot message names no back end");
    snprintf(path, cap, MUSTER_BACKEND_DIR "/rm_%s.so", name);
    return 0;
}

static int open_backend(struct server *server, struct err *err)
{
    const struct rm_host host = {.arg = server, .receive = on_receive, .lost = on_lost};
    const char *preload = boot_setting(&server->boot, "preload");
    char path[4096];
    if (backend_path(&server->boot, path, sizeof path, err) != 0)
        return -1;
    /* GLOBAL: the RM's own plugins are not linked with its library. */
    if (preload != NULL && dlopen(preload, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return err_set(err, "%s", dlerror());
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return err_set(err, "the back end does not load: %s; reinstall muster", dlerror());
    server->rm_ops = dlsym(object, RM_SYMBOL);
    if (server->rm_ops == NULL)
        return err_set(err, "%s is no back end of muster: it has no symbol %s", path, RM_SYMBOL);
    server->rm = server->rm_ops->open(&server->boot, &server->conf, server->base, &host, err);
    return server->rm == NULL ? err_set(err, "the back end %s does not start", path) : 0;
}

static int check_library(struct server *server, struct err *err)
{
    unsigned major = 0, minor = 0, release = 0;
    const char *version = PMIx_Get_version(), *digits = strpbrk(version, "0123456789");
    if (digits != NULL)
        sscanf(digits, "%u.%u.%u", &major, &minor, &release);
    server->library = major << 16 | minor << 8 | release;
    if (major != PMIX_VERSION_MAJOR)
        return err_set(err,
                       "muster was built for libpmix %d and libpmix %u.%u.%u is installed; "
                       "build it again",
                       (int)PMIX_VERSION_MAJOR, major, minor, release);
    return 0;
}

/* The launcher may hold tasks until libpmix knows where all of the node are bound. */
static void task_started(struct server *server, uint32_t slot, pid_t pid)
{
    binding_learn(server->nspace, slot, pid);
    if (++server->ntold == server->boot.nodes[server->boot.node].ntasks &&
        send(BOOT_FD_CONTROL, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        log_warning("the launcher cannot be told that tasks may go on: %s", strerror(errno));
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    int n = evbuffer_read(server->control_in, fd, -1);
    uint32_t record[3];
    while (evbuffer_get_length(server->control_in) >= sizeof record) {
        struct wire_in in;
        evbuffer_remove(server->control_in, record, sizeof record);
        wire_in_init(&in, record, sizeof record);
        uint32_t slot = wire_get_u32(&in), sig = wire_get_u32(&in), code = wire_get_u32(&in);
        if (slot == BOOT_LEAVE)
            server->told_to_leave = true;
        else if (slot & BOOT_TASK_STARTED)
            task_started(server, slot & ~(uint32_t)BOOT_TASK_STARTED, (pid_t)sig);
        else
            tasks_ended(server, slot, sig, code);
    }
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
    tasks_tick(server, now_ms());
}

int server_open(struct server *server, struct err *err)
{
    if (check_library(server, err) != 0 || open_core(server, err) != 0)
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
    server->started = now_ms();
    server->status = status_open(server);
    return 0;
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
        int64_t ms = earliest(earliest(engine_next(server->engine), asks_next(server->asks)),
                              tasks_next(server, now_ms()));
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

void server_end_step(struct server *server, const char *why, const char *tell)
{
    server->ending = true;
    for (uint32_t node = 0; node < server->boot.nnodes; node++) {
        struct wire_out frame = {0};
        if (node == server->boot.node)
            continue;
        wire_put_u8(&frame, FRAME_ENDING);
        wire_put_str(&frame, tell != NULL ? tell : "");
        link_send(server->link, node, &frame);
    }
    server->rm_ops->abort(server->rm, why);
}

void server_leave(struct server *server)
{
    tasks_tick(server, INT64_MAX); /* a loss that was about to be told */
    if (!server->told_to_leave && !server->ending) {
        char tell[TELL_MAX];
        snprintf(tell, sizeof tell,
                 "the launcher of step %.100s on node %.250s was killed, and the tasks there with "
                 "it; ending the step",
                 server->boot.label, server->boot.nodes[server->boot.node].name);
        server_end_step(server, tell, tell);
    }
    server->ending = true;
    server_resume(server);
    engine_close(server->engine);
    asks_close(server->asks);
}

void server_close(struct server *server)
{
    status_close(server->status);
    if (server->rm != NULL)
        server->rm_ops->close(server->rm, GOODBYE_MS);
    if (server->handoff != NULL)
        handoff_run(server->handoff);
    handoff_free(server->handoff);
    engine_free(server->engine);
    asks_free(server->asks);
    link_free(server->link);
    registry_free(server->registry);
    nspace_free(server->nspace);
    owner_cache_free(&server->owners);
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
