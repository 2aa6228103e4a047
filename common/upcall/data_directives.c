/* SPDX-License-Identifier: BSD-3-Clause */
/* Directives of PMIx_Publish, PMIx_Lookup and PMIx_Unpublish. */
#include "common/upcall/data.h"

#include "common/upcall/upcall.h"
#include "common/util/log.h"

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
    if (value->type != PMIX_DATA_RANGE)
        return false;
    if (value->data.range >= sizeof ranges / sizeof *ranges)
        return d->asks; /* Open MPI 5.0.7 looks up with a range that it has not set */
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
    if (value->type != PMIX_PERSIST || value->data.persist >= sizeof lives / sizeof *lives)
        return false;
    d->life = lives[value->data.persist];
    return true;
}

static bool read_procs(const pmix_value_t *value, struct data_directives *d)
{
    const pmix_proc_t *procs = value->type == PMIX_PROC ? value->data.proc : NULL;
    size_t n = procs != NULL;
    if (value->type == PMIX_DATA_ARRAY && value->data.darray != NULL &&
        value->data.darray->type == PMIX_PROC) {
        procs = value->data.darray->array;
        n = value->data.darray->size;
    }
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

static bool read_number(const pmix_value_t *value, uint32_t *number)
{
    pmix_status_t rc = PMIX_SUCCESS;
    if (value->type == PMIX_BOOL || value->type == PMIX_UNDEF)
        return false;
    PMIX_VALUE_GET_NUMBER(rc, value, *number, uint32_t);
    return rc == PMIX_SUCCESS;
}

static bool read_ids(const pmix_value_t *value, bool *has, uint32_t *ids, uint32_t *n)
{
    const pmix_data_array_t *array = value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
    if (array == NULL || array->type != PMIX_UINT32 || array->size > STORE_IDS_MAX)
        return false;
    *has = true;
    *n = (uint32_t)array->size;
    if (*n > 0)
        memcpy(ids, array->array, *n * sizeof *ids);
    return true;
}

static bool read_one(const pmix_info_t *info, struct data_directives *d, bool *known);

/* The users and groups that may read a value. */
static bool read_access(const pmix_value_t *value, struct data_directives *d)
{
    const pmix_data_array_t *array = value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
    bool good = array != NULL && array->type == PMIX_INFO, known;
    for (size_t i = 0; good && i < array->size; i++)
        good = read_one((const pmix_info_t *)array->array + i, d, &known) && known;
    return good;
}

/* @param known whether it is a directive @return false: it makes no sense */
static bool read_one(const pmix_info_t *info, struct data_directives *d, bool *known)
{
    const pmix_value_t *value = &info->value;
    *known = true;
    if (PMIX_CHECK_KEY(info, PMIX_RANGE))
        return read_range(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_PERSISTENCE))
        return read_life(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_EVENT_CUSTOM_RANGE))
        return read_procs(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_WAIT)) {
        bool yes = value->type == PMIX_UNDEF || (value->type == PMIX_BOOL && value->data.flag);
        d->wait = yes || value->type != PMIX_BOOL;
        return value->type == PMIX_BOOL || value->type == PMIX_UNDEF ||
               read_number(value, &d->want);
    }
    if (PMIX_CHECK_KEY(info, PMIX_TIMEOUT))
        return read_number(value, &d->seconds);
    if (PMIX_CHECK_KEY(info, PMIX_USERID))
        return read_number(value, &d->who.uid);
    if (PMIX_CHECK_KEY(info, PMIX_GRPID))
        return read_number(value, &d->who.gid);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_PERMISSIONS))
        return read_access(value, d);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_USERIDS))
        return read_ids(value, &d->has_uids, d->uids, &d->nuids);
    if (PMIX_CHECK_KEY(info, PMIX_ACCESS_GRPIDS))
        return read_ids(value, &d->has_gids, d->gids, &d->ngids);
    *known = false;
    return true;
}

struct data_directives *data_directives_new(const pmix_proc_t *proc)
{
    const struct boot *boot = &upcall_server()->boot;
    struct data_directives *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
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
    if (d != NULL)
        procset_free(&d->custom);
    free(d);
}

pmix_status_t data_directives_read(struct data_directives *d, const pmix_info_t info[],
                                   size_t ninfo)
{
    bool known;
    for (size_t i = 0; i < ninfo; i++) {
        if (!read_one(&info[i], d, &known)) {
            log_info("upcall: %.*s has a value that it cannot have, or that is not served",
                     PMIX_MAX_KEYLEN, info[i].key);
            return PMIX_ERR_BAD_PARAM;
        }
    }
    return d->range == STORE_CUSTOM && !d->aimed ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
}

bool data_directives_know(const pmix_info_t *info)
{
    struct data_directives scratch = {0};
    bool known;
    read_one(info, &scratch, &known);
    procset_free(&scratch.custom);
    return known;
}
