/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A few names that one thread writes and others look up.
 * @thread any
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct name_set {
    pthread_mutex_t lock;
    char **list;
    size_t n;
};

void names_init(struct name_set *names);

/** Adds a name, which is copied, if it is not there. @return false when out of memory */
bool names_add(struct name_set *names, const char *name);

void names_remove(struct name_set *names, const char *name);

bool names_have(struct name_set *names, const char *name);

/** Frees all, when no other thread looks any more. */
void names_free(struct name_set *names);
