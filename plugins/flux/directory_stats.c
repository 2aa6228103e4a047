/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to stats-get: the servers are asked what is under way in them. One collection at a
 * time serves all that ask; a server is asked once until it has answered, so that for one that
 * hangs nothing piles up. What it says is kept until the collection ends. */
#include "plugins/flux/directory_private.h"
#include "plugins/flux/state.h"

#include <errno.h>
#include <stdlib.h>

enum { COLLECT_MS = 2000 };

static void ask(struct directory *dir, struct server *server)
{
    struct wire_out out = {0};
    wire_put_u8(&out, PACKET_STATE);
    server->silent = "no answer within 2 s";
    server->awaited =
        server->asked ||
        (!out.failed && dir->env.respond(dir->env.arg, server->stream, out.data, out.len) == 0);
    if (!server->awaited)
        server->silent = "it cannot be asked";
    server->asked = server->awaited;
    wire_out_free(&out);
}

/* Answers all that ask, if no server's answer is awaited any more. */
void stats_conclude(struct directory *dir)
{
    for (const struct server *server = dir->servers; server != NULL; server = server->next)
        if (server->awaited)
            return;
    char *text = dir->naskers > 0 ? directory_show(dir) : NULL;
    for (unsigned i = 0; i < dir->naskers; i++)
        dir->env.answer(dir->env.arg, dir->askers[i], text != NULL ? 0 : ENOMEM, text);
    dir->naskers = 0;
    free(text);
    for (struct server *server = dir->servers; server != NULL; server = server->next) {
        json_object_put(server->state);
        server->state = NULL;
    }
}

void directory_stats(struct directory *dir, const void *request)
{
    if (dir->naskers == STATS_ASKERS_MAX) {
        dir->env.answer(dir->env.arg, request, EAGAIN, "too many ask at once");
        return;
    }
    dir->askers[dir->naskers++] = request;
    if (dir->naskers > 1)
        return;
    for (struct server *server = dir->servers; server != NULL; server = server->next)
        ask(dir, server);
    stats_conclude(dir);
    if (dir->naskers > 0 && dir->env.alarm(dir->env.arg, COLLECT_MS) != 0)
        directory_alarm(dir);
}

void directory_state(struct directory *dir, const struct client *client, const void *data,
                     size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    struct server *server = directory_client(dir, wire_get_u64(&in), client);
    const char *text = packet_rest(&in, &len);
    if (in.bad || server == NULL)
        return;
    server->asked = false;
    if (!server->awaited)
        return; /* it is too late, or was not asked */
    server->awaited = false;
    server->state = state_read(text, len, &server->silent);
    stats_conclude(dir);
}

void directory_alarm(struct directory *dir)
{
    for (struct server *server = dir->servers; server != NULL; server = server->next)
        server->awaited = false;
    stats_conclude(dir);
}
