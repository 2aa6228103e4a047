/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait for a connection, where the settings let them go no other way. */
#include "common/transport/direct/direct_private.h"

#include "common/util/clock.h"

void peer_wait(struct peer *p, struct outgoing *frames)
{
    struct direct *d = p->direct;
    int64_t now = now_ms();
    if (p->lost || d->closing || frames == NULL) {
        outgoing_free(frames);
        return;
    }
    if (p->waiting == NULL) {
        p->waiting_end = &p->waiting;
        p->waits_since = now;
    }
    *p->waiting_end = frames;
    while (*p->waiting_end != NULL)
        p->waiting_end = &(*p->waiting_end)->next;
    if (!timer_runs(&d->patient)) {
        d->looked_at = now;
        timer_after(&d->patient, WAITING_LOOK_MS);
    }
}

struct outgoing *peer_take_waiting(struct peer *p)
{
    struct outgoing *frames = p->waiting;
    p->waiting = NULL;
    return frames;
}
