/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Upcalls that muster does not serve: each answers PMIX_ERR_NOT_SUPPORTED, through its callback
 * where there is no other word.
 * @thread PMIx's
 */
#ifndef MUSTER_UPCALL_REFUSED_H
#define MUSTER_UPCALL_REFUSED_H

#include "common/nspace/built.h"

#include <pmix_server.h>

/** What was refused; at most 32. */
enum refused_what {
    REFUSED_ALLOCATE,
    REFUSED_JOB_CONTROL,
    REFUSED_MONITOR,
    REFUSED_GET_CREDENTIAL,
    REFUSED_VALIDATE_CREDENTIAL,
    REFUSED_IOF_PULL,
    REFUSED_PUSH_STDIN,
    REFUSED_FABRIC,
    REFUSED_SESSION_CONTROL,
    REFUSED_RESOURCE_BLOCK,
    REFUSED_QUERY,      /**< a key that is not known */
    REFUSED_LOG,        /**< a channel that is not known */
    REFUSED_SPAWN_HINT, /**< a directive that need not be done */
};

/** Logs that something is not served. @param of which key of it, or NULL @param why a sentence, or
 * NULL
 * @thread the loop's */
void refused_tell(enum refused_what what, const char *of, const char *why);

/** Refuses within the upcall itself, without a callback.
 * @param why a sentence for the log, a literal @return PMIX_ERR_NOT_SUPPORTED */
pmix_status_t refused_at_once(enum refused_what what, const char *why);

/** Has no callback: libpmix listens itself. */
pmix_status_t refused_listener(int fd, pmix_connection_cbfunc_t cbfunc, void *cbdata);
pmix_status_t refused_allocate(const pmix_proc_t *client, pmix_alloc_directive_t directive,
                               const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t cbfunc,
                               void *cbdata);
pmix_status_t refused_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                                  size_t ntargets, const pmix_info_t info[], size_t ninfo,
                                  pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t refused_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                              pmix_status_t error, const pmix_info_t info[], size_t ninfo,
                              pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t refused_get_credential(const pmix_proc_t *proc, const pmix_info_t info[],
                                     size_t ninfo, pmix_credential_cbfunc_t cbfunc, void *cbdata);
pmix_status_t refused_validate_credential(const pmix_proc_t *proc, const pmix_byte_object_t *cred,
                                          const pmix_info_t info[], size_t ninfo,
                                          pmix_validation_cbfunc_t cbfunc, void *cbdata);

pmix_status_t refused_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                             const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t cbfunc,
                             void *cbdata);
#if BUILT_WITH(SESSION_CONTROL)
pmix_status_t refused_session_control(const pmix_proc_t *requestor, uint32_t session,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t refused_resource_block(const pmix_proc_t *requestor,
                                     pmix_resource_block_directive_t directive, const char *block,
                                     const pmix_resource_unit_t *units, size_t nunits,
                                     const pmix_info_t *info, size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                     void *cbdata);
#endif

#endif
