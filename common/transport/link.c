/* SPDX-License-Identifier: BSD-3-Clause */
/* Header of a frame: u32 length of all that follows, u64 step, u32 sender, u64 number, then the
 * type byte and the body. A frame of CARE_MAY has no number, 0. Number 1 may have before the type
 * u8 FRAME_GREETING and a block. */
#include "common/transport/link.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    PEERS_MIN = 32,
    SHARED_MIN = 8 << 10, /* bytes; fewer are copied, because they are sent faster in one piece */
    HEADER = 4 + 8 + 4 + 8,
    WINDOW_MIN = 64,
    WINDOW_MAX = 1 << 20,     /* of frames; one message of a busy back end has had more than 1024 */
    STRANGERS_MAX = 16 << 20, /* bytes of frames whose sender is not known yet */
};

/* What came from one sender: every number up to low, and some after it. */
struct window {
    uint64_t low;
    uint32_t nheld, cap;
    /* Frames that wait for those before them, type byte and body; at n % cap: number n, low < n <=
     * low + cap, NULL where none waits. NULL while none does at all. */
    struct shared_bytes **held;
};

/* Made with the first frame to or from it: most servers of a large step never meet. */
struct peer {
    uint32_t node;
    struct link_counts counts;
    uint64_t numbers;      /* of what is sent to it, used until now */
    struct window *window; /* of what it sends, made when the first frame comes */
    bool refused;          /* its greeting was: nothing that it sends counts */
};

/* A frame whose sender has not been introduced: its introduction was overtaken. */
struct stranger {
    struct stranger *next;
    size_t len;
    unsigned char data[];
};

struct link {
    struct link_env env;
    uint32_t npeers, cap; /* cap: 0, or a power of 2 */
    struct peer **peers;  /* a hash table by handle, at most half full; owned */
    struct stranger *strangers;
    size_t nstrangers; /* bytes of them */
    bool told;         /* of bytes that name no server of ours */
};

/* @return where the table has the peer, or would have it; the table has room */
static struct peer **place_of(struct peer **peers, uint32_t cap, uint32_t node)
{
    uint32_t i = node * 0x9e3779b1u & (cap - 1);
    while (peers[i] != NULL && peers[i]->node != node)
        i = (i + 1) & (cap - 1);
    return &peers[i];
}

/* @return the peer with that handle, or NULL: no frame went to it or came from it */
static struct peer *peer_find(const struct link *link, uint32_t node)
{
    return link->cap > 0 ? *place_of(link->peers, link->cap, node) : NULL;
}

static bool make_room(struct link *link)
{
    uint32_t cap = link->cap > 0 ? 2 * link->cap : PEERS_MIN;
    if (2 * (link->npeers + 1) <= link->cap)
        return true;
    struct peer **peers = calloc(cap, sizeof *peers);
    if (peers == NULL)
        return false;
    for (uint32_t i = 0; i < link->cap; i++)
        if (link->peers[i] != NULL)
            *place_of(peers, cap, link->peers[i]->node) = link->peers[i];
    free(link->peers);
    link->peers = peers;
    link->cap = cap;
    return true;
}

/* @return the peer with that handle, which stays where it is, or NULL when out of memory */
static struct peer *peer_at(struct link *link, uint32_t node)
{
    struct peer *peer = peer_find(link, node);
    if (peer != NULL)
        return peer;
    peer = make_room(link) ? calloc(1, sizeof *peer) : NULL;
    if (peer == NULL)
        return NULL;
    peer->node = node;
    link->npeers++;
    return *place_of(link->peers, link->cap, node) = peer;
}

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

/* Hands a frame over. @param body what follows it in other memory; NULL: it is whole */
static void hand_over(struct link *link, struct peer *peer, struct wire_out *out,
                      struct shared_bytes *body, enum frame_care care)
{
    size_t len, more = body != NULL ? body->len : 0;
    wire_set_u32(out, 0, (uint32_t)(out->len - 4 + more));
    void *data = wire_out_take(out, &len);
    peer->numbers += care != CARE_MAY;
    peer->counts.frames_out++;
    peer->counts.bytes_out += len + more;
    if (body != NULL)
        link->env.send_shared(link->env.arg, peer->node, data, len, body, care);
    else
        link->env.send(link->env.arg, peer->node, data, len, care);
}

/* Whether that many bytes are handed over without being copied. */
static bool is_shared(const struct link *link, size_t len)
{
    return len >= SHARED_MIN && link->env.send_shared != NULL;
}

/* Takes the bytes out of a large frame. @return NULL: it is not large; without memory it fails */
static struct shared_bytes *take_large(const struct link *link, struct wire_out *frame)
{
    size_t len;
    if (!is_shared(link, frame->len))
        return NULL;
    void *data = wire_out_take(frame, &len);
    struct shared_bytes *bytes = shared_bytes_take(data, len);
    frame->failed = bytes == NULL;
    return bytes;
}

void link_send_shared(struct link *link, uint32_t node, struct wire_out *frame,
                      struct shared_bytes *body)
{
    struct wire_out out = {0};
    struct peer *peer = peer_at(link, node);
    enum frame_care care = frame->len > 0 ? frame_care((enum frame_type)frame->data[0]) : CARE_MUST;
    struct shared_bytes *own = body == NULL && !frame->failed ? take_large(link, frame) : NULL;
    if (own != NULL)
        body = own;
    bool share = body != NULL && is_shared(link, body->len);
    size_t apart = share ? body->len : 0;
    if (peer == NULL) {
        log_error("a frame to node %u could not be built: out of memory", node);
        wire_out_free(frame);
        shared_bytes_drop(own);
        return;
    }
    wire_reserve(&out, HEADER + frame->len + (body != NULL && !share ? body->len : 0));
    wire_put_u32(&out, 0); /* the length */
    wire_put_u64(&out, link->env.step);
    wire_put_u32(&out, link->env.self);
    wire_put_u64(&out, care != CARE_MAY ? peer->numbers + 1 : 0);
    if (care != CARE_MAY && peer->numbers == 0 && link->env.greet != NULL)
        put_greeting(link, node, &out);
    wire_put_raw(&out, frame->data, frame->len);
    if (body != NULL && !share)
        wire_put_raw(&out, body->data, body->len);
    if (frame->failed || out.failed || out.len - 4 + apart > UINT32_MAX) {
        log_error("a frame to node %u could not be built: out of memory", node);
        wire_out_free(&out);
    } else {
        hand_over(link, peer, &out, share ? body : NULL, care);
    }
    shared_bytes_drop(own);
    wire_out_free(frame);
}

static void deliver(struct link *link, uint32_t from, const unsigned char *data, size_t len,
                    struct shared_bytes *whole)
{
    link->env.deliver(link->env.arg, from, (enum frame_type)data[0], data + 1, len - 1, whole);
}

/* Delivers the next number if it is held, and counts it as seen either way. */
static void next(struct link *link, struct window *w, uint32_t from)
{
    struct shared_bytes **at = &w->held[++w->low % w->cap], *held = *at;
    if (held == NULL)
        return;
    *at = NULL;
    if (--w->nheld == 0) { /* most peers never need it */
        free(w->held);
        w->held = NULL;
        w->cap = 0;
    }
    deliver(link, from, held->data, held->len, held);
    shared_bytes_drop(held);
}

/* Makes the window reach to a number, at most WINDOW_MAX after low. */
static bool widen(struct window *w, uint64_t number)
{
    uint32_t cap = w->cap > 0 ? w->cap : WINDOW_MIN;
    while (number - w->low > cap)
        cap *= 2;
    if (cap == w->cap)
        return true;
    struct shared_bytes **held = calloc(cap, sizeof(struct shared_bytes *));
    if (held == NULL)
        return false;
    for (uint64_t n = w->low + 1; n <= w->low + w->cap; n++)
        held[n % cap] = w->held[n % w->cap];
    free(w->held);
    w->held = held;
    w->cap = cap;
    return true;
}

/* @return whether that number is held already */
static bool hold(struct window *w, uint64_t number, const unsigned char *data, size_t len,
                 struct shared_bytes *whole)
{
    bool wide = widen(w, number);
    struct shared_bytes **held = wide ? &w->held[number % w->cap] : NULL;
    if (wide && *held != NULL)
        return true;
    if (wide)
        *held = shared_bytes_part(whole, data, len);
    if (!wide || *held == NULL)
        log_error("out of memory: a frame of %zu bytes is lost", len);
    else
        w->nheld++;
    return false;
}

/* Delivers a frame in its turn, unless it was before. */
static void take(struct link *link, struct peer *peer, uint64_t number, const unsigned char *data,
                 size_t len, struct shared_bytes *whole)
{
    struct window *w = peer->window;
    uint32_t from = peer->node;
    if (number <= w->low) {
        peer->counts.repeated++;
        log_debug("transport: a repeated frame of node %u was dropped", from);
        return;
    }
    if (number - w->low > WINDOW_MAX) {
        log_warning("frames of node %u are missing: %llu came while %llu is awaited", from,
                    (unsigned long long)number, (unsigned long long)w->low + 1);
        while (w->nheld > 0)
            next(link, w, from);
        w->low = number - 1;
    }
    if (number != w->low + 1) {
        peer->counts.repeated += hold(w, number, data, len, whole);
        return;
    }
    w->low++;
    deliver(link, from, data, len, whole);
    while (w->nheld > 0 && w->held[(w->low + 1) % w->cap] != NULL)
        next(link, w, from);
}

static void free_window(struct window *w)
{
    for (uint32_t i = 0; w != NULL && i < w->cap; i++)
        shared_bytes_drop(w->held[i]);
    if (w != NULL)
        free(w->held);
    free(w);
}

/* Keeps a frame of a server that was not introduced yet. */
static void keep(struct link *link, const void *data, size_t len)
{
    struct stranger *s = link->nstrangers + len <= STRANGERS_MAX ? malloc(sizeof *s + len) : NULL;
    struct stranger **end = &link->strangers;
    if (s == NULL) {
        log_warning("a frame of a server that has sent no greeting was dropped");
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    s->next = NULL;
    s->len = len;
    memcpy(s->data, data, len);
    *end = s;
    link->nstrangers += len;
}

static void receive_one(struct link *link, const void *data, size_t len,
                        struct shared_bytes *whole);

/* What has waited for introductions; some of it may go on waiting. */
static void receive_strangers(struct link *link)
{
    struct stranger *s = link->strangers;
    link->strangers = NULL;
    link->nstrangers = 0;
    while (s != NULL) {
        struct stranger *next = s->next;
        receive_one(link, s->data, s->len, NULL);
        free(s);
        s = next;
    }
}

/* A frame's header. */
struct head {
    uint64_t step, number;
    uint32_t index;
    const void *greeting; /* NULL: the frame has none */
    size_t len;           /* of that */
};

/* What may be done with a frame. */
enum sender {
    SENDER_KNOWN,
    SENDER_INTRODUCED, /* by this frame */
    SENDER_AWAITED,    /* its introduction may come */
    SENDER_ENDED,      /* its step has, and is forgotten */
    SENDER_NOBODY,     /* no server whose frames count */
};

/* Finds out which server has sent a frame. */
static enum sender sender(struct link *link, const struct head *head, const struct wire_in *body,
                          uint32_t *from)
{
    const struct link_env *env = &link->env;
    *from = head->index;
    if (head->step == env->step)
        return head->index < env->nnodes && head->index != env->self ? SENDER_KNOWN : SENDER_NOBODY;
    int rc = env->find != NULL ? env->find(env->arg, head->step, head->index, from) : -1;
    if (rc == 0)
        return SENDER_KNOWN;
    if (env->find == NULL)
        return SENDER_NOBODY;
    if (head->number > 1)
        return rc > 0 ? SENDER_ENDED : SENDER_AWAITED;
    bool introduced =
        head->number == 1 && body->p < body->end && body->p[0] == FRAME_NSPACE &&
        env->introduce(env->arg, head->step, body->p + 1, (size_t)(body->end - body->p) - 1) &&
        env->find(env->arg, head->step, head->index, from) == 0;
    return introduced ? SENDER_INTRODUCED : SENDER_NOBODY;
}

static void take_greeting(struct head *head, struct wire_in *in)
{
    if (head->number != 1 || in->bad || in->p == in->end || *in->p != FRAME_GREETING)
        return;
    wire_get_u8(in);
    head->greeting = wire_get_block(in, &head->len);
}

/* Whether what a server sends counts. */
static bool welcome(struct link *link, uint32_t from, const struct head *head)
{
    struct peer *peer = peer_at(link, from);
    if (peer == NULL || peer->refused)
        return false;
    if (head->number != 1 || link->env.fits == NULL ||
        link->env.fits(link->env.arg, from, head->greeting, head->len))
        return true;
    peer->refused = true;
    return false;
}

/* Drops bytes that no server of ours has sent, and says so once for each server that they name. A
 * job that was requeued starts its step again, while a node that was given up may come back with
 * the first run.
 * @param head NULL: it is no frame */
static void refuse(struct link *link, const struct head *head, size_t len)
{
    const struct link_env *env = &link->env;
    bool named = head != NULL && head->step != env->step && head->index < env->nnodes;
    struct peer *peer = named ? peer_at(link, head->index) : NULL;
    if (peer != NULL && peer->counts.refused++ == 0)
        log_warning("frames of server %u of another run of this %s, or of another %s, came "
                    "here, and are refused",
                    head->index, log_unit(), log_unit());
    else if (!named && !link->told)
        log_warning("%zu bytes that are no frame of this %s were dropped", len, log_unit());
    link->told |= !named;
}

static void receive_one(struct link *link, const void *data, size_t len, struct shared_bytes *whole)
{
    struct wire_in in;
    struct head head = {0};
    uint32_t from;
    wire_in_init(&in, data, len);
    head.step = wire_get_u64(&in);
    head.index = wire_get_u32(&in);
    head.number = wire_get_u64(&in);
    take_greeting(&head, &in);
    bool loose = !in.bad && in.p != in.end && head.step == link->env.step &&
                 frame_care((enum frame_type) * in.p) == CARE_MAY;
    bool good = !in.bad && in.p != in.end && (head.number == 0) == loose;
    enum sender who = good ? sender(link, &head, &in, &from) : SENDER_NOBODY;
    if (who == SENDER_AWAITED)
        keep(link, data, len);
    else if (who == SENDER_NOBODY)
        refuse(link, good ? &head : NULL, len);
    if (who != SENDER_KNOWN && who != SENDER_INTRODUCED)
        return;
    if (!welcome(link, from, &head))
        return;
    struct peer *peer = peer_at(link, from);
    if (peer == NULL)
        return;
    peer->counts.frames_in++;
    peer->counts.bytes_in += len + 4;
    if (loose) {
        deliver(link, from, in.p, (size_t)(in.end - in.p), whole);
        return;
    }
    if (peer->window == NULL)
        peer->window = calloc(1, sizeof *peer->window);
    if (peer->window != NULL)
        take(link, peer, head.number, in.p, (size_t)(in.end - in.p), whole);
    if (who == SENDER_INTRODUCED)
        receive_strangers(link);
}

void link_receive(struct link *link, const void *data, size_t len, struct shared_bytes *whole)
{
    struct wire_in in;
    size_t size;
    wire_in_init(&in, data, len);
    while (in.p < in.end) {
        const void *frame = wire_get_block(&in, &size);
        if (in.bad) {
            log_warning("a cut frame was dropped");
            return;
        }
        receive_one(link, frame, size, whole);
    }
}

struct link_counts link_counts(const struct link *link, uint32_t node)
{
    const struct peer *peer = peer_find(link, node);
    struct link_counts counts = peer != NULL ? peer->counts : (struct link_counts){0};
    counts.held = peer != NULL && peer->window != NULL ? peer->window->nheld : 0;
    return counts;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    for (uint32_t i = 0; i < link->cap; i++) {
        free_window(link->peers[i] != NULL ? link->peers[i]->window : NULL);
        free(link->peers[i]);
    }
    while (link->strangers != NULL) {
        struct stranger *s = link->strangers;
        link->strangers = s->next;
        free(s);
    }
    free(link->peers);
    free(link);
}
