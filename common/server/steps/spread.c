/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells all servers of the step of a namespace, and waits until they know it.
 *
 * SPREAD: str namespace, block registration
 */
#include "common/server/steps/spread.h"

#include "common/transport/frame.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum spread_state {
    SPREAD_SAID,      /* by this server, which has not heard it yet */
    SPREAD_HEARD,     /* here, and perhaps not by all */
    SPREAD_EVERYWHERE /* all know it, or are not waited for any longer */
};

struct spread {
    LIST_ENTRY(spread) entry;
    char name[PROCSET_NAME_MAX + 1];
    enum spread_state state;
    uint64_t word; /* when it was heard */
};

struct spreads {
    struct spread_env env;
    LIST_HEAD(, spread) all;
    LIST_HEAD(, spread_wait) waits;
    bool closing;
};

static struct spread *find(const struct spreads *spreads, const char *name)
{
    struct spread *s;
    LIST_FOREACH (s, &spreads->all, entry)
        if (strcmp(s->name, name) == 0)
            break;
    return s;
}

static struct spread *add(struct spreads *spreads, const char *name)
{
    struct spread *s = calloc(1, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    LIST_INSERT_HEAD(&spreads->all, s, entry);
    return s;
}

/* ---- callers that wait ---- */

static bool is_ready(const struct spreads *spreads, const struct procset *set)
{
    const struct spread_env *env = &spreads->env;
    size_t len;
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct spread *s = find(spreads, set->parts[i].nspace);
        if (env->registration(env->arg, set->parts[i].nspace, &len) != NULL &&
            (s == NULL || s->state != SPREAD_EVERYWHERE))
            return false;
    }
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

/* Goes on without the servers that have not heard it. So do later groups. */
static void expire(void *arg, struct timer *timer)
{
    struct spreads *spreads = arg;
    struct spread_wait *wait = TIMER_OF(timer, struct spread_wait, until);
    for (uint32_t i = 0; i < wait->set->nparts; i++) {
        struct spread *s = find(spreads, wait->set->parts[i].nspace);
        if (s == NULL || s->state == SPREAD_EVERYWHERE)
            continue;
        log_warning("some servers have not said after %d s that they know namespace %s: groups "
                    "with members there go on without them",
                    SPREAD_WAIT_MS / 1000, s->name);
        s->state = SPREAD_EVERYWHERE;
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

/* ---- saying and hearing ---- */

void spread_speak(struct spreads *spreads, const struct procset *set)
{
    const struct spread_env *env = &spreads->env;
    size_t len;
    if (env->speaker(env->arg, set) != env->self)
        return;
    for (uint32_t i = 0; i < set->nparts; i++) {
        const char *name = set->parts[i].nspace;
        const void *bytes = env->registration(env->arg, name, &len);
        struct wire_out word = {0};
        if (bytes == NULL || find(spreads, name) != NULL || add(spreads, name) == NULL)
            continue;
        wire_put_u8(&word, FRAME_SPREAD);
        wire_put_str(&word, name);
        wire_put_block(&word, bytes, len);
        env->say(env->arg, &word);
    }
}

void spread_hear(struct spreads *spreads, uint32_t from, uint64_t word, const void *body,
                 size_t len)
{
    const struct spread_env *env = &spreads->env;
    char name[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    size_t reglen;
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    const void *bytes = wire_get_block(&in, &reglen);
    if (!wire_end(&in) || reglen == 0) {
        log_warning("a malformed word of node %u about a namespace was dropped", from);
        return;
    }
    if (from != env->self)
        env->learn(env->arg, name, bytes, reglen);
    struct spread *s = find(spreads, name);
    if (s == NULL && env->registration(env->arg, name, &reglen) != NULL)
        s = add(spreads, name); /* else this server has refused it, or it has ended meanwhile */
    if (s != NULL && s->state == SPREAD_SAID) {
        s->state = SPREAD_HEARD;
        s->word = word;
    }
}

void spread_settled(struct spreads *spreads, uint64_t words)
{
    struct spread *s;
    LIST_FOREACH (s, &spreads->all, entry)
        if (s->state == SPREAD_HEARD && s->word <= words) {
            s->state = SPREAD_EVERYWHERE;
            log_debug("all servers of this step know namespace %s", s->name);
        }
    wake(spreads);
}

void spread_lost(struct spreads *spreads)
{
    const struct spread_wait *wait;
    LIST_FOREACH (wait, &spreads->waits, entry)
        spread_speak(spreads, wait->set);
}

void spread_forget(struct spreads *spreads, const char *name)
{
    struct spread *s = spreads != NULL ? find(spreads, name) : NULL;
    if (s != NULL) {
        LIST_REMOVE(s, entry);
        free(s);
    }
    if (spreads != NULL)
        wake(spreads);
}

void spread_close(struct spreads *spreads)
{
    if (spreads == NULL)
        return;
    spreads->closing = true;
    while (!LIST_EMPTY(&spreads->waits))
        finish(LIST_FIRST(&spreads->waits));
}

struct spreads *spread_new(const struct spread_env *env)
{
    struct spreads *spreads = calloc(1, sizeof *spreads);
    spreads->env = *env;
    return spreads;
}

void spread_free(struct spreads *spreads)
{
    struct spread *s;
    if (spreads == NULL)
        return;
    while ((s = LIST_FIRST(&spreads->all)) != NULL) {
        LIST_REMOVE(s, entry);
        free(s);
    }
    free(spreads);
}
