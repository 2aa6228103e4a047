/* SPDX-License-Identifier: BSD-3-Clause */
/* Directives of PMIx_Publish, PMIx_Lookup and PMIx_Unpublish. */
#include "common/upcall/data.h"

#include "common/notify/refuse.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_range(const pmix_value_t *value, struct data_directives *d)
{
    static const int ranges[] = {
        [PMIX_RANGE_UNDEF] = STORE_SESSION,   [PMIX_RANGE_RM] = -1,
        [PMIX_RANGE_LOCAL] = STORE_LOCAL,     [PMIX_RANGE_NAMESPACE] = STORE_NSPACE,
        [PMIX_RANGE_SESSION] = STORE_SESSION, [PMIX_RANGE_GLOBAL] = STORE_SESSION,
        [PMIX_RANGE_CUSTOM] = STORE_CUSTOM,   [PMIX_RANGE_PROC_LOCAL] = STORE_SELF,
    };
    if (value->data.range >= sizeof ranges / sizeof *ranges)
        return d->call == CALL_LOOKUP; /* Open MPI 5.0.7 gives a range that it has not set */
    if (ranges[value->data.range] < 0)
        return false;
    d->range = (enum store_range)ranges[value->data.range];
    d->any_range = false;
    return true;
}

static bool read_life(const pmix_value_t *value, struct data_directives *d)
{
    static const enum store_life lives[] = {
        [PMIX_PERSIST_INDEF] = STORE_SESSION_LIFE,
        [PMIX_PERSIST_FIRST_READ] = STORE_FIRST_READ,
        [PMIX_PERSIST_PROC] = STORE_PROC,
        [PMIX_PERSIST_APP] = STORE_APP,
        [PMIX_PERSIST_SESSION] = STORE_SESSION_LIFE,
    };
    if (value->data.persist >= sizeof lives / sizeof *lives)
        return false;
    d->life = lives[value->data.persist];
    return true;
}

static bool read_procs(const pmix_value_t *value, struct data_directives *d)
{
    size_t n;
    const pmix_proc_t *procs = directive_procs(value, &n);
    for (size_t i = 0; i < n; i++) {
        bool all = procs[i].rank == PMIX_RANK_WILDCARD;
        char nspace[PMIX_MAX_NSLEN + 1];
        snprintf(nspace, sizeof nspace, "%.*s", PMIX_MAX_NSLEN, procs[i].nspace);
        if (procset_add(&d->custom, nspace, all ? 0 : procs[i].rank,
                        all ? PMIX_RANK_VALID : procs[i].rank) != 0)
            return false;
    }
    procset_canonical(&d->custom);
    d->aimed = n > 0;
    return n > 0;
}

static bool read_wait(const pmix_info_t *info, struct data_directives *d)
{
    bool number = directive_number(&info->value, &d->want);
    d->wait = number || PMIX_INFO_TRUE(info);
    return true;
}

static bool read_ids(const pmix_value_t *value, bool *has, uint32_t *ids, uint32_t *n)
{
    const pmix_data_array_t *array = value->data.darray;
    size_t size = array != NULL ? array->size : 0;
    if (size > STORE_IDS_MAX)
        return false;
    *has = true;
    *n = (uint32_t)size;
    if (size > 0)
        memcpy(ids, array->array, size * sizeof *ids);
    return true;
}

static pmix_status_t read_all(struct data_directives *d, const pmix_info_t info[], size_t ninfo);

/* The users and groups that may read a value. Another key there is no directive, and refused. */
static bool read_access(const pmix_value_t *value, struct data_directives *d)
{
    const pmix_data_array_t *array = value->data.darray;
    const pmix_info_t *info = array != NULL ? array->array : NULL;
    size_t n = info != NULL ? array->size : 0;
    for (size_t i = 0; i < n; i++)
        if (!directive_known(d->call, &info[i]))
            return false;
    return read_all(d, info, n) == PMIX_SUCCESS;
}

/* @return false: its value is of a good type, and it cannot be */
static bool read_one(const pmix_info_t *info, struct data_directives *d)
{
    const pmix_value_t *value = &info->value;
    if (PMIX_CHECK_KEY(info, PMIX_RANGE))
        return read_range(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_PERSISTENCE))
        return read_life(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_EVENT_CUSTOM_RANGE))
        return read_procs(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_WAIT))
        return read_wait(info, d);
    if (PMIX_CHECK_KEY(info, PMIX_TIMEOUT))
        return directive_number(value, &d->seconds);
    if (PMIX_CHECK_KEY(info, PMIX_USERID))
        return directive_number(value, &d->who.uid);
    if (PMIX_CHECK_KEY(info, PMIX_GRPID))
        return directive_number(value, &d->who.gid);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_PERMISSIONS))
        return read_access(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_USERIDS))
        return read_ids(value, &d->has_uids, d->uids, &d->nuids);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_GRPIDS))
        return read_ids(value, &d->has_gids, d->gids, &d->ngids);
    return true;
}

static pmix_status_t read_all(struct data_directives *d, const pmix_info_t info[], size_t ninfo)
{
    pmix_status_t rc = directives_check(d->call, "", info, ninfo);
    for (size_t i = 0; i < ninfo && rc == PMIX_SUCCESS; i++)
        if (!read_one(&info[i], d))
            rc = refused(PMIX_ERR_BAD_PARAM,
                         "%s: %.*s has a value that it cannot have, or that muster does not serve: "
                         "see docs/meeting.md",
                         directives_call_name(d->call), PMIX_MAX_KEYLEN, info[i].key);
    return rc;
}

struct data_directives *data_directives_new(enum directives_call call, const pmix_proc_t *proc)
{
    const struct boot *boot = &upcall_server()->boot;
    struct data_directives *d = calloc(1, sizeof *d);
    d->call = call;
    d->life = STORE_APP;
    d->any_range = true;
    snprintf(d->who.nspace, sizeof d->who.nspace, "%.*s", PMIX_MAX_NSLEN, proc->nspace);
    d->who.rank = proc->rank;
    snprintf(d->who.host, sizeof d->who.host, "%s", boot_here(boot)->name);
    d->who.uid = getuid();
    d->who.gid = getgid();
    return d;
}

void data_directives_free(struct data_directives *d)
{
    procset_free(&d->custom);
    free(d);
}

pmix_status_t data_directives_read(struct data_directives *d, const pmix_info_t info[],
                                   size_t ninfo)
{
    pmix_status_t rc = read_all(d, info, ninfo);
    if (rc == PMIX_SUCCESS && d->range == STORE_CUSTOM && !d->aimed)
        rc = refused(PMIX_ERR_BAD_PARAM,
                     "%s: PMIX_RANGE_CUSTOM is without its processes; give PMIX_EVENT_CUSTOM_RANGE",
                     directives_call_name(d->call));
    return rc;
}
