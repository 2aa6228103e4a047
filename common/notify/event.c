/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * An event on its way: copied in libpmix's thread, sent by the loop to the servers that its range
 * and its targets ask for, and given to libpmix on the other side.
 */
#include "common/notify/event.h"

#include "common/notify/answer.h"
#include "common/notify/event_wire.h"
#include "common/notify/refuse.h"
#include "common/notify/release.h"
#include "common/nspace/foreign.h"
#include "common/nspace/infos.h"
#include "common/nspace/keys.h"
#include "common/nspace/procs.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static void copy_targets(struct notification *event, const pmix_value_t *value)
{
    const pmix_data_array_t *array = value->data.darray;
    const pmix_proc_t *procs = NULL;
    size_t n = 0;
    if (value->type == PMIX_PROC) {
        procs = value->data.proc;
        n = procs != NULL;
    } else if (value->type == PMIX_DATA_ARRAY && array != NULL && array->type == PMIX_PROC) {
        procs = array->array;
        n = procs != NULL ? array->size : 0;
    }
    event->targets = realloc(event->targets, (event->ntargets + n) * sizeof *procs + 1);
    if (n > 0)
        memcpy(event->targets + event->ntargets, procs, n * sizeof *procs);
    event->ntargets += n;
    event->aimed = event->ntargets > 0;
}

static pmix_status_t pack(struct notification *event, const pmix_info_t info[], size_t ninfo)
{
    pmix_byte_object_t bytes = {0};
    pmix_status_t rc = ninfo > INT32_MAX ? refused(PMIX_ERR_BAD_PARAM, "event %d has %zu infos",
                                                   event->code, ninfo)
                                         : infos_pack(info, ninfo, &bytes);
    event->ninfo = (uint32_t)ninfo;
    event->infos = bytes.bytes;
    event->len = bytes.size;
    if (rc == PMIX_SUCCESS && event->len > EVENT_BYTES_MAX) {
        log_error("event %d of %s rank %u has %zu bytes, more than the %d that muster carries to "
                  "other nodes",
                  event->code, event->source.nspace, event->source.rank, event->len,
                  EVENT_BYTES_MAX);
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
    return rc;
}

pmix_status_t notification_copy(const struct boot *boot, struct notification *event,
                                pmix_status_t code, const pmix_proc_t *source,
                                pmix_data_range_t range, const pmix_info_t info[], size_t ninfo)
{
    event->code = code;
    event->source = *source;
    event->range = range;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            copy_targets(event, &info[i].value);
    if (range > PMIX_RANGE_PROC_LOCAL || (range == PMIX_RANGE_CUSTOM && !event->aimed))
        return refused(PMIX_ERR_BAD_PARAM, "event %d of %s rank %u: %s", code, source->nspace,
                       source->rank,
                       range == PMIX_RANGE_CUSTOM
                           ? "its range is custom; give its processes by PMIX_EVENT_CUSTOM_RANGE"
                           : "it has a range that there is not");
    event_group_read(boot, &event->group, code, source, info, ninfo);
    return pack(event, info, ninfo);
}

void notification_free(struct notification *event)
{
    event_group_free(&event->group);
    free(event->targets);
    free(event->infos);
    *event = (struct notification){0};
}

/* ---- out ---- */

/* Which servers an event is for. */
struct route {
    bool *to;                      /* by handle */
    bool everywhere;               /* all servers of the own step, lost ones too */
    size_t reached, unknown, lost; /* processes of a custom range */
    bool full;                     /* some server does not take what it was sent before */
};

enum {
    UNHEARD_MAX = 16 << 20, /* bytes of events for all, and what it takes to keep them */
    REFUSED_LINE = 10000,   /* events for which there is one more line */
};

static bool is_gone(struct server *server, uint32_t node)
{
    const struct nspace *ns = nspace_of(server->nspace, node);
    return ns->foreign != NULL ? foreign_gone(ns, node)
                               : rm_peer_is_lost(server->rm_ops->peer(server->rm, node).state);
}

static void route_node(struct server *server, struct route *route, uint32_t node)
{
    if (node == server->boot.node) {
        route->reached++; /* libpmix has delivered it */
    } else if (is_gone(server, node)) {
        route->lost++;
    } else {
        route->to[node] = true;
        route->reached++;
    }
}

static void route_all(struct server *server, struct route *route, const struct nspace *ns)
{
    for (uint32_t i = 0; i < ns->nnodes; i++)
        route_node(server, route, ns->base + i);
}

static void route_target(struct server *server, struct route *route, const pmix_proc_t *proc)
{
    uint32_t node;
    const struct nspace *ns = nspace_find(server->nspace, proc->nspace);
    route->everywhere |= proc->rank == PMIX_RANK_WILDCARD && ns == server->nspace;
    if (proc->rank == PMIX_RANK_WILDCARD && ns != NULL)
        route_all(server, route, ns);
    else if (proc->rank == PMIX_RANK_LOCAL_PEERS || proc->rank == PMIX_RANK_LOCAL_NODE)
        route_node(server, route, server->boot.node);
    else if (nspace_node(server->nspace, proc->nspace, proc->rank, &node) == 0)
        route_node(server, route, node);
    else
        route->unknown++;
}

/* Clause "Data range" of the standard: UNDEF has no meaning there, and every libpmix takes it for
 * all processes. A session is an allocation; what of it and beyond is not of this step has servers
 * that do not know us. */
static pmix_status_t route_event(struct server *server, struct route *route,
                                 const struct notification *event)
{
    switch (event->range) {
    case PMIX_RANGE_UNDEF:
    case PMIX_RANGE_NAMESPACE:
    case PMIX_RANGE_SESSION:
    case PMIX_RANGE_GLOBAL:
        route->everywhere = true;
        return PMIX_SUCCESS;
    case PMIX_RANGE_CUSTOM:
        for (size_t i = 0; i < event->ntargets; i++)
            route_target(server, route, &event->targets[i]);
        if (route->unknown + route->lost == 0)
            return PMIX_SUCCESS;
        return route->reached > 0 ? PMIX_ERR_PARTIAL_SUCCESS
               : route->unknown == 0
                   ? PMIX_ERR_UNREACH
                   : refused(
                         PMIX_ERR_NOT_FOUND,
                         "event %d of %s rank %u: no process of its custom range is known, such "
                         "as %s rank %u",
                         event->code, event->source.nspace, event->source.rank,
                         event->targets[0].nspace, event->targets[0].rank);
    case PMIX_RANGE_RM: /* for us: no process is to see it */
        log_info("event %d of %s rank %u is for the resource manager, which acts on none",
                 event->code, event->source.nspace, event->source.rank);
        return PMIX_SUCCESS;
    case PMIX_RANGE_LOCAL:
    case PMIX_RANGE_PROC_LOCAL:
        return PMIX_SUCCESS;
    }
    return refused(PMIX_ERR_BAD_PARAM, "event %d has a range that there is not", event->code);
}

static struct wire_out write_event(const struct server *server, const struct notification *event)
{
    struct event_frame frame = {
        .library = server->library,
        .code = event->code,
        .range = event->range,
        .rank = event->source.rank,
        .ninfo = event->ninfo,
        .infos = event->infos,
        .len = event->len,
    };
    struct wire_out out = {0};
    snprintf(frame.nspace, sizeof frame.nspace, "%s", event->source.nspace);
    wire_put_u8(&out, FRAME_EVENT);
    event_frame_write(&frame, &out);
    return out;
}

static void send_to(struct server *server, uint32_t node, const struct notification *event)
{
    struct wire_out out = write_event(server, event);
    if (node < server->boot.nnodes)
        link_send(server->link, node, &out);
    else
        steps_send(server, node, &out, NULL);
}

/* Whether an event that goes to some servers of the own step is said to all of them: so the events
 * of one source arrive in their order. Where there are many servers, that would cost too much. */
static bool is_said(const struct server *server, const struct route *route)
{
    uint32_t own = server->boot.nnodes;
    bool some = route->everywhere;
    for (uint32_t node = 0; node < own && own <= (uint32_t)server->conf.tree_arity + 1; node++)
        some |= route->to[node];
    return some;
}

/* Says an event to all of the step, unless they hear less than is said to them. */
static bool say_event(struct server *server, const struct notification *event)
{
    if (view_unheard(server->view) > 0 && view_unheard(server->view) + event->len > UNHEARD_MAX)
        return false;
    struct wire_out out = write_event(server, event);
    server_say(server, &out);
    return true;
}

/* @param full the name of a server that does not take what it was sent, or NULL: some do not hear
 * what is said to all */
static void tell_full(struct server *server, const struct notification *event, const char *full)
{
    uint64_t n = ++server->events.refused;
    if (n == 1 || n % REFUSED_LINE == 0)
        log_error("event %d of %s rank %u is not sent to %s: %d MiB of events wait here for a "
                  "server that is slow or stands still; %llu such events so far",
                  event->code, event->source.nspace, event->source.rank,
                  full != NULL ? full : "other nodes",
                  (full != NULL ? (int)LINK_FULL : (int)UNHEARD_MAX) >> 20, (unsigned long long)n);
}

/* @return to how many servers it goes */
static uint32_t send_by_route(struct server *server, struct route *route, bool said,
                              const struct notification *event)
{
    uint32_t own = server->boot.nnodes, n = 0;
    const char *full = NULL;
    route->full = said && !say_event(server, event);
    if (said && !route->full)
        n = own - 1;
    for (uint32_t node = said ? own : 0; node < nspace_handles(server->nspace); node++) {
        if (!route->to[node])
            continue;
        if (link_is_full(server->link, node)) {
            full = nspace_name(server->nspace, node);
        } else {
            send_to(server, node, event);
            n++;
        }
    }
    route->full |= full != NULL;
    if (route->full)
        tell_full(server, event, full);
    return n;
}

pmix_status_t notification_send(struct server *server, const struct notification *event)
{
    uint32_t handles = nspace_handles(server->nspace);
    if (server->rm == NULL)
        return PMIX_ERR_UNREACH; /* we are leaving */
    struct route route = {.to = calloc(handles, sizeof *route.to)};
    pmix_status_t rc = route_event(server, &route, event);
    bool said = is_said(server, &route);
    uint32_t n = send_by_route(server, &route, said, event);
    if (route.full && rc == PMIX_SUCCESS)
        rc = n > 0 ? PMIX_ERR_PARTIAL_SUCCESS : PMIX_ERR_OUT_OF_RESOURCE;
    log_debug("notify: event %d of %s rank %u, range %u, goes to %u nodes%s: %s", event->code,
              event->source.nspace, event->source.rank, event->range, n,
              said ? ", to those of this step along a tree" : "", PMIx_Error_string(rc));
    if (event->group.what != EVENT_GROUP_FAILED) /* here it is noted when it is given */
        event_group_note(server, &event->group);
    server->events.out++;
    free(route.to);
    return rc;
}

/* ---- in ---- */

/* What libpmix borrows until it calls back. */
struct given {
    pmix_proc_t source;
    pmix_info_t *info;
    size_t ninfo;
};

/* @thread PMIx's, or the caller's of give() */
static void on_given(pmix_status_t status, void *cbdata)
{
    struct given *given = cbdata;
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        log_warning("libpmix does not deliver an event of %s rank %u: %s", given->source.nspace,
                    given->source.rank, PMIx_Error_string(status));
    if (given->info != NULL)
        PMIX_INFO_FREE(given->info, given->ninfo);
    free(given);
}

void notification_give(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                       pmix_info_t *info, size_t ninfo)
{
    if (!answer_wanted()) {
        if (info != NULL)
            PMIX_INFO_FREE(info, ninfo);
        return;
    }
    struct given *given = malloc(sizeof *given);
    *given = (struct given){*source, info, ninfo};
    pmix_status_t rc = PMIx_Notify_event(code, &given->source, range, info, ninfo, on_given, given);
    if (rc != PMIX_SUCCESS)
        on_given(rc, given);
}

static pmix_status_t unpack(const void *infos, size_t len, uint32_t ninfo, pmix_info_t **info)
{
    struct infos list = {0};
    pmix_status_t rc = infos_unpack(&list, infos, len);
    if (rc == PMIX_SUCCESS && list.n != ninfo)
        rc = PMIX_ERR_UNPACK_FAILURE;
    if (rc != PMIX_SUCCESS)
        infos_free(&list);
    *info = list.info;
    return rc;
}

/* ---- names of connections and of groups ---- */

/* Whether a target is such a name, and which processes it means. @param rc -1: none */
static bool expand_name(const struct server *server, struct procset *members,
                        const pmix_proc_t *target, int *rc)
{
    bool all = target->rank == PMIX_RANK_WILDCARD;
    return book_expand(&server->book, members, target->nspace, target->rank, all, rc) ||
           (nspace_find(server->nspace, target->nspace) == NULL &&
            registry_expand(server->registry, members, target->nspace, target->rank, all, rc));
}

/* Divides the targets: a name means its members. @return 0, or -1 */
static int divide(struct server *server, const struct notification *event, struct procset *members,
                  struct procset *others)
{
    int rc = 0;
    for (size_t i = 0; i < event->ntargets && rc == 0; i++) {
        const pmix_proc_t *p = &event->targets[i];
        if (!expand_name(server, members, p, &rc))
            rc = procset_add(others, p->nspace, p->rank, p->rank);
    }
    procset_canonical(members);
    procset_canonical(others);
    return rc;
}

/* Puts @p set in the place of the event's custom range. */
static void aim(const struct server *server, pmix_info_t *info, size_t ninfo,
                const struct procset *set)
{
    bool done = false;
    for (size_t i = 0; i < ninfo; i++) {
        if (!PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            continue;
        PMIX_INFO_DESTRUCT(&info[i]);
        PMIX_INFO_CONSTRUCT(&info[i]);
        if (!done)
            procs_load_range(&info[i], server->nspace, set);
        done = true;
    }
}

pmix_status_t notification_take_names(struct server *server, struct notification *event)
{
    struct procset members = {0}, all = {0};
    pmix_info_t *info = NULL;
    bool has_name = false;
    int rank_is_good;
    for (size_t i = 0; i < event->ntargets && !has_name; i++)
        has_name = expand_name(server, &members, &event->targets[i], &rank_is_good);
    procset_free(&members);
    if (!has_name)
        return PMIX_SUCCESS;
    pmix_status_t rc =
        divide(server, event, &members, &all) == 0
            ? unpack(event->infos, event->len, event->ninfo, &info)
            : refused(PMIX_ERR_NOT_FOUND, "event %d names ranks that its connections do not have",
                      event->code);
    if (info != NULL) {
        struct notification sent = {.code = event->code, .source = event->source};
        procset_unite(&all, &members);
        aim(server, info, event->ninfo, &all);
        rc = notification_copy(&server->boot, &sent, event->code, &event->source, event->range,
                               info, event->ninfo);
        notification_free(rc == PMIX_SUCCESS ? event : &sent);
        if (rc == PMIX_SUCCESS) {
            *event = sent;
            aim(server, info, event->ninfo, &members);
            notification_give(event->code, &event->source, event->range, info, event->ninfo);
        } else {
            PMIX_INFO_FREE(info, event->ninfo);
        }
    }
    procset_free(&members);
    procset_free(&all);
    return rc;
}

/* Why an event is not for libpmix, or NULL. */
static const char *fault_of(const struct server *server, uint32_t from,
                            const struct event_frame *frame)
{
    pmix_nspace_t own;
    if (frame->library != server->library)
        return "its node has another libpmix";
    keys_server_name(own, &server->boot);
    /* libpmix would hand it up again. */
    if (strcmp(frame->nspace, own) == 0 && frame->rank == server->boot.node)
        return "it claims to be of this server";
    if (frame->range != PMIX_RANGE_UNDEF && frame->range != PMIX_RANGE_NAMESPACE &&
        frame->range != PMIX_RANGE_SESSION && frame->range != PMIX_RANGE_GLOBAL &&
        frame->range != PMIX_RANGE_CUSTOM)
        return "its range stays on a node";
    if (from >= server->boot.nnodes && frame->range != PMIX_RANGE_CUSTOM)
        return "its range stays in its step";
    return NULL;
}

/* Whether an event of a custom range, which may have been said to all, is for a process here. */
static bool is_for_us(const struct server *server, const pmix_info_t *info, size_t ninfo)
{
    struct notification event = {0};
    bool found = false;
    uint32_t node;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            copy_targets(&event, &info[i].value);
    for (size_t i = 0; i < event.ntargets && !found; i++) {
        const pmix_proc_t *proc = &event.targets[i];
        found = proc->rank == PMIX_RANK_WILDCARD
                    ? nspace_find(server->nspace, proc->nspace) == server->nspace
                    : nspace_node(server->nspace, proc->nspace, proc->rank, &node) == 0 &&
                          node == server->boot.node;
    }
    free(event.targets);
    return found;
}

static void receive_release(struct server *server, const pmix_proc_t *source,
                            const struct event_frame *frame, const pmix_info_t *info)
{
    struct notification event = {.source = *source, .range = frame->range};
    for (uint32_t i = 0; i < frame->ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            copy_targets(&event, &info[i].value);
    release_note(server, &event);
    free(event.targets);
}

void notification_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct event_frame frame;
    struct event_group group = {0};
    pmix_info_t *info;
    pmix_proc_t source;
    const char *fault = event_frame_read(&frame, body, len) == 0 ? NULL : "it is malformed";
    if (fault == NULL)
        fault = fault_of(server, from, &frame);
    pmix_status_t rc =
        fault == NULL ? unpack(frame.infos, frame.len, frame.ninfo, &info) : PMIX_ERROR;
    if (rc != PMIX_SUCCESS) {
        server->events.dropped++;
        log_warning("an event of %s was dropped: %s", nspace_name(server->nspace, from),
                    fault != NULL ? fault : PMIx_Error_string(rc));
        return;
    }
    if (frame.range == PMIX_RANGE_CUSTOM && !is_for_us(server, info, frame.ninfo)) {
        if (info != NULL)
            PMIX_INFO_FREE(info, frame.ninfo);
        return;
    }
    server->events.in++;
    PMIX_LOAD_PROCID(&source, frame.nspace, frame.rank);
    log_debug("notify: event %d of %s rank %u from %s", frame.code, frame.nspace, frame.rank,
              nspace_name(server->nspace, from));
    if (frame.code == PMIX_DEBUGGER_RELEASE)
        receive_release(server, &source, &frame, info);
    event_group_read(&server->boot, &group, frame.code, &source, info, frame.ninfo);
    if (event_group_note(server, &group))
        notification_give(frame.code, &source, frame.range, info, frame.ninfo);
    else if (info != NULL)
        PMIX_INFO_FREE(info, frame.ninfo);
    event_group_free(&group);
}
