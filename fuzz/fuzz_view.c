/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agreed view (view/view.h): frames of any servers of the step, of any bytes, while this server
 * says and asks things, accuses others, wants to leave, and time passes. It sends to servers that
 * there are, tells of each one that goes once, answers what it asks once, and does nothing once it
 * is over.
 */
#include "common/view/private.h"
#include "common/view/view.h"
#include "fuzz/fuzz.h"

#include <string.h>

enum { SERVERS = 9, SELF = 2, ARITY = 2, ACTS = 64 };

static struct world {
    int64_t now;
    bool gone[SERVERS], over;
    uint32_t asked, answered;
} world;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return world.now;
}

static struct timers timers = {.now = clock_of};

static void send_frame(void *arg, uint32_t node, enum frame_type type, struct wire_out *body)
{
    (void)arg;
    FUZZ_CHECK(node < SERVERS && node != SELF && body->len > 0);
    FUZZ_CHECK(type == FRAME_VIEW || type == FRAME_OUTSIDE);
    wire_out_free(body);
}

static void hear(void *arg, uint32_t origin, const void *text, size_t len)
{
    (void)arg;
    FUZZ_CHECK(origin < SERVERS && !world.over && (text != NULL || len == 0));
}

static int32_t answer(void *arg, uint32_t origin, const void *text, size_t len,
                      struct wire_out *out)
{
    (void)arg;
    FUZZ_CHECK(origin < SERVERS && !world.over);
    wire_put_raw(out, text, len);
    return 0;
}

static void take_answers(void *arg, const void *answers, size_t len)
{
    (void)arg;
    FUZZ_CHECK(answers != NULL || len == 0);
    world.answered++;
}

static void settled(void *arg)
{
    (void)arg;
    FUZZ_CHECK(!world.over);
}

static void go(const struct ranges *set)
{
    for (struct ranges_at at = {0}; ranges_next(set, &at);) {
        FUZZ_CHECK(at.number < SERVERS && at.number != SELF && !world.gone[at.number]);
        world.gone[at.number] = true;
    }
}

static void changed(void *arg, const struct ranges *lost, const struct ranges *left)
{
    (void)arg;
    FUZZ_CHECK(!world.over);
    go(lost);
    go(left);
}

static void over(void *arg, enum view_over how, const char *why)
{
    (void)arg;
    (void)how;
    FUZZ_CHECK(!world.over && why != NULL);
    world.over = true;
}

/* Bytes: what happens, with which server, how many bytes follow; these. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct view_env env = {.self = SELF,
                                 .nnodes = SERVERS,
                                 .arity = ARITY,
                                 .timers = &timers,
                                 .send = send_frame,
                                 .hear = hear,
                                 .answer = answer,
                                 .settled = settled,
                                 .changed = changed,
                                 .over = over};
    struct fuzz_bytes in = {data, data + len};
    world = (struct world){.now = 1};
    struct view *view = view_new(&env);
    FUZZ_CHECK(view != NULL);
    for (int i = 0; i < ACTS && in.p < in.end; i++) {
        uint32_t what = fuzz_below(&in, 11), node = fuzz_below(&in, SERVERS);
        size_t n;
        const uint8_t *body = fuzz_take(&in, fuzz_byte(&in), &n);
        if (what < 6 && node != SELF) {
            view_take(view, node, body, n);
        } else if (what == 6) {
            view_accuse(view, node, n % 2 == 1);
        } else if (what == 7) {
            view_say(view, body, n);
        } else if (what == 10) {
            world.asked++;
            view_gather(view, body, n, node * 100, take_answers, NULL);
        } else if (what == 8) {
            view_leave(view);
        } else {
            world.now += (int64_t)(n * n);
            timers_run(&timers);
        }
        for (uint32_t k = 0; k < SERVERS; k++)
            FUZZ_CHECK(world.over || view_has(view, k) == !world.gone[k]);
    }
    view_free(view);
    FUZZ_CHECK(world.answered == world.asked);
    FUZZ_CHECK(timers_wait(&timers) == -1);
    return 0;
}

/* ---- seeds ---- */

static void put_act(struct wire_out *out, uint8_t what, uint8_t node, struct wire_out *body)
{
    wire_put_u8(out, what);
    wire_put_u8(out, node);
    wire_put_u8(out, (uint8_t)body->len);
    wire_put_raw(out, body->data, body->len);
    wire_out_free(body);
}

static void begin(struct wire_out *body, uint8_t kind, uint64_t number)
{
    wire_put_u8(body, kind);
    wire_put_u64(body, number);
    wire_put_u32(body, 0); /* of server 0; the first view's is number 0 */
}

static void put_ranges(struct wire_out *body, uint32_t first, uint32_t last)
{
    wire_put_u32(body, first <= last);
    if (first <= last) {
        wire_put_u32(body, first);
        wire_put_u32(body, last);
    }
}

/* Server 8 is lost: a proposal, the states of those below, the commit, and a word in the new view.
 */
void fuzz_seeds(void)
{
    struct wire_out out = {0}, body = {0};
    put_act(&out, 6, 8, &body);
    begin(&body, VIEW_PROPOSE, 1);
    put_ranges(&body, 8, 8);
    put_act(&out, 0, 0, &body);
    for (uint8_t node = 5; node < 7; node++) {
        begin(&body, VIEW_STATE, 1);
        wire_put_u64(&body, 0);
        wire_put_u32(&body, 0);
        put_ranges(&body, 1, 0);
        put_ranges(&body, 1, 0);
        wire_put_u32(&body, 0);
        put_act(&out, 0, node, &body);
    }
    begin(&body, VIEW_COMMIT, 1);
    put_ranges(&body, 8, 8);
    put_ranges(&body, 8, 8);
    wire_put_u64(&body, 0);
    wire_put_u32(&body, 0);
    put_ranges(&body, 8, 8);
    put_ranges(&body, 1, 0);
    wire_put_u32(&body, 0);
    put_act(&out, 0, 0, &body);
    begin(&body, VIEW_SAID, 1);
    wire_put_u64(&body, 1);
    wire_put_u64(&body, 1);
    wire_put_u32(&body, 4);
    wire_put_u64(&body, 1);
    wire_put_raw(&body, "\0text", 5);
    put_act(&out, 0, 0, &body);
    begin(&body, VIEW_SAID, 1);
    wire_put_u64(&body, 2);
    wire_put_u64(&body, 1);
    wire_put_u32(&body, 4);
    wire_put_u64(&body, 2);
    wire_put_u8(&body, WORD_ASKS);
    wire_put_u32(&body, 100);
    put_act(&out, 0, 0, &body);
    begin(&body, VIEW_ANSWERS, 1);
    wire_put_u64(&body, 2);
    wire_put_u32(&body, 5);
    wire_put_i32(&body, 0);
    wire_put_block(&body, "here", 4);
    put_act(&out, 0, 5, &body);
    put_act(&out, 10, 0, &body);
    wire_put_raw(&body, "word", 4);
    put_act(&out, 7, 0, &body);
    put_act(&out, 8, 0, &body);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}
