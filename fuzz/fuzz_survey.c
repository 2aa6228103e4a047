/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Questions to many servers (survey.h): what a relay answers, and what a server is to ask as a
 * relay, may be any bytes. Each server is heard of once by the end of the time, and no question
 * waits after that.
 */
#include "common/server/trees/survey.h"
#include "fuzz/fuzz.h"

#include <pmix_common.h>
#include <string.h>

enum { SERVERS = 20, SELF = 0, FEW = 3, TIMEOUT_S = 5 };

static struct world {
    int64_t now;
    uint64_t ids[2 * SERVERS];
    uint32_t to[2 * SERVERS], nasked, heard[SERVERS];
} world;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return world.now;
}

static void send_frame(void *arg, uint32_t node, struct wire_out *out)
{
    struct wire_in in;
    (void)arg;
    FUZZ_CHECK(node < SERVERS);
    wire_in_init(&in, out->data, out->len);
    if (wire_get_u8(&in) == FRAME_ASK && world.nasked < 2 * SERVERS) {
        world.to[world.nasked] = node;
        world.ids[world.nasked++] = wire_get_u64(&in);
    }
    wire_out_free(out);
}

static void hear(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    (void)arg;
    FUZZ_CHECK(node < SERVERS && node != SELF);
    FUZZ_CHECK(status == 0 || (data == NULL && len == 0));
    world.heard[node]++;
}

/* Bytes: which question is answered, or that one comes; how many bytes follow; these. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct timers timers = {.now = clock_of};
    const struct ask_env env = {.timeout = PMIX_ERR_TIMEOUT,
                                .lost = PMIX_ERR_LOST_CONNECTION,
                                .closing = PMIX_ERR_UNREACH,
                                .timers = &timers,
                                .send = send_frame};
    struct fuzz_bytes in = {data, data + size};
    struct ranges others = {0};
    world = (struct world){.now = 1};
    struct asks *asks = asks_new(&env);
    struct surveys *surveys = surveys_new(asks, SELF, SERVERS, FEW);
    ranges_add(&others, 1, SERVERS - 1);
    surveys_ask(surveys, &others, ASK_STATUS, "ping", 4, TIMEOUT_S, hear, NULL);
    ranges_free(&others);
    while (in.p < in.end) {
        uint32_t which = fuzz_below(&in, 2 * SERVERS + 1);
        size_t len;
        const uint8_t *body = fuzz_take(&in, fuzz_byte(&in), &len);
        struct wire_out out = {0};
        wire_put_u64(&out, which < world.nasked ? world.ids[which] : 0);
        wire_put_raw(&out, body, len);
        if (which < world.nasked)
            asks_frame(asks, world.to[which], FRAME_ANSWER, out.data, out.len);
        else
            surveys_serve(surveys, 1, which, body, len);
        wire_out_free(&out);
    }
    for (uint32_t i = 0; i < 2; i++) {
        world.now += 1000 * (TIMEOUT_S + SURVEY_RELAY_S);
        timers_run(&timers);
    }
    for (uint32_t i = 0; i < SERVERS; i++)
        FUZZ_CHECK(world.heard[i] == (i != SELF));
    asks_free(asks);
    surveys_free(surveys);
    return 0;
}

void fuzz_seeds(void)
{
    struct wire_out out = {0};
    struct ranges some = {0};
    for (uint8_t which = 0; which < 4; which++) {
        size_t at = out.len + 1;
        wire_put_u8(&out, which);
        wire_put_u8(&out, 0);
        wire_put_i32(&out, 0);
        for (uint32_t node = 1; node < 6; node++) {
            wire_put_u32(&out, node);
            wire_put_i32(&out, node == 3 ? PMIX_ERR_TIMEOUT : 0);
            wire_put_block(&out, "pong", node == 3 ? 0 : 4);
        }
        ((uint8_t *)out.data)[at] = (uint8_t)(out.len - at - 1);
    }
    size_t at = out.len + 1;
    ranges_add(&some, 2, 9);
    wire_put_u8(&out, 2 * SERVERS);
    wire_put_u8(&out, 0);
    wire_put_u8(&out, ASK_STATUS);
    wire_put_u32(&out, TIMEOUT_S);
    ranges_write(&some, UINT32_MAX, &out);
    wire_put_raw(&out, "ping", 4);
    ((uint8_t *)out.data)[at] = (uint8_t)(out.len - at - 1);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
    ranges_free(&some);
}
