/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer as a whole: how it starts, how outcomes are taken, and what is shown of what waits in
 * it. */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdlib.h>

void membership_open(struct engine *engine, struct membership *membership)
{
    engine->membership = membership;
    TAILQ_INIT(&membership->assemblies);
    TAILQ_INIT(&membership->joins);
    TAILQ_INIT(&membership->leads);
    TAILQ_INIT(&membership->claims);
}

void assembly_told(struct engine *engine, struct tracker *t, struct assembly *a, struct decided *d,
                   struct tracker_release *release, struct engine_call **ended)
{
    assembly_tell(engine, a, t, d, release);
    member_take(engine, t, release, ended);
    release->added = NULL;
    assembly_free(a);
}

/* What an OUTCOME says. */
struct outcome {
    struct release_frame frame;
    struct signature sig;
    struct procset rest;
    uint64_t *numbers;
    uint32_t nnumbers;
};

static bool read_outcome(struct outcome *o, struct wire_in *in, struct shared_bytes *whole)
{
    struct release_frame *frame = &o->frame;
    struct tracker_release *release = &frame->release;
    o->nnumbers = wire_get_count(in, 8);
    o->numbers = calloc(o->nnumbers + 1ul, sizeof *o->numbers);
    for (uint32_t i = 0; o->numbers != NULL && i < o->nnumbers; i++)
        o->numbers[i] = wire_get_u64(in);
    if (in->bad || o->numbers == NULL || !release_read(frame, in, whole) ||
        signature_read(&o->sig, frame->sig, frame->siglen) != 0)
        return false;
    procset_except(&o->rest, &frame->added, &o->sig.members);
    procset_unite(&frame->members, &o->sig.members);
    procset_unite(&frame->members, &frame->added);
    release->added = &o->rest;
    release->result.members = release->result.status == 0 ? &frame->members : NULL;
    return true;
}

/* Whether it may be home's answer to a leader's call that is taken back: see home_take(). */
static bool gives_back(const struct engine *engine, const struct outcome *o)
{
    return o->frame.release.result.status == engine->env.codes.closing && o->rest.nparts == 0;
}

void outcome_take(struct engine *engine, struct tracker *t, struct frame_in *in)
{
    struct outcome o = {0};
    uint32_t from = in->from;
    (void)t;
    struct engine_call *ended = NULL;
    if (read_outcome(&o, &in->in, in->whole)) {
        const struct release_frame *frame = &o.frame;
        const struct tracker_release *release = &frame->release;
        for (uint32_t i = 0; i < o.nnumbers; i++)
            if (!gives_back(engine, &o) ||
                !leader_moves(engine, from, o.numbers[i], &o.sig.members))
                leader_end(engine, from, o.numbers[i], &ended);
        struct claim *claim =
            claim_told(engine, from, o.sig.id, release->op, frame->sig, frame->siglen);
        claim_end(engine, claim, from, o.sig.id, frame, &ended);
        calls_done(&ended, &release->result);
    } else {
        log_warning("a malformed outcome of node %u was dropped", from);
    }
    signature_free(&o.sig);
    procset_free(&o.rest);
    free(o.numbers);
    release_frame_free(&o.frame);
}

static void show(const struct engine *engine, const char *about, uint64_t opened, uint64_t deadline,
                 void (*visit)(void *arg, const struct engine_wait *wait), void *arg)
{
    uint64_t now = engine_now(engine), clock = engine_clock(engine);
    struct engine_wait wait = {about, now - opened, -1};
    if (deadline != 0)
        wait.left = deadline > clock ? (int64_t)(deadline - clock) : 0;
    visit(arg, &wait);
}

void engine_walk_waits(struct engine *engine,
                       void (*visit)(void *arg, const struct engine_wait *wait), void *arg)
{
    const struct assembly *a;
    const struct waiting *w;
    char text[1024];
    TAILQ_FOREACH (a, &engine->membership->assemblies, all) {
        assembly_missing(engine, a, text, sizeof text);
        show(engine, text, a->opened, a->tracker != NULL ? a->tracker->deadline : a->deadline,
             visit, arg);
    }
    TAILQ_FOREACH (w, &engine->membership->leads, all) {
        leader_describe(engine, w, text, sizeof text);
        if (w->home != engine->env.self) /* else it is in the assembly */
            show(engine, text, w->opened, w->deadline, visit, arg);
    }
    TAILQ_FOREACH (w, &engine->membership->joins, all) {
        member_describe(engine, w, text, sizeof text);
        if (w->claim == NULL)
            show(engine, text, w->opened, w->deadline, visit, arg);
    }
}
