/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Events for the test clients: raise them, and note down those that come.
 */
#pragma once

#include "client.h"

#include <pthread.h>

/** Codes of our own, below those of PMIx. */
#define EVENT_CODE(n) (PMIX_EXTERNAL_ERR_BASE - 100 - (n))

/** An event that came. */
struct event_seen {
    pmix_status_t code;
    pmix_proc_t source;
    uint64_t tag;         /**< its "ev.tag"; 0: it has none */
    pmix_rank_t affected; /**< PMIX_EVENT_AFFECTED_PROC; PMIX_RANK_UNDEF: it has none */
    pmix_info_t *info;    /**< a copy */
    size_t ninfo;
};

/** A handler and what it was called with, in that order. */
struct listener {
    size_t id;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct event_seen *seen;
    size_t n, cap;
};

/** Registers a handler. @param codes NULL with @p ncodes 0: a default handler
 * @return never freed: a handler may still run */
struct listener *listen_to(const pmix_status_t *codes, size_t ncodes, const pmix_info_t *info,
                           size_t ninfo);

/** Deregisters it; the handler is not called any more. */
void listen_end(struct listener *listener);

/** How many came that @p code and @p source name; 0 and PMIX_RANK_WILDCARD: any. */
size_t listen_count(struct listener *listener, pmix_status_t code, pmix_rank_t source);

/** Waits until there are @p n of those. */
void listen_wait(struct listener *listener, pmix_status_t code, pmix_rank_t source, size_t n);

/** PMIx_Notify_event with "ev.tag" and more. @return the status that its callback gave */
pmix_status_t event_raise(pmix_status_t code, pmix_data_range_t range, uint64_t tag,
                          const pmix_info_t *more, size_t nmore);

/** The same without waiting; the next event_raise() checks that all were accepted. */
void event_post(pmix_status_t code, pmix_data_range_t range, uint64_t tag);

/** Fills in a PMIX_EVENT_CUSTOM_RANGE. */
void event_target(pmix_info_t *info, const pmix_proc_t *procs, size_t nprocs);
