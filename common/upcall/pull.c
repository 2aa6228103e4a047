/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_IOF_pull. @thread all of it: PMIx's, unless it says another one */
#include "common/notify/refuse.h"
#include "common/upcall/directives.h"
#include "common/upcall/forward_private.h"
#include "common/upcall/upcall.h"

#include <stdlib.h>
#include <string.h>

void forwards_forget_pulls(struct forwards *all)
{
    pthread_mutex_lock(&all->lock);
    struct forward *f;
    LIST_FOREACH (f, &all->list, entry) {
        f->pulled = 0;
        free(f->pulled_of);
        f->pulled_of = NULL;
    }
    pthread_mutex_unlock(&all->lock);
}

/* @return whether there is a place to note a pull of that rank */
static bool has_place(struct forward *f, pmix_rank_t rank)
{
    if (rank == PMIX_RANK_WILDCARD)
        return true;
    if (rank < f->ntasks && f->pulled_of == NULL)
        f->pulled_of = calloc(f->ntasks, sizeof *f->pulled_of);
    return rank < f->ntasks;
}

/* @return what comes of that process, or of all of its namespace, on all these channels, or NULL */
static struct forward *find_child(struct forwards *all, const pmix_proc_t *proc,
                                  pmix_iof_channel_t channels)
{
    const pmix_iof_channel_t none = PMIX_FWD_STDDIAG_CHANNEL; /* there is no such stream */
    struct forward *f;
    LIST_FOREACH (f, &all->list, entry)
        if (f->child[0] != '\0' && strncmp(f->child, proc->nspace, PMIX_MAX_NSLEN) == 0)
            break;
    bool has = f != NULL && (channels & (f->channels | f->silent)) != 0 &&
               (channels & ~(f->channels | f->silent | none)) == 0;
    return has && has_place(f, proc->rank) ? f : NULL;
}

/* @return whether what comes of all these processes on these channels is delivered from now on.
 * libpmix would keep what comes of others, and drop it at last, and no terminal would show it. */
static bool pull(struct forwards *all, const pmix_proc_t procs[], size_t nprocs,
                 pmix_iof_channel_t channels)
{
    bool has = nprocs > 0;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < nprocs && has; i++)
        has = find_child(all, &procs[i], channels) != NULL;
    for (size_t i = 0; i < nprocs && has; i++) {
        struct forward *f = find_child(all, &procs[i], channels);
        bool whole = procs[i].rank == PMIX_RANK_WILDCARD;
        *(whole ? &f->pulled : &f->pulled_of[procs[i].rank]) |= channels;
    }
    if (has)
        pullers_pull(&all->pullers);
    bool own =
        has && all->own != NULL && strncmp(procs[0].nspace, all->own->child, PMIX_MAX_NSLEN) == 0;
    pthread_mutex_unlock(&all->lock);
    if (own)
        all->pulled(all->server);
    return has;
}

/* Up to 6.1, libpmix frees what its callback needs as soon as the upcall returns PMIX_SUCCESS. So
 * the answer is the upcall's own. libpmix keeps which process pulls what. */
pmix_status_t upcall_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc,
                              void *cbdata)
{
    struct forwards *all = upcall_server()->forwards;
    bool stops = false;
    pmix_status_t fault = directives_check(CALL_PULL, "", info, ninfo);
    (void)cbfunc, (void)cbdata;
    if (fault != PMIX_SUCCESS)
        return fault;
    for (size_t i = 0; i < ninfo; i++)
        stops |= PMIX_CHECK_KEY(&info[i], PMIX_IOF_STOP);
    if (stops)
        forwards_forget_pulls(all);
    if (stops || pull(all, procs, nprocs, channels))
        return PMIX_OPERATION_SUCCEEDED;
    return refused(
        PMIX_ERR_NOT_SUPPORTED,
        "PMIx_IOF_pull of %s rank %u: output comes to this node of processes that a process of the "
        "node has spawned with PMIX_FWD_STDOUT or PMIX_FWD_STDERR%s",
        nprocs > 0 ? procs[0].nspace : "", nprocs > 0 ? procs[0].rank : 0,
        all->own != NULL ? ", and of the step's own" : "; of the step's own it cannot be had here");
}
