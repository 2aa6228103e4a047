/* SPDX-License-Identifier: BSD-3-Clause */
/* Bootstraps that failed at their home before all of their leaders had called. Home remembers them,
 * and gives the leaders that call late the same status.
 */
#include "common/tracker/membership/private.h"

#include <stdlib.h>
#include <string.h>

void missed_free(struct engine *engine, struct missed *f)
{
    TAILQ_REMOVE(&engine->membership->failures, f, all);
    timer_stop(&f->due);
    procset_free(&f->answered);
    procset_free(&f->told);
    free(f);
}

static void old_enough(void *arg, struct timer *due)
{
    missed_free(arg, TIMER_OF(due, struct missed, due));
}

void missed_forget(struct engine *engine, const char *id)
{
    struct missed *f, *next;
    for (f = TAILQ_FIRST(&engine->membership->failures); f != NULL; f = next) {
        next = TAILQ_NEXT(f, all);
        if (strcmp(f->id, id) == 0)
            missed_free(engine, f);
    }
}

void missed_keep(struct engine *engine, const struct assembly *a, int32_t status)
{
    uint64_t have = procset_size(&a->leading);
    missed_forget(engine, a->id);
    struct missed *f = have < a->count ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return;
    timer_init(&f->due, engine->env.timers, old_enough, engine);
    timer_after(&f->due, ENGINE_REMEMBER_MS);
    memcpy(f->id, a->id, sizeof f->id);
    f->status = status;
    f->left = a->count - have;
    procset_unite(&f->answered, &a->leading);
    procset_unite(&f->told, &a->added);
    TAILQ_INSERT_TAIL(&engine->membership->failures, f, all);
}

struct missed *missed_find(struct engine *engine, const char *id, const struct procset *leader)
{
    struct missed *f;
    TAILQ_FOREACH (f, &engine->membership->failures, all)
        if (strcmp(f->id, id) == 0 && f->left > 0 && !procset_has_first(&f->answered, leader))
            return f;
    return NULL;
}

void missed_close(struct engine *engine)
{
    struct missed *f;
    while ((f = TAILQ_FIRST(&engine->membership->failures)) != NULL)
        missed_free(engine, f);
}
