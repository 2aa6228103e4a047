/* SPDX-License-Identifier: BSD-3-Clause */
/* See connect_reply.h. The loop's thread gives the result (begin, shift, end). libpmix's thread
 * makes the answer (make), and calls the two functions that stand last meanwhile. */
#include "common/server/process/connect_reply.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct connect_reply {
    char **names;
    unsigned n;
    bool named; /* libpmix has them */
    event_callback_fn make;
    void *arg;
};

/* Its functions are called by libpmix alone, which passes no pointer of ours: so each thread knows
 * what it is doing. */
static _Thread_local struct connect_reply *given, *made;

/* libpmix asks shmem2 as soon as a namespace is registered. */
static atomic_bool asks_here;

struct connect_reply *connect_reply_new(void)
{
    return calloc(1, sizeof(struct connect_reply));
}

void connect_reply_free(struct connect_reply *reply)
{
    if (reply == NULL)
        return;
    for (unsigned i = 0; i < reply->n; i++)
        free(reply->names[i]);
    free(reply->names);
    free(reply);
}

void connect_reply_add(struct connect_reply *reply, const char *nspace)
{
    reply->names = realloc(reply->names, (reply->n + 1) * sizeof *reply->names);
    reply->names[reply->n++] = strdup(nspace);
}

void connect_reply_begin(struct connect_reply *reply)
{
    given = reply;
}

void connect_reply_end(void)
{
    connect_reply_free(given);
    given = NULL;
}

/* @thread PMIx's */
static void make(evutil_socket_t fd, short what, void *arg)
{
    made = arg;
    made->make(fd, what, made->arg);
    connect_reply_free(made);
    made = NULL;
}

void connect_reply_shift(evutil_socket_t fd, short events, event_callback_fn *callback, void **arg)
{
    if (given == NULL || fd != -1 || events != EV_WRITE)
        return;
    given->make = *callback;
    given->arg = *arg;
    *callback = make;
    *arg = given;
    given = NULL;
}

static bool is_named(const char *nspace)
{
    for (unsigned i = 0; i < made->n; i++)
        if (strcmp(made->names[i], nspace) == 0)
            return true;
    return false;
}

/* ---- functions of libpmix ---- */

typedef pmix_status_t append_fn(char ***argv, const char *arg);
typedef pmix_status_t tracker_fn(const char *nspace, bool create, void **job);

append_fn PMIx_Argv_append_nosize __attribute__((visibility("default")));
tracker_fn pmix_gds_shmem2_get_job_tracker __attribute__((visibility("default")));

/* Whether a namespace without processes here is safe to name: no component reads its shared memory.
 * Component shmem3, from 7.0 on, looks by itself whether there is such memory. */
static bool may_name(void)
{
    return asks_here || dlsym(RTLD_NEXT, "pmix_gds_shmem2_get_job_tracker") == NULL;
}

/* The first call while an answer is made collects the first namespace. @thread any */
pmix_status_t PMIx_Argv_append_nosize(char ***argv, const char *arg)
{
    static _Thread_local append_fn *append;
    if (append == NULL)
        append = (append_fn *)(uintptr_t)dlsym(RTLD_NEXT, "PMIx_Argv_append_nosize");
    pmix_status_t rc = append != NULL ? append(argv, arg) : PMIX_ERR_NOT_SUPPORTED;
    if (made == NULL || made->named || !may_name())
        return rc;
    made->named = true;
    for (unsigned i = 0; i < made->n && rc == PMIX_SUCCESS; i++)
        rc = append(argv, made->names[i]);
    return rc;
}

/* @thread PMIx's */
pmix_status_t pmix_gds_shmem2_get_job_tracker(const char *nspace, bool create, void **job)
{
    static tracker_fn *get;
    if (get == NULL)
        get = (tracker_fn *)(uintptr_t)dlsym(RTLD_NEXT, "pmix_gds_shmem2_get_job_tracker");
    asks_here = true;
    *job = NULL;
    if (get == NULL || (made != NULL && is_named(nspace)))
        return PMIX_ERR_NOT_FOUND;
    return get(nspace, create, job);
}
