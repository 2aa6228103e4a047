/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Allocation_request: the job gets nodes or another limit, or gives nodes back. libpmix's
 * thread copies what is asked for, and the resource manager's back end does it. */
#include "common/notify/refuse.h"
#include "common/server/server.h"
#include "common/server/status/shown.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 640 };

struct allocation {
    struct request request;
    LIST_ENTRY(allocation) entry; /* of server::allocations */
    struct server *server;
    pmix_proc_t caller;
    struct rm_alloc what;
    char *nodes, *queue, *id; /* owned, or NULL; id is PMIX_ALLOC_REQ_ID */
    bool resizes, timed;      /* nodes are asked for; PMIX_ALLOC_TIME is */
    pmix_status_t status;     /* of reading */
    char why[WHY_MAX];
    bool told; /* the answer is given, or waits until the user can read why */
    struct shown_wait shown;
    bool done; /* the back end says no more */
};

static void allocation_free(struct allocation *a)
{
    LIST_REMOVE(a, entry);
    shown_forget(&a->shown);
    free(a->nodes);
    free(a->queue);
    free(a->id);
    free(a);
}

static void allocation_refuse(struct allocation *a, pmix_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void allocation_refuse(struct allocation *a, pmix_status_t status, const char *fmt, ...)
{
    va_list ap;
    if (a->status != PMIX_SUCCESS)
        return;
    a->status = status;
    va_start(ap, fmt);
    vsnprintf(a->why, sizeof a->why, fmt, ap);
    va_end(ap);
}

/* ---- reading; @thread PMIx's ---- */

/* Seconds of "months:days:hours:minutes:seconds", of which those on the left may lack, or of a
 * number. A month has 30 days. @return whether it is such a time, and not 0 */
static bool read_time(const pmix_info_t *info, uint32_t *seconds)
{
    static const uint32_t units[] = {1, 60, 3600, 86400, 30 * 86400};
    const char *text = directive_text(info), *end;
    uint64_t total = 0;
    unsigned nunits = 0;
    if (text == NULL)
        return directive_number(&info->value, seconds) && *seconds > 0;
    for (end = text + strlen(text); nunits < sizeof units / sizeof *units; end--) {
        const char *begin = end;
        while (begin > text && begin[-1] >= '0' && begin[-1] <= '9')
            begin--;
        if (begin == end || end - begin > 9 || (begin > text && begin[-1] != ':'))
            return false;
        total += strtoul(begin, NULL, 10) * units[nunits++];
        end = begin;
        if (begin == text)
            break;
    }
    *seconds = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
    return end == text && total > 0;
}

static void take_text(const pmix_info_t *info, char **to)
{
    free(*to);
    *to = strdup(directive_text(info));
}

static void take(struct allocation *a, const pmix_info_t *info)
{
    const char *text = directive_text(info);
    if (PMIX_CHECK_KEY(info, PMIX_ALLOC_NUM_NODES))
        a->resizes = directive_number(&info->value, &a->what.nnodes);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_NUM_CPUS))
        a->resizes = directive_number(&info->value, &a->what.ncpus);
    else if (PMIX_CHECK_KEY(info, PMIX_TIMEOUT))
        directive_number(&info->value, &a->what.timeout);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_REQ_ID))
        take_text(info, &a->id);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_QUEUE))
        take_text(info, &a->queue);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_NODE_LIST)) {
        a->resizes = true;
        take_text(info, &a->nodes);
    } else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_TIME)) {
        a->timed = true;
        if (!read_time(info, &a->what.seconds))
            allocation_refuse(
                a, PMIX_ERR_BAD_PARAM,
                "PMIX_ALLOC_TIME is no time; give seconds, or \"hours:minutes:seconds\"");
    } else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_ID) && strcmp(text, a->server->boot.session) != 0)
        allocation_refuse(a, PMIX_ERR_NOT_FOUND,
                          "PMIX_ALLOC_ID is %.100s, and this allocation is %s", text,
                          a->server->boot.session);
}

/* What is asked for has to be one thing, so that one that fails changes nothing. */
static void check(struct allocation *a, pmix_alloc_directive_t directive)
{
    struct rm_alloc *what = &a->what;
    what->nodes = a->nodes;
    what->queue = a->queue;
    if (directive != PMIX_ALLOC_EXTEND && directive != PMIX_ALLOC_RELEASE)
        allocation_refuse(
            a, PMIX_ERR_NOT_SUPPORTED,
            "only PMIX_ALLOC_EXTEND and PMIX_ALLOC_RELEASE are served, which change the job's "
            "own allocation");
    else if (a->timed && a->resizes)
        allocation_refuse(a, PMIX_ERR_BAD_PARAM,
                          "it asks for nodes and for a time; ask for each in a request of its own");
    else if (!a->timed && what->nnodes == 0 && what->ncpus == 0 && a->nodes == NULL)
        allocation_refuse(
            a, PMIX_ERR_BAD_PARAM,
            "it does not say how much; give PMIX_ALLOC_NUM_NODES, PMIX_ALLOC_NODE_LIST or "
            "PMIX_ALLOC_TIME");
    else if (directive == PMIX_ALLOC_RELEASE && what->ncpus > 0)
        allocation_refuse(a, PMIX_ERR_NOT_SUPPORTED,
                          "processors are given back by nodes; give PMIX_ALLOC_NUM_NODES or "
                          "PMIX_ALLOC_NODE_LIST");
    what->kind = a->timed                         ? RM_ALLOC_TIME
                 : directive == PMIX_ALLOC_EXTEND ? RM_ALLOC_EXTEND
                                                  : RM_ALLOC_RELEASE;
}

/* ---- the loop ---- */

static pmix_status_t status_of(enum rm_alloc_result result)
{
    switch (result) {
    case RM_ALLOC_DONE:
        return PMIX_SUCCESS;
    case RM_ALLOC_NO_RESOURCES:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case RM_ALLOC_FORBIDDEN:
        return PMIX_ERR_NO_PERMISSIONS;
    case RM_ALLOC_LATE:
        return PMIX_ERR_TIMEOUT;
    case RM_ALLOC_IN_USE:
        return PMIX_ERR_RESOURCE_BUSY;
    case RM_ALLOC_WRONG:
        return PMIX_ERR_BAD_PARAM; /* told with the back end's text */
    case RM_ALLOC_UNREACHED:
        return PMIX_ERR_UNREACH;
    case RM_ALLOC_REFUSED:
        return PMIX_ERR_NOT_SUPPORTED; /* told with the back end's text */
    default:
        return PMIX_ERROR;
    }
}

static void on_shown(struct shown_wait *wait)
{
    struct allocation *a = (struct allocation *)((char *)wait - offsetof(struct allocation, shown));
    answer_status(&a->request.answer, a->status);
    allocation_free(a);
}

/* The program may end when it is answered, so the user can read why before that. A program asks
 * again and again until its processes have left a node, so that is nothing for the terminal. */
static void fail(struct allocation *a)
{
    a->done = a->told = true;
    log_write(a->status == PMIX_ERR_RESOURCE_BUSY ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
              "PMIx_Allocation_request by rank %u fails: %s", a->caller.rank, a->why);
    a->shown.done = on_shown;
    shown_await(&a->shown);
}

static void answer(struct allocation *a, const struct rm_alloc_news *news)
{
    enum { ANSWERS = 5 };
    const char *session = a->server->boot.session;
    uint64_t nnodes = news->nnodes, ncpus = news->ncpus;
    size_t n = 0;
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, ANSWERS);
    PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_ID, session, PMIX_STRING);
    n++;
    if (a->id != NULL) {
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_REQ_ID, a->id, PMIX_STRING);
        n++;
    }
    if (nnodes > 0) {
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_NODE_LIST, news->nodes, PMIX_STRING);
        n++;
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_NUM_NODES, &nnodes, PMIX_UINT64);
        n++;
        PMIX_INFO_LOAD(&info[n], PMIX_ALLOC_NUM_CPUS, &ncpus, PMIX_UINT64);
        n++;
    }
    answer_infos(&a->request.answer, PMIX_SUCCESS, info, n);
}

static void on_news(void *arg, const struct rm_alloc_news *news)
{
    struct allocation *a = arg;
    a->done = true;
    if (a->told) { /* the server leaves */
        allocation_free(a);
    } else if (news->result == RM_ALLOC_DONE) {
        log_info("PMIx_Allocation_request by rank %u is done; nodes: %s", a->caller.rank,
                 news->nnodes > 0 ? news->nodes : "none");
        answer(a, news);
        allocation_free(a);
    } else {
        allocation_refuse(a, status_of(news->result), "%s", news->text);
        fail(a);
    }
}

static void run(struct handoff_item *item)
{
    struct allocation *a = (struct allocation *)item;
    struct server *server = a->server;
    LIST_INSERT_HEAD(&server->allocations, a, entry);
    if (server->leaving) {
        answer_status(&a->request.answer, PMIX_ERR_UNREACH);
        allocation_free(a);
        return;
    }
    if (a->what.timeout == 0)
        a->what.timeout = (uint32_t)server->conf.timeouts.spawn;
    if (server->rm == NULL || server->rm_ops->allocate == NULL)
        allocation_refuse(a, PMIX_ERR_NOT_SUPPORTED,
                          "under %s no job grows or shrinks while it runs",
                          server->rm_ops != NULL ? server->rm_ops->name : "this launcher");
    if (a->status == PMIX_SUCCESS)
        server->rm_ops->allocate(server->rm, &a->what, on_news, a);
    else
        fail(a);
}

void upcall_answer_allocations(struct server *server)
{
    struct allocation *a;
    LIST_FOREACH (a, &server->allocations, entry) {
        if (!a->told)
            answer_status(&a->request.answer, PMIX_ERR_UNREACH);
        a->told = true;
    }
}

void upcall_free_allocations(struct server *server)
{
    while (!LIST_EMPTY(&server->allocations))
        allocation_free(LIST_FIRST(&server->allocations));
}

pmix_status_t upcall_allocate(const pmix_proc_t *client, pmix_alloc_directive_t directive,
                              const pmix_info_t data[], size_t ndata, pmix_info_cbfunc_t cbfunc,
                              void *cbdata)
{
    pmix_status_t fault = directives_check(CALL_ALLOCATE, "", data, ndata);
    if (fault != PMIX_SUCCESS)
        return fault;
    struct allocation *a = calloc(1, sizeof *a);
    a->server = a->shown.server = upcall_server();
    a->caller = *client;
    a->status = PMIX_SUCCESS;
    a->request.answer = answer_info(cbfunc, cbdata);
    for (size_t i = 0; i < ndata; i++)
        take(a, &data[i]);
    check(a, directive);
    return upcall_post(&a->request.item, run);
}
