/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes: each frame once, in its turn. */
#include "common/transport/link_private.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_MIN = 64,
    WINDOW_MAX = 1 << 20,     /* of frames; one message of a busy back end has had more than 1024 */
    STRANGERS_MAX = 16 << 20, /* bytes of frames whose sender is not known yet */
};

/* A frame whose sender has not been introduced: its introduction was overtaken. */
struct stranger {
    struct stranger *next;
    size_t len;
    unsigned char data[];
};

static void deliver(struct link_peer *peer, const unsigned char *data, size_t len,
                    struct shared_bytes *whole)
{
    const struct link_env *env = &peer->link->env;
    if (!peer->refused)
        env->deliver(env->arg, peer->node, (enum frame_type)data[0], data + 1, len - 1, whole);
}

/* Delivers the next number, which is held. */
static void next(struct link_peer *peer)
{
    struct window *w = peer->window;
    struct shared_bytes **at = &w->held[++w->low % w->cap], *held = *at;
    *at = NULL;
    if (--w->nheld == 0) { /* most peers never need it */
        free(w->held);
        w->held = NULL;
        w->cap = 0;
    }
    deliver(peer, held->data, held->len, held);
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
static void take(struct link_peer *peer, uint64_t number, const unsigned char *data, size_t len,
                 struct shared_bytes *whole)
{
    struct window *w = peer->window;
    if (number <= w->low) {
        peer->counts.repeated++;
        log_debug("transport: a repeated frame of node %u was dropped", peer->node);
        return;
    }
    if (number - w->low > WINDOW_MAX) {
        log_warning("a frame of node %u was dropped: it is number %llu, while %llu is awaited",
                    peer->node, (unsigned long long)number, (unsigned long long)w->low + 1);
        return;
    }
    if (number != w->low + 1) {
        peer->counts.repeated += hold(w, number, data, len, whole);
        return;
    }
    w->low++;
    deliver(peer, data, len, whole);
    while (w->nheld > 0 && w->held[(w->low + 1) % w->cap] != NULL) {
        link_peer_owes_ack(peer);
        next(peer);
    }
}

void link_peer_free_window(struct link_peer *peer)
{
    struct window *w = peer->window;
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

static void receive_one(struct link *link, const void *data, size_t len, struct shared_bytes *whole,
                        bool by_connection);

/* What has waited for introductions; some of it may go on waiting. */
static void receive_strangers(struct link *link)
{
    struct stranger *s = link->strangers;
    link->strangers = NULL;
    link->nstrangers = 0;
    while (s != NULL) {
        struct stranger *next = s->next;
        receive_one(link, s->data, s->len, NULL, false);
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
    bool tells;           /* what was taken of ours */
    uint64_t taken;
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

static void take_taken(struct head *head, struct wire_in *in)
{
    if (head->number == 0 || in->bad || in->p == in->end || *in->p != FRAME_TAKEN)
        return;
    wire_get_u8(in);
    head->taken = wire_get_u64(in);
    head->tells = true;
}

/* Looks whether the server fits us, if this is the frame to tell. */
static void welcome(struct link_peer *peer, const struct head *head)
{
    const struct link_env *env = &peer->link->env;
    if (!peer->refused && head->number == 1 && env->fits != NULL)
        peer->refused = !env->fits(env->arg, peer->node, head->greeting, head->len);
}

/* A frame in no order. */
static void take_loose(struct link_peer *peer, struct wire_in *in, struct shared_bytes *whole)
{
    if (*in->p != FRAME_TAKEN) {
        deliver(peer, in->p, (size_t)(in->end - in->p), whole);
        return;
    }
    wire_get_u8(in);
    uint64_t taken = wire_get_u64(in);
    bool hurry = wire_get_u8(in) != 0;
    if (!in->bad)
        link_peer_took(peer, taken, hurry);
}

/* Drops bytes that no server of ours has sent, and says so once for each server that they name. A
 * job that was requeued starts its step again, while a node that was given up may come back with
 * the first run.
 * @param head NULL: it is no frame */
static void refuse(struct link *link, const struct head *head, size_t len)
{
    const struct link_env *env = &link->env;
    bool named = head != NULL && head->step != env->step && head->index < env->nnodes;
    struct link_peer *peer = named ? link_peer_at(link, head->index) : NULL;
    if (peer != NULL && peer->counts.refused++ == 0)
        log_warning("frames of server %u of another run of this %s, or of another %s, came "
                    "here, and are refused",
                    head->index, log_unit(), log_unit());
    else if (!named && !link->told)
        log_warning("%zu bytes that are no frame of this %s were dropped", len, log_unit());
    link->told |= !named;
}

/* Takes a frame of a server that is known. */
static void receive_of(struct link_peer *peer, const struct head *head, struct wire_in *in,
                       struct shared_bytes *whole, bool by_connection)
{
    size_t len = (size_t)(in->end - in->p);
    if (head->number == 0) {
        take_loose(peer, in, whole);
        return;
    }
    peer->counts.frames_in++;
    if (head->tells)
        link_peer_took(peer, head->taken, false);
    if (peer->window == NULL)
        peer->window = calloc(1, sizeof *peer->window);
    if (peer->window == NULL)
        return;
    if (by_connection)
        link_peer_owes_ack(peer);
    take(peer, head->number, in->p, len, whole);
    link_peer_acknowledge(peer);
}

static void receive_one(struct link *link, const void *data, size_t len, struct shared_bytes *whole,
                        bool by_connection)
{
    struct wire_in in;
    struct head head = {0};
    uint32_t from;
    wire_in_init(&in, data, len);
    head.step = wire_get_u64(&in);
    head.index = wire_get_u32(&in);
    head.number = wire_get_u64(&in);
    take_greeting(&head, &in);
    take_taken(&head, &in);
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
    struct link_peer *peer = link_peer_at(link, from);
    if (peer == NULL)
        return;
    welcome(peer, &head);
    peer->counts.bytes_in += len + 4;
    receive_of(peer, &head, &in, whole, by_connection);
    if (who == SENDER_INTRODUCED)
        receive_strangers(link);
}

void link_free_strangers(struct link *link)
{
    while (link->strangers != NULL) {
        struct stranger *s = link->strangers;
        link->strangers = s->next;
        free(s);
    }
}

void link_receive(struct link *link, const void *data, size_t len, struct shared_bytes *whole,
                  bool by_connection)
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
        receive_one(link, frame, size, whole, by_connection);
    }
}
