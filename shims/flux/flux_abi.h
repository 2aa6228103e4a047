/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What we use of libflux-core and libjansson, declared by hand, so that muster builds where no Flux
 * is installed; abi_check.c has the compiler compare it with the real headers where there are any.
 *
 * Flux 0.83 and newer, in which the shell first has shell.finish; the module's settings need 0.80.
 * (Before 0.70 the lengths of raw payloads were int, under the same soname.)
 * Nothing is linked: a broker's module finds the functions in the broker, and muster-server loads
 * libflux-core as the boot message's "preload" says. The assertions at the end hold for whichever
 * definitions were read, ours or Flux's own, and so compare them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef FLUX_ABI_REAL_HEADERS
typedef struct flux_handle flux_t;
typedef struct flux_msg flux_msg_t;
typedef struct flux_future flux_future_t;
typedef struct flux_reactor flux_reactor_t;
typedef struct flux_watcher flux_watcher_t;
typedef struct flux_msg_handler flux_msg_handler_t;
typedef struct flux_conf flux_conf_t;
typedef struct json_t json_t;

typedef struct {
    char text[160];
} flux_error_t;

typedef void (*flux_continuation_f)(flux_future_t *f, void *arg);
typedef void (*flux_watcher_f)(flux_reactor_t *r, flux_watcher_t *w, int revents, void *arg);
typedef void (*flux_msg_handler_f)(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                                   void *arg);

enum { FLUX_MSGTYPE_REQUEST = 1, FLUX_MSGTYPE_RESPONSE = 2, FLUX_MSGTYPE_EVENT = 4 };
enum { FLUX_MATCHTAG_NONE = 0 };
enum { FLUX_NODEID_ANY = 0xffffffff };
enum { FLUX_ROLE_OWNER = 1, FLUX_ROLE_USER = 2 };
enum { FLUX_RPC_NORESPONSE = 1, FLUX_RPC_STREAMING = 2 };
enum { FLUX_O_NONBLOCK = 4 };

struct flux_match {
    int typemask;
    uint32_t matchtag;
    const char *topic_glob;
};

struct flux_msg_cred {
    uint32_t userid, rolemask;
};

struct flux_msg_handler_spec {
    int typemask;
    const char *topic_glob;
    flux_msg_handler_f cb;
    uint32_t rolemask;
};
#endif

/* The handle. */
flux_t *flux_open_ex(const char *uri, int flags, flux_error_t *error);
void flux_close(flux_t *h);
int flux_send(flux_t *h, const flux_msg_t *msg, int flags);
flux_msg_t *flux_recv(flux_t *h, struct flux_match match, int flags);
flux_reactor_t *flux_get_reactor(flux_t *h);
int flux_reactor_run(flux_reactor_t *r, int flags);
flux_watcher_t *flux_timer_watcher_create(flux_reactor_t *r, double after, double repeat,
                                          flux_watcher_f cb, void *arg);
void flux_watcher_start(flux_watcher_t *w);
void flux_watcher_destroy(flux_watcher_t *w);
int flux_get_rank(flux_t *h, uint32_t *rank);
int flux_get_size(flux_t *h, uint32_t *size);
const char *flux_attr_get(flux_t *h, const char *name);
int flux_log(flux_t *h, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The library itself. The number is the three of them in one. */
const char *flux_core_version_string(void);
int flux_core_version(int *major, int *minor, int *patch);

/* Messages. */
void flux_msg_destroy(flux_msg_t *msg);
const flux_msg_t *flux_msg_incref(const flux_msg_t *msg);
void flux_msg_decref(const flux_msg_t *msg);
int flux_msg_get_cred(const flux_msg_t *msg, struct flux_msg_cred *cred);
bool flux_msg_is_local(const flux_msg_t *msg);
bool flux_msg_is_streaming(const flux_msg_t *msg);
int flux_msg_set_streaming(flux_msg_t *msg);
int flux_msg_set_noresponse(flux_msg_t *msg);
int flux_msg_set_matchtag(flux_msg_t *msg, uint32_t matchtag);
int flux_msg_set_nodeid(flux_msg_t *msg, uint32_t nodeid);
int flux_msg_get_matchtag(const flux_msg_t *msg, uint32_t *matchtag);
const char *flux_msg_route_first(const flux_msg_t *msg);
flux_msg_t *flux_request_encode(const char *topic, const char *s);
flux_msg_t *flux_request_encode_raw(const char *topic, const void *data, size_t len);
int flux_request_decode_raw(const flux_msg_t *msg, const char **topic, const void **data,
                            size_t *len);
int flux_response_decode_raw(const flux_msg_t *msg, const char **topic, const void **data,
                             size_t *len);
int flux_response_decode_error(const flux_msg_t *msg, const char **errstr);

/* Requests and their answers. */
int flux_msg_handler_addvec_ex(flux_t *h, const char *service_name,
                               const struct flux_msg_handler_spec tab[], void *arg,
                               flux_msg_handler_t **hp[]);
void flux_msg_handler_delvec(flux_msg_handler_t *msg_handlers[]);
int flux_respond(flux_t *h, const flux_msg_t *request, const char *s);
int flux_respond_raw(flux_t *h, const flux_msg_t *request, const void *data, int len);
int flux_respond_error(flux_t *h, const flux_msg_t *request, int errnum, const char *errstr);
flux_future_t *flux_rpc_pack(flux_t *h, const char *topic, uint32_t nodeid, int flags,
                             const char *fmt, ...);
flux_future_t *flux_rpc_raw(flux_t *h, const char *topic, const void *data, size_t len,
                            uint32_t nodeid, int flags);
int flux_rpc_get_unpack(flux_future_t *f, const char *fmt, ...);
int flux_rpc_get_raw(flux_future_t *f, const void **data, size_t *len);
int flux_future_then(flux_future_t *f, double timeout, flux_continuation_f cb, void *arg);
void flux_future_reset(flux_future_t *f);
void flux_future_destroy(flux_future_t *f);
const char *flux_future_error_string(flux_future_t *f);

/* Events. */
int flux_event_subscribe(flux_t *h, const char *topic);
int flux_event_unpack(const flux_msg_t *msg, const char **topic, const char *fmt, ...);
flux_future_t *flux_event_publish_pack(flux_t *h, const char *topic, int flags, const char *fmt,
                                       ...);

/* Configuration. */
const flux_conf_t *flux_get_conf(flux_t *h);
int flux_set_conf_new(flux_t *h, const flux_conf_t *conf);
int flux_conf_unpack(const flux_conf_t *conf, flux_error_t *error, const char *fmt, ...);
void flux_conf_decref(const flux_conf_t *conf);
int flux_module_config_request_decode(const flux_msg_t *msg, flux_conf_t **conf);
char *json_dumps(const json_t *json, size_t flags);

/* What the broker calls. */
int mod_main(flux_t *h, int argc, char *argv[]);

_Static_assert(sizeof(flux_error_t) == 160, "flux_error_t");
_Static_assert(FLUX_MSGTYPE_REQUEST == 1 && FLUX_MSGTYPE_RESPONSE == 2 && FLUX_MSGTYPE_EVENT == 4 &&
                   FLUX_MATCHTAG_NONE == 0,
               "types of messages");
_Static_assert((uint32_t)FLUX_NODEID_ANY == 0xffffffff, "FLUX_NODEID_ANY");
_Static_assert(FLUX_ROLE_OWNER == 1 && FLUX_ROLE_USER == 2, "roles");
_Static_assert(FLUX_RPC_NORESPONSE == 1 && FLUX_RPC_STREAMING == 2 && FLUX_O_NONBLOCK == 4,
               "flags");
_Static_assert(sizeof(struct flux_match) == 16 && offsetof(struct flux_match, matchtag) == 4 &&
                   offsetof(struct flux_match, topic_glob) == 8,
               "struct flux_match");
_Static_assert(sizeof(struct flux_msg_cred) == 8 && offsetof(struct flux_msg_cred, userid) == 0 &&
                   offsetof(struct flux_msg_cred, rolemask) == 4,
               "struct flux_msg_cred");
_Static_assert(sizeof(struct flux_msg_handler_spec) == 32 &&
                   offsetof(struct flux_msg_handler_spec, topic_glob) == 8 &&
                   offsetof(struct flux_msg_handler_spec, cb) == 16 &&
                   offsetof(struct flux_msg_handler_spec, rolemask) == 24,
               "struct flux_msg_handler_spec");
