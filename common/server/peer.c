/* SPDX-License-Identifier: BSD-3-Clause */
/* How this server gets on with another one: what the back end and the direct connections know. */
#include "common/server/server.h"

struct rm_peer server_peer(const struct server *server, uint32_t node)
{
    struct rm_peer peer = server->rm_ops->peer(server->rm, node);
    struct direct_peer direct = direct_peer(server->direct, node);
    peer.reached |= direct.up;
    peer.queued += direct.queued;
    peer.must += direct.must;
    peer.should += direct.should;
    peer.queued_bytes += direct.bytes;
    return peer;
}
