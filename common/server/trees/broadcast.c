/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes on, once each, what a server says to all of its step.
 *
 * BROADCAST: u32 the speaker's node, u64 number of the message among the speaker's, from 1, then
 * the message: type byte and body of a frame
 */
#include "common/server/trees/broadcast.h"

#include "common/transport/frame.h"
#include "common/util/log.h"

#include <stdlib.h>
#include <sys/queue.h>

/* A message that this server has passed on. */
struct kept {
    TAILQ_ENTRY(kept) link;
    uint32_t speaker;
    uint64_t number;
    struct shared_bytes *message;
};

struct broadcasts {
    struct broadcast_env env;
    TAILQ_HEAD(, kept) kept; /* oldest first */
    uint32_t nkept;
    size_t bytes;
    uint64_t
        *numbers; /* by speaker, the last one that came from it, or is ours; NULL: there is none */
};

/* A walk that sends one message. */
struct passing {
    struct broadcasts *broadcasts;
    const struct kept *kept;
};

static struct tree tree_of(const struct broadcasts *b, uint32_t speaker)
{
    return (struct tree){.n = b->env.nnodes, .root = speaker, .arity = b->env.arity};
}

void broadcast_below(const struct tree *tree, uint32_t node, void *arg,
                     bool (*is_lost)(void *arg, uint32_t node),
                     void (*visit)(void *arg, uint32_t node))
{
    for (uint32_t i = 0; i < tree->arity; i++) {
        uint32_t child = tree_child(tree, node, i);
        if (child == TREE_NONE)
            return;
        if (is_lost(arg, child))
            broadcast_below(tree, child, arg, is_lost, visit);
        else
            visit(arg, child);
    }
}

static bool is_lost(void *arg, uint32_t node)
{
    const struct passing *p = arg;
    return p->broadcasts->env.is_lost(p->broadcasts->env.arg, node);
}

static void send_to(void *arg, uint32_t node)
{
    const struct passing *p = arg;
    struct wire_out head = {0};
    wire_put_u8(&head, FRAME_BROADCAST);
    wire_put_u32(&head, p->kept->speaker);
    wire_put_u64(&head, p->kept->number);
    p->broadcasts->env.send(p->broadcasts->env.arg, node, &head, p->kept->message);
    wire_out_free(&head);
}

static void pass_below(struct broadcasts *b, const struct kept *kept, uint32_t node)
{
    const struct tree tree = tree_of(b, kept->speaker);
    struct passing passing = {b, kept};
    broadcast_below(&tree, node, &passing, is_lost, send_to);
}

static void drop(struct broadcasts *b, struct kept *kept)
{
    TAILQ_REMOVE(&b->kept, kept, link);
    b->nkept--;
    b->bytes -= kept->message->len;
    shared_bytes_drop(kept->message);
    free(kept);
}

/* Keeps a message and passes it on. @param message taken over */
static void pass_on(struct broadcasts *b, uint32_t speaker, uint64_t number,
                    struct shared_bytes *message)
{
    struct kept *kept = message != NULL ? calloc(1, sizeof *kept) : NULL;
    if (kept == NULL) {
        shared_bytes_drop(message);
        log_error("out of memory: a message for all servers is not passed on");
        return;
    }
    *kept = (struct kept){.speaker = speaker, .number = number, .message = message};
    TAILQ_INSERT_TAIL(&b->kept, kept, link);
    b->nkept++;
    b->bytes += message->len;
    while (b->nkept > BROADCAST_KEPT_MAX || (b->nkept > 1 && b->bytes > BROADCAST_KEPT_BYTES))
        drop(b, TAILQ_FIRST(&b->kept));
    pass_below(b, kept, b->env.self);
}

/* @return where a speaker's last number stands, or NULL: out of memory */
static uint64_t *number_of(struct broadcasts *b, uint32_t speaker)
{
    if (b->numbers == NULL)
        b->numbers = calloc(b->env.nnodes, sizeof *b->numbers);
    return b->numbers != NULL ? &b->numbers[speaker] : NULL;
}

void broadcast_say(struct broadcasts *b, struct wire_out *message)
{
    uint64_t *number = number_of(b, b->env.self);
    bool whole = number != NULL && !message->failed;
    size_t len;
    void *data = wire_out_take(message, &len);
    if (!whole) {
        log_error("a message for all servers could not be built: out of memory");
        free(data);
        return;
    }
    pass_on(b, b->env.self, ++*number, shared_bytes_take(data, len));
}

void broadcast_receive(struct broadcasts *b, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t speaker = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    if (in.bad || in.p == in.end || speaker >= b->env.nnodes || speaker == b->env.self ||
        number == 0) {
        log_warning("a malformed message for all servers of node %u was dropped", from);
        return;
    }
    uint64_t *last = number_of(b, speaker);
    size_t left = (size_t)(in.end - in.p);
    if (last == NULL || number <= *last)
        return; /* it was said again, as a server was lost */
    *last = number;
    pass_on(b, speaker, number, shared_bytes_copy(in.p, left));
    b->env.deliver(b->env.arg, speaker, in.p, left);
}

/* @return the server that speaks to those below @p node: the first one above it that is not lost */
static uint32_t server_above(const struct broadcasts *b, const struct tree *tree, uint32_t node)
{
    do
        node = tree_parent(tree, node);
    while (node != TREE_NONE && node != b->env.self && b->env.is_lost(b->env.arg, node));
    return node;
}

void broadcast_lost(struct broadcasts *b, uint32_t node)
{
    struct kept *kept;
    TAILQ_FOREACH (kept, &b->kept, link) {
        const struct tree tree = tree_of(b, kept->speaker);
        if (kept->speaker != node && server_above(b, &tree, node) == b->env.self)
            pass_below(b, kept, node);
    }
}

struct broadcasts *broadcast_new(const struct broadcast_env *env)
{
    struct broadcasts *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->env = *env;
    TAILQ_INIT(&b->kept);
    return b;
}

void broadcast_free(struct broadcasts *b)
{
    if (b == NULL)
        return;
    while (!TAILQ_EMPTY(&b->kept))
        drop(b, TAILQ_FIRST(&b->kept));
    free(b->numbers);
    free(b);
}
