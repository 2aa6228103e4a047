/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Upcalls about single clients. @thread PMIx's
 */
#ifndef MUSTER_UPCALL_CLIENT_H
#define MUSTER_UPCALL_CLIENT_H

#include "common/upcall/upcall.h"

/** Up to libpmix 3, and where a library still calls the old form. */
pmix_status_t upcall_client_connected(const pmix_proc_t *proc, void *object,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_client_connected2(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                       size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t upcall_client_finalized(const pmix_proc_t *proc, void *object,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata);
/** Ends the step; PMIX_ERR_PARAM_VALUE_NOT_SUPPORTED for a part of it. */
pmix_status_t upcall_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                           pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc,
                           void *cbdata);

#endif
