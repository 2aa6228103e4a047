/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes and reads the body of a FRAME_EVENT. Bytes that another server sent are checked here
 * before libpmix unpacks them.
 */
#include "common/notify/event_wire.h"

/* A packed pmix_info_t has a key, flags and a typed value, and is longer than this. */
enum { INFO_MIN = 4 };

void event_frame_write(const struct event_frame *frame, struct wire_out *out)
{
    wire_put_u32(out, frame->library);
    wire_put_i32(out, frame->code);
    wire_put_u8(out, frame->range);
    wire_put_str(out, frame->nspace);
    wire_put_u32(out, frame->rank);
    wire_put_u32(out, frame->ninfo);
    wire_put_block(out, frame->infos, frame->len);
}

int event_frame_read(struct event_frame *frame, const void *data, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    frame->library = wire_get_u32(&in);
    frame->code = wire_get_i32(&in);
    frame->range = wire_get_u8(&in);
    wire_get_str(&in, frame->nspace, sizeof frame->nspace);
    frame->rank = wire_get_u32(&in);
    frame->ninfo = wire_get_count(&in, INFO_MIN);
    frame->infos = wire_get_block(&in, &frame->len);
    return wire_end(&in) && frame->len <= EVENT_BYTES_MAX && frame->nspace[0] != '\0' &&
                   frame->ninfo <= frame->len / INFO_MIN
               ? 0
               : -1;
}
