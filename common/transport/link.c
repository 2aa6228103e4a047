/* SPDX-License-Identifier: BSD-3-Clause */
/* Header of a frame: u32 length of all that follows, u64 step, u32 sender, u64 number, then the
 * type byte and the body. A frame of CARE_MAY has no number, 0. Number 1 may have before the type
 * u8 FRAME_GREETING and a block; then any number u8 FRAME_TAKEN and u64 that were taken. */
#include "common/transport/link_private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHARED_MIN = 8 << 10, /* bytes; fewer are copied, because they are sent faster in one piece */
    HEADER = 4 + 8 + 4 + 8,
    TAKEN = 1 + 8,
};

struct link *link_new(const struct link_env *env)
{
    struct link *link = calloc(1, sizeof *link);
    if (link != NULL)
        link->env = *env;
    return link;
}

/* The server puts a greeting ahead of its first frame to a node. */
static void put_greeting(const struct link *link, uint32_t node, struct wire_out *out)
{
    struct wire_out greeting = {0};
    link->env.greet(link->env.arg, node, &greeting);
    wire_put_u8(out, FRAME_GREETING);
    wire_put_block(out, greeting.data, greeting.len);
    out->failed |= greeting.failed;
    wire_out_free(&greeting);
}

void link_send(struct link *link, uint32_t node, struct wire_out *frame)
{
    link_send_shared(link, node, frame, NULL);
}

/* Keeps a frame for its way. @param body what follows it in other memory; NULL: it is whole
 * @return false: out of memory, and it was not sent */
static bool hand_over(struct link_peer *peer, struct wire_out *out, struct shared_bytes *body,
                      enum frame_care care, uint64_t number)
{
    size_t len, more = body != NULL ? body->len : 0;
    wire_set_u32(out, 0, (uint32_t)(out->len - 4 + more));
    void *data = wire_out_take(out, &len);
    struct outgoing *o = outgoing_new(data, len, body, care, number);
    if (o == NULL)
        return false;
    peer->numbers += number != 0;
    peer->counts.frames_out++;
    peer->counts.bytes_out += len + more;
    if (number != 0)
        link_peer_keep(peer, o);
    else
        link_peer_keep_loose(peer, o);
    return true;
}

/* Takes the bytes out of a large frame. @return NULL: without memory it fails */
static struct shared_bytes *take_large(struct wire_out *frame)
{
    size_t len;
    void *data = wire_out_take(frame, &len);
    struct shared_bytes *bytes = shared_bytes_take(data, len);
    frame->failed = bytes == NULL;
    return bytes;
}

/* Writes all of a frame but its @p apart last bytes, and hands it over. @param frame its type and
 * body, before @p body @return false: out of memory */
static bool build(struct link_peer *peer, const struct wire_out *frame, struct shared_bytes *body,
                  size_t apart, enum frame_care care, bool loose)
{
    const struct link *link = peer->link;
    struct wire_out out = {0};
    size_t more = body != NULL && apart == 0 ? body->len : 0;
    uint64_t number = loose ? 0 : peer->numbers + 1;
    wire_reserve(&out, HEADER + TAKEN + frame->len + more);
    link_put_header(link, number, &out);
    if (number == 1 && link->env.greet != NULL)
        put_greeting(link, peer->node, &out);
    bool tells = !loose && link_peer_put_taken(peer, &out);
    wire_put_raw(&out, frame->data, frame->len);
    if (more > 0)
        wire_put_raw(&out, body->data, more);
    bool good = !frame->failed && !out.failed && out.len + apart < UINT32_MAX;
    if (good && tells)
        link_peer_told(peer);
    good = good && hand_over(peer, &out, apart > 0 ? body : NULL, care, number);
    wire_out_free(&out);
    return good;
}

static void send_frame(struct link *link, uint32_t node, struct wire_out *frame,
                       struct shared_bytes *body, enum frame_care care, bool loose)
{
    struct link_peer *peer = link_peer_at(link, node);
    size_t apart = body != NULL && body->len >= SHARED_MIN ? body->len : 0;
    bool lost = peer != NULL && peer->forgotten && care != CARE_MAY;
    if (!lost && (peer == NULL || !build(peer, frame, body, apart, care, loose)))
        log_error("a frame of %zu bytes to node %u could not be built: out of memory, or too long",
                  frame->len + (body != NULL ? body->len : 0), node);
    wire_out_free(frame);
}

void link_send_loose(struct link *link, uint32_t node, struct wire_out *frame, enum frame_care care)
{
    send_frame(link, node, frame, NULL, care, true);
}

void link_send_shared(struct link *link, uint32_t node, struct wire_out *frame,
                      struct shared_bytes *body)
{
    enum frame_care care = frame->len > 0 ? frame_care((enum frame_type)frame->data[0]) : CARE_MUST;
    struct shared_bytes *own = NULL;
    if (body == NULL && !frame->failed && frame->len >= SHARED_MIN)
        body = own = take_large(frame);
    send_frame(link, node, frame, body, care, care == CARE_MAY);
    shared_bytes_drop(own);
}

static void send_last(struct link *link, uint32_t node, bool asks)
{
    struct wire_out frame = {0};
    wire_put_u8(&frame, FRAME_LAST);
    wire_put_u8(&frame, asks);
    link_send(link, node, &frame);
}

void link_hurry(struct link *link)
{
    link->hurry = true;
    for (uint32_t i = 0; i < link->cap; i++) {
        struct link_peer *peer = link->peers[i];
        if (peer != NULL && peer->kept != NULL && link->env.ready != NULL)
            link->env.ready(link->env.arg, peer->node);
        if (peer != NULL && peer->taken < peer->natively && peer->last < peer->natively) {
            peer->last = peer->numbers + 1;
            send_last(link, peer->node, true);
        }
    }
}

/* The question has come in order: so all before it is taken. */
void link_answer(struct link *link, uint32_t node)
{
    link_peer_find(link, node)->ack_now = true;
    send_last(link, node, false);
}

struct link_counts link_counts(const struct link *link, uint32_t node)
{
    const struct link_peer *peer = link_peer_find(link, node);
    struct link_counts counts = peer != NULL ? peer->counts : (struct link_counts){0};
    counts.held = peer != NULL && peer->window != NULL ? peer->window->nheld : 0;
    return counts;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    for (uint32_t i = 0; i < link->cap; i++)
        if (link->peers[i] != NULL) {
            link_peer_free_window(link->peers[i]);
            link_peer_free_kept(link->peers[i]);
            free(link->peers[i]);
        }
    link_free_strangers(link);
    free(link->peers);
    free(link);
}
