/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Makes the step's directories, registers its namespace and its local clients with libpmix's
 * server, and asks that for each client's environment.
 */
#include "common/nspace/register.h"

#include "common/nspace/keys.h"
#include "common/nspace/library.h"
#include "common/nspace/procs.h"
#include "common/nspace/psec.h"
#include "common/util/log.h"

#include <errno.h>
#include <malloc.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nodes and processes that libpmix is told at once: some MB, or more so that parts are few.
 * gds/ds21 of 4.2 keeps something of each part. */
enum { PART_LEAST = 512, PARTS = 64 };

/* Frees @p path. */
static int make_dir(char *path, struct err *err)
{
    int rc = 0;
    if (mkdir(path, 0700) != 0)
        rc = err_set(err, "cannot make the directory %s: %s", path, strerror(errno));
    free(path);
    return rc;
}

/* PMIX_NSDIR and each PMIX_PROCDIR; they go when the server's directory goes. */
static int make_dirs(const struct boot *boot, struct err *err)
{
    const struct boot_node *here = boot_here(boot);
    int rc = make_dir(keys_nspace_dir(boot), err);
    for (uint32_t k = 0; k < here->ntasks && rc == 0; k++)
        rc = make_dir(keys_proc_dir(boot, here->ranks[k]), err);
    return rc;
}

static int register_client(const char *nspace, uint32_t rank, struct err *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    pmix_status_t rc = PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL, NULL);
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    return err_set(err, "libpmix does not register rank %u of %s: %s", rank, nspace,
                   PMIx_Error_string(rc));
}

static int register_clients(const struct boot *boot, struct err *err)
{
    const struct boot_node *here = boot_here(boot);
    int rc = 0;
    for (uint32_t k = 0; k < here->ntasks && rc == 0; k++)
        rc = register_client(boot->nspace, here->ranks[k], err);
    return rc;
}

/* The C library by itself gives back only what is freed at its heap's end. */
void register_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int register_set(const struct pset *set, uint32_t library, struct err *err)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    procs_load(&info, PMIX_PSET_MEMBERS, &set->members);
    const pmix_data_array_t *procs = info.value.data.darray;
    pmix_status_t rc = PMIx_server_define_process_set(procs->array, procs->size, set->name);
    PMIX_INFO_DESTRUCT(&info);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED &&
        !library_has(library, LIBRARY_SET_STATUS_UNSET))
        return err_set(err, "libpmix does not define the process set \"%s\": %s", set->name,
                       PMIx_Error_string(rc));
    return 0;
}

void register_set_end(const struct pset *set)
{
    char name[PROCSET_NAME_MAX + 1]; /* not const for libpmix */
    strcpy(name, set->name);
    PMIx_server_delete_process_set(name);
}

struct registration {
    pmix_nspace_t name; /* libpmix copies the full buffer */
    struct infos list;
};

static void free_registration(struct registration *r)
{
    infos_free(&r->list);
    free(r);
    register_give_back();
}

struct registration *register_prepare(const struct nspace *ns, const struct psets *psets,
                                      bool session)
{
    struct registration *r = calloc(1, sizeof *r);
    PMIX_LOAD_NSPACE(r->name, ns->boot->nspace);
    keys_describe_job(&r->list, ns, psets, session);
    keys_describe_nodes(&r->list, ns, 0, SIZE_MAX, false);
    return r;
}

static int judge(pmix_status_t rc, const char *name, struct err *err)
{
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    return err_set(err, "libpmix does not register namespace %s: %s", name, PMIx_Error_string(rc));
}

int register_keys(struct registration *r, uint32_t nlocal, struct err *err)
{
    int rc = judge(
        PMIx_server_register_nspace(r->name, (int)nlocal, r->list.info, r->list.n, NULL, NULL),
        r->name, err);
    free_registration(r);
    return rc;
}

/* Registers a part of the own namespace, which libpmix adds to what it has. Only with the last part
 * it learns that there are processes here: gds/ds21 of 4.2 makes locks for them with each part, and
 * would take them all. */
static int register_part(struct infos *list, const struct boot *boot, bool last, struct err *err)
{
    pmix_nspace_t name;
    PMIX_LOAD_NSPACE(name, boot->nspace);
    int nlocal = last ? (int)boot_here(boot)->ntasks : 0;
    int rc = judge(PMIx_server_register_nspace(name, nlocal, list->info, list->n, NULL, NULL), name,
                   err);
    infos_free(list);
    return rc;
}

bool register_store(const pmix_proc_t *proc, const char *key, pmix_value_t value)
{
    char whose[24] = "all ranks";
    pmix_status_t rc = PMIx_Store_internal(proc, key, &value);
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return true;
    if (proc->rank != PMIX_RANK_WILDCARD)
        snprintf(whose, sizeof whose, "rank %u", proc->rank);
    log_warning("libpmix does not take %s of %s: %s", key, whose, PMIx_Error_string(rc));
    return false;
}

/* Where it may be no key of the node, to be copied for each client. */
static void store_local_procs(const struct boot *boot)
{
    struct infos list = {0};
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, boot->nspace, PMIX_RANK_WILDCARD);
    keys_describe_local_procs(&list, boot);
    if (list.n == 1)
        register_store(&all, PMIX_LOCAL_PROCS, list.info->value);
    infos_free(&list);
}

/* In parts: described at once, a process takes ten times as much as libpmix keeps of it. */
static int register_parts(const struct nspace *ns, const struct psets *psets, uint32_t library,
                          struct err *err)
{
    bool brief = keys_are_brief(ns->boot, library),
         leaks = library_has(library, LIBRARY_ARRAYS_LEAK);
    const struct boot *boot = ns->boot;
    uint32_t part = (boot->nnodes + boot->ntasks) / PARTS, next = 0;
    struct infos list = {0};
    int rc;
    keys_describe_job(&list, ns, psets, false);
    if (!leaks)
        keys_describe_local_procs(&list, boot);
    do {
        next = keys_describe_nodes(&list, ns, next, part > PART_LEAST ? part : PART_LEAST, brief);
        rc = register_part(&list, boot, next == boot->nnodes, err);
    } while (rc == 0 && next < boot->nnodes);
    if (leaks)
        store_local_procs(boot);
    register_give_back();
    return rc;
}

int register_namespace(const struct nspace *ns, const struct psets *psets, uint32_t library,
                       struct err *err)
{
    const struct boot *boot = ns->boot;
    return make_dirs(boot, err) != 0 || register_parts(ns, psets, library, err) != 0
               ? -1
               : register_clients(boot, err);
}

/* @thread PMIx's */
static void on_registered(pmix_status_t status, void *arg)
{
    struct registration *r = arg;
    struct err err = {0};
    if (judge(status, r->name, &err) != 0)
        log_error("%s", err.text);
    free_registration(r);
}

void register_there(struct registration *r)
{
    pmix_status_t rc =
        PMIx_server_register_nspace(r->name, 0, r->list.info, r->list.n, on_registered, r);
    if (rc != PMIX_SUCCESS)
        on_registered(rc, r);
}

void register_end(const char *nspace)
{
    pmix_nspace_t name;
    PMIX_LOAD_NSPACE(name, nspace);
    PMIx_server_deregister_nspace(name, NULL, NULL);
}

int register_connection(const char *name, uint32_t size, uint32_t nlocal, struct err *err)
{
    struct registration *r = calloc(1, sizeof *r);
    PMIX_LOAD_NSPACE(r->name, name);
    infos_u32(&r->list, PMIX_JOB_SIZE, size);
    int rc = register_keys(r, nlocal, err);
    for (uint32_t k = 0; k < nlocal && rc == 0; k++)
        rc = register_client(name, PMIX_RANK_VALID - 1 - k, err);
    return rc;
}

int register_environment(const struct nspace *ns, uint32_t slot, char ***env, struct err *err)
{
    pmix_proc_t proc;
    *env = NULL;
    PMIX_LOAD_PROCID(&proc, ns->boot->nspace, boot_here(ns->boot)->ranks[slot]);
    pmix_status_t rc = PMIx_server_setup_fork(&proc, env);
    if (rc != PMIX_SUCCESS || *env == NULL)
        return err_set(err, "libpmix makes no environment for rank %u: %s", proc.rank,
                       PMIx_Error_string(rc));
    psec_choose(*env);
    return 0;
}
