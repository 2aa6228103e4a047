/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of servers above for an operation of which this server knows nothing yet (WANTED).
 *
 * As long as the participants here live they may still call, so the question gets no answer, and
 * the servers below are asked. If a participant ends, no other server can say so. The question
 * would come again after ENGINE_ASK_MS; until then the tracker remembers that it is wanted, and the
 * question is answered as soon as a participant here has ended (rollup_local_loss()).
 */
#include "common/tracker/recovery/recovery.h"

void wanted_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    uint64_t known = wire_get_u64(&frame->in);
    bool later_try = wire_get_u8(&frame->in) != 0;
    uint32_t slot = wire_end(&frame->in) ? tracker_slot_of(t, frame->from) : TREE_NONE;
    bool above = slot != TREE_NONE && slot != t->self && tree_below(&t->tree, slot, t->self);
    if (above && later_try && t->state == TRACKER_IDLE)
        /* What has ended with an earlier try is not called here again. */
        tries_tell(engine, t, frame->from, 0);
    if (!above || t->state != TRACKER_IDLE || tracker_is_late(engine, t, known)) {
        tracker_tidy(engine, t);
        return;
    }
    t->wanted = engine_now(engine) + ENGINE_ASK_MS + ENGINE_FLUSH_MS;
    t->wanted_later = later_try;
    tracker_due(t);
    if (!rollup_refute(engine, t))
        rollup_ask_on(engine, t, known, later_try);
}
