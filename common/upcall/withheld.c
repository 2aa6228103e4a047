/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of processes of other nodes that libpmix was not told at the start of a wide step
 * (keys_are_brief()): it asks for them here when a client gets one. It stores what it is given, and
 * then looks again for the key that the client wants.
 */
#include "common/notify/refuse.h"
#include "common/nspace/built.h"
#include "common/nspace/keys.h"
#include "common/nspace/library.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

bool upcall_withheld(const pmix_proc_t *proc, const char *key)
{
    static const char *const keys[] = {PMIX_RANK,       PMIX_GLOBAL_RANK, PMIX_APP_RANK,
                                       PMIX_LOCAL_RANK, PMIX_NODE_RANK,   PMIX_REINCARNATION,
                                       PMIX_SPAWNED,    PMIX_PARENT_ID};
    const struct server *server = upcall_server();
    if (!keys_are_brief(&server->boot, server->library) || proc->rank >= server->boot.ntasks ||
        strcmp(proc->nspace, server->boot.nspace) != 0 ||
        server->nspace->node_of[proc->rank] == server->boot.node)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

void upcall_save_memory(const struct server *server)
{
    if (keys_are_brief(&server->boot, server->library) &&
        library_has(server->library, LIBRARY_SLOTS_CHOSEN))
        setenv("PMIX_MCA_pmix_hash_proc_alloc", "16", 0); /* as many as a process here has */
}

#if BUILT_WITH(REGISTER_RESOURCES)

/* What one client waits for. */
struct given {
    struct infos list;
    pmix_modex_cbfunc_t answer;
    void *arg;
};

/* @thread PMIx's. It has stored the keys, so there are no bytes to go with the answer. */
static void on_stored(pmix_status_t status, void *arg)
{
    struct given *given = arg;
    given->answer(status, "", 0, given->arg, NULL, NULL);
    infos_free(&given->list);
    free(given);
}

static void describe(struct infos *list, const pmix_proc_t *proc)
{
    struct infos array = {0};
    infos_put(&array, PMIX_PROCID, proc, PMIX_PROC);
    infos_put(&array, PMIX_DATA_SCOPE, &(pmix_scope_t){PMIX_REMOTE}, PMIX_SCOPE);
    keys_describe_rank(&array, upcall_server()->nspace, proc->rank);
    infos_array(list, PMIX_GROUP_ENDPT_DATA, &array);
}

pmix_status_t upcall_give(const pmix_proc_t *proc, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    struct given *given = calloc(1, sizeof *given);
    *given = (struct given){.answer = cbfunc, .arg = cbdata};
    describe(&given->list, proc);
    pmix_status_t rc =
        PMIx_server_register_resources(given->list.info, given->list.n, on_stored, given);
    if (rc == PMIX_SUCCESS)
        return rc;
    infos_free(&given->list);
    free(given);
    return refused(rc == PMIX_OPERATION_SUCCEEDED ? PMIX_ERROR : rc,
                   "PMIx_Get of %s rank %u: libpmix does not store its keys: %s", proc->nspace,
                   proc->rank, PMIx_Error_string(rc));
}

#else

/* keys_are_brief() says no. */
pmix_status_t upcall_give(const pmix_proc_t *proc, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    (void)cbfunc, (void)cbdata;
    return refused(PMIX_ERR_NOT_SUPPORTED, "PMIx_Get of %s rank %u: this libpmix does not ask",
                   proc->nspace, proc->rank);
}

#endif
