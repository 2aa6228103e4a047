/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Messages between servers: whatever a peer sends, frames come out in the order of their numbers,
 * each once, and whole.
 *
 * An input is a list of messages. A message's first byte tells what it is: raw bytes, or frames
 * whose header is made here from a sender and the distance of their number from the last one, so
 * that mutations reach the window of frames that wait.
 */
#include "common/transport/link.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 3, STEP = 7, OTHER = 8, TYPE = 9 };

struct receiver {
    uint64_t made[NODES]; /* number of the last frame that was made */
    uint64_t last[NODES]; /* that came out */
    bool raw;             /* raw bytes have come: they may have taken any number */
    bool known;           /* the other step */
};

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole)
{
    struct receiver *receiver = arg;
    struct wire_in in;
    (void)whole;
    FUZZ_CHECK(from > 0 && from < NODES + 2);
    if (type != TYPE || receiver->raw || from >= NODES) {
        char *copy = malloc(len + 1); /* all of it can be read */
        FUZZ_CHECK(copy != NULL);
        memcpy(copy, body, len);
        free(copy);
        return;
    }
    wire_in_init(&in, body, len);
    uint64_t number = wire_get_u64(&in);
    FUZZ_CHECK(wire_end(&in) && number > receiver->last[from]);
    receiver->last[from] = number;
}

/* Two servers of another step, with handles behind our own; what comes before the introduction
 * waits. */
static int find(void *arg, uint64_t step, uint32_t index, uint32_t *node)
{
    const struct receiver *receiver = arg;
    *node = NODES + index;
    return receiver->known && step == OTHER && index < 2 ? 0 : -1;
}

/* One that is known comes once more from a server that it does not have. */
static bool introduce(void *arg, uint64_t step, const void *body, size_t len)
{
    struct receiver *receiver = arg;
    char *copy = malloc(len + 1); /* all of it can be read */
    bool good = step == OTHER && len > 0;
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, body, len);
    free(copy);
    receiver->known |= good;
    return good;
}

/* Refused is one that begins with a 1. */
static bool fits(void *arg, uint32_t from, const void *greeting, size_t len)
{
    char *copy = malloc(len + 1); /* all of it can be read */
    (void)arg;
    FUZZ_CHECK(copy != NULL && from > 0 && from < NODES + 2);
    if (len > 0)
        memcpy(copy, greeting, len);
    bool good = len == 0 || copy[0] != 1;
    free(copy);
    return good;
}

static void no_send(void *arg, uint32_t node)
{
    (void)arg;
    (void)node;
}

/* Small steps forwards and backwards, and long ones. */
static uint64_t number_after(uint64_t last, uint8_t step)
{
    static const uint64_t far[] = {63, 64, 65, 300, 1 << 21, UINT64_MAX / 2};
    if (step < 128)
        return last + step;
    if (step < 128 + sizeof far / sizeof *far)
        return last + far[step - 128];
    return last > 255u - step ? last - (255u - step) : 1;
}

static void make_frame(struct receiver *receiver, struct fuzz_bytes *in, struct wire_out *out)
{
    uint32_t from = 1 + fuzz_below(in, NODES - 1);
    uint64_t number = number_after(receiver->made[from], fuzz_byte(in));
    receiver->made[from] = number;
    wire_put_u32(out, 8 + 4 + 8 + 1 + 8);
    wire_put_u64(out, STEP);
    wire_put_u32(out, from);
    wire_put_u64(out, number);
    wire_put_u8(out, TYPE);
    wire_put_u64(out, number);
}

static void receive(struct link *link, const void *data, size_t len)
{
    void *exact = malloc(len > 0 ? len : 1);
    FUZZ_CHECK(exact != NULL);
    if (len > 0)
        memcpy(exact, data, len);
    struct shared_bytes *whole = shared_bytes_take(exact, len);
    link_receive(link, exact, len, whole, false);
    shared_bytes_drop(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct receiver receiver = {0};
    struct link_env env = {.arg = &receiver,
                           .nnodes = NODES,
                           .step = STEP,
                           .native = no_send,
                           .deliver = deliver,
                           .find = find,
                           .introduce = introduce,
                           .fits = fits};
    struct fuzz_bytes in = {data, data + len};
    struct link *link = link_new(&env);
    FUZZ_CHECK(link != NULL);
    while (in.p < in.end) {
        struct wire_out out = {0};
        uint8_t what = fuzz_byte(&in);
        size_t n;
        if (what & 1) {
            const uint8_t *raw = fuzz_take(&in, what >> 1, &n);
            receiver.raw = true;
            receive(link, raw, n);
            continue;
        }
        for (int i = 0; i <= (what >> 1) % 8; i++)
            make_frame(&receiver, &in, &out);
        receive(link, out.data, out.len);
        wire_out_free(&out);
    }
    link_free(link);
    return 0;
}

void fuzz_seeds(void)
{
    static const uint8_t in_order[] = {0, 0, 1, 0, 0, 1, 0, 1, 1, 4, 1, 1, 1, 1, 0, 1};
    static const uint8_t held[] = {0, 0, 3, 0, 0, 255, 0, 0, 254, 0, 0, 5, 0, 0, 129, 0, 0, 130};
    struct wire_out out = {0};
    fuzz_seed(in_order, sizeof in_order);
    fuzz_seed(held, sizeof held);
    for (uint32_t number = 2; number-- > 0;) { /* frames 2 and 1 of another step's server */
        wire_put_u8(&out, 26 << 1 | 1);
        wire_put_u32(&out, 8 + 4 + 8 + 2);
        wire_put_u64(&out, OTHER);
        wire_put_u32(&out, 1);
        wire_put_u64(&out, number + 1);
        wire_put_u8(&out, FRAME_NSPACE);
        wire_put_u8(&out, 0);
    }
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
    wire_put_u8(&out, 25 << 1 | 1);
    wire_put_u32(&out, 8 + 4 + 8 + 1);
    wire_put_u64(&out, STEP);
    wire_put_u32(&out, 2);
    wire_put_u64(&out, 1);
    wire_put_u8(&out, FRAME_CONTRIB);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
    for (uint32_t first = 0; first < 2;
         first++) { /* a greeting that is taken, and one that is not */
        wire_put_u8(&out, 32 << 1 | 1);
        wire_put_u32(&out, 8 + 4 + 8 + 1 + 4 + 2 + 1);
        wire_put_u64(&out, STEP);
        wire_put_u32(&out, 2 - first);
        wire_put_u64(&out, 1);
        wire_put_u8(&out, FRAME_GREETING);
        wire_put_u32(&out, 2);
        wire_put_u8(&out, (uint8_t)first);
        wire_put_u8(&out, 0);
        wire_put_u8(&out, FRAME_CONTRIB);
    }
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}
