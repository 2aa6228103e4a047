/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmix has kinds of callbacks for these that nothing else here needs, hence a small answer of
 * their own. The callback is called from the loop, as libpmix expects it from another thread. A
 * program may ask again and again, so only the first time of each is a warning. */
#include "common/upcall/refused.h"

#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>

/* A callback that will say no. */
struct refusal {
    struct handoff_item item;
    enum { SAY_OP, SAY_INFO } kind;
    union {
        pmix_op_cbfunc_t op;
        pmix_info_cbfunc_t info;
        void (*any)(void);
    } say;
    void *cbdata;
    enum refused_what what;
};

static const char *const names[] = {
    [REFUSED_MONITOR] = "PMIx_Process_monitor",
    [REFUSED_FABRIC] = "fabric information",
    [REFUSED_SESSION_CONTROL] = "PMIx_Session_control",
    [REFUSED_RESOURCE_BLOCK] = "PMIx_Resource_block",
    [REFUSED_QUERY] = "PMIx_Query_info",
    [REFUSED_LOG] = "PMIx_Log",
    [REFUSED_SPAWN_HINT] = "PMIx_Spawn",
};

void refused_tell(enum refused_what what, const char *of, const char *why)
{
    struct server *server = upcall_server();
    bool first = (server->refused & UINT32_C(1) << what) == 0;
    server->refused |= UINT32_C(1) << what;
    log_write(first ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "%s%s%.*s was asked for, which muster does not serve%s%s%s", names[what],
              of != NULL ? " of " : "", PMIX_MAX_KEYLEN, of != NULL ? of : "",
              why != NULL ? ": " : "", why != NULL ? why : "",
              first ? "; more of it is logged at info" : "");
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct refusal *r = (struct refusal *)item;
    const pmix_status_t no = PMIX_ERR_NOT_SUPPORTED; /* told */
    refused_tell(r->what, NULL, NULL);
    if (r->say.any != NULL && answer_wanted()) {
        switch (r->kind) {
        case SAY_OP:
            r->say.op(no, r->cbdata);
            break;
        case SAY_INFO:
            r->say.info(no, NULL, 0, r->cbdata, NULL, NULL);
            break;
        }
    }
    free(r);
}

static pmix_status_t refuse(const struct refusal *how)
{
    struct refusal *r = malloc(sizeof *r);
    *r = *how;
    return upcall_post(&r->item, run);
}

static pmix_status_t refuse_info(enum refused_what what, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    return refuse(
        &(struct refusal){.kind = SAY_INFO, .say.info = cbfunc, .cbdata = cbdata, .what = what});
}

#define UNUSED(x) (void)(x)

pmix_status_t refused_listener(int fd, pmix_connection_cbfunc_t cbfunc, void *cbdata)
{
    UNUSED(fd), UNUSED(cbfunc), UNUSED(cbdata);
    return PMIX_ERR_NOT_SUPPORTED; /* told to libpmix alone, which listens itself */
}

pmix_status_t refused_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                              pmix_status_t error, const pmix_info_t info[], size_t ninfo,
                              pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    UNUSED(requestor), UNUSED(monitor), UNUSED(error), UNUSED(info), UNUSED(ninfo);
    return refuse_info(REFUSED_MONITOR, cbfunc, cbdata);
}

pmix_status_t refused_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                             const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t cbfunc,
                             void *cbdata)
{
    UNUSED(requestor), UNUSED(op), UNUSED(info), UNUSED(ninfo);
    return refuse_info(REFUSED_FABRIC, cbfunc, cbdata);
}

#if BUILT_WITH(SESSION_CONTROL)
pmix_status_t refused_session_control(const pmix_proc_t *requestor, uint32_t session,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    UNUSED(requestor), UNUSED(session), UNUSED(info), UNUSED(ninfo);
    return refuse_info(REFUSED_SESSION_CONTROL, cbfunc, cbdata);
}
#endif

#if BUILT_WITH(RESOURCE_BLOCK)
static pmix_status_t refuse_op(enum refused_what what, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return refuse(
        &(struct refusal){.kind = SAY_OP, .say.op = cbfunc, .cbdata = cbdata, .what = what});
}

pmix_status_t refused_resource_block(const pmix_proc_t *requestor,
                                     pmix_resource_block_directive_t directive, const char *block,
                                     const pmix_resource_unit_t *units, size_t nunits,
                                     const pmix_info_t *info, size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                     void *cbdata)
{
    UNUSED(requestor), UNUSED(directive), UNUSED(block), UNUSED(units), UNUSED(nunits);
    UNUSED(info), UNUSED(ninfo);
    return refuse_op(REFUSED_RESOURCE_BLOCK, cbfunc, cbdata);
}
#endif
