/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: what is said to all, and heard by all in one order. docs/view.md, "Words". */
#include "common/view/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists of words ---- */

static void drop(struct words *words, struct word *word)
{
    TAILQ_REMOVE(words, word, entry);
    shared_bytes_drop(word->text);
    free(word);
}

void view_words_free(struct words *words)
{
    while (!TAILQ_EMPTY(words))
        drop(words, TAILQ_FIRST(words));
}

static int by_place(const struct word *a, const struct word *b)
{
    if (!view_name_is(a->view, b->view))
        return view_name_above(a->view, b->view) ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

void view_words_unite(struct words *words, struct words *more)
{
    struct word *at = TAILQ_FIRST(words), *word;
    while ((word = TAILQ_FIRST(more)) != NULL) {
        while (at != NULL && by_place(at, word) < 0)
            at = TAILQ_NEXT(at, entry);
        if (at != NULL && by_place(at, word) == 0) {
            drop(more, word);
            continue;
        }
        TAILQ_REMOVE(more, word, entry);
        if (at != NULL)
            TAILQ_INSERT_BEFORE(at, word, entry);
        else
            TAILQ_INSERT_TAIL(words, word, entry);
    }
}

/* @param text taken over @return NULL: out of memory */
static struct word *add(struct words *words, uint32_t origin, uint64_t id,
                        struct shared_bytes *text)
{
    struct word *word = text != NULL ? calloc(1, sizeof *word) : NULL;
    if (word == NULL) {
        shared_bytes_drop(text);
        return NULL;
    }
    word->origin = origin;
    word->id = id;
    word->text = text;
    TAILQ_INSERT_TAIL(words, word, entry);
    return word;
}

enum { WORD_BYTES = 12 + 8 + 4 + 8 + 4 }; /* at least, on the wire */

void view_words_write(const struct words *words, struct wire_out *out)
{
    const struct word *word;
    uint32_t n = 0;
    TAILQ_FOREACH (word, words, entry)
        n++;
    wire_put_u32(out, n);
    TAILQ_FOREACH (word, words, entry) {
        view_put_name(out, word->view);
        wire_put_u64(out, word->number);
        wire_put_u32(out, word->origin);
        wire_put_u64(out, word->id);
        wire_put_block(out, word->text->data, word->text->len);
    }
}

void view_words_read(struct words *words, uint32_t nnodes, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, WORD_BYTES);
    for (; n > 0 && !in->bad; n--) {
        struct word place = {.view = view_get_name(in), .number = 0};
        size_t len;
        place.number = wire_get_u64(in);
        place.origin = wire_get_u32(in);
        place.id = wire_get_u64(in);
        const void *text = wire_get_block(in, &len);
        const struct word *before = TAILQ_LAST(words, words);
        if (in->bad || place.origin >= nnodes ||
            (before != NULL && by_place(before, &place) >= 0)) {
            in->bad = true;
            return;
        }
        struct word *word = add(words, place.origin, place.id, shared_bytes_copy(text, len));
        if (word == NULL) {
            in->bad = true;
            return;
        }
        word->view = place.view;
        word->number = place.number;
    }
}

/* ---- saying ---- */

static void to_head(struct view *v, const struct word *word)
{
    struct wire_out body = {0};
    view_begin(v, &body, VIEW_WORD);
    wire_put_u64(&body, word->id);
    wire_put_raw(&body, word->text->data, word->text->len);
    view_send(v, view_head(v), &body);
}

/* Sends the head as many words as it takes of one server. */
static void fill_head(struct view *v)
{
    const struct word *word = TAILQ_FIRST(&v->said);
    for (uint32_t i = 0; i < v->nsent && word != NULL; i++)
        word = TAILQ_NEXT(word, entry);
    for (; word != NULL && v->nsent < VIEW_SENT_MAX && !v->frozen; word = TAILQ_NEXT(word, entry)) {
        v->nsent++;
        to_head(v, word);
    }
}

uint64_t view_words_say(struct view *v, enum word_kind kind, const void *text, size_t len)
{
    unsigned char *bytes = malloc(len + 1);
    const struct word *word = NULL;
    if (bytes != NULL) {
        bytes[0] = (unsigned char)kind;
        if (len > 0)
            memcpy(bytes + 1, text, len);
        word = add(&v->said, v->env.self, ++v->nsaid, shared_bytes_take(bytes, len + 1));
        v->said_bytes += len + 1 + sizeof(struct word) + sizeof(struct shared_bytes);
    }
    if (word == NULL)
        view_broken(v);
    else if (v->said_bytes > VIEW_SAID_MAX && !v->over)
        view_end(v, VIEW_LEFT_OUT, "it says more to all than they hear");
    else
        fill_head(v);
    return v->nsaid;
}

static struct word *said_by_us(const struct view *v, uint64_t id)
{
    struct word *said;
    TAILQ_FOREACH (said, &v->said, entry)
        if (said->id == id)
            break;
    return said;
}

bool view_words_is_out(const struct view *v, uint64_t id)
{
    return said_by_us(v, id) != NULL;
}

static bool is_head(const struct view *v)
{
    return view_head(v) == v->env.self;
}

static void forget(struct view *v, int64_t settled)
{
    for (struct word *word = TAILQ_FIRST(&v->words), *next; word != NULL; word = next) {
        next = TAILQ_NEXT(word, entry);
        if (!view_name_is(word->view, v->name) || (int64_t)word->number <= settled)
            drop(&v->words, word);
    }
    v->settled_news = true;
}

/* No word is empty, so an empty one was no server's. */
static int kind_of(const struct shared_bytes *text)
{
    return text->len > 0 ? ((const unsigned char *)text->data)[0] : -1;
}

/* A word of this server is done, so the head takes another one. */
static void was_heard(struct view *v, struct word *said)
{
    v->said_bytes -= said->text->len + sizeof(struct word) + sizeof(struct shared_bytes);
    drop(&v->said, said);
    v->nsent -= v->nsent > 0;
    fill_head(v);
}

/* @param word in @p from: moved to those that were heard */
static void hear(struct view *v, struct words *from, struct word *word)
{
    uint32_t origin = word->origin;
    uint64_t id = word->id;
    struct shared_bytes *text = shared_bytes_hold(word->text);
    TAILQ_REMOVE(from, word, entry);
    TAILQ_INSERT_TAIL(&v->words, word, entry);
    v->heard_view = word->view;
    v->heard = word->number;
    v->nheard++;
    struct word *said = origin == v->env.self ? said_by_us(v, id) : NULL;
    if (said != NULL)
        was_heard(v, said);
    if (kind_of(text) == WORD_SAYS)
        v->env.hear(v->env.arg, origin, (const char *)text->data + 1,
                    text->len - 1); /* which may say more */
    shared_bytes_drop(text);
}

static void say_next(struct view *v);

/* Tells those below what all have heard, when no word that follows says so. */
static void settle(struct view *v, uint64_t settled)
{
    struct wire_out body = {0};
    view_begin(v, &body, VIEW_SETTLED);
    wire_put_u64(&body, settled);
    view_send_down(v, &v->live, &body);
    wire_out_free(&body);
}

/* Tells upwards what this server and all below it have heard. */
static void acknowledge(struct view *v)
{
    int64_t low = view_name_is(v->heard_view, v->name) ? (int64_t)v->heard : 0;
    for (uint32_t i = 0; i < v->nbelow; i++)
        if (v->acks[i] < low)
            low = v->acks[i];
    if (low <= v->acked)
        return;
    v->acked = low;
    if (is_head(v)) {
        v->settled = low;
        forget(v, low);
        say_next(v);
        if (!v->over && v->settled == (int64_t)v->number)
            settle(v, v->number);
        return;
    }
    struct wire_out body = {0};
    view_begin(v, &body, VIEW_HEARD);
    wire_put_u64(&body, (uint64_t)low);
    view_send(v, v->above, &body);
}

/* A question is answered by those that hear it in the view where it was numbered. */
static void note_question(struct view *v, const struct word *word)
{
    struct question *q = calloc(1, sizeof *q);
    if (q == NULL) {
        view_broken(v);
        return;
    }
    *q = (struct question){.number = word->number,
                           .origin = word->origin,
                           .id = word->id,
                           .text = shared_bytes_hold(word->text)};
    TAILQ_INSERT_TAIL(&v->questions, q, entry);
    v->nquestions++;
    v->question_news = true;
}

/* Passes on and hears a word, which is alone in @p words. */
static void pass_on(struct view *v, int64_t settled, struct words *words)
{
    struct word *word = TAILQ_FIRST(words);
    struct wire_out body = {0};
    view_begin(v, &body, VIEW_SAID);
    wire_put_u64(&body, word->number);
    wire_put_u64(&body, (uint64_t)(settled + 1));
    wire_put_u32(&body, word->origin);
    wire_put_u64(&body, word->id);
    wire_put_raw(&body, word->text->data, word->text->len);
    view_send_down(v, &v->live, &body);
    wire_out_free(&body);
    if (kind_of(word->text) == WORD_ASKS)
        note_question(v, word);
    hear(v, words, word);
    if (!v->over)
        acknowledge(v);
}

/* Whether another word may be on its way: all servers keep those, and a change of view carries
 * them. */
static bool has_room(const struct view *v)
{
    const struct word *word;
    size_t bytes = 0;
    TAILQ_FOREACH (word, &v->words, entry)
        bytes += word->text->len;
    return (int64_t)v->number - v->settled < VIEW_WINDOW && bytes <= VIEW_WINDOW_BYTES;
}

static void say_next(struct view *v)
{
    struct word *word;
    while (!v->over && (word = TAILQ_FIRST(&v->waiting)) != NULL && has_room(v)) {
        struct words one = TAILQ_HEAD_INITIALIZER(one);
        TAILQ_REMOVE(&v->waiting, word, entry);
        v->nwaiting--;
        TAILQ_INSERT_TAIL(&one, word, entry);
        word->view = v->name;
        word->number = ++v->number;
        pass_on(v, v->settled, &one);
    }
}

/* ---- frames ---- */

static void take_word(struct view *v, uint32_t from, struct wire_in *in)
{
    uint64_t id = wire_get_u64(in);
    size_t len = (size_t)(in->end - in->p);
    if (!is_head(v) || in->bad)
        return;
    if (v->nwaiting >= (uint64_t)VIEW_SENT_MAX * v->live.n) { /* more than all may have sent */
        v->confused = from;
        return;
    }
    if (add(&v->waiting, from, id, shared_bytes_copy(wire_get_raw(in, len), len)) == NULL)
        view_broken(v);
    v->nwaiting++;
    if (!v->over)
        say_next(v);
}

static void take_said(struct view *v, struct wire_in *in)
{
    struct words one = TAILQ_HEAD_INITIALIZER(one);
    uint64_t number = wire_get_u64(in);
    uint64_t settled1 = wire_get_u64(in); /* and 1 */
    int64_t settled = settled1 <= number ? (int64_t)settled1 - 1 : -1;
    uint32_t origin = wire_get_u32(in);
    uint64_t id = wire_get_u64(in);
    size_t len = (size_t)(in->end - in->p);
    uint64_t last = view_name_is(v->heard_view, v->name) ? v->heard : 0;
    if (in->bad || number != last + 1 || origin >= v->env.nnodes)
        return;
    struct word *word = add(&one, origin, id, shared_bytes_copy(wire_get_raw(in, len), len));
    if (word == NULL) {
        view_broken(v);
        return;
    }
    word->view = v->name;
    word->number = number;
    if (settled >= 0)
        forget(v, settled);
    pass_on(v, settled, &one);
}

static void take_heard(struct view *v, uint32_t from, struct wire_in *in)
{
    uint64_t low = wire_get_u64(in);
    for (uint32_t i = 0; i < v->nbelow; i++)
        if (v->below[i] == from && v->acks[i] < (int64_t)low)
            v->acks[i] = (int64_t)low;
    acknowledge(v);
}

static void take_settled(struct view *v, struct wire_in *in)
{
    uint64_t settled = wire_get_u64(in);
    settle(v, settled);
    forget(v, (int64_t)settled);
}

void view_words_take(struct view *v, uint32_t from, enum view_kind kind, struct wire_in *in)
{
    bool above = from == v->above;
    if (kind == VIEW_WORD)
        take_word(v, from, in);
    else if (kind == VIEW_SAID && above)
        take_said(v, in);
    else if (kind == VIEW_HEARD)
        take_heard(v, from, in);
    else if (kind == VIEW_SETTLED && above)
        take_settled(v, in);
}

/* ---- a new view ---- */

static void fresh(struct view *v)
{
    v->number = 0;
    v->acked = v->settled = -1;
    for (uint32_t i = 0; i < v->env.arity; i++)
        v->acks[i] = -1;
    view_words_free(&v->waiting);
    v->nwaiting = 0;
}

void view_words_init(struct view *v)
{
    TAILQ_INIT(&v->words);
    TAILQ_INIT(&v->said);
    TAILQ_INIT(&v->waiting);
    v->acks = calloc(v->env.arity, sizeof *v->acks);
    if (v->acks != NULL)
        fresh(v);
    v->acked = v->settled = 0; /* all begin in the first view */
    for (uint32_t i = 0; v->acks != NULL && i < v->env.arity; i++)
        v->acks[i] = 0;
}

void view_words_enter(struct view *v, struct words *of_union)
{
    struct word *word;
    view_words_free(&v->words);
    fresh(v);
    while (!v->over && (word = TAILQ_FIRST(of_union)) != NULL) {
        const struct word last = {.view = v->heard_view, .number = v->heard};
        if (by_place(word, &last) > 0) {
            hear(v, of_union, word);
        } else {
            TAILQ_REMOVE(of_union, word, entry);
            TAILQ_INSERT_TAIL(&v->words, word, entry);
        }
    }
}

void view_words_again(struct view *v)
{
    v->nsent = 0;
    fill_head(v);
    acknowledge(v);
}
