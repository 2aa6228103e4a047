/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells all servers of the step of a namespace, and waits until they know it.
 *
 * SPREAD: u8 word (1 LEARN, 2 LEARNT, 3 EVERYWHERE), u32 the speaker's node, str namespace, block
 *         registration (of LEARN; else empty)
 */
#include "common/server/steps/spread.h"

#include "common/tracker/values/tree.h"
#include "common/transport/frame.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum word { WORD_LEARN = 1, WORD_LEARNT, WORD_EVERYWHERE };

/* How far one namespace has come, as one speaker spreads it. The speaker has no server above it,
 * and goes from learning to everywhere.
 *
 * | state | awaits | the sender of a LEARN is told | last LEARNT from below | EVERYWHERE |
 * | --- | --- | --- | --- | --- |
 * | learning | servers below | later | → learnt | → everywhere |
 * | learnt, as those above were told | EVERYWHERE | at once | - | → everywhere |
 * | everywhere | nothing | at once | - | - |
 */
enum spread_state { SPREAD_LEARNING, SPREAD_LEARNT, SPREAD_EVERYWHERE };

struct nodes {
    uint32_t n, *v;
};

struct spread {
    LIST_ENTRY(spread) entry;
    char name[PROCSET_NAME_MAX + 1];
    uint32_t speaker;
    enum spread_state state;
    struct nodes below; /* servers whose LEARNT is awaited */
    struct nodes above; /* servers that await ours */
};

struct spreads {
    struct spread_env env;
    LIST_HEAD(, spread) all;
    LIST_HEAD(, spread_wait) waits;
    bool closing;
};

static bool take(struct nodes *nodes, uint32_t node)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        if (nodes->v[i] == node) {
            nodes->v[i] = nodes->v[--nodes->n];
            return true;
        }
    return false;
}

/* Out of memory it leaves the node out, and no caller waits for that node. */
static void put(struct nodes *nodes, uint32_t node)
{
    take(nodes, node);
    uint32_t *v = realloc(nodes->v, (nodes->n + 1ul) * sizeof *v);
    if (v == NULL)
        return;
    nodes->v = v;
    v[nodes->n++] = node;
}

static struct spread *find(const struct spreads *spreads, const char *name, uint32_t speaker)
{
    struct spread *s;
    LIST_FOREACH (s, &spreads->all, entry)
        if (s->speaker == speaker && strcmp(s->name, name) == 0)
            break;
    return s;
}

static struct spread *add(struct spreads *spreads, const char *name, uint32_t speaker)
{
    struct spread *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->speaker = speaker;
    LIST_INSERT_HEAD(&spreads->all, s, entry);
    return s;
}

static void drop(struct spread *s)
{
    LIST_REMOVE(s, entry);
    free(s->below.v);
    free(s->above.v);
    free(s);
}

static bool is_everywhere(const struct spreads *spreads, const char *name)
{
    const struct spread *s;
    LIST_FOREACH (s, &spreads->all, entry)
        if (s->state == SPREAD_EVERYWHERE && strcmp(s->name, name) == 0)
            return true;
    return false;
}

/* ---- words ---- */

static void say(const struct spreads *spreads, const char *name, uint32_t speaker, enum word word,
                uint32_t node)
{
    const struct spread_env *env = &spreads->env;
    struct wire_out out = {0};
    size_t len = 0;
    const void *bytes = word == WORD_LEARN ? env->registration(env->arg, name, &len) : NULL;
    wire_put_u8(&out, FRAME_SPREAD);
    wire_put_u8(&out, (uint8_t)word);
    wire_put_u32(&out, speaker);
    wire_put_str(&out, name);
    wire_put_block(&out, bytes, len);
    if (!out.failed)
        env->send(env->arg, node, &out);
    wire_out_free(&out);
}

/* Says a word to the servers next below @p node in the speaker's tree, and in the place of a lost
 * one to those below that. */
static void say_below(struct spreads *spreads, struct spread *s, enum word word, uint32_t node)
{
    const struct spread_env *env = &spreads->env;
    const struct tree tree = {.n = env->nnodes, .root = s->speaker, .arity = env->arity};
    for (uint32_t i = 0, child; i < tree.arity; i++) {
        child = tree_child(&tree, node, i);
        if (child == TREE_NONE)
            return;
        if (env->is_lost(env->arg, child)) {
            say_below(spreads, s, word, child);
            continue;
        }
        if (word == WORD_LEARN)
            put(&s->below, child);
        say(spreads, s->name, s->speaker, word, child);
    }
}

/* ---- callers that wait ---- */

static bool is_ready(const struct spreads *spreads, const struct procset *set)
{
    const struct spread_env *env = &spreads->env;
    size_t len;
    for (uint32_t i = 0; i < set->nparts; i++)
        if (env->registration(env->arg, set->parts[i].nspace, &len) != NULL &&
            !is_everywhere(spreads, set->parts[i].nspace))
            return false;
    return true;
}

static void finish(struct spread_wait *wait)
{
    LIST_REMOVE(wait, entry);
    timer_stop(&wait->until);
    wait->done(wait);
}

/* done() may add and end waits, so the walk begins again after each. */
static void wake(struct spreads *spreads)
{
    struct spread_wait *wait = LIST_FIRST(&spreads->waits);
    while (wait != NULL) {
        bool ready = is_ready(spreads, wait->set);
        struct spread_wait *next = LIST_NEXT(wait, entry);
        if (ready)
            finish(wait);
        wait = ready ? LIST_FIRST(&spreads->waits) : next;
    }
}

/* ---- states ---- */

static void tell_above(struct spreads *spreads, struct spread *s)
{
    for (uint32_t i = 0; i < s->above.n; i++)
        say(spreads, s->name, s->speaker, WORD_LEARNT, s->above.v[i]);
    s->above.n = 0;
}

static void set_everywhere(struct spreads *spreads, struct spread *s)
{
    if (s->state == SPREAD_EVERYWHERE)
        return;
    tell_above(spreads, s);
    s->state = SPREAD_EVERYWHERE;
    s->below.n = 0;
    log_debug("all servers of this step know namespace %s", s->name);
    say_below(spreads, s, WORD_EVERYWHERE, spreads->env.self);
}

static void try_complete(struct spreads *spreads, struct spread *s)
{
    if (s->state != SPREAD_LEARNING || s->below.n > 0)
        return;
    if (s->speaker == spreads->env.self) {
        set_everywhere(spreads, s);
        return;
    }
    s->state = SPREAD_LEARNT;
    tell_above(spreads, s);
}

static void begin(struct spreads *spreads, const char *name, uint32_t speaker, uint32_t above)
{
    struct spread *s = add(spreads, name, speaker);
    if (s == NULL)
        return;
    if (above != spreads->env.self)
        put(&s->above, above);
    say_below(spreads, s, WORD_LEARN, spreads->env.self);
    try_complete(spreads, s);
}

void spread_speak(struct spreads *spreads, const struct procset *set)
{
    const struct spread_env *env = &spreads->env;
    size_t len;
    if (env->speaker(env->arg, set) != env->self)
        return;
    for (uint32_t i = 0; i < set->nparts; i++) {
        const char *name = set->parts[i].nspace;
        if (env->registration(env->arg, name, &len) != NULL && !is_everywhere(spreads, name) &&
            find(spreads, name, env->self) == NULL)
            begin(spreads, name, env->self, env->self);
    }
}

/* Goes on without the servers that have not answered. So do later groups. */
static void expire(void *arg, struct timer *timer)
{
    struct spreads *spreads = arg;
    struct spread_wait *wait = TIMER_OF(timer, struct spread_wait, until);
    struct spread *s;
    for (uint32_t i = 0; i < wait->set->nparts; i++) {
        const char *name = wait->set->parts[i].nspace;
        s = find(spreads, name, spreads->env.self);
        if (s != NULL && s->state == SPREAD_LEARNING)
            log_warning("%u servers have not said after %d s that they know namespace %s: groups "
                        "with members there go on without them",
                        s->below.n, SPREAD_WAIT_MS / 1000, name);
        if (s != NULL)
            set_everywhere(spreads, s);
    }
    finish(wait);
    wake(spreads);
}

void spread_await(struct spreads *spreads, struct spread_wait *wait)
{
    const struct spread_env *env = &spreads->env;
    if (!spreads->closing && !is_ready(spreads, wait->set))
        spread_speak(spreads, wait->set);
    if (spreads->closing || is_ready(spreads, wait->set)) {
        wait->done(wait);
        return;
    }
    timer_init(&wait->until, env->timers, expire, spreads);
    timer_after(&wait->until, SPREAD_WAIT_MS);
    LIST_INSERT_HEAD(&spreads->waits, wait, entry);
}

/* ---- frames ---- */

static void on_learn(struct spreads *spreads, uint32_t from, const char *name, uint32_t speaker)
{
    struct spread *s = find(spreads, name, speaker);
    if (s == NULL && !is_everywhere(spreads, name)) {
        begin(spreads, name, speaker, from);
        return;
    }
    if (s != NULL && s->state == SPREAD_LEARNING)
        put(&s->above, from);
    else
        say(spreads, name, speaker, WORD_LEARNT, from);
}

void spread_receive(struct spreads *spreads, uint32_t from, const void *body, size_t len)
{
    const struct spread_env *env = &spreads->env;
    char name[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    size_t reglen;
    wire_in_init(&in, body, len);
    uint8_t word = wire_get_u8(&in);
    uint32_t speaker = wire_get_u32(&in);
    wire_get_str(&in, name, sizeof name);
    const void *bytes = wire_get_block(&in, &reglen);
    bool learns = word == WORD_LEARN;
    if (!wire_end(&in) || speaker >= env->nnodes || from >= env->nnodes || from == env->self ||
        word < WORD_LEARN || word > WORD_EVERYWHERE || learns != (reglen > 0) ||
        (learns && speaker == env->self)) {
        log_warning("a malformed word of node %u about a namespace was dropped", from);
        return;
    }
    if (learns) {
        env->learn(env->arg, name, bytes, reglen);
        if (env->registration(env->arg, name, &reglen) != NULL)
            on_learn(spreads, from, name, speaker);
        else /* this server has refused it, and no other one is to wait for that */
            say(spreads, name, speaker, WORD_LEARNT, from);
        return;
    }
    struct spread *s = find(spreads, name, speaker);
    if (s == NULL)
        return; /* forgotten, or by another speaker it is known everywhere */
    if (word == WORD_EVERYWHERE)
        set_everywhere(spreads, s);
    else if (take(&s->below, from))
        try_complete(spreads, s);
    wake(spreads);
}

void spread_lost(struct spreads *spreads, uint32_t node)
{
    const struct spread_env *env = &spreads->env;
    struct spread_wait *wait;
    for (struct spread *s = LIST_FIRST(&spreads->all), *next; s != NULL; s = next) {
        const struct tree tree = {.n = env->nnodes, .root = s->speaker, .arity = env->arity};
        next = LIST_NEXT(s, entry);
        if (s->speaker == node && s->state != SPREAD_EVERYWHERE) {
            drop(s);
        } else if (take(&s->below, node)) {
            say_below(spreads, s, WORD_LEARN, node);
            try_complete(spreads, s);
        } else if (s->state == SPREAD_EVERYWHERE && tree_parent(&tree, node) == env->self) {
            say_below(spreads, s, WORD_EVERYWHERE, node); /* it may not have passed that on */
        }
    }
    LIST_FOREACH (wait, &spreads->waits, entry)
        spread_speak(spreads, wait->set);
    wake(spreads);
}

void spread_forget(struct spreads *spreads, const char *name)
{
    if (spreads == NULL)
        return;
    for (struct spread *s = LIST_FIRST(&spreads->all), *next; s != NULL; s = next) {
        next = LIST_NEXT(s, entry);
        if (strcmp(s->name, name) == 0)
            drop(s);
    }
    wake(spreads);
}

/* ---- the beginning, and the end ---- */

struct spreads *spread_new(const struct spread_env *env)
{
    struct spreads *spreads = calloc(1, sizeof *spreads);
    if (spreads != NULL)
        spreads->env = *env;
    return spreads;
}

void spread_close(struct spreads *spreads)
{
    if (spreads == NULL)
        return;
    spreads->closing = true;
    while (!LIST_EMPTY(&spreads->waits))
        finish(LIST_FIRST(&spreads->waits));
}

void spread_free(struct spreads *spreads)
{
    if (spreads == NULL)
        return;
    while (!LIST_EMPTY(&spreads->all))
        drop(LIST_FIRST(&spreads->all));
    free(spreads);
}
