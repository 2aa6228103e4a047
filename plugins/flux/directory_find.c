/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a server on this broker. */
#include "plugins/flux/directory_private.h"

#include <string.h>

struct server *directory_job(const struct directory *dir, uint64_t job)
{
    struct server *server = dir->servers;
    while (server != NULL && server->reg.job != job)
        server = server->next;
    return server;
}

struct server *directory_client(const struct directory *dir, uint64_t job,
                                const struct client *client)
{
    struct server *server = dir->servers;
    while (server != NULL && (server->reg.job != job || server->owner != client->uid ||
                              strcmp(server->uuid, client->uuid) != 0))
        server = server->next;
    return server;
}
