/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that come. One table says which function takes which type, whether the frame is about an
 * operation that its body names, from which servers it is taken, and when. docs/wire.md has the
 * fields.
 */
#include "common/tracker/frames.h"

#include "common/util/log.h"

/* What is true of a type. */
enum {
    OF_OPERATION = 1, /* its body begins with a signature, whose tracker takes it */
    AT_THE_END = 2,   /* also while this server leaves */
};

static const struct row {
    void (*take)(struct engine *engine, struct tracker *t, struct frame_in *frame);
    unsigned how;
} rows[] = {
    [FRAME_CONTRIB] = {contribution_take, OF_OPERATION},
    [FRAME_RELEASE] = {release_take, 0},
    [FRAME_WANTED] = {wanted_take, OF_OPERATION},
    [FRAME_LEAD] = {home_take, 0},
    [FRAME_CLAIM] = {claim_take, 0},
    [FRAME_JOINED] = {assembly_take, 0},
    [FRAME_OUTCOME] = {outcome_take, AT_THE_END},
    [FRAME_CANCEL] = {cancel_take, 0},
    [FRAME_DOUBT] = {doubt_take, OF_OPERATION},
    [FRAME_HAVE] = {decided_take, 0},
    [FRAME_PIECE] = {piece_take, 0},
};

bool engine_take(struct engine *engine, uint32_t from, enum frame_type type, const void *body,
                 size_t len)
{
    return engine_take_shared(engine, from, type, body, len, NULL);
}

bool engine_take_shared(struct engine *engine, uint32_t from, enum frame_type type,
                        const void *body, size_t len, struct shared_bytes *whole)
{
    const struct row *row = (size_t)type < sizeof rows / sizeof *rows ? &rows[type] : NULL;
    struct frame_in frame = {.from = from, .body = body, .len = len, .whole = whole};
    struct tracker *t = NULL;
    if (row == NULL || row->take == NULL)
        return false;
    if ((engine->closing && !(row->how & AT_THE_END)) || engine_is_lost(engine, from)) {
        log_debug("tracker: a frame of node %u, which is lost or comes too late, was dropped",
                  from);
        return true;
    }
    wire_in_init(&frame.in, body, len);
    if (row->how & OF_OPERATION) {
        if (len == 0)
            return true; /* its sender wants to see whether we are still there */
        frame.sig = wire_get_block(&frame.in, &frame.siglen);
        t = frame.in.bad ? NULL : calls_tracker(engine, frame.sig, frame.siglen);
    }
    if ((row->how & OF_OPERATION) && t == NULL)
        log_warning("a frame of type %d of node %u that does not belong here was dropped", type,
                    from);
    else
        row->take(engine, t, &frame);
    return true;
}
