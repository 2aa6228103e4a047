/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Keys and events of PMIx RFC 0003 that no libpmix defines, as muster takes them in PMIx_Connect
 * and PMIx_Disconnect. A key that is given by one participant on each node is enough: libpmix hands
 * a host those of the first caller of a node alone. docs/connect.md says what each does.
 *
 * Include pmix.h first. Names of PMIx are defined here only where its headers do not have them.
 */
#ifndef MUSTER_PMIX_H
#define MUSTER_PMIX_H

/** (char*) RFC 0003, "PMIX_CONNECT_ID": tells several connects of the same processes apart. All
 * participants give the same one; a disconnect gives that of its connect. */
#ifndef PMIX_CONNECT_ID
#define PMIX_CONNECT_ID "pmix.cnt.id"
#endif

/** (bool) RFC 0003, "PMIX_CONNECT_OPTIONAL": a participant that ends without having connected does
 * not fail the connect. */
#ifndef PMIX_CONNECT_OPTIONAL
#define PMIX_CONNECT_OPTIONAL "pmix.cnt.opt"
#endif

/** (bool) RFC 0003, "PMIX_CONNECT_EARLY_TERM_ALLOWED": a process may end without disconnecting: the
 * others are not told, and their disconnect goes on without it. */
#ifndef PMIX_CONNECT_EARLY_TERM_ALLOWED
#define PMIX_CONNECT_EARLY_TERM_ALLOWED "pmix.cnt.early"
#endif

/** (bool) RFC 0003, "PMIX_CONNECT_NOTIFY_EACH": the others are told of each process that connects
 * or disconnects, by PMIX_PROC_HAS_CONNECTED and PMIX_PROC_HAS_DISCONNECTED. */
#ifndef PMIX_CONNECT_NOTIFY_EACH
#define PMIX_CONNECT_NOTIFY_EACH "pmix.cnct.each"
#endif

/** (bool) RFC 0003, "PMIX_CONNECT_NOTIFY_REQ": the others are asked to connect, by
 * PMIX_CONNECT_REQUESTED. */
#ifndef PMIX_CONNECT_NOTIFY_REQ
#define PMIX_CONNECT_NOTIFY_REQ "pmix.cnct.req"
#endif

/** (bool) RFC 0003, "PMIX_CONNECT_XCHG_ONLY": job-level information is exchanged, and the processes
 * do not count as connected. */
#ifndef PMIX_CONNECT_XCHG_ONLY
#define PMIX_CONNECT_XCHG_ONLY "pmix.cnt.xchg"
#endif

/** RFC 0003, PMIx_Connect: "the host RM will assign a unique nspace to the resulting process
 * group". As a directive of PMIx_Connect (bool) it asks for that: fences, gets, events and the
 * disconnect then take the namespace. As a key of PMIx_Query_info it has the name (char*), with the
 * qualifier PMIX_PROCID for a process of the caller's node, and PMIX_CONNECT_ID where the connect
 * had one. */
#ifndef MUSTER_CONNECT_NSPACE
#define MUSTER_CONNECT_NSPACE "muster.cnt.nspace"
#endif

/** Key of PMIx_Query_info (pmix_rank_t): the rank that the process has in that namespace. The
 * qualifiers are the same. */
#ifndef MUSTER_CONNECT_RANK
#define MUSTER_CONNECT_RANK "muster.cnt.rank"
#endif

/** Event, RFC 0003, "PMIX_CONNECT_NOTIFY_EACH". */
#ifndef PMIX_PROC_HAS_CONNECTED
#define PMIX_PROC_HAS_CONNECTED -149
#endif

/** Event, RFC 0003, "PMIX_CONNECT_NOTIFY_REQ". */
#ifndef PMIX_CONNECT_REQUESTED
#define PMIX_CONNECT_REQUESTED -150
#endif

/** Event, RFC 0003, "PMIX_CONNECT_NOTIFY_EACH". No libpmix has a number for it, so it is one of
 * those that PMIx leaves to others. */
#ifndef PMIX_PROC_HAS_DISCONNECTED
#define PMIX_PROC_HAS_DISCONNECTED (PMIX_EXTERNAL_ERR_BASE - 1)
#endif

#endif
