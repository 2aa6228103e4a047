/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the stand-in for libflux-core and musterrun's brokers know of each other.
 *
 * libflux_core_standin.so defines the functions of flux_abi.h and, but for the shell's own, of
 * shell_abi.h. It is in three processes of each node: the broker, where the module's handle hands
 * messages over by calls; and the shell and muster-server, whose handles are connections to the
 * broker. One thread each. All messages are struct flux_msg; standin_msg_put() and
 * standin_msg_take() have the form in which they go over a socket, in host order: both ends are one
 * build on one machine.
 */
#pragma once

#include "shims/flux/shell_abi.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <json-c/json.h>
#include <stdarg.h>

enum {
    ROUTES_MAX = 32,       /**< brokers on the way, and the sender */
    MESSAGE_MAX = 1 << 30, /**< bytes */
    MSG_STREAMING = 1,     /**< flag: may be answered more than once */
    MSG_NORESPONSE = 2,    /**< flag: is not to be answered */
    MSG_DISTANT = 4,       /**< flag: came from another broker */
};

/** What stands before topic and payload. */
struct msg_head {
    int32_t type, errnum; /**< errnum: of a response */
    uint32_t flags, matchtag, nodeid, userid, rolemask;
    uint32_t nroutes, topic_len, data_len; /**< topic_len without NUL */
    uint64_t routes[ROUTES_MAX];           /**< where the answer goes: the sender first */
};

struct flux_msg {
    int refs;
    struct msg_head head;
    char *topic, *data;       /**< owned; data has a NUL behind it, NULL: no payload */
    char uuid[24];            /**< of the sender, as text */
    struct json_object *json; /**< what data says, once it was read; owned */
};

/** A message without routes. @param topic,data copied; NULL: none @return NULL with errno */
flux_msg_t *standin_msg_new(int type, const char *topic, const void *data, size_t len);

/** A copy that can be changed. @return NULL with errno */
flux_msg_t *standin_msg_copy(const flux_msg_t *msg);

/** The answer to a request. @return NULL with errno */
flux_msg_t *standin_msg_answer(const flux_msg_t *request, int errnum, const void *data, size_t len);

/** Appends it to what is to be sent. @return 0, or -1 */
int standin_msg_put(struct evbuffer *out, const flux_msg_t *msg);

/** Takes the next whole message. @return NULL with errno: EAGAIN there is none yet, EPROTO */
flux_msg_t *standin_msg_take(struct evbuffer *in);

/** What the payload says. @return borrowed from @p msg, NULL with errno EPROTO */
struct json_object *standin_msg_json(const flux_msg_t *msg);

/** A handle for the module of a broker. */
struct standin_broker {
    void *arg;
    int (*send)(void *arg, const flux_msg_t *msg); /**< @return 0, or -1 with errno */
    struct event_base *base;
    uint32_t rank, size;
    const char *uri; /**< of its socket: local://PATH */
};

/** @param broker borrowed for good @return NULL with errno */
flux_t *standin_handle(const struct standin_broker *broker);

/** Gives the handle a message that is for it: a response, or a request or event for its handlers.
 */
void standin_deliver(flux_t *h, const flux_msg_t *msg);

/** Whether the handle's owner serves such requests. */
bool standin_serves(const flux_t *h, const flux_msg_t *msg);

/** Where flux_log() of this process writes. @param sink gets a level as syslog(3) has it, and the
 * text */
void standin_log_to(void (*sink)(int level, const char *text));

/** The loop of flux_get_reactor() and of watchers. */
struct event_base *standin_base(flux_t *h);

/* pack.c: jansson's formats, as far as muster uses them: { } [ ] s i I o and ? behind a key's s. */

/** @return a new object, or NULL with errno */
struct json_object *standin_vpack(const char *fmt, va_list ap);

/** Puts what @p fmt names where its arguments say; strings are borrowed from @p json.
 * @return 0, or -1 with errno EPROTO */
int standin_vunpack(struct json_object *json, const char *fmt, va_list ap);
