/* SPDX-License-Identifier: BSD-3-Clause */
/* muster.so, the broker module: relays messages between the servers of a job along Flux's overlay.
 *
 * A server registers with the module of its own broker and is sent what is for it as responses to
 * that request. What it sends goes as one request to the module on the receiver's broker. All
 * payloads are raw; nothing of a job goes by events, which every user may read. What the module
 * believes: the brokers' stamp on every message, which says whose it is, also when it comes from
 * another broker. Requests of modules are refused to all but the instance's owner (rolemask 0).
 *
 *     server ── muster.send, along the overlay ──► module ── response to muster.register ──► server
 *        ◄── answer ──────────────────────────────── ◄── muster.took, now and then ──────────┘ */
#include "plugins/flux/module.h"

#include "common/util/clock.h"
#include "common/util/mark.h"
#include "plugins/flux/release.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

MARK_VERSION;

/* Before 0.80 Flux does not have them. The module is loaded there all the same, and says so. */
#pragma weak flux_module_config_request_decode
#pragma weak flux_set_conf_new

/* What the directory wants. */

static int64_t env_now(void *arg)
{
    (void)arg;
    return now_ms();
}

static int env_respond(void *arg, const void *request, const void *data, size_t len)
{
    struct module *module = arg;
    if (len > INT32_MAX)
        return EMSGSIZE;
    return flux_respond_raw(module->h, request, data, (int)len) < 0 ? errno : 0;
}

static void env_answer(void *arg, const void *request, int errnum, const char *text)
{
    struct module *module = arg;
    int rc = errnum == 0 ? flux_respond(module->h, request, text)
                         : flux_respond_error(module->h, request, errnum, text);
    if (rc < 0)
        flux_log(module->h, LOG_ERR, "a request cannot be answered: %s", strerror(errno));
    if (errnum == EPERM)
        flux_log(module->h, LOG_DEBUG, "a message is refused: %s", text);
    flux_msg_decref(request);
}

static void env_drop(void *arg, const void *request)
{
    (void)arg;
    flux_msg_decref(request);
}

static void env_tell(void *arg, uint32_t rank, const void *data, size_t len)
{
    struct module *module = arg;
    flux_future_destroy(
        flux_rpc_raw(module->h, "muster.gone", data, len, rank, FLUX_RPC_NORESPONSE));
}

static void on_alarm(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct module *module = arg;
    (void)r;
    (void)w;
    (void)events;
    directory_alarm(module->dir);
}

/* One that has come is kept until the next one, or the end: it is not destroyed from within. */
static int env_alarm(void *arg, unsigned ms)
{
    struct module *module = arg;
    flux_watcher_destroy(module->alarm);
    module->alarm =
        flux_timer_watcher_create(flux_get_reactor(module->h), ms / 1000.0, 0, on_alarm, module);
    if (module->alarm == NULL)
        return -1;
    flux_watcher_start(module->alarm);
    return 0;
}

/* Requests. */

/* A request: its sender, and its payload. */
struct packet {
    struct client client;
    bool owner; /* of the instance */
    const void *data;
    size_t len;
};

static void take_register(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    register_request(module, &p->client, p->owner, msg, p->data, p->len);
}

static void take_send(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    directory_send(module->dir, &p->client, p->data, p->len, flux_msg_incref(msg));
}

static void take_took(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    (void)msg;
    directory_took(module->dir, &p->client, p->data, p->len);
}

static void take_leave(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    (void)msg;
    directory_leave(module->dir, &p->client, p->data, p->len);
}

static void take_state(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    (void)msg;
    directory_state(module->dir, &p->client, p->data, p->len);
}

static void take_find(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    find_request(module, &p->client, msg, p->data, p->len);
}

static void take_meet(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    meet_request(module, &p->client, msg, p->data, p->len);
}

static void take_home(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    home_request(module, msg, p->data, p->len);
}

static void take_gone(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    (void)msg;
    directory_gone(module->dir, p->data, p->len);
}

static void take_disconnect(struct module *module, const struct packet *p, const flux_msg_t *msg)
{
    (void)msg;
    checks_cancel(module, &p->client);
    directory_disconnect(module->dir, &p->client);
}

/* Requests that have a packet. */
static const struct taker {
    const char *topic;
    void (*take)(struct module *module, const struct packet *p, const flux_msg_t *msg);
} takers[] = {
    {"muster.send", take_send},   {"muster.took", take_took},
    {"muster.state", take_state}, {"muster.register", take_register},
    {"muster.find", take_find},   {"muster.meet", take_meet},
    {"muster.leave", take_leave}, {"muster.disconnect", take_disconnect},
    {"muster.gone", take_gone},   {"muster.home", take_home},
};

/* @return what takes the request, with its packet in @p p, or NULL: it lacks something, and was
 * refused */
static const struct taker *decode(flux_t *h, const flux_msg_t *msg, struct packet *p)
{
    struct flux_msg_cred cred;
    const char *topic;
    p->client.uuid = flux_msg_route_first(msg);
    if (p->client.uuid != NULL && flux_msg_get_cred(msg, &cred) == 0 &&
        flux_request_decode_raw(msg, &topic, &p->data, &p->len) == 0) {
        p->client.uid = cred.userid;
        p->owner = (cred.rolemask & FLUX_ROLE_OWNER) != 0;
        for (size_t i = 0; i < sizeof takers / sizeof takers[0]; i++)
            if (strcmp(topic, takers[i].topic) == 0)
                return &takers[i];
    }
    flux_respond_error(h, msg, EPROTO, NULL);
    return NULL;
}

static void on_packet(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct packet p;
    const struct taker *taker = decode(h, msg, &p);
    (void)mh;
    if (taker != NULL)
        taker->take(arg, &p, msg);
}

static void on_offline(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    (void)h;
    (void)mh;
    online_event(arg, msg);
}

static void on_config(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct module *module = arg;
    (void)mh;
    flux_respond(h, msg, module->settings);
}

static void on_reload(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct module *module = arg;
    struct err err = {0};
    flux_conf_t *conf;
    (void)mh;
    if (flux_module_config_request_decode(msg, &conf) < 0) {
        flux_respond_error(h, msg, errno, NULL);
        return;
    }
    char *text = settings_read(conf, &err);
    if (text == NULL || flux_set_conf_new(h, conf) < 0) {
        flux_respond_error(h, msg, EINVAL, err.text[0] != '\0' ? err.text : NULL);
        flux_conf_decref(conf);
        free(text);
        return;
    }
    free(module->settings);
    module->settings = text;
    flux_respond(h, msg, NULL);
}

static void on_stats(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct module *module = arg;
    (void)h;
    (void)mh;
    directory_stats(module->dir, flux_msg_incref(msg));
}

static const struct flux_msg_handler_spec table[] = {
    {FLUX_MSGTYPE_REQUEST, "register", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "send", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "find", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "meet", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "took", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "leave", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "state", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "disconnect", on_packet, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "config", on_config, FLUX_ROLE_USER},
    {FLUX_MSGTYPE_REQUEST, "gone", on_packet, 0},
    {FLUX_MSGTYPE_REQUEST, "home", on_packet, 0},
    {FLUX_MSGTYPE_REQUEST, "config-reload", on_reload, 0},
    {FLUX_MSGTYPE_REQUEST, "stats-get", on_stats, 0},
    {FLUX_MSGTYPE_EVENT, "offline", on_offline, 0},
    {0, NULL, NULL, 0},
};

static int start(struct module *module, flux_msg_handler_t ***handlers)
{
    struct directory_env env = {
        .arg = module,
        .now = env_now,
        .respond = env_respond,
        .answer = env_answer,
        .drop = env_drop,
        .tell = env_tell,
        .alarm = env_alarm,
    };
    struct err err = {0};
    if (flux_get_rank(module->h, &module->rank) < 0 || flux_get_size(module->h, &module->size) < 0)
        return -1;
    env.rank = module->rank;
    env.size = module->size;
    module->settings = settings_read(flux_get_conf(module->h), &err);
    if (module->settings == NULL) {
        flux_log(module->h, LOG_ERR, "%s", err.text);
        errno = EINVAL;
        return -1;
    }
    module->dir = directory_new(&env);
    if (module->dir == NULL || flux_event_subscribe(module->h, "muster.offline") < 0 ||
        flux_msg_handler_addvec_ex(module->h, "muster", table, module, handlers) < 0)
        return -1;
    return online_watch(module);
}

/* At the end of an instance there is none. */
static void warn_admin(const struct module *module)
{
    unsigned n = module->dir != NULL ? directory_servers(module->dir) : 0;
    if (n > 0)
        flux_log(
            module->h, LOG_WARNING,
            "unloaded under %u running job%s: their tasks here are cut off from those of other "
            "brokers, and the jobs are ended when that lasts longer than timeouts.peer (30 s "
            "unless it is set); load it again: flux module load " FLUX_MODULE,
            n, n == 1 ? "" : "s");
}

static void stop(struct module *module, flux_msg_handler_t **handlers)
{
    warn_admin(module);
    flux_msg_handler_delvec(handlers);
    online_close(module);
    checks_cancel(module, NULL);
    flux_watcher_destroy(module->alarm);
    directory_free(module->dir, ENOSYS, "the broker's module is unloaded");
    free(module->settings);
}

__attribute__((visibility("default"))) int mod_main(flux_t *h, int argc, char *argv[])
{
    struct module module = {.h = h};
    flux_msg_handler_t **handlers = NULL;
    struct err err = {0};
    if (release_check(&err) != 0) {
        flux_log(h, LOG_ERR, "%s", err.text);
        errno = ENOTSUP;
        return -1;
    }
    if (argc > 0) {
        flux_log(h, LOG_ERR,
                 "the module takes no arguments; settings stand in table [muster] of "
                 "Flux's configuration, or in muster.json; found: %s",
                 argv[0]);
        errno = EINVAL;
        return -1;
    }
    int rc = start(&module, &handlers);
    if (rc == 0)
        rc = flux_reactor_run(flux_get_reactor(h), 0) < 0 ? -1 : 0;
    int saved = errno;
    stop(&module, handlers);
    errno = saved;
    return rc;
}
