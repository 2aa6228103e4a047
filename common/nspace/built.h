/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the headers of libpmix have that muster is built with. The libpmix that runs has the same
 * major number: library_read() looks. library.h has what is asked while it runs.
 */
#pragma once

#include <pmix_common.h>
#include <pmix_version.h>

/** For directives: whether they have it. A file that does not include this one is not compiled. */
#define BUILT_WITH(what) (PMIX_VERSION_MAJOR >= BUILT_##what##_FROM)

/* The major numbers; the reasons stand in library.c. */
#define BUILT_LOG2_FROM 6               /* pmix_server_module_t: log2, tool_connected2 */
#define BUILT_REGISTER_RESOURCES_FROM 6 /* the host stores members' data by it */
#define BUILT_SESSION_CONTROL_FROM 5    /* pmix_server_module_t: that */
#define BUILT_RESOURCE_BLOCK_FROM 6     /* the same */
#define BUILT_UNLOADED_LEAKS_FROM 7     /* no symbol; for sanitized builds */

/* Keys that some headers lack. A program may have been built with others. */
#ifndef PMIX_EVENT_STAYS_LOCAL /* "not to be passed up to the host" */
#define PMIX_EVENT_STAYS_LOCAL "pmix.evlocal"
#endif
#ifndef PMIX_PROC_DATA /* a process's data in a group's contribution */
#define PMIX_PROC_DATA "pmix.pdata"
#endif
#ifndef PMIX_GROUP_BOOTSTRAP
#define PMIX_GROUP_BOOTSTRAP "pmix.grp.btstrp"
#endif
#ifndef PMIX_GROUP_ADD_MEMBERS
#define PMIX_GROUP_ADD_MEMBERS "pmix.grp.add"
#endif
#ifndef PMIX_QUERY_ALLOCATION
#define PMIX_QUERY_ALLOCATION "pmix.query.allc"
#endif
#ifndef PMIX_QUERY_ALLOC_IDS
#define PMIX_QUERY_ALLOC_IDS "pmix.query.alloc.ids"
#endif
#ifndef PMIX_QUERY_ALLOC_PROPERTIES
#define PMIX_QUERY_ALLOC_PROPERTIES "pmix.query.alloc.prop"
#endif
#ifndef PMIX_QUERY_AVAILABLE_SLOTS
#define PMIX_QUERY_AVAILABLE_SLOTS "pmix.qry.aslots"
#endif
#ifndef PMIX_QUERY_RESOLVE_PEERS
#define PMIX_QUERY_RESOLVE_PEERS "pmix.qry.peers"
#endif
#ifndef PMIX_QUERY_RESOLVE_NODE
#define PMIX_QUERY_RESOLVE_NODE "pmix.qry.node"
#endif
#ifndef PMIX_QUERY_MIN_ALLOC_UNIT
#define PMIX_QUERY_MIN_ALLOC_UNIT "pmix.qry.minau"
#endif
#ifndef PMIX_QUERY_RES_BLOCKS
#define PMIX_QUERY_RES_BLOCKS "pmix.qry.resblks"
#endif
#ifndef PMIX_QUERY_RES_BLOCK_DEF
#define PMIX_QUERY_RES_BLOCK_DEF "pmix.qry.resdef"
#endif
#ifndef PMIX_QUERY_DEVICES
#define PMIX_QUERY_DEVICES "pmix.qry.dev"
#endif
#ifndef PMIX_QUERY_PROC_RESOURCE_USAGE
#define PMIX_QUERY_PROC_RESOURCE_USAGE "pmix.qry.pres"
#endif
#ifndef PMIX_QUERY_NODE_RESOURCE_USAGE
#define PMIX_QUERY_NODE_RESOURCE_USAGE "pmix.qry.nres"
#endif
