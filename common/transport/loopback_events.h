/** @file
 * What the loopback's time and chance are made of. Private to loopback.c.
 */
#ifndef MUSTER_TRANSPORT_LOOPBACK_EVENTS_H
#define MUSTER_TRANSPORT_LOOPBACK_EVENTS_H

#include "common/transport/loopback.h"

/** A frame under way when data is set, else a function to call. */
struct loopback_event {
    uint64_t at, number; /**< ms; sequence among those of one time */
    uint32_t from, to;
    void *data; /**< owned */
    size_t len;
    void (*run)(struct loopback *net, void *arg);
    void *arg;
};

/** A binary heap, ordered by time and then by sequence; all zero is empty. */
struct loopback_events {
    struct loopback_event *heap;
    size_t n, cap;
    uint64_t numbers;
};

/** Adds an event, whose number is given here; aborts when out of memory. */
void loopback_push(struct loopback_events *events, struct loopback_event event);

/** @return the first event, which is taken out; there is one */
struct loopback_event loopback_pop(struct loopback_events *events);

/** @return @p p, unless it is NULL: tests do not go on without memory */
void *loopback_must(void *p);

#endif
