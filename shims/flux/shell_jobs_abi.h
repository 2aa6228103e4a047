/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the shell's plugin uses to start jobs, declared by hand as in flux_abi.h. The functions are
 * flux-shell's, libflux-core's and libjansson's. They are looked for when the plugin is loaded, and
 * may be missing: a shell that starts no jobs, as musterrun's, has none of them. Not to be read
 * together with json-c's headers, which have other functions of some of these names.
 */
#pragma once

#include "shims/flux/shell_abi.h"

#ifndef FLUX_ABI_REAL_HEADERS
typedef struct flux_kvs_txn flux_kvs_txn_t;
typedef struct json_error_t json_error_t;

enum { FLUX_KVS_APPEND = 32 };
enum { FLUX_JOB_EVENT_WATCH_WAITCREATE = 1 };
enum { JSON_ALLOW_NUL = 0x10, JSON_ENCODE_ANY = 0x200 };
#endif

#pragma GCC visibility push(default)
#pragma weak flux_shell_service_register
int flux_shell_service_register(flux_shell_t *shell, const char *method, flux_msg_handler_f cb,
                                void *arg);
#pragma weak flux_shell_add_completion_ref
int flux_shell_add_completion_ref(flux_shell_t *shell, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#pragma weak flux_shell_remove_completion_ref
int flux_shell_remove_completion_ref(flux_shell_t *shell, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#pragma weak flux_job_submit
flux_future_t *flux_job_submit(flux_t *h, const char *jobspec, int urgency, int flags);
#pragma weak flux_job_submit_get_id
int flux_job_submit_get_id(flux_future_t *f, uint64_t *id);
#pragma weak flux_job_raise
flux_future_t *flux_job_raise(flux_t *h, uint64_t id, const char *type, int severity,
                              const char *note);
#pragma weak flux_job_event_watch
flux_future_t *flux_job_event_watch(flux_t *h, uint64_t id, const char *path, int flags);
#pragma weak flux_job_event_watch_get
int flux_job_event_watch_get(flux_future_t *f, const char **event);
#pragma weak flux_kvs_txn_create
flux_kvs_txn_t *flux_kvs_txn_create(void);
#pragma weak flux_kvs_txn_destroy
void flux_kvs_txn_destroy(flux_kvs_txn_t *txn);
#pragma weak flux_kvs_txn_put
int flux_kvs_txn_put(flux_kvs_txn_t *txn, int flags, const char *key, const char *value);
#pragma weak flux_kvs_commit
flux_future_t *flux_kvs_commit(flux_t *h, const char *ns, int flags, flux_kvs_txn_t *txn);
#pragma weak flux_future_get
int flux_future_get(flux_future_t *f, const void **result);
#pragma weak json_loads
json_t *json_loads(const char *text, size_t flags, json_error_t *error);
#pragma weak json_pack
json_t *json_pack(const char *fmt, ...);
#pragma weak json_deep_copy
json_t *json_deep_copy(const json_t *json);
#pragma weak json_string
json_t *json_string(const char *text);
#pragma weak json_stringn
json_t *json_stringn(const char *text, size_t len);
#pragma weak json_array
json_t *json_array(void);
#pragma weak json_array_append_new
int json_array_append_new(json_t *array, json_t *value);
#pragma weak json_object
json_t *json_object(void);
#pragma weak json_object_set_new
int json_object_set_new(json_t *object, const char *key, json_t *value);
#pragma weak json_object_del
int json_object_del(json_t *object, const char *key);
#pragma weak json_delete
void json_delete(json_t *json);
#pragma weak json_unpack
int json_unpack(json_t *json, const char *fmt, ...);
#pragma weak json_object_iter
void *json_object_iter(json_t *object);
#pragma weak json_object_iter_next
void *json_object_iter_next(json_t *object, void *iter);
#pragma weak json_object_iter_key
const char *json_object_iter_key(void *iter);
#pragma weak json_object_iter_value
json_t *json_object_iter_value(void *iter);
#pragma GCC visibility pop

_Static_assert(FLUX_KVS_APPEND == 32 && FLUX_JOB_EVENT_WATCH_WAITCREATE == 1 &&
                   JSON_ALLOW_NUL == 0x10 && JSON_ENCODE_ANY == 0x200,
               "flags of texts");
