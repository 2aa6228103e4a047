/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the directives of PMIx_Publish, PMIx_Lookup and PMIx_Unpublish say.
 * @thread all of it: PMIx's
 */
#pragma once

#include "common/holder/store.h"
#include "common/upcall/directives.h"

#include <pmix.h>

/** What the directives of one call say. */
struct data_directives {
    enum directives_call call;
    enum store_range range;
    enum store_life life;
    struct procset custom;
    bool aimed; /**< PMIX_RANGE_CUSTOM has its list of processes */
    bool wait;
    uint32_t want; /**< PMIX_WAIT with a number; 0: all keys */
    uint32_t seconds;
    struct store_who who;
    bool has_uids, has_gids;
    uint32_t nuids, ngids, uids[STORE_IDS_MAX], gids[STORE_IDS_MAX];
    bool any_range; /**< no range was given */
};

/** @return what holds where nothing is said, for a call of @p proc */
struct data_directives *data_directives_new(enum directives_call call, const pmix_proc_t *proc);

/** Reads the directives of @p info, and passes over entries that are none.
 * @return PMIX_SUCCESS, or PMIX_ERR_BAD_PARAM, logged */
pmix_status_t data_directives_read(struct data_directives *d, const pmix_info_t info[],
                                   size_t ninfo);

void data_directives_free(struct data_directives *d);
