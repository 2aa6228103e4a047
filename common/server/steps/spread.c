/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells all servers of the step of a namespace, and waits until they know it.
 *
 * SPREAD: str namespace, block registration
 */
#include "common/server/steps/spread.h"

#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/transport/frame.h"
#include "common/util/log.h"
#include "common/view/view.h"

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
    LIST_HEAD(, spread) all;
    LIST_HEAD(, spread_wait) waits;
    bool closing;
};

void spread_open(struct server *server)
{
    server->spreads = calloc(1, sizeof *server->spreads);
}

static struct spread *find(const struct spreads *spreads, const char *name)
{
    struct spread *s;
    LIST_FOREACH (s, &spreads->all, entry)
        if (strcmp(s->name, name) == 0)
            break;
    return s;
}

static void add(struct spreads *spreads, const char *name, enum spread_state state, uint64_t word)
{
    struct spread *s = calloc(1, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->state = state;
    s->word = word;
    LIST_INSERT_HEAD(&spreads->all, s, entry);
}

/* @return the namespace, if it is another step's that is there and known here, or NULL */
static const struct nspace *known(const struct server *server, const char *name)
{
    const struct nspace *ns = nspace_find(server->nspace, name);
    return ns != NULL && ns->foreign != NULL && !foreign_has_ended(ns) ? ns : NULL;
}

/* ---- callers that wait ---- */

static bool is_ready(const struct server *server, const struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct spread *s = find(server->spreads, set->parts[i].nspace);
        if (known(server, set->parts[i].nspace) != NULL &&
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
static void wake(struct server *server)
{
    struct spread_wait *wait = LIST_FIRST(&server->spreads->waits);
    while (wait != NULL) {
        bool ready = is_ready(server, wait->set);
        struct spread_wait *next = LIST_NEXT(wait, entry);
        if (ready)
            finish(wait);
        wait = ready ? LIST_FIRST(&server->spreads->waits) : next;
    }
}

/* Goes on without the servers that have not heard it. So do later groups. */
static void expire(void *arg, struct timer *timer)
{
    struct server *server = arg;
    struct spread_wait *wait = TIMER_OF(timer, struct spread_wait, until);
    for (uint32_t i = 0; i < wait->set->nparts; i++) {
        struct spread *s = find(server->spreads, wait->set->parts[i].nspace);
        if (s == NULL || s->state == SPREAD_EVERYWHERE)
            continue;
        log_warning("some servers have not said after %d s that they know namespace %s: groups "
                    "with members there go on without them",
                    SPREAD_WAIT_MS / 1000, s->name);
        s->state = SPREAD_EVERYWHERE;
    }
    finish(wait);
    wake(server);
}

void spread_await(struct server *server, struct spread_wait *wait)
{
    struct spreads *spreads = server->spreads;
    if (spreads != NULL && !spreads->closing && !is_ready(server, wait->set))
        spread_speak(server, wait->set);
    if (spreads == NULL || spreads->closing || is_ready(server, wait->set)) {
        wait->done(wait);
        return;
    }
    timer_init(&wait->until, &server->timers, expire, server);
    timer_after(&wait->until, SPREAD_WAIT_MS);
    LIST_INSERT_HEAD(&spreads->waits, wait, entry);
}

/* ---- saying and hearing ---- */

void spread_speak(struct server *server, const struct procset *set)
{
    struct spreads *spreads = server->spreads;
    if (spreads == NULL || steps_speaker(server, set) != server->boot.node)
        return;
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct nspace *ns = known(server, set->parts[i].nspace);
        struct wire_out word = {0};
        if (ns == NULL || find(spreads, set->parts[i].nspace) != NULL)
            continue;
        add(spreads, set->parts[i].nspace, SPREAD_SAID, 0);
        wire_put_u8(&word, FRAME_SPREAD);
        wire_put_str(&word, set->parts[i].nspace);
        wire_put_block(&word, ns->bytes, ns->len);
        server_say(server, &word);
    }
}

/* Makes the registration known here, to libpmix too. */
static void learn(struct server *server, const char *name, const void *bytes, size_t len)
{
    const struct nspace *ns = steps_take(server, 0, bytes, len);
    struct procset set = {0};
    if (ns == NULL || strcmp(ns->foreign->name, name) != 0)
        return;
    procset_add(&set, name, 0, 0);
    steps_register(server, &set);
    procset_free(&set);
}

void spread_hear(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct spreads *spreads = server->spreads;
    char name[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    size_t reglen;
    if (spreads == NULL)
        return;
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    const void *bytes = wire_get_block(&in, &reglen);
    if (!wire_end(&in) || reglen == 0) {
        log_warning("a malformed word of node %u about a namespace was dropped", from);
        return;
    }
    if (from != server->boot.node)
        learn(server, name, bytes, reglen);
    struct spread *s = find(spreads, name);
    uint64_t word = view_heard(server->view);
    if (s == NULL && known(server, name) != NULL) {
        add(spreads, name, SPREAD_HEARD, word);
    } else if (s != NULL && s->state == SPREAD_SAID) {
        s->state = SPREAD_HEARD;
        s->word = word;
    } /* else this server has refused it, or it has ended meanwhile, or it was heard before */
}

void spread_settled(struct server *server)
{
    struct spreads *spreads = server->spreads;
    struct spread *s;
    if (spreads == NULL)
        return;
    uint64_t words = view_settled(server->view);
    LIST_FOREACH (s, &spreads->all, entry)
        if (s->state == SPREAD_HEARD && s->word <= words) {
            s->state = SPREAD_EVERYWHERE;
            log_debug("all servers of this step know namespace %s", s->name);
        }
    wake(server);
}

void spread_lost(struct server *server)
{
    const struct spread_wait *wait;
    if (server->spreads != NULL)
        LIST_FOREACH (wait, &server->spreads->waits, entry)
            spread_speak(server, wait->set);
}

static void drop(struct spread *s)
{
    LIST_REMOVE(s, entry);
    free(s);
}

void spread_forget(struct server *server, const char *name)
{
    struct spread *s = server->spreads != NULL ? find(server->spreads, name) : NULL;
    if (s != NULL)
        drop(s);
    if (server->spreads != NULL)
        wake(server);
}

/* ---- the end ---- */

void spread_go_on(struct server *server)
{
    struct spreads *spreads = server->spreads;
    if (spreads == NULL)
        return;
    spreads->closing = true;
    while (!LIST_EMPTY(&spreads->waits))
        finish(LIST_FIRST(&spreads->waits));
}

void spread_close(struct server *server)
{
    spread_go_on(server);
    while (server->spreads != NULL && !LIST_EMPTY(&server->spreads->all))
        drop(LIST_FIRST(&server->spreads->all));
    free(server->spreads);
    server->spreads = NULL;
}
