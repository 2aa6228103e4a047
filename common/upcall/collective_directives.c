/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the directives that every collective has. */
#include "common/upcall/collective.h"

#include "common/notify/refuse.h"
#include "common/upcall/directives.h"

#include <pmix.h>

static enum directives_call call_of(enum coll_kind kind)
{
    return kind == COLL_FENCE       ? CALL_FENCE
           : kind == COLL_CONSTRUCT ? CALL_CONSTRUCT
           : kind == COLL_DESTRUCT  ? CALL_DESTRUCT
           : kind == COLL_CONNECT   ? CALL_CONNECT
                                    : CALL_DISCONNECT;
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

static void take_timeout(struct collective *c, const pmix_info_t *info)
{
    uint32_t seconds;
    if (directive_number(&info->value, &seconds) && seconds > 0 &&
        (c->call.timeout == 0 || seconds < c->call.timeout))
        c->call.timeout = seconds;
}

/* Context ids are unique in the session, so also in each part of it. */
static pmix_status_t check_range(const struct collective *c, const pmix_info_t *info)
{
    pmix_data_range_t range = info->value.data.range;
    if (range <= PMIX_RANGE_PROC_LOCAL && range != PMIX_RANGE_GLOBAL && range != PMIX_RANGE_RM)
        return PMIX_SUCCESS;
    return refused(
        PMIX_ERR_NOT_SUPPORTED,
        "group \"%s\": its PMIX_RANGE is %s, and a context id is unique among the groups "
        "of the session alone; give PMIX_RANGE_SESSION, or a smaller one",
        c->id, range == PMIX_RANGE_GLOBAL ? "PMIX_RANGE_GLOBAL" : "none of the session's");
}

void collective_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    const pmix_info_t *range = NULL;
    pmix_status_t fault = directives_check(call_of(c->kind), c->id, info, ninfo);
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS)) {
            take_local_status(c, &info[i]);
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            take_timeout(c, &info[i]);
        } else if (directive_is_on(&info[i], PMIX_GROUP_ASSIGN_CONTEXT_ID)) {
            c->call.flags |= ENGINE_WANT_CONTEXT_ID;
        } else if (directive_is_on(&info[i], PMIX_GROUP_FT_COLLECTIVE)) {
            c->survives = true;
        } else if (directive_is_on(&info[i], PMIX_GROUP_NOTIFY_TERMINATION)) {
            c->notify = true;
            c->call.flags |= ENGINE_WANT_NOTIFY;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_RANGE)) {
            range = &info[i];
        }
    }
    if (fault == PMIX_SUCCESS && range != NULL && (c->call.flags & ENGINE_WANT_CONTEXT_ID) != 0)
        fault = check_range(c, range);
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = fault;
}
