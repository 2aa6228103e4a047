/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of added members that have ended before anybody claimed them: their deadline has passed, or
 * PMIx's library has answered them with another's. A construct that then fails without its member
 * was theirs, so that nothing is owed for it: the member's next call is of the next construct, in
 * which the others, who have had their failure, are again too.
 *
 * A member that is known by name is meant until it calls again. Of the others only the id is known;
 * they are meant until a construct of that id has ended here.
 */
#include "common/tracker/assembly.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUITS_MAX = 1024 /* beyond that the oldest are forgotten */ };

struct quit {
    TAILQ_ENTRY(quit) all;
    char id[PROCSET_NAME_MAX + 1];
    struct procset caller; /**< one process; empty: not known */
    uint64_t at;           /**< ms */
};

static void forget(struct engine *engine, struct quit *quit)
{
    TAILQ_REMOVE(&engine->quits, quit, all);
    procset_free(&quit->caller);
    free(quit);
}

void quit_note(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit = calloc(1, sizeof *quit);
    if (quit == NULL)
        return;
    snprintf(quit->id, sizeof quit->id, "%s", call->id);
    quit->at = engine->env.now(engine->env.arg);
    procset_unite(&quit->caller, call->caller);
    TAILQ_INSERT_TAIL(&engine->quits, quit, all);
    if (quit_count(engine) > QUITS_MAX)
        forget(engine, TAILQ_FIRST(&engine->quits));
}

void quit_returns(struct engine *engine, const struct engine_call *call)
{
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        if (quit->caller.nparts > 0 && strcmp(quit->id, call->id) == 0 &&
            procset_equal(&quit->caller, call->caller))
            forget(engine, quit);
    }
}

/* Whether a member that a claim still awaits is, or may be, the one that quit. */
static bool is_awaited(const struct claim *claim, const struct quit *quit)
{
    const struct procset *caller = &quit->caller;
    if (caller->nparts == 0)
        return claim->left > 0;
    const char *nspace = caller->parts[0].nspace;
    uint32_t rank = caller->parts[0].ranges[0].first;
    return claim->left > 0 && procset_has(&claim->members, nspace, rank) &&
           !procset_has(&claim->answered, nspace, rank);
}

void quit_settle(struct engine *engine, struct claim *claim)
{
    struct quit *quit, *next;
    for (quit = TAILQ_FIRST(&engine->quits); quit != NULL; quit = next) {
        next = TAILQ_NEXT(quit, all);
        bool awaited = strcmp(quit->id, claim->id) == 0 && is_awaited(claim, quit);
        if (awaited) {
            procset_unite(&claim->answered, &quit->caller);
            claim->left--;
        }
        if (awaited || (strcmp(quit->id, claim->id) == 0 && quit->caller.nparts == 0))
            forget(engine, quit);
    }
}

uint32_t quit_count(const struct engine *engine)
{
    const struct quit *quit;
    uint32_t n = 0;
    TAILQ_FOREACH (quit, &engine->quits, all)
        n++;
    return n;
}

uint64_t quit_next(const struct engine *engine)
{
    const struct quit *first = TAILQ_FIRST(&engine->quits);
    return first != NULL ? first->at + ENGINE_REMEMBER_MS : UINT64_MAX;
}

bool quit_tick(struct engine *engine, uint64_t now)
{
    bool due = quit_next(engine) <= now;
    if (due)
        forget(engine, TAILQ_FIRST(&engine->quits));
    return due;
}

void quit_close(struct engine *engine)
{
    while (!TAILQ_EMPTY(&engine->quits))
        forget(engine, TAILQ_FIRST(&engine->quits));
}
