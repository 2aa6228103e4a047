/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Stores the working directory when the launcher names it, and the arguments when the first task
 * is there: they are read from its command line in /proc.
 */
#include "common/nspace/command.h"

#include "common/nspace/infos.h"
#include "common/util/cmdline.h"
#include "common/util/log.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdlib.h>

/* This node's application and one key of it, as PMIX_APP_INFO_ARRAY. */
static void describe(struct infos *list, const struct nspace *ns, const char *key, const char *text)
{
    struct infos array = {0};
    uint32_t first;
    infos_u32(&array, PMIX_APPNUM, boot_app_of(ns->boot, boot_here(ns->boot)->ranks[0], &first));
    infos_str(&array, key, text);
    infos_array(list, PMIX_APP_INFO_ARRAY, &array);
}

static void warn(const char *key, pmix_status_t status)
{
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        log_warning("libpmix does not take %s: %s", key, PMIx_Error_string(status));
}

void command_wdir(const struct nspace *ns, const char *wdir)
{
    struct infos list = {0};
    pmix_proc_t all;
    if (boot_setting(ns->boot, BOOT_PARENT) != NULL)
        return; /* it is muster-exec's; each application has its own */
    PMIX_LOAD_PROCID(&all, ns->boot->nspace, PMIX_RANK_WILDCARD);
    describe(&list, ns, PMIX_WDIR, wdir);
    warn(PMIX_WDIR, PMIx_Store_internal(&all, PMIX_APP_INFO_ARRAY, &list.info->value));
    infos_free(&list);
}

/* @thread PMIx's. libpmix has borrowed the list until now. */
static void on_registered(pmix_status_t status, void *arg)
{
    struct infos *list = arg;
    warn(PMIX_APP_ARGV, status);
    infos_free(list);
    free(list);
}

static void register_argv(const struct nspace *ns, const char *argv)
{
    const struct boot_node *here = boot_here(ns->boot);
    struct infos *list = calloc(1, sizeof *list);
    pmix_nspace_t name; /* libpmix copies the full buffer */
    PMIX_LOAD_NSPACE(name, ns->boot->nspace);
    describe(list, ns, PMIX_APP_ARGV, argv);
    pmix_status_t rc = PMIx_server_register_nspace(name, (int)here->ntasks, list->info, list->n,
                                                   on_registered, list);
    if (rc != PMIX_SUCCESS)
        on_registered(rc, list);
}

/* Whether tasks of several applications are here. */
static bool is_mixed(const struct boot *boot)
{
    const struct boot_node *here = boot_here(boot);
    uint32_t first;
    for (uint32_t k = 1; k < here->ntasks; k++)
        if (boot_app_of(boot, here->ranks[k], &first) != boot_app_of(boot, here->ranks[0], &first))
            return true;
    return false;
}

void command_argv(const struct nspace *ns, pid_t pid)
{
    char *argv = cmdline_read(pid, BOOT_ARGV_MAX);
    if (is_mixed(ns->boot))
        log_debug("the command lines of several applications on a node are not looked for");
    else if (argv != NULL)
        register_argv(ns, argv);
    else
        log_debug("by what command line process %d runs cannot be seen", (int)pid);
    free(argv);
}
