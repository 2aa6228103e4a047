/* SPDX-License-Identifier: BSD-3-Clause */
/* Which servers are on this broker, and what is under way to and from them. */
#include "plugins/flux/directory_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct directory *directory_new(const struct directory_env *env)
{
    struct directory *dir = calloc(1, sizeof *dir);
    if (dir != NULL)
        dir->env = *env;
    return dir;
}

static void free_server(struct server *server)
{
    if (server == NULL)
        return;
    free(server->reg.brokers);
    free(server->uuid);
    free(server->told);
    transfers_close(&server->in);
    json_object_put(server->state);
    free(server);
}

/* Those of a server up to a ticket. One answer is for all of a sender that it covers. */
static void close_transfers(struct directory *dir, struct server *server, uint64_t ticket,
                            int errnum, const char *why)
{
    const void *request;
    bool covered;
    while ((request = transfers_take(&server->in, ticket, &covered)) != NULL)
        if (errnum == 0 && covered)
            dir->env.drop(dir->env.arg, request);
        else
            dir->env.answer(dir->env.arg, request, errnum, why);
}

unsigned directory_servers(const struct directory *dir)
{
    unsigned n = 0;
    for (const struct server *server = dir->servers; server != NULL; server = server->next)
        n++;
    return n;
}

void directory_free(struct directory *dir, int errnum, const char *why)
{
    if (dir == NULL)
        return;
    while (dir->naskers > 0)
        dir->env.answer(dir->env.arg, dir->askers[--dir->naskers], errnum, why);
    while (dir->servers != NULL) {
        struct server *server = dir->servers;
        dir->servers = server->next;
        close_transfers(dir, server, UINT64_MAX, errnum, why);
        dir->env.answer(dir->env.arg, server->stream, errnum, why);
        free_server(server);
    }
    meetings_free(dir);
    tree_shape_free(&dir->shape);
    free(dir);
}

/* Each node of a job is a broker of its own. @return 0 or an errno */
static int read_brokers(const struct directory *dir, struct wire_in *in, struct registration *reg)
{
    if (reg->nnodes > dir->env.size)
        return EPROTO;
    bool *seen = calloc(dir->env.size, sizeof *seen);
    reg->brokers = calloc((size_t)reg->nnodes + 1, sizeof *reg->brokers);
    int rc = seen == NULL || reg->brokers == NULL ? ENOMEM : 0;
    for (uint32_t i = 0; i < reg->nnodes && rc == 0; i++) {
        uint32_t rank = reg->brokers[i] = wire_get_u32(in);
        if (rank >= dir->env.size || seen[rank])
            rc = EPROTO;
        else
            seen[rank] = true;
    }
    free(seen);
    return rc;
}

int directory_read(const struct directory *dir, const void *data, size_t len,
                   struct registration *reg, struct err *err)
{
    struct wire_in in;
    memset(reg, 0, sizeof *reg);
    wire_in_init(&in, data, len);
    if (wire_get_u32(&in) != PACKET_VERSION) {
        err_set(err, "the server and the broker's module are of different builds of muster");
        return EPROTO;
    }
    reg->job = wire_get_u64(&in);
    reg->node = wire_get_u32(&in);
    reg->nnodes = wire_get_count(&in, 4);
    int rc = read_brokers(dir, &in, reg);
    if (rc == ENOMEM)
        return rc;
    if (rc != 0 || !wire_end(&in) || reg->node >= reg->nnodes) {
        err_set(err, "the request is malformed");
        return EPROTO;
    }
    if (reg->brokers[reg->node] != dir->env.rank) {
        err_set(err, "node %u of the job is at broker %u, and this is broker %u", reg->node,
                reg->brokers[reg->node], dir->env.rank);
        return EINVAL;
    }
    return 0;
}

void directory_shape(struct directory *dir, struct tree_shape *shape)
{
    dir->shape = *shape;
    *shape = (struct tree_shape){0};
}

/* Nothing where the overlay is not known. */
static void put_parents(const struct directory *dir, const struct registration *reg,
                        struct wire_out *out)
{
    struct tree tree = {.n = reg->nnodes};
    if (dir->shape.n == 0 || tree_follow(&tree, &dir->shape, reg->brokers) != 0) {
        wire_put_u32(out, 0);
        return;
    }
    wire_put_u32(out, reg->nnodes);
    for (uint32_t node = 0; node < reg->nnodes; node++)
        wire_put_u32(out, tree_parent(&tree, node));
    tree_free(&tree);
}

static int say_welcome(struct directory *dir, const struct registration *reg, const void *request)
{
    struct wire_out out = {0};
    wire_put_u8(&out, PACKET_WELCOME);
    put_parents(dir, reg, &out);
    int rc = out.failed ? ENOMEM : dir->env.respond(dir->env.arg, request, out.data, out.len);
    wire_out_free(&out);
    return rc;
}

int directory_register(struct directory *dir, const struct client *client, struct registration *reg,
                       const void *request, struct err *err)
{
    if (directory_job(dir, reg->job) != NULL) {
        err_set(err, "the job has a server on this broker already");
        return EEXIST;
    }
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ENOMEM;
    server->uuid = strdup(client->uuid);
    server->told = calloc(dir->env.size, sizeof *server->told);
    int rc = server->uuid == NULL || server->told == NULL ? ENOMEM : 0;
    if (rc == 0)
        rc = transfers_open(&server->in, reg->nnodes);
    if (rc == 0)
        rc = say_welcome(dir, reg, request);
    if (rc != 0) {
        free_server(server);
        return rc;
    }
    server->told[0] = true; /* the server may be one to meet at */
    server->reg = *reg;
    server->owner = client->uid;
    server->stream = request;
    server->since = dir->env.now(dir->env.arg);
    server->silent = "it has just come";
    server->next = dir->servers;
    dir->servers = server;
    return 0;
}

static bool has_left(const struct directory *dir, uint64_t job, uint32_t owner)
{
    for (uint64_t i = 0; i < LEFT_MAX && i < dir->nleft; i++)
        if (dir->left[i].job == job && dir->left[i].owner == owner)
            return true;
    return false;
}

/* The job that a message is for. @param from filled in: what the sender says of itself, which only
 * servers of the same user believe
 * @return 0 or an errno with the reason in @p why */
static int address(const struct directory *dir, const struct client *client, struct wire_in *in,
                   struct transfer *from, struct server **to, const char **why)
{
    if (wire_get_u32(in) != PACKET_VERSION) {
        *why = "the server and the broker's module are of different builds of muster";
        return EPROTO;
    }
    from->job = wire_get_u64(in);
    from->node = wire_get_u32(in);
    from->broker = wire_get_u32(in);
    uint64_t job = wire_get_u64(in);
    uint32_t node = wire_get_u32(in);
    if (in->bad || from->broker >= dir->env.size)
        return EPROTO;
    *to = directory_job(dir, job);
    if (*to == NULL && has_left(dir, job, client->uid)) {
        *why = "the server there has left";
        return ESHUTDOWN;
    }
    if (*to == NULL || (*to)->reg.node != node) {
        *why = "no server has registered there";
        return ENOENT;
    }
    if ((*to)->owner != client->uid) {
        *why = "the server there is another user's";
        return EPERM;
    }
    return transfers_full(&(*to)->in, client->uuid) ? EBUSY : 0;
}

/* Gives bytes to a server of ours. @return 0 or an errno */
static int deliver(struct directory *dir, struct server *to, struct transfer *t, struct wire_in *in)
{
    struct wire_out out = {0};
    size_t len;
    const void *data = packet_rest(in, &len);
    t->ticket = ++dir->ticket;
    t->since = dir->env.now(dir->env.arg);
    t->len = len;
    wire_put_u8(&out, PACKET_BYTES);
    wire_put_u64(&out, t->ticket);
    wire_put_raw(&out, data, len);
    int rc = out.failed ? ENOMEM : dir->env.respond(dir->env.arg, to->stream, out.data, out.len);
    wire_out_free(&out);
    if (rc != 0)
        return rc;
    to->told[t->broker] = true;
    to->frames++;
    to->bytes += len;
    transfers_add(&to->in, t);
    return 0;
}

void directory_send(struct directory *dir, const struct client *client, const void *data,
                    size_t len, const void *request)
{
    struct wire_in in;
    struct transfer from = {0}, *t = NULL;
    struct server *to = NULL;
    const char *why = NULL;
    wire_in_init(&in, data, len);
    int rc = address(dir, client, &in, &from, &to, &why);
    if (rc == 0) {
        t = transfers_new(&to->in, &from, client->uuid);
        rc = ENOMEM;
    }
    if (t != NULL) {
        t->request = request;
        rc = deliver(dir, to, t, &in);
        if (rc != 0)
            transfers_drop(&to->in, t);
    }
    if (rc != 0)
        dir->env.answer(dir->env.arg, request, rc, why);
}

void directory_took(struct directory *dir, const struct client *client, const void *data,
                    size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t job = wire_get_u64(&in), ticket = wire_get_u64(&in);
    struct server *server = wire_end(&in) ? directory_client(dir, job, client) : NULL;
    if (server != NULL)
        close_transfers(dir, server, ticket, 0, NULL);
}

/* When a server has died, all brokers of its job are told, as their servers are to raise that. When
 * it has left, only the brokers that it had to do with are told: at the end of a job all of its
 * servers leave, and ESHUTDOWN tells a server that asks later. */
static void tell_others(struct directory *dir, const struct server *gone, enum packet_loss loss)
{
    struct wire_out out = {0};
    for (uint32_t node = 0; node < gone->reg.nnodes && loss == PACKET_DIED; node++)
        if (node != gone->reg.node)
            gone->told[gone->reg.brokers[node]] = true;
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, gone->reg.job);
    wire_put_u32(&out, gone->owner);
    wire_put_u32(&out, gone->reg.node);
    wire_put_u8(&out, loss);
    for (uint32_t rank = 0; rank < dir->env.size && !out.failed; rank++)
        if (gone->told[rank])
            dir->env.tell(dir->env.arg, rank, out.data, out.len);
    wire_out_free(&out);
}

static void remove_server(struct directory *dir, struct server **at, enum packet_loss loss)
{
    struct server *server = *at;
    *at = server->next;
    close_transfers(dir, server, UINT64_MAX, ENOENT, "the server there has gone");
    dir->env.answer(dir->env.arg, server->stream, ENODATA, NULL);
    tell_others(dir, server, loss);
    free_server(server);
    stats_conclude(dir);
}

/* Of brokers that a server names, those of its job count: of others we know (directory_found()). */
static void read_reached(const struct directory *dir, struct server *server, struct wire_in *in,
                         uint32_t n)
{
    bool *reached = calloc(dir->env.size, sizeof *reached);
    for (uint32_t i = 0; i < n && reached != NULL; i++) {
        uint32_t rank = wire_get_u32(in);
        if (rank < dir->env.size)
            reached[rank] = true;
    }
    for (uint32_t node = 0; node < server->reg.nnodes; node++) /* out of memory: all */
        if (reached == NULL || reached[server->reg.brokers[node]])
            server->told[server->reg.brokers[node]] = true;
    free(reached);
}

void directory_leave(struct directory *dir, const struct client *client, const void *data,
                     size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t job = wire_get_u64(&in);
    struct server *server = directory_client(dir, job, client), **at = &dir->servers;
    uint32_t n = wire_get_count(&in, 4);
    if (in.bad || (size_t)(in.end - in.p) != (size_t)n * 4 || server == NULL)
        return;
    read_reached(dir, server, &in, n);
    if (!has_left(dir, job, server->owner))
        dir->left[dir->nleft++ % LEFT_MAX] = (struct left){job, server->owner};
    while (*at != server)
        at = &(*at)->next;
    remove_server(dir, at, PACKET_LEFT);
}

void directory_disconnect(struct directory *dir, const struct client *client)
{
    for (struct server **at = &dir->servers; *at != NULL;)
        if ((*at)->owner == client->uid && strcmp((*at)->uuid, client->uuid) == 0)
            remove_server(dir, at, PACKET_DIED);
        else
            at = &(*at)->next;
}

/* Tells a server, which may know nothing of the server that is gone: it can see that. */
static void tell_server(struct directory *dir, const struct server *server,
                        const struct wire_out *out)
{
    if (!out->failed)
        dir->env.respond(dir->env.arg, server->stream, out->data, out->len);
}

void directory_gone(struct directory *dir, const struct client *client, const void *data,
                    size_t len)
{
    struct wire_in in;
    (void)client;
    wire_in_init(&in, data, len);
    if (wire_get_u32(&in) != PACKET_VERSION)
        return;
    uint64_t job = wire_get_u64(&in);
    uint32_t owner = wire_get_u32(&in), node = wire_get_u32(&in);
    uint8_t loss = wire_get_u8(&in);
    struct wire_out out = {0};
    if (!wire_end(&in))
        return;
    meetings_gone(dir, owner, job, node);
    wire_put_u8(&out, PACKET_GONE);
    wire_put_u64(&out, job);
    wire_put_u32(&out, node);
    wire_put_u8(&out, loss);
    for (const struct server *server = dir->servers; server != NULL; server = server->next)
        if (server->owner == owner)
            tell_server(dir, server, &out);
    wire_out_free(&out);
}

void directory_offline(struct directory *dir, uint32_t rank)
{
    struct wire_out out = {0};
    meetings_offline(dir, rank);
    wire_put_u8(&out, PACKET_OFFLINE);
    wire_put_u32(&out, rank);
    for (const struct server *server = dir->servers; server != NULL; server = server->next)
        if (rank != dir->env.rank)
            tell_server(dir, server, &out);
    wire_out_free(&out);
}
