/* Header of a frame: u32 length of all that follows, u64 step, u32 sender, u64 number, then the
 * type byte and the body. */
#include "common/transport/link.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 8 + 4 + 8, WINDOW = 1024 };

/* What was seen of one sender: every number up to low, and some after it. */
struct window {
    uint64_t low;
    uint64_t bits[WINDOW / 64]; /* bit n % WINDOW: number n, low < n <= low + WINDOW */
};

struct link {
    struct link_env env;
    uint64_t *sent;          /* per receiver */
    struct window **windows; /* per sender, made when the first frame comes */
};

struct link *link_new(const struct link_env *env)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->env = *env;
    link->sent = calloc(env->nnodes, sizeof *link->sent);
    link->windows = calloc(env->nnodes, sizeof *link->windows);
    if (link->sent == NULL || link->windows == NULL) {
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
    wire_put_u64(&out, ++link->sent[node]);
    wire_put_raw(&out, frame->data, frame->len);
    if (frame->failed || out.failed || frame->len > UINT32_MAX - HEADER) {
        log_error("a frame to node %u could not be built: out of memory", node);
        wire_out_free(&out);
    } else {
        size_t len;
        void *data = wire_out_take(&out, &len);
        link->env.send(link->env.arg, node, data, len);
    }
    wire_out_free(frame);
}

static uint64_t *word(struct window *w, uint64_t number, uint64_t *bit)
{
    *bit = 1ull << (number % 64);
    return &w->bits[number % WINDOW / 64];
}

/* Whether a number is new; it is marked as seen. */
static bool is_new(struct window *w, uint64_t number, uint32_t from)
{
    uint64_t bit, *at;
    if (number <= w->low)
        return false;
    if (number > w->low + WINDOW) {
        log_warning("frames of node %u are missing: %llu came while %llu is awaited", from,
                    (unsigned long long)number, (unsigned long long)w->low + 1);
        memset(w->bits, 0, sizeof w->bits);
        w->low = number - 1;
    }
    at = word(w, number, &bit);
    if (*at & bit)
        return false;
    *at |= bit;
    for (at = word(w, w->low + 1, &bit); *at & bit; at = word(w, w->low + 1, &bit)) {
        *at &= ~bit;
        w->low++;
    }
    return true;
}

static void receive_one(struct link *link, const void *data, size_t len)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    uint64_t step = wire_get_u64(&in);
    uint32_t from = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    uint8_t type = wire_get_u8(&in);
    if (in.bad || step != link->env.step || from >= link->env.nnodes || from == link->env.self ||
        number == 0) {
        log_warning("%zu bytes that are no frame of this step were dropped", len);
        return;
    }
    if (link->windows[from] == NULL)
        link->windows[from] = calloc(1, sizeof **link->windows);
    if (link->windows[from] == NULL)
        return;
    if (is_new(link->windows[from], number, from))
        link->env.deliver(link->env.arg, from, (enum frame_type)type, in.p,
                          (size_t)(in.end - in.p));
    else
        log_debug("transport: a repeated frame of node %u was dropped", from);
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

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    for (uint32_t i = 0; link->windows != NULL && i < link->env.nnodes; i++)
        free(link->windows[i]);
    free(link->windows);
    free(link->sent);
    free(link);
}
