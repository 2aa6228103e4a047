/* SPDX-License-Identifier: BSD-3-Clause */
/* notify_event, register_events, deregister_events. */
#include "common/notify/event.h"

#include "common/notify/refuse.h"
#include "common/notify/release.h"
#include "common/nspace/built.h"
#include "common/nspace/library.h"
#include "common/server/status/stopped.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool asks(const pmix_info_t info[], size_t ninfo, const char *key)
{
    for (size_t i = 0; i < ninfo; i++)
        if (directive_is_on(&info[i], key))
            return true;
    return false;
}

/* An event on its way to the loop. */
struct note {
    struct request request;
    struct notification event;
};

/* @thread the loop's */
static void run_note(struct handoff_item *item)
{
    struct note *note = (struct note *)item;
    struct server *server = upcall_server();
    if (note->event.code == PMIX_DEBUGGER_RELEASE)
        release_note(server, &note->event);
    pmix_status_t status = notification_take_names(server, &note->event);
    if (status == PMIX_SUCCESS)
        status = notification_send(server, &note->event);
    if (status != PMIX_SUCCESS)
        log_info("event %d of %s rank %u: %s", note->event.code, note->event.source.nspace,
                 note->event.source.rank, PMIx_Error_string(status));
    /* PMIx_Group_leave: it is generated, also when no member is left to receive it. */
    if (note->event.code == PMIX_GROUP_LEFT &&
        (status == PMIX_ERR_PARTIAL_SUCCESS || status == PMIX_ERR_UNREACH ||
         status == PMIX_ERR_NOT_FOUND))
        status = PMIX_SUCCESS;
    answer_status(&note->request.answer, status);
    notification_free(&note->event);
    free(note);
}

static pmix_status_t post_note(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, const pmix_info_t info[], size_t ninfo,
                               struct answer answer)
{
    struct note *note = calloc(1, sizeof *note);
    pmix_status_t rc =
        notification_copy(&upcall_server()->boot, &note->event, code, source, range, info, ninfo);
    if (rc == PMIX_SUCCESS) {
        note->request.answer = answer;
        return upcall_post(&note->request.item, run_note);
    }
    notification_free(&note->event);
    free(note);
    return rc;
}

/* What a task tells its own server. */
struct task_note {
    struct handoff_item item;
    uint32_t rank;
    bool stops; /* it waits for a debugger; else it has done its checkpoint */
    char where[STOPPED_WHERE_SIZE];
};

/* @thread the loop's */
static void run_task_note(struct handoff_item *item)
{
    struct task_note *note = (struct task_note *)item;
    if (note->stops)
        stopped_ready(upcall_server(), note->rank, note->where);
    else
        checkpoint_done(upcall_server(), note->rank);
    free(note);
}

/* @param where it waits for a debugger; NULL: it has done its checkpoint */
static void post_task_note(const pmix_proc_t *source, const char *where)
{
    struct task_note *note = calloc(1, sizeof *note);
    note->rank = source->rank == PMIX_RANK_LOCAL_PEERS ? STOP_ALL : source->rank;
    note->stops = where != NULL;
    snprintf(note->where, sizeof note->where, "%s", where != NULL ? where : "");
    log_mask(note->where);
    upcall_post(&note->item, run_task_note);
}

/* libpmix 4.2 and 5.0 count, and tell of all tasks of the node at once. */
static bool is_ours(const pmix_proc_t *source)
{
    return upcall_task(source) != NULL ||
           (source->rank == PMIX_RANK_LOCAL_PEERS &&
            strcmp(source->nspace, upcall_server()->boot.nspace) == 0);
}

/* The range is not looked at: libpmix 4.2 and 5.0 say "the resource manager", 6.1 and 7.0 a custom
 * range that may have any name in it. PMIx_Init fails where 6.1 and newer get no success. */
static pmix_status_t ready(const pmix_proc_t *source, const pmix_info_t info[], size_t ninfo)
{
    const char *where = "";
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_BREAKPOINT) && directive_text(&info[i]) != NULL)
            where = directive_text(&info[i]);
    post_task_note(source, where);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t upcall_notify_event(pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    if (source == NULL)
        return refused(PMIX_ERR_BAD_PARAM, "PMIx_Notify_event: event %d has no source", code);
    pmix_status_t fault = directives_check(CALL_EVENT, "", info, ninfo);
    if (fault != PMIX_SUCCESS)
        return fault;
    if (code == PMIX_READY_FOR_DEBUG && is_ours(source))
        return ready(source, info, ninfo);
    if (code == PMIX_JCTRL_CHECKPOINT_COMPLETE && upcall_task(source) != NULL)
        post_task_note(source, NULL);              /* it also goes where its range says */
    if (asks(info, ninfo, PMIX_EVENT_STAYS_LOCAL)) /* libpmix hands it up all the same */
        return PMIX_OPERATION_SUCCEEDED;
    bool later = !library_has(upcall_server()->library, LIBRARY_EVENT_ANSWER_RACES);
    pmix_status_t rc = post_note(code, source, range, info, ninfo,
                                 later ? answer_op(cbfunc, cbdata) : answer_op(NULL, NULL));
    return rc == PMIX_SUCCESS && !later ? PMIX_OPERATION_SUCCEEDED : rc;
}

/* An alert of a monitor, which libpmix's server raises in the name of the process that has asked
 * for it, and tells the processes of this node. @thread PMIx's */
static void on_alert(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id, (void)results, (void)nresults;
    /* those of other nodes come by notification_give(), and are not for us to send */
    if (source != NULL && upcall_task(source) != NULL)
        post_note(code, source, PMIX_RANGE_NAMESPACE, info, ninfo, answer_op(NULL, NULL));
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

int upcall_watch_alerts(struct err *err)
{
    pmix_status_t codes[] = {PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_MONITOR_FILE_ALERT};
    pmix_status_t rc = PMIx_Register_event_handler(codes, sizeof codes / sizeof *codes, NULL, 0,
                                                   on_alert, NULL, NULL);
    if (rc < 0)
        return err_set(err, "libpmix does not tell of alerts: %s", PMIx_Error_string(rc));
    return 0;
}

/* Every event that is known here is given to libpmix, whichever process has asked for it: nothing
 * to do. The answer is given at once: LIBRARY_EVENT_ANSWER_RACES. */
pmix_status_t upcall_register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                     size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t upcall_deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t cbfunc,
                                       void *cbdata)
{
    (void)codes, (void)ncodes, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}
