/* SPDX-License-Identifier: BSD-3-Clause */
/* A list for all owners. */
#include "plugins/flux/meetings.h"

#include "plugins/flux/packet.h"

#include <stdlib.h>

struct meeting {
    struct meeting *next;
    struct meeting_home home;
    uint32_t owner;
};

struct meetings {
    struct meeting *list;
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

const struct meeting_home *meetings_ask(struct meetings *meetings, uint32_t owner,
                                        const struct meeting_home *asks)
{
    struct meeting *m = meetings->list;
    while (m != NULL && m->owner != owner)
        m = m->next;
    if (m != NULL)
        return &m->home;
    m = malloc(sizeof *m);
    if (m == NULL)
        return NULL;
    *m = (struct meeting){meetings->list, *asks, owner};
    meetings->list = m;
    meetings->n++;
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
