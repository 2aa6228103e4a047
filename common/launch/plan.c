/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of strings. */
#include "common/launch/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_add(struct plan *plan, const char *text)
{
    const char *from = text != NULL ? text : "";
    size_t len = strlen(from);
    if (plan->failed || len > PLAN_STRING_MAX || plan->bytes + len > PLAN_BYTES_MAX ||
        plan->n >= PLAN_STRINGS_MAX) {
        plan->failed = true;
        return;
    }
    if (plan->n == plan->cap) {
        uint32_t cap = plan->cap > 0 ? 2 * plan->cap : 32;
        char **more = realloc(plan->strings, cap * sizeof *more);
        if (more == NULL) {
            plan->failed = true;
            return;
        }
        plan->strings = more;
        plan->cap = cap;
    }
    plan->strings[plan->n] = strdup(from);
    plan->failed = plan->strings[plan->n] == NULL;
    plan->n += !plan->failed;
    plan->bytes += len + 1;
}

void plan_add_number(struct plan *plan, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    plan_add(plan, text);
}

void plan_set(struct plan *plan, uint32_t at, const char *text)
{
    char *copy = plan->failed || at >= plan->n ? NULL : strdup(text);
    if (copy == NULL) {
        plan->failed = true;
        return;
    }
    free(plan->strings[at]);
    plan->strings[at] = copy;
}

void plan_set_number(struct plan *plan, uint32_t at, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    plan_set(plan, at, text);
}

void plan_free(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n; i++)
        free(plan->strings[i]);
    free(plan->strings);
    *plan = (struct plan){0};
}
