/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all members of pmix_server_module_t: which calls of PMIx come to each, and whether
 * muster serves them. docs/calls.md shows it. The directives are those of directives.c, the keys
 * of a query those of query_keys.c.
 *
 * libpmix has names of its release alone: with one that it does not know it would answer no query
 * of attributes. */
#include "common/upcall/attributes.h"

#include "common/nspace/built.h"
#include "common/upcall/directives.h"
#include "common/upcall/query.h"
#include "common/util/log.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <string.h>

struct member {
    const char *calls; /* separated by ", "; "": none */
    bool served;
};

/* Where a member is not there, this is not compiled. */
#define ROW(member, calls, served)                                                                 \
    {                                                                                              \
        calls, (served) && offsetof(pmix_server_module_t, member) < SIZE_MAX                       \
    }
#define SERVED(member, libpmix, calls) ROW(member, calls, true)
#define REFUSED(member, libpmix, calls) ROW(member, calls, false)

/* clang-format off */
static const struct member members[] = {
    SERVED(client_connected, "all", "PMIx_Init"),
    SERVED(client_connected2, "all", "PMIx_Init"),
    SERVED(client_finalized, "all", "PMIx_Finalize"),
    SERVED(abort, "all", "PMIx_Abort"),
    SERVED(fence_nb, "all", "PMIx_Fence"),
    SERVED(direct_modex, "all", "PMIx_Get"),
    SERVED(publish, "all", "PMIx_Publish"),
    SERVED(lookup, "all", "PMIx_Lookup"),
    SERVED(unpublish, "all", "PMIx_Unpublish"),
    SERVED(spawn, "all", "PMIx_Spawn"),
    SERVED(connect, "all", "PMIx_Connect"),
    SERVED(disconnect, "all", "PMIx_Disconnect"),
    SERVED(group, "all", "PMIx_Group_construct, PMIx_Group_destruct"),
    SERVED(register_events, "all", "PMIx_Register_event_handler"),
    SERVED(deregister_events, "all", "PMIx_Deregister_event_handler"),
    SERVED(notify_event, "all", "PMIx_Notify_event"),
    SERVED(query, "all", "PMIx_Query_info"),
    SERVED(log, "all", "PMIx_Log"),
    SERVED(job_control, "all", "PMIx_Job_control"),
    SERVED(iof_pull, "all", "PMIx_IOF_pull, PMIx_IOF_deregister"),
    SERVED(push_stdin, "all", "PMIx_IOF_push"),
    SERVED(tool_connected, "all", "PMIx_tool_init"),
    REFUSED(listener, "all", ""),
    SERVED(allocate, "all", "PMIx_Allocation_request"),
#ifdef PMIX_MONITOR_PROC_RESOURCE_USAGE
    SERVED(monitor, "from 6", "PMIx_Process_monitor"),
#else
    REFUSED(monitor, "before 6", "PMIx_Process_monitor"),
#endif
    SERVED(get_credential, "all", "PMIx_Get_credential"),
    SERVED(validate_credential, "all", "PMIx_Validate_credential"),
    REFUSED(fabric, "all", "PMIx_Fabric_register, PMIx_Fabric_update"),
#if BUILT_WITH(LOG2)
    SERVED(tool_connected2, "from 6", "PMIx_tool_init"),
    SERVED(log2, "from 6", "PMIx_Log"),
#endif
#if BUILT_WITH(SESSION_CONTROL)
    REFUSED(session_control, "from 5", "PMIx_Session_control"),
#endif
#if BUILT_WITH(RESOURCE_BLOCK)
    REFUSED(resource_block, "from 6", "PMIx_Resource_block"),
#endif
};
/* clang-format on */

_Static_assert(sizeof members / sizeof *members ==
                   sizeof(pmix_server_module_t) / sizeof(void (*)(void)),
               "the table has a row for each member");

enum { NAMES_MAX = 128, CALL_MAX = 64 };

/* Of those that this libpmix knows. @return how many are in @p names */
static size_t names_of(const char *call, const char *names[static NAMES_MAX + 1])
{
    const struct directive_name *all;
    const struct query_key *key;
    size_t n = 0;
    for (size_t i = 0; (all = directives_name(call, i)) != NULL && n < NAMES_MAX; i++)
        if (strcmp(PMIx_Get_attribute_string(all->name), all->key) == 0)
            names[n++] = all->name;
    for (size_t i = 0;
         strcmp(call, "PMIx_Query_info") == 0 && n < NAMES_MAX && (key = query_key_at(i)) != NULL;
         i++) {
        const char *name = PMIx_Get_attribute_name(key->key);
        if (key->load != NULL && strcmp(name, key->key) != 0)
            names[n++] = name;
    }
    names[n] = NULL;
    return n;
}

static void register_call(const char *call)
{
    const char *names[NAMES_MAX + 1];
    char function[CALL_MAX];
    size_t n = names_of(call, names);
    snprintf(function, sizeof function, "%s", call);
    /* neither is changed */
    pmix_status_t rc = PMIx_Register_attributes(function, n > 0 ? (char **)names : NULL);
    if (rc != PMIX_SUCCESS && rc != PMIX_ERR_REPEAT_ATTR_REGISTRATION)
        log_info("tools are not told that %s is served: %s", call, PMIx_Error_string(rc));
}

void attributes_register(void)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char calls[2 * CALL_MAX], *save = NULL;
        snprintf(calls, sizeof calls, "%s", members[i].served ? members[i].calls : "");
        for (char *call = strtok_r(calls, ", ", &save); call != NULL;
             call = strtok_r(NULL, ", ", &save))
            register_call(call);
    }
}
