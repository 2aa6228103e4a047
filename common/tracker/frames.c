/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes from other servers: contributions and releases. rollup.c draws them. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* Whether a frame belongs to an operation that has failed here already. Its sender repeats
 * the generation of the last failure that it knows, and it learns of ours before it calls again:
 * so a lower one is late. We forget sooner than it does, so that it never looks late by that. */
static bool is_straggler(struct engine *engine, const struct tracker *t, uint64_t known)
{
    return t->failure.generation > known &&
           engine->env.now(engine->env.arg) < t->failure.at + ENGINE_STRAGGLER_MS;
}

/* Whether a child was told that this very call is over: it had not heard that when it said this. A
 * failure that was given up here has no generation. */
static bool is_over(const struct tracker *t, uint32_t slot, uint64_t number)
{
    const struct tracker_child *child = tracker_child_of(t, slot);
    return child != NULL && number != 0 && child->over == number;
}

/* Generations rise from one root to the next, so that those of several tries can be compared. */
static void hear(struct engine *engine, uint64_t generation)
{
    if (generation > engine->generations && generation < UINT64_MAX / 2)
        engine->generations = generation;
}

/* What a CONTRIB says. */
struct contrib {
    uint32_t slot; /* of the sender */
    uint64_t known, number, heard;
    bool again;
    uint64_t settled; /* of tries before: the last failure for good that the sender knows */
    uint32_t library, tree, timeout;
    uint64_t left;
    struct procset gone;
    int32_t status; /* of its subtree, as the rest */
    uint32_t flags;
    uint32_t nmissing;
    struct ranges missing;
    uint32_t nentries;
    const void *bytes; /* of the entries; borrowed */
    size_t len;
    struct engine_entry *entries;
};

/* Whether the sender has not heard of a try before, which has failed for good: see tries.c. */
static bool is_skipping(const struct engine *engine, const struct tracker *t,
                        const struct contrib *contrib)
{
    return contrib->again && tries_known(engine, t, true) > contrib->settled;
}

/* Says what of two servers does not fit together. @return whether anything does not */
static bool does_not_fit(const struct engine *engine, const struct tracker *t,
                         const struct contrib *contrib)
{
    const struct engine_env *env = &engine->env;
    const char *there = env->name(env->arg, tracker_node(t, contrib->slot));
    const char *here = env->name(env->arg, env->self);
    uint32_t a = contrib->library, b = env->library, tree = tracker_tree_id(engine, t);
    char what[320];
    signature_describe(t->sig, t->siglen, what, sizeof what);
    if (a != b)
        log_error("%s: libpmix is %u.%u.%u on node %s and %u.%u.%u on node %s; every node of an "
                  "operation needs the same one: install one version everywhere",
                  what, a >> 16, a >> 8 & 255, a & 255, there, b >> 16, b >> 8 & 255, b & 255,
                  here);
    if (contrib->tree != tree && t->tree.slots == NULL && contrib->tree <= TREE_ARITY_MAX)
        log_error("%s: tree_arity is %u on node %s and %u on node %s; every node of an operation "
                  "needs the same one: set \"tree_arity\": %u in muster.json of both",
                  what, contrib->tree, there, tree, here,
                  contrib->tree > tree ? contrib->tree : tree);
    else if (contrib->tree != tree)
        log_error("%s: nodes %s and %s were told different trees of the servers; every node of an "
                  "operation needs the same one",
                  what, there, here);
    return a != b || contrib->tree != tree;
}

/* What a child says takes the place of what it has said before. @return whether there was memory */
static bool take_word(struct tracker *t, struct tracker_child *child, struct contrib *contrib)
{
    if (child->said == CHILD_ALL)
        return true;
    bool all = contrib->nmissing == 0 && contrib->status == 0;
    void *entries = contrib->nentries > 0 ? malloc(contrib->len) : NULL;
    if (contrib->nentries > 0 && entries == NULL)
        return false;
    if (entries != NULL)
        memcpy(entries, contrib->bytes, contrib->len);
    free(child->entries);
    child->entries = entries;
    child->nentries = contrib->nentries;
    child->len = contrib->len;
    child->said = all ? CHILD_ALL : CHILD_PART;
    child->flags = contrib->flags;
    child->number = contrib->number;
    ranges_free(&child->missing);
    child->missing = contrib->missing;
    child->nmissing = contrib->nmissing;
    contrib->missing = (struct ranges){0};
    t->news = true;
    if (!all && !t->flushed) /* below us half a second has passed already */
        t->flushed = t->urgent = true;
    return true;
}

static void take_contrib(struct engine *engine, struct tracker *t, struct contrib *contrib)
{
    struct tracker_child *child = tracker_child_of(t, contrib->slot);
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (!tracker_move(engine, t, TRACKER_CHILD))
        return;
    tracker_local_loss(engine, t);
    t->again = t->again || contrib->again;
    engine->retries = engine->retries || t->again;
    tracker_arm(engine, t, contrib->timeout, contrib->left);
    procset_unite(&t->gone, &contrib->gone);
    /* That some server cannot take part may be said by any server: see rollup_refuse(). */
    tracker_fail(t, contrib->status);
    if (child != NULL)
        child->call = contrib->number;
    if (child != NULL && !take_word(t, child, contrib))
        tracker_fail(t, engine->env.codes.invalid);
    rollup_progress(engine, t);
}

/* Whether what the sender says of its subtree makes sense. */
static bool is_sound(const struct tracker *t, const struct contrib *contrib)
{
    bool all = contrib->nmissing == 0 && contrib->status == 0;
    bool good = contrib->nmissing <= t->tree.n &&
                ranges_count(&contrib->missing) <= contrib->nmissing &&
                (!all || contrib->number != 0) &&
                (contrib->status != 0 || tracker_child_of(t, contrib->slot) != NULL);
    for (uint32_t i = 0; good && i < contrib->nentries; i++)
        good = tree_below(&t->tree, contrib->slot, contrib->entries[i].slot) &&
               (all || contrib->entries[i].len == 0);
    for (uint32_t i = 0; good && i < contrib->missing.n; i++)
        good = contrib->missing.v[i].last < t->tree.n;
    return good && tree_below(&t->tree, t->self, contrib->slot);
}

/* @return its signature, borrowed */
static const void *read_contrib(struct contrib *contrib, struct wire_in *in, size_t *siglen)
{
    const void *sig = wire_get_block(in, siglen);
    contrib->known = wire_get_u64(in);
    contrib->heard = wire_get_u64(in);
    contrib->again = wire_get_u8(in) != 0;
    contrib->settled = wire_get_u64(in);
    contrib->number = wire_get_u64(in);
    contrib->library = wire_get_u32(in);
    contrib->tree = wire_get_u32(in);
    contrib->timeout = wire_get_u32(in);
    contrib->left = wire_get_u64(in);
    procset_read(&contrib->gone, in);
    contrib->status = wire_get_i32(in);
    contrib->flags = wire_get_u32(in);
    contrib->nmissing = wire_get_u32(in);
    ranges_read(&contrib->missing, UINT32_MAX, in);
    contrib->nentries = wire_get_count(in, ENTRY_BYTES);
    contrib->bytes = in->p;
    contrib->len = in->bad ? 0 : (size_t)(in->end - in->p);
    return sig;
}

/* The tracker that a contribution is for. */
static struct tracker *receiver(struct engine *engine, const struct contrib *contrib,
                                const void *sig, size_t siglen)
{
    struct tracker *t = tracker_get(engine, sig, siglen);
    if (t != NULL && cancel_meets(engine, t, false))
        t = tracker_get(engine, sig, siglen);
    if (t != NULL && t->settle != 0 && contrib->again &&
        contrib->settled >= tries_known(engine, t, true)) {
        /* The sender knows what ends this try: it means the next operation. */
        tries_settle(engine, t);
        t = tracker_get(engine, sig, siglen);
    }
    return t;
}

void engine_contrib(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    struct contrib contrib = {0};
    size_t siglen;
    wire_in_init(&in, body, len);
    const void *sig = read_contrib(&contrib, &in, &siglen);
    struct tracker *t = in.bad || engine->closing ? NULL : receiver(engine, &contrib, sig, siglen);
    contrib.slot = t == NULL ? TREE_NONE : tracker_slot_of(t, from);
    hear(engine, contrib.heard);
    if (t != NULL)
        contrib.entries = entries_get(&in, contrib.nentries, t->tree.n);
    if (contrib.entries == NULL || contrib.slot == TREE_NONE || contrib.slot == t->self)
        log_warning("a contribution of node %u that does not belong here was dropped", from);
    else if (is_straggler(engine, t, contrib.known) || is_over(t, contrib.slot, contrib.number))
        log_debug("tracker: a straggler's contribution of node %u was dropped", from);
    else if (is_skipping(engine, t, &contrib)) {
        log_debug("tracker: node %u has not heard that an earlier try has failed", from);
        tries_tell(engine, t, from, contrib.settled);
    } else if (does_not_fit(engine, t, &contrib)) { /* the trees may differ: nothing else counts */
        rollup_refuse(engine, t, contrib.known);
        t = NULL; /* may be gone */
    } else if (!is_sound(t, &contrib)) {
        log_warning("a contribution of node %u that does not belong here was dropped", from);
    } else if (t->state == TRACKER_SENT || t->state == TRACKER_DOUBT) {
        log_debug("tracker: a contribution of node %u came after its subtree was complete", from);
    } else {
        take_contrib(engine, t, &contrib);
        t = NULL; /* may be gone */
    }
    procset_free(&contrib.gone);
    ranges_free(&contrib.missing);
    free(contrib.entries);
    if (t != NULL)
        tracker_tidy(engine, t);
}

/* The root's word on an operation that was given up here already. Above, what we have sent since
 * then looks late, and so does here what came from below: with what was learnt, all that still
 * stands is said again. */
static void stale_release(struct engine *engine, struct tracker *t, struct tracker_release *release)
{
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    bool failed = release->result.status != 0;
    if (failed && release->generation <= t->failure.generation)
        return; /* another server that gave up, or the word on an earlier one, said once more */
    t->failure.given_up = false;
    if (!failed) { /* of a call before this one: this one's success comes later */
        if (release->generation > t->floor)
            t->floor = release->generation;
        return;
    }
    t->failure.generation = release->generation;
    t->failure.at = engine->env.now(engine->env.arg);
    tracker_due(engine, t);
    tracker_remember(t, &release->result);
    rollup_down(engine, t, release, false);
    member_take(engine, t, release, &ended);
    struct tracker *later = tries_end_given_up(engine, t, &release->result);
    if (t->state != TRACKER_IDLE)
        tracker_again(engine, t);
    if (later != NULL)
        tries_answer(engine, later, &release->result);
    member_done(&ended, &release->result);
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

static void take_release(struct engine *engine, struct tracker *t, uint64_t number,
                         struct tracker_release *release)
{
    const struct engine_result *result = &release->result;
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    bool stands = t->state != TRACKER_IDLE;
    /* The loss of a server is for good: true of whatever stands here, given up before or not. */
    bool loss = release->generation == 0 && tracker_is_loss(engine, t, result->status);
    /* Who sent it may have taken what we said of an earlier call for this one's, and then it knows
     * of no other. */
    if (is_stale(t, number, release) && !(loss && (number == 0 || t->call != NULL))) {
        stale_release(engine, t, release);
        return;
    }
    if (result->status == 0 && t->call == NULL) {
        log_warning("a release came before the local call; dropped");
        return;
    }
    if (result->status == 0 && t->parts.kind != COLL_FENCE)
        decided_keep(engine, t, release);
    if (number == 0 && !is_news(t, release, loss))
        return; /* known already, by another way */
    if (result->status != 0 && release->generation > t->failure.generation)
        t->failure.generation = release->generation;
    /* Without a generation it is not the root's word, which may still come. */
    t->failure.given_up = result->status != 0 && release->generation == 0;
    rollup_down(engine, t, release, true);
    member_take(engine, t, release, &ended);
    if (stands) {
        tracker_end(engine, t, result);
    } else {
        t->failure.at = engine->env.now(engine->env.arg);
        tracker_due(engine, t);
        tracker_remember(t, result);
        tries_end(engine, t, result);
        tracker_owe(t, result);
    }
    member_done(&ended, result);
}

/* Says to who decided that a success has come: then servers of added members are told. Also when it
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
           t->state != TRACKER_IDLE && t->parts.kind != COLL_FENCE;
}

/* Added members' contributions come after those of the slots. */
static bool is_entries(const struct tracker *t, const struct release_frame *frame)
{
    uint32_t n = frame->release.result.nentries;
    return n == 0 || frame->release.op != 0 || frame->entries[n - 1].slot < t->tree.n;
}

void engine_release(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    struct release_frame frame = {0};
    struct tracker_release *release = &frame.release;
    struct engine_result *result = &release->result;
    wire_in_init(&in, body, len);
    uint64_t number = wire_get_u64(&in);
    bool good = release_read(&frame, in.p, (size_t)(in.end - in.p));
    struct tracker *t = frame.sig == NULL || engine->closing ? NULL
                        : result->status != 0 ? tracker_get(engine, frame.sig, frame.siglen)
                                              : tracker_find(engine, frame.sig, frame.siglen);
    if (t == NULL) {
        log_debug("tracker: a release of node %u that nobody waits for was dropped", from);
        release_frame_free(&frame);
        return;
    }
    uint32_t slot = tracker_slot_of(t, from);
    bool word = result->status != 0 && release->generation != 0; /* of the root: anybody tells it */
    good = good && slot != TREE_NONE && slot != t->self &&
           (tree_below(&t->tree, slot, t->self) || t->state == TRACKER_DOUBT || word) &&
           is_entries(t, &frame);
    if (good)
        hear(engine, release->generation);
    if (good && assembly_members(&t->parts, &frame.added, &frame.members))
        result->members = &frame.members;
    if (!good) {
        log_warning("a malformed release of node %u was dropped", from);
        tracker_tidy(engine, t);
    } else if (result->status == 0 && tracker_slot_lost(engine, t, slot)) {
        log_debug("tracker: a success from node %u, which is lost, was dropped", from);
    } else if (is_leave(engine, t, release)) {
        tracker_lose(engine, t, slot);
        rollup_progress(engine, t);
    } else {
        if (result->status == 0 && release->op != 0)
            have(engine, t, release->op);
        take_release(engine, t, number, release);
    }
    release_frame_free(&frame);
}

/* Whether one below is lost: it is ours to say so, whether we have called or not. */
static bool lost_below(const struct engine *engine, const struct tracker *t)
{
    struct ranges lost = {0};
    bool below = false;
    tracker_lost_slots(engine, t, &lost);
    for (uint32_t i = 0; i < lost.n; i++)
        for (uint32_t slot = lost.v[i].first; slot <= lost.v[i].last && !below; slot++)
            below = slot != t->self && tree_below(&t->tree, t->self, slot);
    ranges_free(&lost);
    return below;
}

/* Somebody above waits for an operation of which nothing is known here. @return whether there is
 * something to say: as long as those here live, they may still call, and those below are asked;
 * when one has ended, nobody else will say so. */
static bool has_news(struct engine *engine, struct tracker *t, uint64_t known)
{
    if (engine->env.local_status(engine->env.arg, &t->parts) != 0 || lost_below(engine, t))
        return true;
    rollup_ask_on(engine, t, known);
    return false;
}

void engine_wanted(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    size_t siglen;
    wire_in_init(&in, body, len);
    const void *sig = wire_get_block(&in, &siglen);
    uint64_t known = wire_get_u64(&in);
    struct tracker *t = !wire_end(&in) || engine->closing ? NULL : tracker_get(engine, sig, siglen);
    if (t == NULL || cancel_meets(engine, t, false))
        return;
    uint32_t slot = tracker_slot_of(t, from);
    bool above = slot != TREE_NONE && slot != t->self && tree_below(&t->tree, slot, t->self);
    if (above &&
        t->state == TRACKER_IDLE) /* nobody here calls for what has ended with an earlier try */
        tries_tell(engine, t, from, 0);
    bool news = t->state == TRACKER_IDLE && above && !is_straggler(engine, t, known);
    if (news && !has_news(engine, t, known)) {
        wanted_keep(engine, from, body, len);
        news = false;
    }
    if (!news) {
        tracker_tidy(engine, t);
        return;
    }
    tracker_open(engine, t);
    if (!tracker_move(engine, t, TRACKER_CHILD))
        return;
    tracker_local_loss(engine, t);
    rollup_progress(engine, t);
}
