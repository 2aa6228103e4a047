/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The loopback's events in the order of their time, as a binary heap, and its own random numbers,
 * so that a seed gives the same run on every machine.
 */
#include "ci/loopback/loopback_private.h"

#include <stdlib.h>

void *loopback_must(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

uint64_t loopback_random(struct loopback_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t loopback_below(struct loopback_random *random, uint32_t n)
{
    return (uint32_t)(loopback_random(random) % n);
}

static bool before(const struct loopback_event *a, const struct loopback_event *b)
{
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void loopback_push(struct loopback_events *events, struct loopback_event event)
{
    if (events->n == events->cap) {
        events->cap = events->cap > 0 ? 2 * events->cap : 64;
        events->heap = loopback_must(realloc(events->heap, events->cap * sizeof *events->heap));
    }
    event.number = events->numbers++;
    size_t i = events->n++;
    for (; i > 0 && before(&event, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
        events->heap[i] = events->heap[(i - 1) / 2];
    events->heap[i] = event;
}

struct loopback_event loopback_pop(struct loopback_events *events)
{
    struct loopback_event *heap = events->heap;
    struct loopback_event top = heap[0], last = heap[--events->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < events->n; i = child) {
        if (child + 1 < events->n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}
