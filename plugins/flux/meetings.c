/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A list for all owners. Asking for a key brings its meeting to the front; the last one of an
 * owner that has too many is dropped.
 */
#include "plugins/flux/meetings.h"

#include "plugins/flux/packet.h"

#include <stdlib.h>
#include <string.h>

struct meeting {
    struct meeting *next;
    struct meeting_home home;
    uint32_t owner;
    size_t len;
    unsigned char key[];
};

struct meetings {
    struct meeting *list; /* what was asked for last is first */
    size_t n;
};

struct meetings *meetings_new(void)
{
    return calloc(1, sizeof(struct meetings));
}

static void drop(struct meetings *meetings, struct meeting **at)
{
    struct meeting *m = *at;
    *at = m->next;
    free(m);
    meetings->n--;
}

const struct meeting_home *meetings_ask(struct meetings *meetings, uint32_t owner, const void *key,
                                        size_t len, const struct meeting_home *asks)
{
    struct meeting **oldest = NULL, **at = &meetings->list, *m;
    size_t n = 0;
    for (; (m = *at) != NULL; at = &m->next) {
        if (m->owner != owner)
            continue;
        if (m->len == len && memcmp(m->key, key, len) == 0)
            break;
        oldest = at;
        n++;
    }
    if (m != NULL) {
        *at = m->next;
    } else {
        if (n >= MEETINGS_MAX)
            drop(meetings, oldest);
        m = malloc(sizeof *m + len);
        if (m == NULL)
            return NULL;
        m->home = *asks;
        m->owner = owner;
        m->len = len;
        memcpy(m->key, key, len);
        meetings->n++;
    }
    m->next = meetings->list;
    meetings->list = m;
    return &m->home;
}

void meetings_gone(struct meetings *meetings, uint32_t owner, uint64_t job, uint32_t node)
{
    for (struct meeting **at = &meetings->list; *at != NULL;) {
        const struct meeting *m = *at;
        if (m->owner == owner && m->home.job == job &&
            (node == PACKET_ALL_NODES || m->home.node == node))
            drop(meetings, at);
        else
            at = &(*at)->next;
    }
}

void meetings_offline(struct meetings *meetings, uint32_t broker)
{
    for (struct meeting **at = &meetings->list; *at != NULL;)
        if ((*at)->home.broker == broker)
            drop(meetings, at);
        else
            at = &(*at)->next;
}

size_t meetings_count(const struct meetings *meetings)
{
    return meetings->n;
}

void meetings_free(struct meetings *meetings)
{
    if (meetings == NULL)
        return;
    while (meetings->list != NULL)
        drop(meetings, &meetings->list);
    free(meetings);
}
