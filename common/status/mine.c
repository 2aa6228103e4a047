/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Names of steps, each once, of which there is to be one.
 */
#include "common/status/mine.h"

#include "common/status/reach.h"
#include "common/util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct mine {
    char first[FIND_STEP_MAX + 1];
    char all[256]; /* "4711.0, 4712.0" */
    size_t n;
};

static void add(struct mine *mine, const char *step)
{
    if (!find_is_step(step))
        return;
    if (mine->n == 0)
        snprintf(mine->first, sizeof mine->first, "%s", step);
    text_fit(mine->all, sizeof mine->all, mine->n > 0 ? ", " : "");
    text_fit(mine->all, sizeof mine->all, step);
    mine->n++;
}

/* @param why there is none; set when none is here */
static void add_here(struct mine *mine, const struct find *find, struct err *why)
{
    size_t n = 0;
    struct find_step *steps = find_steps(find, &n, why);
    for (size_t i = 0; i < n && steps != NULL; i++)
        add(mine, steps[i].name);
    free(steps);
}

static void add_known(struct mine *mine, const struct find *find)
{
    for (size_t i = 0; find->places != NULL && find->places[i] != NULL; i++) {
        char **names = find->places[i]->mine != NULL ? find->places[i]->mine() : NULL;
        for (char **name = names; name != NULL && *name != NULL; name++)
            add(mine, *name);
        reach_free_list(names);
    }
}

int mine_find(const struct find *find, char step[static FIND_STEP_MAX + 1], struct err *err)
{
    struct mine mine = {.n = 0};
    struct err why = {0};
    add_here(&mine, find, &why);
    if (mine.n == 0 && !find->only && (find->uid == (uid_t)-1 || find->uid == geteuid()))
        add_known(&mine, find);
    if (mine.n > 1)
        return err_set(err, "which step? %s run; give one", mine.all);
    if (mine.n == 0)
        return err_set(err, "%s", why.text);
    snprintf(step, FIND_STEP_MAX + 1, "%s", mine.first);
    return 0;
}
