/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's number alone stands for its first step: 4711 is 4711.0. */
#include "plugins/slurm/place.h"

#include "plugins/slurm/reach.h"

#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 20 };

static void slurm_each(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap)
{
    char first[DIGITS_MAX + sizeof ".0"];
    size_t len = step != NULL ? strlen(step) : 0;
    (void)cap;
    where[0] = '\0';
    if (len == 0 || len > DIGITS_MAX || strspn(step, "0123456789") != len)
        return;
    snprintf(first, sizeof first, "%s.0", step);
    visit(arg, NULL, first);
}

const struct place slurm_place = {
    .each = slurm_each, .reach = slurm_reach, .lists = "squeue --me --steps", .mine = slurm_mine};
