/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Handles and what waits at them. Private to the library.
 */
#pragma once

#include "shims/flux/standin/flux.h"

/** A broker's or job shell's settings. */
struct flux_conf {
    int refs;
    struct json_object *table;
};

/** An answer that is waited for, or the last one of several. */
struct flux_future {
    struct flux_future *next;
    flux_t *h;
    uint32_t matchtag; /**< FLUX_MATCHTAG_NONE: there will be no answer */
    flux_msg_t *response;
    flux_continuation_f then;
    void *arg;
};

struct flux_msg_handler {
    struct flux_msg_handler *next;
    flux_t *h;
    struct flux_msg_handler_spec spec;
    char *topic; /**< owned */
    void *arg;
};

struct flux_handle {
    const struct standin_broker *broker; /**< of a module; NULL: a connection */
    int fd;                              /**< of a connection */
    struct evbuffer *in;                 /**< of a connection: what has come */
    struct event_base *base;
    char *uri;
    uint32_t last_tag;
    struct flux_future *futures;
    struct flux_msg_handler *handlers;
    char *subscribed; /**< to topics that begin so; one is all that is needed */
    flux_conf_t *conf;
};

/** Gives an answer to the future that waits for it; without one, forgets it. */
void future_take(flux_t *h, const flux_msg_t *response);
