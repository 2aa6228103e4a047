/* SPDX-License-Identifier: BSD-3-Clause */
/* What the back end takes to send it natively, in batches. A frame has the ticket of the batch that
 * it was last in. So a batch that arrives late, when its frames have been sent again, says nothing
 * of these. */
#include "common/transport/link_private.h"

/* Drops frames in no order that were in a batch up to that one, and are worth no more. */
static void drop_loose(struct link_peer *peer, uint64_t ticket, enum frame_care care)
{
    struct outgoing **at = &peer->loose, *o;
    while ((o = *at) != NULL)
        if (o->care >= care && o->ticket != 0 && o->ticket <= ticket) {
            *at = o->next;
            outgoing_drop(o);
        } else {
            at = &o->next;
        }
}

void link_peer_keep_loose(struct link_peer *peer, struct outgoing *o)
{
    const struct link_env *env = &peer->link->env;
    struct outgoing **end = &peer->loose;
    while (*end != NULL)
        end = &(*end)->next;
    *end = o;
    env->native(env->arg, peer->node);
}

/* Appends a frame to a batch, if there is room. */
static bool put(struct wire_out *out, size_t first, size_t max, struct outgoing *o, uint64_t ticket)
{
    size_t len = outgoing_len(o);
    if (out->len > first && out->len - first + len > max)
        return false;
    wire_put_raw(out, o->data, o->len);
    if (o->body != NULL)
        wire_put_raw(out, o->body->data, o->body->len);
    o->ticket = ticket;
    return !out->failed;
}

uint64_t link_batch(struct link *link, uint32_t node, size_t max, struct wire_out *out)
{
    struct link_peer *peer = link_peer_find(link, node);
    size_t first = out->len;
    if (peer == NULL)
        return 0;
    uint64_t ticket = peer->tickets + 1;
    for (struct outgoing *o = peer->loose; o != NULL; o = o->next)
        if (o->ticket == 0 && !put(out, first, max, o, ticket))
            break;
    drop_loose(peer, ticket, CARE_MAY);
    bool may = !peer->direct && !link->env.required;
    for (; may && peer->next != NULL; peer->next = peer->next->next)
        if (!put(out, first, max, peer->next, ticket))
            break;
    if (out->len == first || out->failed)
        return 0;
    return ++peer->tickets;
}

void link_arrived(struct link *link, uint32_t node, uint64_t ticket)
{
    struct link_peer *peer = link_peer_find(link, node);
    if (peer == NULL)
        return;
    drop_loose(peer, ticket, CARE_MUST);
    bool more = false;
    for (; peer->kept != NULL && peer->kept->ticket != 0 && peer->kept->ticket <= ticket;
         more = true) {
        if (peer->kept->care == CARE_MUST)
            peer->natively = peer->kept->number;
        outgoing_drop(link_peer_pop(peer));
    }
    if (more)
        link_peer_await_progress(peer);
}

bool link_failed(struct link *link, uint32_t node)
{
    struct link_peer *peer = link_peer_find(link, node);
    if (peer == NULL)
        return false;
    for (struct outgoing *o = peer->loose; o != NULL; o = o->next)
        o->ticket = 0;
    if (!peer->direct)
        link_peer_restart(peer, false);
    bool may = !peer->direct && !link->env.required;
    return peer->loose != NULL || (may && peer->next != NULL);
}
