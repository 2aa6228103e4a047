/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * An event between servers: the body of a FRAME_EVENT, drawn in docs/wire.md.
 * Knows no PMIx. @thread the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"

/** Bytes that the infos of one event may have, packed: libpmix keeps hundreds of events, and a
 * copy goes to each node. */
enum { EVENT_BYTES_MAX = 16 << 20 };

/** One event. */
struct event_frame {
    uint32_t library;                  /**< the sender's libpmix, 0xMMmmrr: it packed the infos */
    int32_t code;                      /**< pmix_status_t */
    uint8_t range;                     /**< pmix_data_range_t */
    char nspace[PROCSET_NAME_MAX + 1]; /**< the source's */
    uint32_t rank;
    uint32_t ninfo;
    const void *infos; /**< packed by libpmix; borrowed */
    size_t len;        /**< bytes */
};

/** Appends the body. */
void event_frame_write(const struct event_frame *frame, struct wire_out *out);

/** Reads a body; @p frame borrows from @p data. @return 0, or -1 when it is malformed */
int event_frame_read(struct event_frame *frame, const void *data, size_t len);
