/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where Flux's job shells make directories, for muster-status.
 */
#pragma once

#include "common/status/place.h"

#include <limits.h>

enum { PLACE_DIR_SIZE = PATH_MAX };

extern const struct place flux_place; /* reach.c */

/** Of struct place. @thread any */
void place_each(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap);
bool place_name(const char *text, char *name, size_t cap);

/** @return whether brokers of several nodes share the directory in which shells make theirs, as
 * those of "flux start --test-size" do @thread any */
bool place_is_shared(void);

/** Finds the directory that one shell of a job has made. @return whether it is there @thread any */
bool place_of_shell(const char *job, unsigned shell, char dir[static PLACE_DIR_SIZE]);
