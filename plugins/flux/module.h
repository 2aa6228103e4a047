/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The broker module's parts. @thread all of it: the module's
 */
#pragma once

#include "plugins/flux/directory.h"
#include "plugins/flux/idset.h"
#include "shims/flux/flux_abi.h"

struct module {
    flux_t *h;
    uint32_t rank, size;
    struct directory *dir;
    bool shaped;           /**< the directory knows how the overlay hangs together */
    struct check *checks;  /**< requests that wait for what job-list or rank 0 say */
    char *settings;        /**< table [muster] as JSON */
    flux_watcher_t *alarm; /**< of the directory; NULL: there was none yet */
    flux_future_t *watch;  /**< of the brokers online; rank 0 only */
    struct ranges online;
};

/** Finds out who has sent a request. @return 0, or -1 */
int client_of(const flux_msg_t *msg, struct client *client);

typedef void request_fn(struct module *module, const struct client *client, const flux_msg_t *msg,
                        const void *data, size_t len);

/** muster.register: the server's job is checked before it is in the directory. */
request_fn register_request;

/** muster.find: the job's brokers, when it runs and is the same user's. */
request_fn find_request;

/** muster.meet: rank 0 is asked. */
request_fn meet_request;

/** muster.home of another module, at rank 0. */
request_fn home_request;

/** Forgets what waits for a check. @param client NULL: of all */
void checks_cancel(struct module *module, const struct client *client);

/** Watches which brokers are online, and tells all modules of brokers that are not any more.
 * @return 0, or -1 with errno */
int online_watch(struct module *module);

/** The event by which rank 0 tells it. */
void online_event(struct module *module, const flux_msg_t *msg);

/** Ends online_watch(). */
void online_close(struct module *module);

/** Whether it has to be asked how brokers hang together, before a server is accepted. */
bool overlay_unknown(const struct module *module);

/** Asks it, rank 0. @return NULL with errno */
flux_future_t *overlay_ask(struct module *module);

/** Takes the answer. @return 0, or an errno with the reason in @p err */
int overlay_take(struct module *module, flux_future_t *f, struct err *err);

/**
 * Reads the table [muster].
 * @return its text, JSON, for free(), or NULL with the reason in @p err
 */
char *settings_read(const flux_conf_t *conf, struct err *err);
