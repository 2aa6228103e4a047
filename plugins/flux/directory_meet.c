/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of other jobs: which job is looked for, and where all of a user meet. */
#include "plugins/flux/directory_private.h"

#include <errno.h>
#include <stdlib.h>

int directory_find(const struct directory *dir, const struct client *client, const void *data,
                   size_t len, uint64_t *job)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t own = wire_get_u64(&in);
    *job = wire_get_u64(&in);
    if (!wire_end(&in))
        return EPROTO;
    return directory_client(dir, own, client) != NULL ? 0 : ENOTCONN;
}

void directory_found(struct directory *dir, const struct client *client, const void *data,
                     size_t len, uint32_t rank)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    struct server *server = directory_client(dir, wire_get_u64(&in), client);
    if (server != NULL && rank < dir->env.size)
        server->told[rank] = true;
}

void directory_ended(struct directory *dir, uint32_t owner, uint64_t job)
{
    struct wire_out out = {0};
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, job);
    wire_put_u32(&out, owner);
    wire_put_u32(&out, PACKET_ALL_NODES);
    wire_put_u8(&out, PACKET_LEFT);
    if (!out.failed)
        dir->env.tell(dir->env.arg, 0, out.data, out.len);
    wire_out_free(&out);
}

int directory_meet(const struct directory *dir, const struct client *client, const void *data,
                   size_t len, struct wire_out *out)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t job = wire_get_u64(&in);
    if (!wire_end(&in))
        return EPROTO;
    const struct server *server = directory_client(dir, job, client);
    if (server == NULL)
        return ENOTCONN;
    wire_put_u32(out, PACKET_VERSION);
    wire_put_u32(out, server->owner);
    wire_put_u64(out, job);
    wire_put_u32(out, server->reg.node);
    wire_put_u32(out, server->reg.nnodes);
    wire_put_u32(out, dir->env.rank);
    return out->failed ? ENOMEM : 0;
}

/* @param asks the first one of its owner is the home. @return the home, or NULL: out of memory */
static const struct meeting *find_home(struct directory *dir, const struct meeting *asks)
{
    struct meeting *home = dir->meetings;
    while (home != NULL && home->owner != asks->owner)
        home = home->next;
    if (home != NULL || (home = malloc(sizeof *home)) == NULL)
        return home;
    *home = *asks;
    home->next = dir->meetings;
    dir->meetings = home;
    return home;
}

int directory_home(struct directory *dir, const void *data, size_t len, struct wire_out *out)
{
    struct wire_in in;
    struct meeting asks;
    wire_in_init(&in, data, len);
    if (wire_get_u32(&in) != PACKET_VERSION)
        return EPROTO;
    asks.owner = wire_get_u32(&in);
    asks.job = wire_get_u64(&in);
    asks.node = wire_get_u32(&in);
    asks.nnodes = wire_get_u32(&in);
    asks.broker = wire_get_u32(&in);
    if (!wire_end(&in))
        return EPROTO;
    const struct meeting *home = find_home(dir, &asks);
    if (home == NULL)
        return ENOMEM;
    wire_put_u64(out, home->job);
    wire_put_u32(out, home->node);
    wire_put_u32(out, home->nnodes);
    return out->failed ? ENOMEM : 0;
}

static void drop(struct meeting **at)
{
    struct meeting *m = *at;
    *at = m->next;
    free(m);
}

void meetings_gone(struct directory *dir, uint32_t owner, uint64_t job, uint32_t node)
{
    for (struct meeting **at = &dir->meetings; *at != NULL;)
        if ((*at)->owner == owner && (*at)->job == job &&
            (node == PACKET_ALL_NODES || (*at)->node == node))
            drop(at);
        else
            at = &(*at)->next;
}

void meetings_offline(struct directory *dir, uint32_t broker)
{
    for (struct meeting **at = &dir->meetings; *at != NULL;)
        if ((*at)->broker == broker)
            drop(at);
        else
            at = &(*at)->next;
}

void meetings_free(struct directory *dir)
{
    while (dir->meetings != NULL)
        drop(&dir->meetings);
}
