/* SPDX-License-Identifier: BSD-3-Clause */
/* Members' calls that have ended before any server claimed them, because their deadline had passed,
 * or because libpmix had answered them with another call's result.
 *
 * If a construct fails without such a member, the ended call was for that construct. So nothing is
 * owed to the member: its next call is for the next construct, which the others, who have their
 * failure, will call as well. The same holds for a leader that has given up by its deadline, and
 * that another leader has added, too.
 *
 * A member whose name is known is meant until it calls again. Of a nameless one only the id is
 * known; it is meant until a construct of that id has ended here.
 *
 * The word on the failure may be slower than what the others do next: the member may have called
 * again when it comes. That call is for the next construct, too, if the one that failed had begun
 * before the member quit, and if the member has called again just now: a second is long for a word
 * on its way. A call that waits longer is answered with the failure, since it may be for the
 * construct that failed.
 */
#include "common/tracker/membership/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUITS_MAX = 1024,   /**< beyond that the oldest are forgotten */
    LATE_WORD_MS = 1000 /**< of a failure, behind a call that came after it elsewhere */
};

struct quit {
    TAILQ_ENTRY(quit) all;
    struct timer due; /**< to be forgotten */
    char id[PROCSET_NAME_MAX + 1];
    struct procset caller; /**< one process; empty: not known */
    uint64_t at;           /**< when its call ended, ms */
    uint64_t back;         /**< when it called again, ms; 0: it has not */
};

static void forget(struct engine *engine, struct quit *quit)
{
    TAILQ_REMOVE(&engine->membership->quits, quit, all);
    timers_stop(&engine->timers, &quit->due);
    engine->membership->nquits--;
    procset_free(&quit->caller);
    free(quit);
}

static void old_enough(void *arg, struct timer *due, uint64_t now)
{
    (void)now;
    forget(arg, TIMER_OF(due, struct quit, due));
}

void quit_note(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit = calloc(1, sizeof *quit);
    uint64_t now = engine->env.now(engine->env.arg);
    if (quit == NULL ||
        timers_start(&engine->timers, &quit->due, now + ENGINE_REMEMBER_MS, old_enough) != 0) {
        free(quit);
        return;
    }
    quit->at = now;
    snprintf(quit->id, sizeof quit->id, "%s", call->id);
    procset_unite(&quit->caller, call->caller);
    TAILQ_INSERT_TAIL(&engine->membership->quits, quit, all);
    if (++engine->membership->nquits > QUITS_MAX)
        forget(engine, TAILQ_FIRST(&engine->membership->quits));
}

void quit_returns(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit;
    TAILQ_FOREACH (quit, &engine->membership->quits, all) {
        if (quit->back != 0 || strcmp(quit->id, call->id) != 0 ||
            !procset_equal(&quit->caller, call->caller))
            continue;
        quit->back = engine->env.now(engine->env.arg);
        if (quit->caller.nparts == 0)
            return; /* one call is of one process */
        timers_set(&engine->timers, &quit->due, quit->back + LATE_WORD_MS);
    }
}

/* Whether a claim awaits the process. */
static bool is_awaited(const struct claim *claim, const struct quit *quit)
{
    return claim->left > 0 && claim_wants(claim, quit->id, &quit->caller);
}

/* Nothing is owed to the process. */
static void settle(struct engine *engine, struct claim *claim, struct quit *quit)
{
    procset_unite(&claim->answered, &quit->caller);
    claim->left--;
    forget(engine, quit);
}

void quit_returned(struct engine *engine, struct claim *claim, uint64_t began)
{
    uint64_t now = engine->env.now(engine->env.arg);
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->membership->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        if (quit->at >= began && quit->back != 0 && now - quit->back <= LATE_WORD_MS &&
            is_awaited(claim, quit))
            settle(engine, claim, quit);
    }
}

void quit_settle(struct engine *engine, struct claim *claim)
{
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->membership->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        bool nameless = quit->caller.nparts == 0;
        if ((nameless || quit->back == 0) && is_awaited(claim, quit))
            settle(engine, claim, quit);
        else if (nameless && strcmp(quit->id, claim->id) == 0)
            forget(engine, quit);
    }
}

void quit_close(struct engine *engine)
{
    while (!TAILQ_EMPTY(&engine->membership->quits))
        forget(engine, TAILQ_FIRST(&engine->membership->quits));
}
