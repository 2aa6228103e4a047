/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Events that cross nodes.
 *
 * libpmix's server has delivered an event to the clients of its own node before it hands it up
 * (pmix_server_module_t's notify_event). So it goes to the other servers only, and each of those
 * gives it to its libpmix (PMIx_Notify_event), which knows which processes have registered, looks
 * at custom ranges by itself, and keeps events for processes that register late. There is one frame
 * from the source's server to each of the others, so the link's order is the order per source.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/nspace/registry.h"
#include "common/server/server.h"

#include <pmix_common.h>

/** What an event tells of a group's members; all zero: nothing. */
struct event_group {
    enum { EVENT_NO_GROUP, EVENT_GROUP_FORMED, EVENT_GROUP_LEFT, EVENT_GROUP_FAILED } what;
    char id[PROCSET_NAME_MAX + 1];
    struct procset members; /**< all of them, or the one that has left or is lost; canonical */
    struct proclist order;  /**< of a group that has formed: the members by rank */
};

/** A copy of an event; libevent has the name event. */
struct notification {
    pmix_status_t code;
    pmix_proc_t source;
    pmix_data_range_t range;
    uint32_t ninfo;
    void *infos; /**< packed; owned */
    size_t len;
    bool aimed;           /**< it has a PMIX_EVENT_CUSTOM_RANGE */
    pmix_proc_t *targets; /**< of that; owned */
    size_t ntargets;
    struct event_group group;
};

/** Copies an event, all zero before, of the step @p boot; notification_free() it either way.
 * @return PMIX_SUCCESS, or why it cannot be sent: PMIX_ERR_BAD_PARAM for a range that is none, or a
 * custom one without its processes; PMIX_ERR_OUT_OF_RESOURCE when it is too big
 * @thread any */
pmix_status_t notification_copy(const struct boot *boot, struct notification *event,
                                pmix_status_t code, const pmix_proc_t *source,
                                pmix_data_range_t range, const pmix_info_t info[], size_t ninfo);
/** Has an event to the name of a connection or of a group go to its members, and gives it to those
 * of this node: libpmix has not, because no client of its has that name. A rank with a group's id
 * is a group rank. Call it before notification_send().
 * @return PMIX_SUCCESS, or why the event cannot be sent */
pmix_status_t notification_take_names(struct server *server, struct notification *event);

void notification_free(struct notification *event);

/** Sends an event to the servers that its range names.
 * @return PMIX_SUCCESS when it is under way to all that it is for; of a custom range
 * PMIX_ERR_NOT_FOUND when none of its processes is known, PMIX_ERR_UNREACH when the nodes of all
 * are lost, PMIX_ERR_PARTIAL_SUCCESS when that is so of some */
pmix_status_t notification_send(struct server *server, const struct notification *event);

/** Takes the body of a FRAME_EVENT. */
void notification_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** Has libpmix deliver an event on this node. It hands nothing up again, as it is not the source.
 * @param info taken over; may be NULL. */
void notification_give(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                       pmix_info_t *info, size_t ninfo);

/* event_group.c */

void event_group_free(struct event_group *group);

/** Reads what an event tells of a group; @p group all zero. @thread any */
void event_group_read(const struct boot *boot, struct event_group *group, pmix_status_t code,
                      const pmix_proc_t *source, const pmix_info_t info[], size_t ninfo);
/** Keeps the registry of groups up to date.
 * @return whether the event is news: false of a loss that members here know. */
bool event_group_note(struct server *server, const struct event_group *group);
