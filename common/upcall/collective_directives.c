/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the directives of a collective: what every collective has, and what is required and
 * unknown. */
#include "common/upcall/collective.h"

#include "common/util/log.h"
#include "include/muster/pmix.h"

bool collective_is_true(const pmix_info_t *info)
{
    return info->value.type == PMIX_UNDEF ||
           (info->value.type == PMIX_BOOL && info->value.data.flag);
}

/* What libpmix or we heed of a collective. */
static const char *const known_keys[] = {PMIX_TIMEOUT,
                                         PMIX_COLLECT_DATA,
                                         PMIX_COLLECT_GENERATED_JOB_INFO,
                                         PMIX_GROUP_ID,
                                         PMIX_GROUP_ADD_MEMBERS,
                                         PMIX_GROUP_ASSIGN_CONTEXT_ID,
                                         PMIX_GROUP_BOOTSTRAP,
                                         PMIX_GROUP_FT_COLLECTIVE,
                                         PMIX_GROUP_NOTIFY_TERMINATION,
                                         PMIX_GROUP_LOCAL_ONLY,
                                         PMIX_GROUP_ENDPT_DATA,
                                         PMIX_GROUP_INFO,
                                         PMIX_PROC_DATA,
                                         PMIX_LOCAL_COLLECTIVE_STATUS,
                                         PMIX_CONNECT_ID,
                                         PMIX_CONNECT_OPTIONAL,
                                         PMIX_CONNECT_EARLY_TERM_ALLOWED,
                                         PMIX_CONNECT_NOTIFY_EACH,
                                         PMIX_CONNECT_NOTIFY_REQ,
                                         PMIX_CONNECT_XCHG_ONLY,
                                         MUSTER_CONNECT_NSPACE};

/* Passes over a key that is not known, unless the caller requires it (PMIX_INFO_REQD). */
static void refuse_unknown(struct collective *c, const pmix_info_t *info)
{
    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++)
        if (PMIX_CHECK_KEY(info, known_keys[i]))
            return;
    char what[COLL_DESCRIBE_MAX];
    coll_describe(c->kind, c->id, what, sizeof what);
    log_error("%s: the directive \"%.*s\" is required and not known: leave it out, or its "
              "PMIX_INFO_REQD",
              what, PMIX_MAX_KEYLEN, info->key);
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = PMIX_ERR_NOT_SUPPORTED;
}

/* libpmix's word on the calls of this node. A loss is what libpmix says, and no fault of a
 * directive. */
static void take_local_status(struct collective *c, const pmix_info_t *info)
{
    pmix_status_t status = info->value.type == PMIX_STATUS ? info->value.data.status : PMIX_SUCCESS;
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = status;
    c->lost = c->lost || status != PMIX_SUCCESS;
    c->ncalls++; /* each call brings one along */
}

void collective_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        uint32_t seconds = 0;
        if (PMIX_INFO_IS_REQUIRED(&info[i]))
            refuse_unknown(c, &info[i]);
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS)) {
            take_local_status(c, &info[i]);
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            pmix_status_t rc;
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, seconds, uint32_t);
            if (rc == PMIX_SUCCESS && seconds > 0 &&
                (c->call.timeout == 0 || seconds < c->call.timeout))
                c->call.timeout = seconds;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ASSIGN_CONTEXT_ID) &&
                   collective_is_true(&info[i])) {
            c->call.flags |= ENGINE_WANT_CONTEXT_ID;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_FT_COLLECTIVE) &&
                   collective_is_true(&info[i])) {
            c->survives = true;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_NOTIFY_TERMINATION) &&
                   collective_is_true(&info[i])) {
            c->notify = true;
            c->call.flags |= ENGINE_WANT_NOTIFY;
        }
    }
}
