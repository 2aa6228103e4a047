/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The keys of a namespace by realm: what libpmix is told so that PMIx_Get finds it.
 *
 * Which key has which value, and from where: docs/keys.md.
 * @thread any, unless said
 */
#pragma once

#include "common/nspace/infos.h"
#include "common/nspace/nspace.h"
#include "common/nspace/psets.h"

/** Describes (another step's without what concerns this node) the session, the job and its
 * applications (PMIx_server_register_nspace's `info`).
 * @param psets the namespace's sets
 * @param session libpmix knows what belongs to its session, and keeps what it is told again; the
 * session's id alone is given
 * @param list empty; infos_free() it. `failed` in it says whether memory ran out.
 * @thread any but PMIx's */
void keys_describe_job(struct infos *list, const struct nspace *ns, const struct psets *psets,
                       bool session);

/** Appends nodes from @p first on, with their processes, until @p list has @p most entries or more.
 * @param brief keys_are_brief()
 * @return the first node that was not described
 * @thread the same */
uint32_t keys_describe_nodes(struct infos *list, const struct nspace *ns, uint32_t first,
                             size_t most, bool brief);

/** Appends PMIX_LOCAL_PROCS of this node, for keys_describe_job()'s list or to be stored as a key
 * of the job: it takes 260 bytes for each process, wherever it is copied. @thread any */
void keys_describe_local_procs(struct infos *list, const struct boot *boot);

/** @return whether libpmix is told of processes of other nodes only what clients do not ask for:
 * the step is wide, and its memory matters. */
bool keys_are_brief(const struct boot *boot, uint32_t library);

/** Appends the keys of one process that libpmix was not told then. */
void keys_describe_rank(struct infos *list, const struct nspace *ns, uint32_t rank);

/** @return the directory of this namespace (PMIX_NSDIR) below the server's, malloc()ed */
char *keys_nspace_dir(const struct boot *boot);

/** @return the directory of a process of this node (PMIX_PROCDIR), malloc()ed */
char *keys_proc_dir(const struct boot *boot, uint32_t rank);

/** What libpmix's server of this node is called (PMIX_SERVER_NSPACE); its rank is the node's index.
 * It is no member of the step's namespace. @param name a pmix_nspace_t */
void keys_server_name(char *name, const struct boot *boot);
