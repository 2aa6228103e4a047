/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to all: each is a word, and the answers come up the tree, combined. docs/view.md,
 * "Words". */
#include "common/view/private.h"

#include <stdlib.h>

/* ---- what this server asks ---- */

static void finish(struct view *v, struct asking *a, const void *answers, size_t len)
{
    TAILQ_REMOVE(&v->asking, a, entry);
    shared_bytes_drop(a->text);
    a->done(a->arg, answers, len); /* which may ask more */
    free(a);
}

static void say(struct view *v, struct asking *a)
{
    struct wire_out body = {0};
    int64_t left = a->due - timers_now(v->env.timers);
    wire_put_u32(&body, a->due == 0 ? 0 : left > 0 ? (uint32_t)left : 1);
    wire_put_raw(&body, a->text->data, a->text->len);
    if (body.failed)
        view_broken(v);
    else
        a->id = view_words_say(v, WORD_ASKS, body.data, body.len);
    wire_out_free(&body);
}

void gather_ask(struct view *v, const void *text, size_t len, uint32_t ms, view_answers_fn *done,
                void *arg)
{
    struct asking *a = calloc(1, sizeof *a);
    struct shared_bytes *copy = shared_bytes_copy(text, len);
    if (a == NULL || copy == NULL) {
        free(a);
        shared_bytes_drop(copy);
        view_broken(v);
        done(arg, NULL, 0);
        return;
    }
    *a = (struct asking){.text = copy, .done = done, .arg = arg};
    TAILQ_INSERT_TAIL(&v->asking, a, entry);
    if (ms > 0) {
        a->due = timers_now(v->env.timers) + ms;
        timer_sooner(&v->answer_due, a->due);
    }
    say(v, a);
}

/* Its answer, if any was on the way, was dropped with the old view. */
void gather_again(struct view *v)
{
    struct asking *a;
    TAILQ_FOREACH (a, &v->asking, entry)
        if (!view_words_is_out(v, a->id))
            say(v, a);
}

void gather_close(struct view *v)
{
    v->mute = true;
    while (!TAILQ_EMPTY(&v->asking))
        finish(v, TAILQ_FIRST(&v->asking), NULL, 0);
}

/* ---- what this server is asked ---- */

static void forget(struct view *v, struct question *q)
{
    TAILQ_REMOVE(&v->questions, q, entry);
    v->nquestions--;
    shared_bytes_drop(q->text);
    ranges_free(&q->awaited);
    wire_out_free(&q->answers);
    free(q);
}

void gather_forget(struct view *v)
{
    while (!TAILQ_EMPTY(&v->questions))
        forget(v, TAILQ_FIRST(&v->questions));
}

static void add_answer(struct question *q, uint32_t node, int32_t status, const void *data,
                       size_t len)
{
    bool fits = q->answers.len + len <= VIEW_ANSWERS_MAX;
    wire_put_u32(&q->answers, node);
    wire_put_i32(&q->answers, fits ? status : VIEW_TOO_LONG);
    wire_put_block(&q->answers, data, fits ? len : 0);
}

/* Sends up what the subtree has answered. */
static void pass_up(struct view *v, struct question *q)
{
    struct wire_out body = {0};
    bool head = v->above == VIEW_NOBODY;
    view_begin(v, &body, head ? VIEW_ANSWER : VIEW_ANSWERS);
    wire_put_u64(&body, head ? q->id : q->number);
    wire_put_raw(&body, q->answers.data, q->answers.len);
    body.failed |= q->answers.failed;
    uint32_t to = head ? q->origin : v->above;
    forget(v, q);
    view_send(v, to, &body);
}

/* The lower a server the less it waits, so that what it has is there before the one above gives up:
 * the lowest wait for half of the time. */
static int64_t time_for(const struct view *v, uint32_t ms)
{
    return ms / 2 + (int64_t)ms * span_levels(&v->live, v->env.self) / 2 /
                        (span_levels(&v->live, view_head(v)) + 1);
}

static void answer(struct view *v, struct question *q)
{
    struct wire_in in;
    struct wire_out own = {0};
    wire_in_init(&in, q->text->data, q->text->len);
    wire_get_u8(&in);
    uint32_t ms = wire_get_u32(&in);
    if (in.bad) {
        forget(v, q);
        return;
    }
    q->asked = true;
    int32_t status = v->env.answer(v->env.arg, q->origin, in.p, (size_t)(in.end - in.p), &own);
    q->answers.failed |= own.failed;
    add_answer(q, v->env.self, status, own.data, own.len);
    wire_out_free(&own);
    for (uint32_t i = 0; i < v->nbelow; i++)
        view_put(v, &q->awaited, v->below[i]);
    if (ms > 0) {
        q->due = timers_now(v->env.timers) + time_for(v, ms);
        timer_sooner(&v->answer_due, q->due);
    }
    if (q->awaited.n == 0)
        pass_up(v, q);
    else if (v->nquestions > VIEW_QUESTIONS_MAX)
        pass_up(v, TAILQ_FIRST(&v->questions));
}

void gather_act(struct view *v)
{
    struct question *q, *next;
    for (q = TAILQ_FIRST(&v->questions); q != NULL; q = next) {
        next = TAILQ_NEXT(q, entry);
        if (!q->asked)
            answer(v, q);
    }
}

/* ---- time ---- */

static bool is_due(int64_t due, int64_t now)
{
    return due != 0 && due <= now;
}

/* @return whether there were any */
static bool end_questions(struct view *v, int64_t now)
{
    struct question *q, *next;
    bool any = false;
    for (q = TAILQ_FIRST(&v->questions); q != NULL && !v->frozen; q = next) {
        next = TAILQ_NEXT(q, entry);
        if (is_due(q->due, now)) {
            pass_up(v, q);
            any = true;
        }
    }
    return any;
}

static void end_asking(struct view *v, int64_t now)
{
    struct asking *a;
    do {
        TAILQ_FOREACH (a, &v->asking, entry)
            if (is_due(a->due, now))
                break;
        if (a != NULL)
            finish(v, a, NULL, 0);
    } while (a != NULL);
}

void gather_look(struct view *v)
{
    int64_t now = timers_now(v->env.timers);
    const struct asking *a;
    const struct question *q;
    if (!end_questions(v, now)) /* else one may be on its way to this server itself */
        end_asking(v, now);
    TAILQ_FOREACH (a, &v->asking, entry)
        if (a->due != 0)
            timer_sooner(&v->answer_due, a->due);
    TAILQ_FOREACH (q, &v->questions, entry)
        if (q->due != 0 && !v->frozen)
            timer_sooner(&v->answer_due, q->due);
}

/* ---- frames ---- */

static void take_answers(struct view *v, uint32_t from, uint64_t number, struct wire_in *in)
{
    struct question *q;
    size_t len;
    TAILQ_FOREACH (q, &v->questions, entry)
        if (q->number == number)
            break;
    if (q == NULL || !ranges_have(&q->awaited, from))
        return;
    view_take_out(v, &q->awaited, from);
    while (in->p < in->end) {
        uint32_t node = wire_get_u32(in);
        int32_t status = wire_get_i32(in);
        const void *data = wire_get_block(in, &len);
        if (in->bad)
            break;
        add_answer(q, node, status, data, len);
    }
    if (q->awaited.n == 0)
        pass_up(v, q);
}

void gather_take(struct view *v, uint32_t from, enum view_kind kind, struct wire_in *in)
{
    uint64_t id = wire_get_u64(in);
    struct asking *a;
    if (in->bad)
        return;
    if (kind == VIEW_ANSWERS) {
        take_answers(v, from, id, in);
        return;
    }
    TAILQ_FOREACH (a, &v->asking, entry)
        if (a->id == id && from == view_head(v)) {
            finish(v, a, in->p, (size_t)(in->end - in->p));
            return;
        }
}
