/* SPDX-License-Identifier: BSD-3-Clause */
/* Results that come from above (RELEASE).
 *
 * A release ends the call that is being served, or is late: it is then about an earlier call, which
 * this server has given up without the root's word. release_take() looks at one in this order, and
 * the first that holds decides:
 *  1. it is malformed, or no server that may send it has sent it: dropped;
 *  2. its sender is lost, and it says what counts no more: dropped;
 *  3. it is a failure of a later operation than that whose data are awaited: kept until these came;
 *  4. its sender has taken our call for the one before: we say again what we have;
 *  5. its sender leaves: it is lost to this operation.
 * Else a success with added members is reported (HAVE), and take_release() tells whether it is
 * about a call that was given up, is known already, or answers the call.
 */
#include "common/tracker/frames.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* Repeats what we have said to the server above us. */
static void say_again(struct engine *engine, struct tracker *t)
{
    t->news = NEWS_URGENT;
    rollup_up(engine, t);
}

/* The root's word on an operation that was given up here already. Above, what we have sent since
 * then looks late, and so does here what came from below: with what was learnt, all that still
 * stands is said again. */
static void stale_release(struct engine *engine, struct tracker *t, uint32_t slot, uint64_t number,
                          struct tracker_release *release)
{
    struct engine_call *ended = NULL;
    bool failed = release->result.status != 0;
    if (failed && release->generation <= t->failure.generation) {
        /* Another server gave up, or says once more what is known. The server above us has waited
         * with what we had said of that call, and has dropped what we have said since. */
        if (number != 0 && slot == t->parent && t->state != TRACKER_IDLE)
            say_again(engine, t);
        return;
    }
    t->failure.given_up = false;
    if (!failed) { /* of a call before this one: this one's success comes later */
        if (release->generation > t->floor)
            t->floor = release->generation;
        return;
    }
    t->failure.generation = release->generation;
    t->failure.at = engine_now(engine);
    tracker_due(t);
    tracker_remember(engine, t, &release->result);
    rollup_down(engine, t, release, false);
    member_take(engine, t, release, &ended);
    struct tracker *later = tries_end_given_up(engine, t, &release->result);
    if (t->state != TRACKER_IDLE && t->data.decided == 0) /* else what was said counted */
        tracker_restart(engine, t);
    if (later != NULL)
        tries_answer(engine, later, t, release->generation, &release->result);
    calls_done(&ended, &release->result);
}

/* Whether a release that names no call of ours says what is not known here yet. */
static bool is_news(const struct tracker *t, const struct tracker_release *release, bool loss)
{
    if (loss)
        return t->state != TRACKER_IDLE;
    return release->result.status == 0 || release->generation > t->failure.generation;
}

/* Whether it is about a call before the one that is being served. */
static bool is_stale(const struct tracker *t, uint64_t number,
                     const struct tracker_release *release)
{
    if (number != 0)
        return t->call == NULL || number != t->number;
    /* A server that sends it round a lost one has not heard the number of our call. */
    if (release->result.status == 0)
        return t->call != NULL && !tracker_succeeds(t, release->generation);
    return t->failure.given_up;
}

/* The root's word is here; its data come by themselves, or have come. */
static void await_data(struct engine *engine, struct tracker *t,
                       const struct tracker_release *release)
{
    t->data.decided = release->generation;
    t->data.context_id = release->result.context_id;
    t->data.flags = release->result.flags;
    t->data.nentries = release->npieced;
    tracker_arm(engine, t, ENGINE_STRAGGLER_MS / 1000, ENGINE_STRAGGLER_MS);
    t->flush = engine_now(engine) + ENGINE_FLUSH_MS; /* is its sender still there? */
    tracker_due(t);
    rollup_data(engine, t);
}

static void take_release(struct engine *engine, struct tracker *t, uint32_t slot, uint64_t number,
                         struct tracker_release *release)
{
    const struct engine_result *result = &release->result;
    struct engine_call *ended = NULL;
    bool stands = t->state != TRACKER_IDLE;
    /* The loss of a server is for good: true of whatever stands here, given up before or not. */
    bool loss = release->generation == 0 && tracker_is_loss(engine, t, result->status);
    /* The sender may have taken what we said of an earlier call for a word on this one, and then it
     * knows of no other call. */
    if (is_stale(t, number, release) && !(loss && (number == 0 || stands))) {
        stale_release(engine, t, slot, number, release);
        return;
    }
    if (result->status == 0 && t->call == NULL) {
        log_warning("a release came before the local call; dropped");
        return;
    }
    if (result->status == 0 && coll_traits(t->parts.kind)->is_recoverable)
        decided_keep(engine, t, release);
    if (number == 0 && !is_news(t, release, loss))
        return; /* known already, by another way */
    if (result->status != 0 && release->generation > t->failure.generation)
        t->failure.generation = release->generation;
    /* Without a generation it is not the root's word, which may still come. */
    t->failure.given_up = result->status != 0 && release->generation == 0 && t->data.decided == 0;
    if (t->call != NULL)
        t->call->generation = release->generation;
    rollup_down(engine, t, release, true);
    if (release->npieced > 0) {
        await_data(engine, t, release);
        return;
    }
    member_take(engine, t, release, &ended);
    if (loss && stands && !coll_traits(t->parts.kind)->is_recoverable)
        rollup_takers(engine, t, release);
    if (stands) {
        tracker_end(engine, t, result);
    } else {
        t->failure.at = engine_now(engine);
        tracker_due(t);
        tracker_remember(engine, t, result);
        tries_end(engine, t, result);
        cancel_miss(engine, t, result);
    }
    calls_done(&ended, result);
}

/* Tells the decider that a success has come: then servers of added members are told. Also when it
 * is of no use here, as we have given up: they are not to wait for that. */
static void have(struct engine *engine, const struct tracker *t, uint64_t op)
{
    struct wire_out out = {0};
    if (tracker_slot_lost(engine, t, t->tree.root))
        return;
    wire_put_u8(&out, FRAME_HAVE);
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, op);
    rollup_send(engine, t, t->tree.root, &out, NULL);
}

/* Whether the sender says that it leaves: it is lost to what stands here, as others may know more
 * than it does. A root that leaves decides. */
static bool is_leave(const struct engine *engine, const struct tracker *t,
                     const struct tracker_release *release)
{
    return release->generation == 0 && release->result.status == engine->env.codes.closing &&
           t->state != TRACKER_IDLE && coll_traits(t->parts.kind)->is_recoverable;
}

/* Whether the server above us has taken what we have said of this call for the call before: it
 * hears only now that the earlier call has failed, which we have heard by another way
 * (rollup/tries.c). */
static bool is_mistaken(const struct tracker *t, uint32_t slot, uint64_t number,
                        const struct tracker_release *release)
{
    return t->call != NULL && slot == t->parent && number == t->number &&
           release->result.status != 0 && release->generation != 0 &&
           release->generation <= t->failure.generation;
}

/* Whether what a lost server has sent counts no more, as others were told that it is lost. Neither
 * does a failure, while they are asked: it may be of the operation after the success before it. */
static bool is_too_late(const struct engine *engine, const struct tracker *t, uint32_t slot,
                        int32_t status)
{
    return (status == 0 || t->state == TRACKER_DOUBT) && tracker_slot_lost(engine, t, slot);
}

/* Added members' contributions come after those of the slots. */
static bool is_entries(const struct tracker *t, const struct release_frame *frame)
{
    uint32_t n = frame->release.result.nentries;
    if (frame->release.npieced > 0)
        return frame->release.npieced <= t->tree.n && !coll_traits(t->parts.kind)->is_recoverable;
    return n == 0 || frame->release.op != 0 || frame->entries[n - 1].slot < t->tree.n;
}

/* Whether a failure is of an operation after the one whose data are awaited here. */
static bool is_later(const struct tracker *t, const struct tracker_release *release)
{
    return t->data.decided != 0 && release->result.status != 0 &&
           release->generation > t->data.decided;
}

static void put_off(struct tracker *t, const struct frame_in *in)
{
    struct later *later = malloc(sizeof *later + in->len), **end = &t->data.later;
    if (later == NULL) {
        log_error("out of memory: the failure of an operation is lost");
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    later->next = NULL;
    later->from = in->from;
    later->len = in->len;
    memcpy(later->body, in->body, in->len);
    *end = later;
}

void release_take(struct engine *engine, struct tracker *t, struct frame_in *in)
{
    uint32_t from = in->from;
    struct release_frame frame = {0};
    struct tracker_release *release = &frame.release;
    struct engine_result *result = &release->result;
    uint64_t number = wire_get_u64(&in->in);
    bool good = release_read(&frame, &in->in, in->whole);
    t = frame.sig == NULL     ? NULL
        : result->status != 0 ? tracker_get(engine, frame.sig, frame.siglen)
                              : tracker_find(engine, frame.sig, frame.siglen);
    if (t == NULL) {
        log_debug("tracker: a release of node %u that nobody waits for was dropped", from);
        release_frame_free(&frame);
        return;
    }
    uint32_t slot = tracker_slot_of(t, from);
    bool word =
        result->status != 0 && release->generation != 0; /* of the root: any server may tell it */
    bool no_pieces = result->status != 0 && slot == tree_giver(&t->tree, t->self);
    good =
        good && slot != TREE_NONE && slot != t->self &&
        (tree_below(&t->tree, slot, t->self) || t->state == TRACKER_DOUBT || word || no_pieces) &&
        is_entries(t, &frame);
    if (good)
        engine_hear(engine, release->generation);
    if (good && release_members(&t->parts, &frame.added, &frame.members))
        result->members = &frame.members;
    if (!good) {
        log_warning("a malformed release of node %u was dropped", from);
        tracker_tidy(engine, t);
    } else if (is_too_late(engine, t, slot, result->status)) {
        log_debug("tracker: a release of node %u, which is lost, was dropped", from);
    } else if (is_later(t, release)) {
        put_off(t, in);
    } else if (is_mistaken(t, slot, number, release)) {
        t->number = ++engine->numbers;
        say_again(engine, t);
    } else if (is_leave(engine, t, release)) {
        tracker_lose(engine, t, slot);
        rollup_progress(engine, t);
    } else {
        if (result->status == 0 && release->op != 0)
            have(engine, t, release->op);
        take_release(engine, t, slot, number, release);
    }
    release_frame_free(&frame);
}

/* Keeps a piece for the call that is being served. Pieces of one decision come one after another,
 * and those of a later decision after them. @return whether there was memory */
static bool keep_piece(struct tracker *t, const struct piece *piece, struct shared_bytes *bytes)
{
    struct tracker_data *data = &t->data;
    if (t->call == NULL || piece->generation <= t->floor || piece->generation < data->generation)
        return true; /* we have given up, and it is of no use here */
    if (piece->generation > data->generation) {
        pieces_free(&data->pieces);
        data->generation = piece->generation;
    }
    if (data->pieces.n > 0 && piece->entries[0].slot <= data->pieces.last)
        return true; /* a server lies */
    return pieces_add(&data->pieces, bytes, piece);
}

/* A piece goes on at once, whatever is known of its operation here. */
void piece_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct piece piece = {0};
    bool good = piece_read(frame->body, frame->len, &piece);
    t = good ? tracker_get(engine, piece.sig, piece.siglen) : NULL;
    good = t != NULL && t->self != t->tree.root && !coll_traits(t->parts.kind)->is_recoverable &&
           tracker_slot_of(t, frame->from) == tree_giver(&t->tree, t->self) &&
           piece.entries[piece.n - 1].slot < t->tree.n;
    struct shared_bytes *bytes =
        good ? shared_bytes_part(frame->whole, frame->body, frame->len) : NULL;
    if (!good) {
        log_warning("a piece of a result of node %u that does not belong here was dropped",
                    frame->from);
        if (t != NULL)
            tracker_tidy(engine, t);
    } else {
        engine_hear(engine, piece.generation);
        if (bytes != NULL)
            piece_pass(engine, t, bytes);
        if (bytes == NULL || !keep_piece(t, &piece, bytes)) {
            log_error("out of memory: the data of a result are lost");
            if (t->state != TRACKER_IDLE)
                tracker_give_up(engine, t, engine->env.codes.invalid);
        } else if (t->data.decided != 0) {
            rollup_data(engine, t);
        } else {
            tracker_tidy(engine, t);
        }
    }
    shared_bytes_drop(bytes);
    free(piece.entries);
}
