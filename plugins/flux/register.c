/* SPDX-License-Identifier: BSD-3-Clause */
/* muster.register, and what else a server asks that others have to be asked for.
 *
 * The instance's owner is believed. A server of another user has to name a job that is that user's,
 * that runs, and that has this broker and the brokers that the server names: job-list, which users
 * cannot influence, is asked for all three. A job that a server looks for has to be of the server's
 * own user, also when that is the instance's owner. */
#include "plugins/flux/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum { STATE_RUN = 16, STATE_CLEANUP = 32, STATE_INACTIVE = 64 };
enum { CHECKS_MAX = 64 /* of one user at a time */ };

/* A request of a server's that waits for what others are asked for. */
struct check {
    struct check *next;
    struct module *module;
    flux_future_t *future;
    const flux_msg_t *request; /* the server's */
    struct registration reg;   /* of muster.register; its job also of muster.find */
};

int client_of(const flux_msg_t *msg, struct client *client)
{
    struct flux_msg_cred cred;
    client->uuid = flux_msg_route_first(msg);
    if (client->uuid == NULL || flux_msg_get_cred(msg, &cred) < 0)
        return -1;
    client->uid = cred.userid;
    client->owner = (cred.rolemask & FLUX_ROLE_OWNER) != 0;
    return 0;
}

static void refuse(struct module *module, const flux_msg_t *request, int errnum, const char *why)
{
    flux_respond_error(module->h, request, errnum, why != NULL && why[0] != '\0' ? why : NULL);
    flux_msg_decref(request);
}

/* @param future, request taken over; future NULL: it failed @param then has the answer
 * @return the check, or NULL: the request was refused */
static struct check *check_open(struct module *module, const flux_msg_t *request,
                                flux_future_t *future, flux_continuation_f then)
{
    struct check *check = future != NULL ? calloc(1, sizeof *check) : NULL;
    if (check == NULL || flux_future_then(future, -1, then, check) < 0) {
        refuse(module, request, errno, NULL);
        flux_future_destroy(future);
        free(check);
        return NULL;
    }
    *check = (struct check){
        .next = module->checks, .module = module, .future = future, .request = request};
    return module->checks = check;
}

static void check_close(struct check *check)
{
    struct check **at = &check->module->checks;
    while (*at != check)
        at = &(*at)->next;
    *at = check->next;
    flux_future_destroy(check->future);
    free(check->reg.brokers);
    free(check);
}

/* @param reg, request taken over */
static void accept_server(struct module *module, const struct client *client,
                          struct registration *reg, const flux_msg_t *request)
{
    struct err err = {0};
    uint64_t job = reg->job;
    uint32_t node = reg->node;
    int rc = directory_register(module->dir, client, reg, request, &err);
    if (rc == 0) {
        flux_log(module->h, LOG_DEBUG, "job %llu: server of node %u, user %u",
                 (unsigned long long)job, node, client->uid);
        return;
    }
    free(reg->brokers);
    refuse(module, request, rc, err.text);
}

/* Reads job-list's answer. @param brokers filled in, to be freed also after an error
 * @return 0; EPERM: it is another user's; ESRCH: it does not run; or another errno with the reason
 * in err */
static int read_job(struct module *module, uint32_t uid, flux_future_t *f, struct ranges *brokers,
                    struct err *err)
{
    int userid, state;
    const char *ranks;
    if (flux_rpc_get_unpack(f, "{s:{s:i s:i s:s}}", "job", "userid", &userid, "state", &state,
                            "ranks", &ranks) < 0) {
        int rc = errno == ENOSYS ? EAGAIN : errno; /* ENOSYS would say that we are not loaded */
        err_set(err, "whose job it is cannot be found out: job-list: %s",
                flux_future_error_string(f));
        return rc;
    }
    if ((uint32_t)userid != uid) {
        err_set(err, "the job is another user's");
        return EPERM;
    }
    if (state != STATE_RUN || idset_parse(brokers, ranks, module->size) != 0) {
        err_set(err, "the job does not run");
        return ESRCH;
    }
    return 0;
}

/* @return 0, or an errno with the reason in err */
static int judge(struct module *module, const struct client *client, const struct registration *reg,
                 flux_future_t *f, struct err *err)
{
    struct ranges set = {0};
    int rc = read_job(module, client->uid, f, &set, err);
    for (uint32_t i = 0; rc == 0 && i < reg->nnodes; i++)
        if (!ranges_have(&set, reg->brokers[i])) {
            err_set(err, "the job does not run on these brokers");
            rc = EINVAL;
        }
    ranges_free(&set);
    return rc == ESRCH ? EINVAL : rc;
}

static void on_answer(flux_future_t *f, void *arg)
{
    struct check *check = arg;
    struct module *module = check->module;
    const flux_msg_t *request = check->request;
    struct registration reg = check->reg;
    struct client client;
    struct err err = {0};
    int rc = client_of(request, &client) != 0 ? EPROTO : judge(module, &client, &reg, f, &err);
    check->reg.brokers = NULL;
    check_close(check);
    if (rc == 0) {
        accept_server(module, &client, &reg, request);
        return;
    }
    free(reg.brokers);
    refuse(module, request, rc, err.text);
}

static bool too_many(const struct module *module, const struct client *client)
{
    unsigned n = 0;
    struct client other;
    for (const struct check *check = module->checks; check != NULL; check = check->next)
        if (client_of(check->request, &other) == 0 && other.uid == client->uid)
            n++;
    return n >= CHECKS_MAX;
}

/* Answered once the job runs, or never will. */
static flux_future_t *list_job(struct module *module, uint64_t job)
{
    return flux_rpc_pack(module->h, "job-list.list-id", FLUX_NODEID_ANY, 0, "{s:I s:[sss] s:i}",
                         "id", (long long)job, "attrs", "userid", "state", "ranks", "state",
                         STATE_RUN | STATE_CLEANUP | STATE_INACTIVE);
}

/* @return 0; EAGAIN: the user has to wait; or what the request was refused for before */
static int admit(struct module *module, const struct client *client, int rc, struct err *err)
{
    if (rc != 0 || !too_many(module, client))
        return rc;
    err_set(err, "too many of this user's servers ask at once");
    return EAGAIN;
}

/* @param out what it is answered with; freed */
static void reply(struct module *module, const flux_msg_t *request, struct wire_out *out)
{
    if (out->failed)
        flux_respond_error(module->h, request, ENOMEM, NULL);
    else
        flux_respond_raw(module->h, request, out->data, (int)out->len);
    wire_out_free(out);
    flux_msg_decref(request);
}

/* ---- muster.find, muster.meet ---- */

static void on_found(flux_future_t *f, void *arg)
{
    struct check *check = arg;
    struct module *module = check->module;
    const flux_msg_t *request = check->request;
    uint64_t job = check->reg.job;
    struct client client;
    struct ranges brokers = {0};
    struct wire_out out = {0};
    struct err err = {0};
    const void *data;
    size_t len;
    int rc =
        client_of(request, &client) != 0 ? EPROTO : read_job(module, client.uid, f, &brokers, &err);
    check_close(check);
    if (rc == 0 && flux_request_decode_raw(request, NULL, &data, &len) < 0)
        rc = EPROTO;
    for (struct ranges_at at = {0}; rc == 0 && ranges_next(&brokers, &at);) {
        directory_found(module->dir, &client, data, len, at.number);
        wire_put_u32(&out, at.number);
    }
    ranges_free(&brokers);
    if (rc == 0) {
        reply(module, request, &out);
        return;
    }
    if (rc == ESRCH)
        directory_ended(module->dir, client.uid, job);
    refuse(module, request, rc, err.text);
}

void find_request(struct module *module, const struct client *client, const flux_msg_t *msg,
                  const void *data, size_t len)
{
    uint64_t job;
    struct err err = {0};
    int rc = admit(module, client, directory_find(module->dir, client, data, len, &job), &err);
    flux_msg_incref(msg);
    if (rc != 0) {
        refuse(module, msg, rc, err.text);
        return;
    }
    struct check *check = check_open(module, msg, list_job(module, job), on_found);
    if (check != NULL)
        check->reg.job = job;
}

static void on_home(flux_future_t *f, void *arg)
{
    struct check *check = arg;
    struct module *module = check->module;
    const flux_msg_t *request = check->request;
    const void *data;
    size_t len;
    if (flux_rpc_get_raw(f, &data, &len) < 0) {
        flux_respond_error(module->h, request, errno, flux_future_error_string(f));
        flux_msg_decref(request);
    } else {
        struct wire_out out = {0};
        wire_put_raw(&out, data, len);
        reply(module, request, &out);
    }
    check_close(check);
}

void meet_request(struct module *module, const struct client *client, const flux_msg_t *msg,
                  const void *data, size_t len)
{
    struct wire_out out = {0};
    struct err err = {0};
    int rc = admit(module, client, directory_meet(module->dir, client, data, len, &out), &err);
    flux_msg_incref(msg);
    if (rc == 0)
        check_open(module, msg, flux_rpc_raw(module->h, "muster.home", out.data, out.len, 0, 0),
                   on_home);
    else
        refuse(module, msg, rc, err.text);
    wire_out_free(&out);
}

void home_request(struct module *module, const struct client *client, const flux_msg_t *msg,
                  const void *data, size_t len)
{
    (void)client;
    struct wire_out out = {0};
    int rc = directory_home(module->dir, data, len, &out);
    flux_msg_incref(msg);
    if (rc == 0) {
        reply(module, msg, &out);
        return;
    }
    refuse(module, msg, rc,
           rc == EPROTO ? "the brokers' modules are of different builds of muster" : NULL);
    wire_out_free(&out);
}

/* ---- muster.register ---- */

/* @param reg, msg taken over */
static void check_job(struct module *module, const struct client *client, struct registration *reg,
                      const flux_msg_t *msg)
{
    if (client->owner) {
        accept_server(module, client, reg, msg);
        return;
    }
    struct check *check = check_open(module, msg, list_job(module, reg->job), on_answer);
    if (check != NULL)
        check->reg = *reg;
    else
        free(reg->brokers);
}

static void on_overlay(flux_future_t *f, void *arg)
{
    struct check *check = arg;
    struct module *module = check->module;
    const flux_msg_t *request = check->request;
    struct registration reg = check->reg;
    struct client client;
    struct err err = {0};
    int rc = client_of(request, &client) != 0 ? EPROTO : overlay_take(module, f, &err);
    check->reg.brokers = NULL;
    check_close(check);
    if (rc == 0) {
        check_job(module, &client, &reg, request);
        return;
    }
    free(reg.brokers);
    refuse(module, request, rc, err.text);
}

void register_request(struct module *module, const struct client *client, const flux_msg_t *msg,
                      const void *data, size_t len)
{
    struct registration reg = {0};
    struct err err = {0};
    int rc = EPROTO;
    flux_msg_incref(msg);
    if (!flux_msg_is_streaming(msg) || !flux_msg_is_local(msg))
        err_set(&err, "a server registers with its own broker, by a streaming request");
    else
        rc = directory_read(module->dir, data, len, &reg, &err);
    if (rc == 0 && !client->owner)
        rc = admit(module, client, rc, &err);
    if (rc != 0) {
        free(reg.brokers);
        refuse(module, msg, rc, err.text);
    } else if (!overlay_unknown(module)) {
        check_job(module, client, &reg, msg);
    } else {
        struct check *check = check_open(module, msg, overlay_ask(module), on_overlay);
        if (check != NULL)
            check->reg = reg;
        else
            free(reg.brokers);
    }
}

void checks_cancel(struct module *module, const struct client *client)
{
    for (struct check *check = module->checks, *next; check != NULL; check = next) {
        struct client of;
        next = check->next;
        if (client != NULL && (client_of(check->request, &of) != 0 || of.uid != client->uid ||
                               strcmp(of.uuid, client->uuid) != 0))
            continue;
        refuse(module, check->request, ENOSYS, NULL);
        check_close(check);
    }
}
