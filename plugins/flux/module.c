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

static void take_send(struct module *module, const struct client *client, const flux_msg_t *msg,
                      const void *data, size_t len)
{
    directory_send(module->dir, client, data, len, flux_msg_incref(msg));
}

static void take_disconnect(struct module *module, const struct client *client,
                            const flux_msg_t *msg, const void *data, size_t len)
{
    (void)msg, (void)data, (void)len;
    checks_cancel(module, client);
    directory_disconnect(module->dir, client);
}

/* What takes a request, or what of the directory does. */
static const struct taker {
    const char *topic;
    request_fn *take;
    directory_fn *tell;
} takers[] = {
    {"muster.send", take_send, NULL},        {"muster.took", NULL, directory_took},
    {"muster.state", NULL, directory_state}, {"muster.register", register_request, NULL},
    {"muster.find", find_request, NULL},     {"muster.meet", meet_request, NULL},
    {"muster.leave", NULL, directory_leave}, {"muster.disconnect", take_disconnect, NULL},
    {"muster.gone", NULL, directory_gone},   {"muster.home", home_request, NULL},
};

static void on_packet(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct module *module = arg;
    struct client client;
    const char *topic;
    const void *data;
    size_t len;
    const struct taker *taker = takers, *end = takers + sizeof takers / sizeof takers[0];
    bool good =
        client_of(msg, &client) == 0 && flux_request_decode_raw(msg, &topic, &data, &len) == 0;
    (void)mh;
    while (good && taker < end && strcmp(topic, taker->topic) != 0)
        taker++;
    if (!good || taker == end)
        flux_respond_error(h, msg, EPROTO, NULL);
    else if (taker->take != NULL)
        taker->take(module, &client, msg, data, len);
    else
        taker->tell(module->dir, &client, data, len);
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
