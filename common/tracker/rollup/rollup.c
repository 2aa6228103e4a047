/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation on one server. The first that is heard of it opens it: the local call, or a frame.
 * It goes as far as the contributions allow (rollup_progress), is decided at its root
 * (rollup_decide), and ends with an answer to the local call (tracker_end), after which the next
 * call of the signature has its turn.
 */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>

void tracker_open(struct engine *engine, struct tracker *t)
{
    tracker_clear(t);
    t->wanted = 0;
    t->opened = engine_now(engine);
    t->report = engine->env.stall > 0 ? t->opened + engine->env.stall * 1000ull : 0;
    tracker_due(t);
    tracker_lose_known(engine, t);
}

void tracker_local_loss(struct engine *engine, struct tracker *t)
{
    struct procset lost = {0};
    int32_t status = 0;
    if (t->call == NULL && t->later_try && tries_names_lost(engine, t, &lost))
        status = engine->env.codes.lost;
    else if (t->call == NULL)
        status = engine->env.local_status(engine->env.arg, &t->parts);
    if (status == 0)
        status = tracker_past_loss(engine, t, &lost);
    if (status != 0) {
        tracker_gone_here(engine, t);
        procset_unite(&t->gone, &lost);
        rollup_own(t, status);
    }
    procset_free(&lost);
}

bool rollup_refute(struct engine *engine, struct tracker *t)
{
    uint64_t wanted = t->wanted;
    tracker_open(engine, t);
    t->later_try = t->wanted_later;
    tracker_local_loss(engine, t);
    if (t->status == 0) {
        tracker_clear(t);
        t->wanted = wanted;
        return false;
    }
    engine->retries = engine->retries || t->later_try;
    if (tracker_move(engine, t, TRACKER_CHILD))
        rollup_progress(engine, t);
    return true;
}

static void lose_local(struct engine *engine, struct tracker *t, uint64_t unused)
{
    (void)unused;
    if (t->state == TRACKER_IDLE && t->wanted > engine_now(engine)) {
        rollup_refute(engine, t);
    } else if (t->state == TRACKER_EARLY && t->own_status == 0) {
        tracker_local_loss(engine, t);
        if (t->own_status != 0)
            rollup_progress(engine, t);
    }
}

void rollup_local_loss(struct engine *engine)
{
    tracker_each(engine, lose_local, 0);
}

bool tracker_succeeds(const struct tracker *t, uint64_t generation)
{
    return t->call != NULL && !t->failure.given_up && generation > t->floor;
}

void tracker_arm(struct engine *engine, struct tracker *t, uint32_t timeout, uint64_t left)
{
    if (timeout == 0)
        return;
    if (left > timeout * 1000ull)
        left = timeout * 1000ull;
    uint64_t deadline = engine_clock(engine) + left + t->grace;
    if (t->deadline != 0 && t->deadline <= deadline)
        return;
    t->timeout = timeout;
    t->deadline = deadline;
    t->news = NEWS_URGENT;
    tracker_due(t);
}

void tracker_give_up(struct engine *engine, struct tracker *t, int32_t status)
{
    struct tracker_release release = {.result.status = status};
    struct procset gone;
    if (tracker_is_loss(engine, t, status)) { /* what all will learn, and no more */
        struct ranges lost = {0};
        procset_free(&t->gone);
        tracker_lost_slots(engine, t, &lost);
        for (struct ranges_at at = {0}; ranges_next(&lost, &at);)
            tracker_gone(engine, t, tracker_node(t, at.number));
        ranges_free(&lost);
    }
    release.result.gone = tracker_take_gone(t, &gone);
    t->failure.given_up = t->data.decided == 0;
    if (t->data.decided == 0) /* else we have the root's word, and those below have it, too */
        rollup_down(engine, t, &release, true);
    if (!coll_traits(t->parts.kind)->is_recoverable && tracker_is_loss(engine, t, status))
        rollup_takers(engine, t, &release);
    tracker_end(engine, t, &release.result);
    release_end(&release);
    procset_free(&gone);
}

void tracker_start(struct engine *engine, struct tracker *t, struct engine_call *call)
{
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (!tracker_move(engine, t, TRACKER_CALL)) {
        call_refuse(call, engine->env.codes.invalid);
        return;
    }
    t->call = call;
    t->tried = call->op;
    t->later_try = t->later_try || call->gone != NULL;
    engine->retries = engine->retries || t->later_try;
    call->next = NULL;
    t->number = ++engine->numbers;
    t->called = call->made;
    t->floor = engine->generations;
    tracker_arm(engine, t, call->timeout, call->timeout * 1000ull);
    if (call->status != 0)
        tracker_gone_here(engine, t);
    rollup_own(t, call->status);
    tracker_local_loss(engine, t);
    rollup_progress(engine, t);
}

/* What has waited for the current operation's data. */
static void take_later(struct engine *engine, struct later *later)
{
    while (later != NULL) {
        struct later *next = later->next;
        if (!engine->closing)
            engine->up->take(engine, later->from, FRAME_RELEASE, later->body, later->len);
        free(later);
        later = next;
    }
}

void tracker_end(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct later *later = t->data.later;
    struct engine_call *call = t->call;
    uint64_t *counts = result->status == 0 ? engine->counts.done : engine->counts.failed;
    bool later_try = t->later_try;
    tracker_move(engine, t, TRACKER_END);
    counts[t->parts.kind]++;
    t->call = NULL;
    t->data.later = NULL;
    for (uint32_t i = 0; i < t->nchildren; i++)
        t->children[i].over = result->status != 0 ? t->children[i].call : t->children[i].number;
    tracker_clear(t);
    if (result->status != 0 || later_try)
        t->failure.at = engine_now(engine);
    if (result->status != 0) {
        tracker_remember(engine, t, result);
        engine->up->failed(engine, t, result);
        if (call == NULL)
            engine->up->missed(engine, t, result);
    }
    tracker_due(t);
    bool waiting = t->queue != NULL; /* then t stays, whatever done() does but to close */
    tracker_tidy(engine, t);
    if (call != NULL)
        call_end(call, result);
    if (waiting && !engine->closing && t->call == NULL) {
        struct engine_call *next = t->queue;
        t->queue = next->next;
        tracker_start(engine, t, next);
    }
    take_later(engine, later);
}

void tracker_restart(struct engine *engine, struct tracker *t)
{
    tracker_move(engine, t, t->call != NULL ? TRACKER_AGAIN : TRACKER_END);
    if (t->state == TRACKER_IDLE) {
        tracker_clear(t);
        tracker_due(t);
        return;
    }
    t->flush = 0;
    t->flushed = false;
    t->asked = 0;
    free(t->doubts);
    t->doubts = NULL;
    for (uint32_t i = 0; i < t->nchildren; i++) {
        tracker_clear_child(&t->children[i]);
        /* It may have been of a call before: this server had ended that call without the root's
         * word, which the child takes for its own until it says which call it is at. */
        t->children[i].call = 0;
    }
    t->status = t->own_status;
    t->news = NEWS_SOME;
    tracker_lose_known(engine, t);
    rollup_progress(engine, t);
}

/* The parent was told a part: it learns what changes, but not one by one, unless all have less time
 * than it knows. */
static void say_soon(struct engine *engine, struct tracker *t)
{
    if (t->news == NEWS_URGENT)
        rollup_up(engine, t);
    else if (t->news == NEWS_SOME && t->say == 0)
        t->say = engine_now(engine) + ENGINE_FLUSH_MS;
    tracker_due(t);
}

void rollup_decide(struct engine *engine, struct tracker *t, int32_t status)
{
    struct tracker_release release = {.generation = ++engine->generations};
    struct release_frame frame = {0};
    struct rollup_more more = {0};
    struct decided *d = NULL;
    struct engine_call *ended = NULL;
    struct procset members = {0}, gone = {0};
    /* First: an added member is no participant, and a server that skips this try does not learn
     * which of them are lost. */
    const struct procset *lost = status != 0 ? tracker_take_gone(t, &gone) : NULL;
    engine->up->detach(engine, t, status != 0, &more);
    release.op = more.op;
    release.added = more.added;
    if (status == 0 && !result_write(engine, t, &more, &release, &frame))
        status = engine->env.codes.invalid;
    if (status == 0)
        rollup_note_last(engine, t);
    if (t->call != NULL)
        t->call->generation = release.generation;
    if (status != 0) {
        release_end(&release);
        release.npieced = 0;
        release.result = (struct engine_result){.status = status, .gone = lost};
        t->failure.generation = release.generation;
    } else if (coll_traits(t->parts.kind)->is_recoverable && t->tree.n > 1) {
        d = decided_keep(engine, t, &release);
    }
    if (more.added != NULL && status == 0 && release_members(&t->parts, more.added, &members))
        release.result.members = &members;
    rollup_down(engine, t, &release, true);
    for (uint32_t i = 0; i < release.pieces.n; i++)
        piece_pass(engine, t, release.pieces.v[i]);
    if (more.assembly != NULL)
        engine->up->told(engine, t, more.assembly, d, &release, &ended);
    /* After a failure a new call must not meet the old one. */
    if (status == 0)
        calls_done(&ended, &release.result);
    tracker_end(engine, t, &release.result);
    calls_done(&ended, &release.result);
    procset_free(&members);
    procset_free(&gone);
    release_frame_free(&frame);
    release_end(&release);
    free(more.entries);
}

void rollup_data(struct engine *engine, struct tracker *t)
{
    struct tracker_data data = t->data;
    if (data.decided == 0)
        return;
    if (data.generation != data.decided || data.pieces.nentries != data.nentries) {
        rollup_progress(engine, t); /* the server that hands us the rest may be lost already */
        return;
    }
    struct engine_entry *entries = pieces_entries(&data.pieces);
    const struct engine_result result = {.context_id = data.context_id,
                                         .flags = data.flags,
                                         .nentries = data.nentries,
                                         .entries = entries};
    if (entries == NULL) {
        tracker_give_up(engine, t, engine->env.codes.invalid);
        return;
    }
    t->data.pieces = (struct pieces){0};
    tracker_end(engine, t, &result);
    free(entries);
    pieces_free(&data.pieces);
}

void rollup_refuse(struct engine *engine, struct tracker *t, uint64_t known)
{
    if (t->self != t->tree.root) {
        rollup_tell_root(engine, t, engine->env.codes.library, known);
        tracker_tidy(engine, t);
        return;
    }
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (tracker_move(engine, t, TRACKER_CHILD))
        rollup_decide(engine, t, engine->env.codes.library);
}

void rollup_progress(struct engine *engine, struct tracker *t)
{
    bool complete = tracker_is_complete(t);
    int32_t status = t->status;
    if (t->flush == 0 && (!complete || status != 0))
        t->flush = engine_now(engine) + ENGINE_FLUSH_MS;
    tracker_due(t);
    if (t->self == t->tree.root) {
        if (status == 0 && complete && !engine->up->ready(engine, t, &status))
            return; /* added members are awaited, and t may be gone */
        if (complete || (status != 0 && !failure_waits(engine, t)))
            rollup_decide(engine, t, status);
        return;
    }
    bool recoverable = coll_traits(t->parts.kind)->is_recoverable;
    uint32_t bringer = tracker_bringer(t);
    bool orphan = tracker_slot_lost(engine, t, bringer);
    if (recoverable && (orphan || t->state == TRACKER_SENT || t->state == TRACKER_DOUBT)) {
        engine->up->orphan(engine, t);
    } else if (orphan) {
        status = tracker_slot_loss(engine, t, bringer);
        if (t->data.decided == 0)
            rollup_tell_root(engine, t, status, t->failure.generation);
        tracker_give_up(engine, t, status);
    } else if (complete && status == 0 && t->state == TRACKER_GATHER) {
        tracker_move(engine, t, TRACKER_COMPLETE);
        t->flush = engine_now(engine) + ENGINE_ASK_MS;
        tracker_due(t);
        t->news = NEWS_SOME;
        rollup_up(engine, t);
    } else if (status != 0) {
        t->flushed = true;
        rollup_up(engine, t);
        /* No call here has a deadline yet, and the root's word may be lost. */
        if (t->call == NULL)
            tracker_arm(engine, t, ENGINE_STRAGGLER_MS / 1000, ENGINE_STRAGGLER_MS);
        t->news = NEWS_NONE;
    } else if (t->flushed) {
        say_soon(engine, t);
    }
}
