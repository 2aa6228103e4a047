/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tells libpmix's server of the step's namespace and of its local processes.
 */
#pragma once

#include "common/nspace/nspace.h"
#include "common/nspace/psets.h"

#include <pmix_common.h>
#include <stdbool.h>

/** Registers the namespace with all its keys, and the processes of this node as clients
 * (PMIx_server_register_nspace, PMIx_server_register_client).
 * @param psets its sets, for each process's key
 * @param library the libpmix that runs
 * @return 0, or -1 with the reason in @p err
 * @thread any but PMIx's; blocks until libpmix is done */
int register_namespace(const struct nspace *ns, const struct psets *psets, uint32_t library,
                       struct err *err);

/** Adds a key of a process, or of the step (PMIX_RANK_WILDCARD), for this node's clients to find
 * (PMIx_Store_internal). Logs a failure.
 * @return whether libpmix has taken it @thread the loop's, before the first client connects */
bool register_store(const pmix_proc_t *proc, const char *key, pmix_value_t value);

/** What libpmix is to be told of another step's namespace. */
struct registration;

/** Prepares another step's namespace with all that is known of it, so that its processes can be
 * members of groups here, and their keys are found (PMIx_server_register_nspace with no local
 * process).
 * @param session libpmix knows the namespace's session
 * @return what register_keys() or register_there() takes
 * @thread any */
struct registration *register_prepare(const struct nspace *ns, const struct psets *psets,
                                      bool session);

/** Registers it, and frees @p r.
 * @param nlocal of its processes on this node
 * @return 0, or -1 with the reason in @p err
 * @thread any but PMIx's; blocks until libpmix is done */
int register_keys(struct registration *r, uint32_t nlocal, struct err *err);

/** The same, next after what libpmix was last told there. Logs a failure. @thread PMIx's */
void register_there(struct registration *r);

/** Has libpmix forget the namespace of another step, or the name of a connection
 * (PMIx_server_deregister_nspace). @thread the loop's */
void register_end(const char *nspace);

/** Gives the system back what libpmix has freed. @thread any */
void register_give_back(void);

/**
 * Registers a connection's name as a namespace of its members, ranked from 0 on, so that libpmix
 * takes it in a fence, a get and a disconnect, and hands these up.
 *
 * libpmix counts the calls of @p nlocal processes for a wildcard. None of the ranks is a client of
 * this node to it, because it would wait for what that client commits under this name: so it asks
 * the host for the data of each. It answers no get before as many clients are registered as it
 * counts; these have the highest ranks, since a get of a rank of them waits.
 * @param size of all members @param nlocal of those of this node
 * @return 0, or -1 with the reason in @p err
 * @thread any but PMIx's; blocks until libpmix is done
 */
int register_connection(const char *name, uint32_t size, uint32_t nlocal, struct err *err);

/** Defines a process set (PMIx_server_define_process_set): libpmix tells its clients by an event,
 * or when they register for it.
 * @param library the libpmix that runs
 * @return 0, or -1 with the reason in @p err
 * @thread any but PMIx's; blocks until libpmix is done */
int register_set(const struct pset *set, uint32_t library, struct err *err);

/** Deletes it, the same way. */
void register_set_end(const struct pset *set);

/** The environment that the process in @p slot of this node must be started with
 * (PMIx_server_setup_fork).
 * @param env NULL-terminated "K=V" strings; the caller frees them and the array
 * @return 0, or -1 with the reason in @p err */
int register_environment(const struct nspace *ns, uint32_t slot, char ***env, struct err *err);
