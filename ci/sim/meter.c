/* SPDX-License-Identifier: BSD-3-Clause */
/* Charges memory to the server whose code runs, by wrapped malloc() and its kin. */
#include "ci/sim/meter.h"

#include <malloc.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);

static struct meter *current;

void meter_enter(struct meter *meter)
{
    current = meter;
}

static void *charge(void *p)
{
    if (current == NULL || p == NULL)
        return p;
    current->now += malloc_usable_size(p);
    if (current->now > current->max)
        current->max = current->now;
    return p;
}

void meter_hand_over(const void *data)
{
    if (current != NULL && data != NULL)
        current->now -= malloc_usable_size((void *)data);
}

void *__wrap_malloc(size_t size)
{
    return charge(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return charge(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    meter_hand_over(p);
    return charge(__real_realloc(p, size));
}

char *__wrap_strdup(const char *s)
{
    return charge(__real_strdup(s));
}

void __wrap_free(void *p)
{
    meter_hand_over(p);
    __real_free(p);
}
