/* SPDX-License-Identifier: BSD-3-Clause */
/* One server's part in the agreed view: takes each frame to the file that it is for, and sees to it
 * that nothing runs within anything else. */
#include "common/view/view.h"

#include "common/view/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- one thing after another ---- */

static bool is_of_a_view(enum view_kind kind)
{
    return kind >= VIEW_WORD;
}

static void keep(struct view *v, struct kept_frames *frames, uint32_t from, const void *body,
                 size_t len)
{
    struct kept_frame *frame = malloc(sizeof *frame + len);
    if (frame == NULL) {
        view_broken(v);
        return;
    }
    frame->from = from;
    frame->len = len;
    memcpy(frame->body, body, len);
    STAILQ_INSERT_TAIL(frames, frame, entry);
}

/* In a newer view others say no more than a window before this server has entered it, too. */
static void keep_early(struct view *v, uint32_t from, const void *body, size_t len)
{
    if (v->early_bytes > VIEW_EARLY_MAX) {
        v->confused = from;
        return;
    }
    v->early_bytes += sizeof(struct kept_frame) + len;
    keep(v, &v->early, from, body, len);
}

static void refuse(struct view *v, uint32_t node)
{
    struct wire_out body = {0};
    wire_put_u8(&body, VIEW_REFUSED);
    view_send(v, node, &body);
}

static void take_of_view(struct view *v, uint32_t from, enum view_kind kind, struct wire_in *in,
                         const void *body, size_t len)
{
    struct view_name name = view_get_name(in);
    if (view_name_above(name, v->name))
        keep_early(v, from, body, len);
    else if (!view_name_is(name, v->name) || v->frozen)
        return; /* its sender says again what is still open */
    else if (kind < VIEW_WISH)
        view_words_take(v, from, kind, in);
    else if (kind >= VIEW_ANSWERS)
        gather_take(v, from, kind, in);
    else
        leavers_take(v, kind, in, body, len);
}

static void take(struct view *v, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    enum view_kind kind = wire_get_u8(&in);
    bool last = kind == VIEW_OUTCAST || kind == VIEW_REFUSED; /* what an outsider says */
    if (in.bad || from >= v->env.nnodes)
        return;
    if (!last && ranges_have(&v->out, from))
        view_tell_out(v, from);
    else if (!last && ranges_have(&v->unreachable, from))
        refuse(v, from);
    else if (kind == VIEW_REFUSED)
        accuse_own(v, from, false);
    else if (is_of_a_view(kind))
        take_of_view(v, from, kind, &in, body, len);
    else if (kind >= VIEW_PROPOSE)
        change_take(v, from, kind, &in, body, len);
    else
        accuse_take(v, from, kind, &in);
}

static void begin(struct view *v)
{
    v->entered++;
}

/* A server that wants to leave says so when all have its words, and again in each view. */
static bool wants_to_say_so(const struct view *v)
{
    return v->leaving && !v->frozen && TAILQ_EMPTY(&v->said) &&
           !ranges_have(&v->leavers, v->env.self);
}

/* Does what is left to do, unless a function that was called before does. */
static void go_on(struct view *v)
{
    struct kept_frame *frame;
    while (v->entered == 1 && !v->over) {
        if (v->confused != VIEW_NOBODY) {
            accuse_own(v, v->confused, false);
            v->confused = VIEW_NOBODY;
        } else if (v->look) {
            v->look = false;
            timer_after(&v->act, 0); /* many servers may be lost at once */
        } else if (v->settled_news) {
            v->settled_news = false;
            leavers_let_go(v);
            v->env.settled(v->env.arg);
        } else if (v->question_news) {
            v->question_news = false;
            gather_act(v);
        } else if (wants_to_say_so(v)) {
            leavers_add_own(v);
        } else if ((frame = STAILQ_FIRST(&v->own)) != NULL) {
            STAILQ_REMOVE_HEAD(&v->own, entry);
            take(v, frame->from, frame->body, frame->len);
            free(frame);
        } else {
            break;
        }
    }
    if (v->over)
        gather_close(v);
    v->entered--;
}

/* ---- the face ---- */

void view_take(struct view *v, uint32_t from, const void *body, size_t len)
{
    if (v->over)
        return;
    begin(v);
    if (v->entered > 1)
        keep(v, &v->own, from, body, len);
    else
        take(v, from, body, len);
    go_on(v);
}

bool view_admits(struct view *v, uint32_t node)
{
    bool in = view_has(v, node);
    if (!in && !v->over)
        view_tell_out(v, node);
    return in;
}

void view_accuse(struct view *v, uint32_t node, bool left)
{
    if (v->over || node >= v->env.nnodes)
        return;
    begin(v);
    accuse_own(v, node, left);
    go_on(v);
}

void view_say(struct view *v, const void *text, size_t len)
{
    if (v->over)
        return;
    begin(v);
    view_words_say(v, WORD_SAYS, text, len);
    go_on(v);
}

void view_gather(struct view *v, const void *text, size_t len, uint32_t ms, view_answers_fn *done,
                 void *arg)
{
    if (v->over || v->mute) {
        done(arg, NULL, 0);
        return;
    }
    begin(v);
    gather_ask(v, text, len, ms, done, arg);
    go_on(v);
}

void view_mute(struct view *v)
{
    gather_close(v);
}

void view_leave(struct view *v)
{
    if (v->over || v->leaving)
        return;
    begin(v);
    v->leaving = true;
    go_on(v);
}

size_t view_unheard(const struct view *v)
{
    return v->said_bytes;
}

uint64_t view_heard(const struct view *v)
{
    return v->nheard;
}

uint64_t view_settled(const struct view *v)
{
    const struct word *word;
    uint64_t n = v->nheard;
    TAILQ_FOREACH (word, &v->words, entry)
        n--;
    return n;
}

uint32_t view_pending(const struct view *v)
{
    return !TAILQ_EMPTY(&v->words) + !TAILQ_EMPTY(&v->said) + !TAILQ_EMPTY(&v->waiting) +
           !TAILQ_EMPTY(&v->questions) + !TAILQ_EMPTY(&v->asking) + !STAILQ_EMPTY(&v->early) +
           !STAILQ_EMPTY(&v->own) + v->frozen + (v->last_commit != NULL);
}

/* ---- time ---- */

static void run(struct view *v, void (*what)(struct view *view))
{
    if (v->over)
        return;
    begin(v);
    what(v);
    go_on(v);
}

static void on_act(void *arg, struct timer *timer)
{
    (void)timer;
    run(arg, accuse_act);
}

static void on_retry(void *arg, struct timer *timer)
{
    (void)timer;
    run(arg, change_retry);
}

static void on_flush(void *arg, struct timer *timer)
{
    (void)timer;
    run(arg, leavers_flush);
}

static void look(struct view *v)
{
    struct ranges silent = {0};
    change_look(v, &silent);
    for (struct ranges_at at = {0}; ranges_next(&silent, &at);)
        accuse_own(v, at.number, false);
    ranges_free(&silent);
}

static void on_patience(void *arg, struct timer *timer)
{
    (void)timer;
    run(arg, look);
}

static void on_answer_due(void *arg, struct timer *timer)
{
    (void)timer;
    run(arg, gather_look);
}

/* ---- begin and end ---- */

static void drop(struct kept_frames *frames)
{
    struct kept_frame *frame;
    while ((frame = STAILQ_FIRST(frames)) != NULL) {
        STAILQ_REMOVE_HEAD(frames, entry);
        free(frame);
    }
}

struct view *view_new(const struct view_env *env)
{
    struct view *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->env = *env;
    v->confused = VIEW_NOBODY;
    STAILQ_INIT(&v->own);
    STAILQ_INIT(&v->early);
    timer_init(&v->act, env->timers, on_act, v);
    timer_init(&v->retry, env->timers, on_retry, v);
    timer_init(&v->flush, env->timers, on_flush, v);
    timer_init(&v->patience, env->timers, on_patience, v);
    timer_init(&v->answer_due, env->timers, on_answer_due, v);
    TAILQ_INIT(&v->questions);
    TAILQ_INIT(&v->asking);
    change_init(v);
    view_words_init(v);
    if (v->acks != NULL && view_plant(v))
        return v;
    view_free(v);
    return NULL;
}

void view_free(struct view *v)
{
    if (v == NULL)
        return;
    timer_stop(&v->act);
    timer_stop(&v->retry);
    timer_stop(&v->flush);
    timer_stop(&v->patience);
    timer_stop(&v->answer_due);
    gather_close(v);
    gather_forget(v);
    drop(&v->own);
    drop(&v->early);
    view_words_free(&v->words);
    view_words_free(&v->said);
    view_words_free(&v->waiting);
    change_free(v);
    free(v->acks);
    free(v->below);
    free(v->pairs);
    span_free(&v->live);
    ranges_free(&v->unreachable);
    ranges_free(&v->out);
    ranges_free(&v->left);
    free(v);
}
