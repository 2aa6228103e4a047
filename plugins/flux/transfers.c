/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way to one server. */
#include "plugins/flux/transfers.h"

#include "plugins/flux/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What waits for one server, beyond a message and a window of bytes for each node of its job. */
enum {
    FOREIGN_MAX = 1024, /* messages */
    FOREIGN_BYTES = 16 << 20,
    CHAINS_MAX = 1 << 20, /* of the hash of senders */
};

/* A connection that has messages under way. */
struct sender {
    struct sender *next; /* of its chain */
    struct transfer *last;
    uint64_t messages, bytes;
    char uuid[];
};

int transfers_open(struct transfers *transfers, uint32_t nnodes)
{
    uint64_t n = 1;
    *transfers = (struct transfers){
        .max_messages = (uint64_t)nnodes + FOREIGN_MAX,
        .max_bytes = (uint64_t)nnodes * PACKET_WINDOW_BYTES + FOREIGN_BYTES,
    };
    while (n < transfers->max_messages && n < CHAINS_MAX)
        n *= 2;
    transfers->end = &transfers->first;
    transfers->mask = (uint32_t)(n - 1);
    transfers->senders = calloc(n, sizeof *transfers->senders);
    return transfers->senders != NULL ? 0 : ENOMEM;
}

void transfers_close(struct transfers *transfers)
{
    free(transfers->senders);
    transfers->senders = NULL;
}

/* By FNV-1a, which is enough: the brokers choose these names, and no user can.
 * @return where the chain has this sender, or would */
static struct sender **find(struct transfers *transfers, const char *uuid)
{
    uint32_t hash = 2166136261u;
    for (const char *p = uuid; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    struct sender **at = &transfers->senders[hash & transfers->mask];
    while (*at != NULL && (transfers->looked++, strcmp((*at)->uuid, uuid) != 0))
        at = &(*at)->next;
    return at;
}

bool transfers_full(struct transfers *transfers, const char *uuid)
{
    const struct sender *sender = *find(transfers, uuid);
    return (sender != NULL &&
            (sender->messages >= PACKET_WINDOW_MESSAGES || sender->bytes >= PACKET_WINDOW_BYTES)) ||
           transfers->messages >= transfers->max_messages ||
           transfers->bytes >= transfers->max_bytes;
}

struct transfer *transfers_new(struct transfers *transfers, const struct transfer *from,
                               const char *uuid)
{
    struct transfer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    struct sender **at = find(transfers, uuid);
    if (*at == NULL) {
        size_t size = strlen(uuid) + 1;
        *at = calloc(1, sizeof **at + size);
        if (*at == NULL) {
            free(t);
            return NULL;
        }
        memcpy((*at)->uuid, uuid, size);
    }
    t->job = from->job;
    t->node = from->node;
    t->broker = from->broker;
    t->sender = *at;
    return t;
}

void transfers_add(struct transfers *transfers, struct transfer *t)
{
    struct sender *sender = t->sender;
    if (sender->last != NULL)
        sender->last->later = t;
    sender->last = t;
    sender->messages++;
    sender->bytes += t->len;
    transfers->messages++;
    transfers->bytes += t->len;
    *transfers->end = t;
    transfers->end = &t->next;
}

static void forget_sender(struct transfers *transfers, const struct sender *sender)
{
    struct sender **at = find(transfers, sender->uuid);
    *at = sender->next;
    free((void *)sender);
}

void transfers_drop(struct transfers *transfers, struct transfer *t)
{
    if (t->sender->messages == 0)
        forget_sender(transfers, t->sender);
    free(t);
}

const void *transfers_take(struct transfers *transfers, uint64_t ticket, bool *covered)
{
    struct transfer *t = transfers->first;
    transfers->looked++;
    if (t == NULL || t->ticket > ticket)
        return NULL;
    const void *request = t->request;
    *covered = t->later != NULL && t->later->ticket <= ticket;
    transfers->first = t->next;
    if (t->next == NULL)
        transfers->end = &transfers->first;
    transfers->messages--;
    transfers->bytes -= t->len;
    t->sender->messages--;
    t->sender->bytes -= t->len;
    transfers_drop(transfers, t);
    return request;
}
