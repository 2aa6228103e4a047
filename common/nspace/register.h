/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tells libpmix's server of the step's namespace and of its local processes.
 */
#ifndef MUSTER_NSPACE_REGISTER_H
#define MUSTER_NSPACE_REGISTER_H

#include "common/nspace/nspace.h"

/**
 * Registers the namespace with all its keys, and the processes of this node as clients
 * (PMIx_server_register_nspace, PMIx_server_register_client).
 * @return 0, or -1 with the reason in @p err
 * @thread any but PMIx's; blocks until libpmix is done
 */
int register_namespace(const struct nspace *ns, struct err *err);

/**
 * Registers another step's namespace with all that is known of it, so that its processes can be
 * members of groups here, and their keys are found (PMIx_server_register_nspace with no local
 * process).
 * @return 0, or -1 with the reason in @p err
 * @thread the loop's; blocks until libpmix is done
 */
int register_foreign(const struct nspace *ns, struct err *err);

/** Ends that (PMIx_server_deregister_nspace). @thread the loop's */
void register_end(const struct nspace *ns);

/**
 * The environment that the process in @p slot of this node must be started with
 * (PMIx_server_setup_fork).
 * @param env NULL-terminated "K=V" strings; the caller frees them and the array
 * @return 0, or -1 with the reason in @p err
 */
int register_environment(const struct nspace *ns, uint32_t slot, char ***env, struct err *err);

#endif
