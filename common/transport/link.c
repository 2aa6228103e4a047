/* Header of a frame: u32 length of all that follows, u64 step, u32 sender, u64 number, then the
 * type byte and the body. */
#include "common/transport/link.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 8 + 4 + 8, WINDOW = 1024 };

/* A frame that waits for those before it; without data there is none. */
struct held {
    unsigned char *data; /* type byte and body; owned */
    size_t len;
};

/* What came from one sender: every number up to low, and some after it. */
struct window {
    uint64_t low;
    uint32_t nheld;
    struct held *held; /* at n % WINDOW: number n, low < n <= low + WINDOW; NULL while none is */
};

struct link {
    struct link_env env;
    struct link_counts *counts; /* per node; frames_out numbers what is sent to it */
    struct window **windows;    /* per sender, made when the first frame comes */
};

struct link *link_new(const struct link_env *env)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->env = *env;
    link->counts = calloc(env->nnodes, sizeof *link->counts);
    link->windows = calloc(env->nnodes, sizeof *link->windows);
    if (link->counts == NULL || link->windows == NULL) {
        link_free(link);
        return NULL;
    }
    return link;
}

void link_send(struct link *link, uint32_t node, struct wire_out *frame)
{
    struct wire_out out = {0};
    wire_put_u32(&out, (uint32_t)(HEADER + frame->len));
    wire_put_u64(&out, link->env.step);
    wire_put_u32(&out, link->env.self);
    wire_put_u64(&out, link->counts[node].frames_out + 1);
    wire_put_raw(&out, frame->data, frame->len);
    if (frame->failed || out.failed || frame->len > UINT32_MAX - HEADER) {
        log_error("a frame to node %u could not be built: out of memory", node);
        wire_out_free(&out);
    } else {
        size_t len;
        void *data = wire_out_take(&out, &len);
        link->counts[node].frames_out++;
        link->counts[node].bytes_out += len;
        link->env.send(link->env.arg, node, data, len);
    }
    wire_out_free(frame);
}

static void deliver(struct link *link, uint32_t from, const unsigned char *data, size_t len)
{
    link->env.deliver(link->env.arg, from, (enum frame_type)data[0], data + 1, len - 1);
}

/* Delivers the next number if it is held, and counts it as seen either way. */
static void next(struct link *link, struct window *w, uint32_t from)
{
    struct held *at = &w->held[++w->low % WINDOW], held = *at;
    if (held.data == NULL)
        return;
    *at = (struct held){0};
    if (--w->nheld == 0) { /* most peers never need it */
        free(w->held);
        w->held = NULL;
    }
    deliver(link, from, held.data, held.len);
    free(held.data);
}

static void hold(struct window *w, uint64_t number, const unsigned char *data, size_t len)
{
    if (w->held == NULL)
        w->held = calloc(WINDOW, sizeof *w->held);
    struct held *held = w->held != NULL ? &w->held[number % WINDOW] : NULL;
    if (held == NULL || held->data != NULL)
        return; /* it came before */
    held->data = malloc(len);
    if (held->data == NULL)
        return;
    memcpy(held->data, data, len);
    held->len = len;
    w->nheld++;
}

/* Delivers a frame in its turn, unless it was before. */
static void take(struct link *link, struct window *w, uint32_t from, uint64_t number,
                 const unsigned char *data, size_t len)
{
    if (number <= w->low) {
        link->counts[from].repeated++;
        log_debug("transport: a repeated frame of node %u was dropped", from);
        return;
    }
    if (number > w->low + WINDOW) {
        log_warning("frames of node %u are missing: %llu came while %llu is awaited", from,
                    (unsigned long long)number, (unsigned long long)w->low + 1);
        while (w->nheld > 0)
            next(link, w, from);
        w->low = number - 1;
    }
    if (number != w->low + 1) {
        link->counts[from].repeated += w->held != NULL && w->held[number % WINDOW].data != NULL;
        hold(w, number, data, len);
        return;
    }
    w->low++;
    deliver(link, from, data, len);
    while (w->nheld > 0 && w->held[(w->low + 1) % WINDOW].data != NULL)
        next(link, w, from);
}

static void free_window(struct window *w)
{
    for (uint32_t i = 0; w != NULL && w->held != NULL && i < WINDOW; i++)
        free(w->held[i].data);
    if (w != NULL)
        free(w->held);
    free(w);
}

static void receive_one(struct link *link, const void *data, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t step = wire_get_u64(&in);
    uint32_t from = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    if (in.bad || in.p == in.end || step != link->env.step || from >= link->env.nnodes ||
        from == link->env.self || number == 0) {
        log_warning("%zu bytes that are no frame of this step were dropped", len);
        return;
    }
    link->counts[from].frames_in++;
    link->counts[from].bytes_in += len + 4;
    if (link->windows[from] == NULL)
        link->windows[from] = calloc(1, sizeof **link->windows);
    if (link->windows[from] == NULL)
        return;
    take(link, link->windows[from], from, number, in.p, (size_t)(in.end - in.p));
}

void link_receive(struct link *link, const void *data, size_t len)
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
        receive_one(link, frame, size);
    }
}

struct link_counts link_counts(const struct link *link, uint32_t node)
{
    struct link_counts counts = link->counts[node];
    counts.held = link->windows[node] != NULL ? link->windows[node]->nheld : 0;
    return counts;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    for (uint32_t i = 0; link->windows != NULL && i < link->env.nnodes; i++)
        free_window(link->windows[i]);
    free(link->windows);
    free(link->counts);
    free(link);
}
