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
 */
#include "common/tracker/membership/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUITS_MAX = 1024 /* beyond that the oldest are forgotten */ };

struct quit {
    TAILQ_ENTRY(quit) all;
    struct timer due; /**< to be forgotten */
    char id[PROCSET_NAME_MAX + 1];
    struct procset caller; /**< one process; empty: not known */
};

static void forget(struct engine *engine, struct quit *quit)
{
    TAILQ_REMOVE(&engine->membership->quits, quit, all);
    timer_stop(&quit->due);
    engine->membership->nquits--;
    procset_free(&quit->caller);
    free(quit);
}

static void old_enough(void *arg, struct timer *due)
{
    forget(arg, TIMER_OF(due, struct quit, due));
}

void quit_note(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit = calloc(1, sizeof *quit);
    if (quit == NULL)
        return;
    timer_init(&quit->due, engine->env.timers, old_enough, engine);
    timer_after(&quit->due, ENGINE_REMEMBER_MS);
    snprintf(quit->id, sizeof quit->id, "%s", call->id);
    procset_unite(&quit->caller, call->caller);
    TAILQ_INSERT_TAIL(&engine->membership->quits, quit, all);
    if (++engine->membership->nquits > QUITS_MAX)
        forget(engine, TAILQ_FIRST(&engine->membership->quits));
}

void quit_returns(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->membership->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        if (quit->caller.nparts > 0 && strcmp(quit->id, call->id) == 0 &&
            procset_equal(&quit->caller, call->caller))
            forget(engine, quit);
    }
}

void quit_settle(struct engine *engine, struct claim *claim)
{
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->membership->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        bool awaited = claim->left > 0 && claim_wants(claim, quit->id, &quit->caller);
        if (awaited) {
            procset_unite(&claim->answered, &quit->caller);
            claim->left--;
        }
        if (awaited || (strcmp(quit->id, claim->id) == 0 && quit->caller.nparts == 0))
            forget(engine, quit);
    }
}

void quit_close(struct engine *engine)
{
    while (!TAILQ_EMPTY(&engine->membership->quits))
        forget(engine, TAILQ_FIRST(&engine->membership->quits));
}
