/* SPDX-License-Identifier: BSD-3-Clause */
/* tool_connected: a tool of the job's user is let in.
 *
 * It may ask and look, as far as the other upcalls serve it. Whose it is was looked at when it
 * connected (server/process/accept.c). It is never refused: libpmix up to 5.0 would then take a
 * namespace off its list that is not on it, and crash, or take off the job's own. */
#include "common/notify/debug.h"
#include "common/nspace/keys.h"
#include "common/upcall/forward.h"
#include "common/upcall/pullers.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>

struct tool {
    struct handoff_item item;
    pmix_tool_connection_cbfunc_t cbfunc;
    void *cbdata;
    pmix_proc_t proc;
    bool named;     /* it brings a name along */
    uint64_t since; /* of pullers_now() */
};

/* A name of its own: that of this server's namespace, this node and a number. */
static void name_it(struct tool *tool)
{
    struct server *server = upcall_server();
    pmix_nspace_t own;
    keys_server_name(own, &server->boot);
    snprintf(tool->proc.nspace, sizeof tool->proc.nspace, "%.200s.tool.%u.%u", own,
             server->boot.node, server->ntools++);
    tool->proc.rank = 0;
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct tool *tool = (struct tool *)item;
    if (!tool->named)
        name_it(tool);
    log_info("a tool has connected: %s rank %u", tool->proc.nspace, tool->proc.rank);
    pullers_came(forwards_pullers(upcall_server()), tool->proc.nspace, tool->proc.rank,
                 tool->since);
    if (answer_wanted())
        tool->cbfunc(PMIX_SUCCESS, &tool->proc, tool->cbdata);
    debug_tool_came(upcall_server(), &tool->proc);
    free(tool);
}

pmix_status_t upcall_tool_connected2(pmix_info_t *info, size_t ninfo,
                                     pmix_tool_connection_cbfunc_t cbfunc, void *cbdata)
{
    const char *name = NULL;
    struct tool *tool = calloc(1, sizeof *tool);
    tool->proc.rank = PMIX_RANK_UNDEF;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_NSPACE) && info[i].value.type == PMIX_STRING)
            name = info[i].value.data.string;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_RANK) && info[i].value.type == PMIX_PROC_RANK)
            tool->proc.rank = info[i].value.data.rank;
    tool->named = name != NULL && *name != '\0' && tool->proc.rank != PMIX_RANK_UNDEF;
    if (tool->named)
        PMIX_LOAD_NSPACE(tool->proc.nspace, name);
    tool->since = pullers_now(forwards_pullers(upcall_server()));
    tool->cbfunc = cbfunc;
    tool->cbdata = cbdata;
    return upcall_post(&tool->item, run);
}

void upcall_tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t cbfunc,
                           void *cbdata)
{
    upcall_tool_connected2(info, ninfo, cbfunc, cbdata);
}
