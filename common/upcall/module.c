/* SPDX-License-Identifier: BSD-3-Clause */
/* The pmix_server_module_t, and libpmix's server's start and end. */
#include "common/nspace/built.h"
#include "common/nspace/keys.h"
#include "common/nspace/library.h"
#include "common/nspace/topology.h"
#include "common/server/process/accept.h"
#include "common/server/process/conns.h"
#include "common/server/process/limits.h"
#include "common/server/process/rounds.h"
#include "common/upcall/attributes.h"
#include "common/upcall/collective.h"
#include "common/upcall/forward.h"
#include "common/upcall/printer.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <errno.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No entry is NULL: libpmix 4.2's server deadlocks on one that is. */
static pmix_server_module_t module = {
    .client_connected = upcall_client_connected,
    .client_connected2 = upcall_client_connected2,
    .client_finalized = upcall_client_finalized,
    .abort = upcall_abort,
    .fence_nb = upcall_fence,
    .direct_modex = upcall_direct_modex,
    .group = upcall_group,
    .query = upcall_query,
    .log = upcall_log,
    .publish = upcall_publish,
    .lookup = upcall_lookup,
    .unpublish = upcall_unpublish,
    .spawn = upcall_spawn,
    .connect = upcall_connect,
    .disconnect = upcall_disconnect,
    .register_events = upcall_register_events,
    .deregister_events = upcall_deregister_events,
    .notify_event = upcall_notify_event,
    .job_control = upcall_job_control,
    .listener = refused_listener,
    .tool_connected = upcall_tool_connected,
    .allocate = upcall_allocate,
    .monitor = upcall_monitor,
    .get_credential = upcall_get_credential,
    .validate_credential = upcall_validate_credential,
    .iof_pull = upcall_iof_pull,
    .push_stdin = upcall_push_stdin,
    .fabric = refused_fabric,
#if BUILT_WITH(LOG2)
    .tool_connected2 = upcall_tool_connected2,
    .log2 = upcall_log2,
#endif
#if BUILT_WITH(SESSION_CONTROL)
    .session_control = refused_session_control,
#endif
#if BUILT_WITH(RESOURCE_BLOCK)
    .resource_block = refused_resource_block,
#endif
};

int upcall_open(struct server *server, struct err *err)
{
    const struct boot *boot = &server->boot;
    pmix_info_t *info = NULL;
    pmix_rank_t rank = boot->node;
    pmix_nspace_t name;
    bool no = false, yes = true;
    keys_server_name(name, boot);
    upcall_serve(server);
    uint32_t ntasks = boot_here(boot)->ntasks;
    bool leaves = library_has(server->library, LIBRARY_CLOSING_LEAVES_ALL);
    unsigned hold = limits_held(ntasks, boot_spawned(boot));
    rounds_open(leaves ? ntasks : 0);
    conns_open(ntasks, hold, library_has(server->library, LIBRARY_LOSS_ENDS_TWICE),
               upcall_connection_ended);
    forwards_new(server);
    printer_open(server);
    upcall_watch_soon(server);
    upcall_save_memory(server);
    server->topology = topology_new();
    PMIX_INFO_CREATE(info, 9);
    /* The macro may use its arguments more than once. */
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_NSPACE, name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[2], PMIX_SERVER_TMPDIR, boot->tmpdir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_SYSTEM_TMPDIR, boot->tmpdir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[4], PMIX_HOSTNAME, boot_here(boot)->name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[5], PMIX_IOF_LOCAL_OUTPUT, &no, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[6], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[7], PMIX_NODEID, &rank, PMIX_UINT32);
    if (server->topology != NULL)
        topology_info(server->topology, &info[8]);
    accept_defer(library_has(server->library, LIBRARY_SILENT_IS_CUT));
    pmix_status_t rc = PMIx_server_init(&module, info, server->topology != NULL ? 9 : 8);
    accept_defer(false);
    info[8].value = (pmix_value_t){.type = PMIX_UNDEF}; /* borrowed */
    PMIX_INFO_FREE(info, 9);
    if (rc != PMIX_SUCCESS)
        return err_set(err, "PMIx_server_init of libpmix %s failed: %s", PMIx_Get_version(),
                       PMIx_Error_string(rc));
    /* libpmix 4.2 opens the directory to all users when it writes the files for tools. */
    if (chmod(boot->tmpdir, S_IRWXU) != 0)
        err_set(err, "cannot have %s for its user alone: %s", boot->tmpdir, strerror(errno));
    else if (upcall_watch_clients(err) == 0 && upcall_watch_alerts(err) == 0) {
        attributes_register();
        return 0;
    }
    upcall_close();
    return -1;
}

void upcall_close(void)
{
    pmix_status_t rc = PMIx_server_finalize();
    if (rc != PMIX_SUCCESS)
        log_warning("PMIx_server_finalize: %s", PMIx_Error_string(rc));
    conns_close();
    rounds_close();
    answer_no_more();
}
