/* SPDX-License-Identifier: BSD-3-Clause */
/* A few names: a list under a lock. */
#include "common/util/names.h"

#include <stdlib.h>
#include <string.h>

void names_init(struct name_set *names)
{
    *names = (struct name_set){0};
    pthread_mutex_init(&names->lock, NULL);
}

/* @return its index, or n. @thread any, locked */
static size_t find(const struct name_set *names, const char *name)
{
    size_t i = 0;
    while (i < names->n && strcmp(names->list[i], name) != 0)
        i++;
    return i;
}

bool names_add(struct name_set *names, const char *name)
{
    pthread_mutex_lock(&names->lock);
    bool good = find(names, name) < names->n;
    char **list = good ? NULL : realloc(names->list, (names->n + 1) * sizeof *list);
    if (list != NULL) {
        names->list = list;
        list[names->n] = strdup(name);
        good = list[names->n] != NULL;
        names->n += good;
    }
    pthread_mutex_unlock(&names->lock);
    return good;
}

void names_remove(struct name_set *names, const char *name)
{
    pthread_mutex_lock(&names->lock);
    size_t i = find(names, name);
    if (i < names->n) {
        free(names->list[i]);
        names->list[i] = names->list[--names->n];
    }
    pthread_mutex_unlock(&names->lock);
}

bool names_have(struct name_set *names, const char *name)
{
    pthread_mutex_lock(&names->lock);
    bool have = find(names, name) < names->n;
    pthread_mutex_unlock(&names->lock);
    return have;
}

void names_free(struct name_set *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
    names->list = NULL;
    names->n = 0;
    pthread_mutex_destroy(&names->lock);
}
