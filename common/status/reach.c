/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lists of words up to a NULL, each its own malloc().
 */
#include "common/status/reach.h"

#include "common/status/place.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char **reach_word(char **list, const char *word)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    char **more = realloc(list, (n + 2) * sizeof *more), *copy = strdup(word);
    if (more == NULL || copy == NULL) {
        reach_free_list(more != NULL ? more : list);
        free(copy);
        return NULL;
    }
    more[n] = copy;
    more[n + 1] = NULL;
    return more;
}

void reach_free_list(char **list)
{
    for (char **p = list; p != NULL && *p != NULL; p++)
        free(*p);
    free(list);
}

/* @param failed set, and the list freed, when memory runs out */
static char **add_words(char **list, const char *const *words, bool *failed)
{
    for (; words != NULL && *words != NULL && !*failed; words++) {
        list = reach_word(list, *words);
        *failed = list == NULL;
    }
    return list;
}

int reach_add(struct reach *reach, const char *const *before, const char *dir, const char *step,
              char **env, char **nodes, struct err *err)
{
    char uid[16];
    if (dir == NULL)
        dir = reach->dir;
    const char *const whose[] = {"--user", uid, NULL}, *const where[] = {"--dir", dir, NULL},
                      *const which[] = {step, NULL};
    bool failed = false;
    snprintf(uid, sizeof uid, "%u", (unsigned)reach->uid);
    char **argv = add_words(NULL, before, &failed);
    argv = add_words(argv, reach->program, &failed);
    argv = add_words(argv, geteuid() == 0 && reach->uid != (uid_t)-1 ? whose : NULL, &failed);
    argv = add_words(argv, dir != NULL ? where : NULL, &failed);
    argv = add_words(argv, which, &failed);
    argv = add_words(argv, reach->rest, &failed);
    struct reach_line *more = realloc(reach->lines, (reach->n + 1) * sizeof *more);
    reach->lines = more != NULL ? more : reach->lines;
    if (failed || more == NULL) {
        reach_free_list(failed ? NULL : argv);
        reach_free_list(env);
        reach_free_list(nodes);
        return err_set(err, "out of memory");
    }
    more[reach->n++] = (struct reach_line){argv, env, nodes};
    return 0;
}

int reach_find(struct reach *reach, const struct place *const *places, const char *step,
               struct err *err)
{
    const struct place *const *all = places;
    char lists[PLACE_LISTS_SIZE];
    reach->death = SIGTERM;
    for (; *places != NULL; places++)
        if ((*places)->reach != NULL && (*places)->reach(step, reach, err) != 0)
            return -1;
        else if (reach->n > 0)
            return 0;
    place_lists(all, lists);
    return err_set(
        err, "no step or job %.80s of yours runs that can be reached from here%s%s%s; %s%s", step,
        reach->why[0] != '\0' ? " (" : "", reach->why, reach->why[0] != '\0' ? ")" : "",
        lists[0] != '\0' ? lists : "the resource manager's commands have to be in PATH",
        lists[0] != '\0' ? " lists yours" : "");
}

void reach_free(struct reach *reach)
{
    for (size_t i = 0; i < reach->n; i++) {
        reach_free_list(reach->lines[i].argv);
        reach_free_list(reach->lines[i].env);
        reach_free_list(reach->lines[i].nodes);
    }
    free(reach->lines);
    reach->lines = NULL;
    reach->n = 0;
}
