/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What is published, as another server asks for it or answers (holder.h): bodies, and the order in
 * which they come, while servers are lost, time passes and the resource manager names a holder. No
 * question is answered twice, and each of our own is answered by the end.
 */
#include "common/holder/holder.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN = 2, SERVERS = 5, QUESTIONS = 64, STEPS = 48 };

struct pending {
    ask_done_fn *done;
    void *arg;
};

static struct world {
    struct holder *holder;
    int64_t now;
    struct pending asked[QUESTIONS];
    uint32_t nasked, requests, answered;
    bool gone[SERVERS], finds;
    uint64_t served; /* one bit a question of another server: it is open */
} world;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return world.now;
}

static struct timers timers = {.now = clock_of};

static bool is_lost(void *arg, uint32_t node)
{
    (void)arg;
    return node >= SERVERS || world.gone[node];
}

static void find(void *arg)
{
    (void)arg;
    world.finds = true;
}

static void others(void *arg)
{
    (void)arg;
}

static uint32_t head(void *arg)
{
    (void)arg;
    return 0;
}

static uint32_t heir(void *arg)
{
    (void)arg;
    return world.gone[1] ? 0 : 1;
}

static void ask(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg)
{
    (void)arg, (void)body, (void)len;
    FUZZ_CHECK(node < SERVERS && node != 0);
    if (world.nasked < QUESTIONS)
        world.asked[world.nasked++] = (struct pending){done, done_arg};
    else
        done(done_arg, -61, NULL, 0);
}

static void reply(void *arg, uint32_t node, uint64_t id, int32_t status, const void *data,
                  size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
    FUZZ_CHECK(node < SERVERS && id < STEPS && (world.served >> id & 1) != 0);
    world.served &= ~(UINT64_C(1) << id);
}

static const char *nspace(void *arg, uint32_t node)
{
    static const char *const names[] = {"own", "own", "b", "c", "d"};
    (void)arg;
    return node < SERVERS ? names[node] : NULL;
}

static int server(void *arg, const char *name, uint32_t index, uint32_t *node)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        if (strcmp(nspace(arg, i), name) == 0 && index-- == 0) {
            *node = i;
            return 0;
        }
    return -1;
}

static void acquaint(void *arg, uint32_t node, const struct procset *set)
{
    (void)arg, (void)node, (void)set;
}

static void settle(void *arg, const struct procset *set, void (*done)(void *arg), void *done_arg)
{
    (void)arg, (void)set;
    done(done_arg);
}

static void answered(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
    world.answered++;
}

static void answer_one(uint32_t i, int32_t status, const void *data, size_t len)
{
    struct pending one = world.asked[i];
    world.asked[i] = world.asked[--world.nasked];
    one.done(one.arg, status, data, len);
}

static void act(struct fuzz_bytes *in, uint64_t id)
{
    static const int32_t statuses[] = {0, 1, -46, -61};
    uint32_t what = fuzz_below(in, 8), node = 1 + fuzz_below(in, SERVERS - 1);
    size_t len;
    const uint8_t *body = fuzz_take(in, fuzz_byte(in), &len);
    if (what <= 2 && !world.gone[node]) {
        world.served |= UINT64_C(1) << id;
        holder_serve(world.holder, node, id, body, len);
    } else if (what == 3 && len > 0 && body[0] != 0 && body[0] < HOLDER_OPS) {
        world.requests++;
        holder_request(world.holder, body, len, 1000, answered, NULL);
    } else if (what == 4 && world.nasked > 0) {
        answer_one(node % world.nasked, statuses[len % 4], body, len);
    } else if (what == 5 && world.finds) {
        world.finds = false;
        holder_found(world.holder, len % 3 == 0 ? 0 : node, NULL);
    } else if (what == 6) {
        holder_other(world.holder, len % 2 == 0 ? HOLDER_NONE : node);
        world.gone[node] = true;
        holder_lost(world.holder, node);
    } else if (what == 7) {
        world.now += (int64_t)len * len;
        timers_run(&timers);
        if (len == 7)
            holder_leave(world.holder);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct holder_env env = {
        .self = 0,
        .nnodes = OWN,
        .codes = {0, -52, -32, -46, -53, -24, -25, -27, -61},
        .timers = &timers,
        .is_lost = is_lost,
        .find = find,
        .head = head,
        .heir = heir,
        .others = others,
        .ask = ask,
        .reply = reply,
        .nspace = nspace,
        .server = server,
        .node_of = server,
        .acquaint = acquaint,
        .settle = settle,
    };
    struct fuzz_bytes in = {data, data + len};
    world = (struct world){.now = 1000};
    world.holder = holder_new(&env);
    FUZZ_CHECK(world.holder != NULL);
    for (uint64_t id = 0; id < STEPS && in.p < in.end; id++)
        act(&in, id);
    holder_close(world.holder);
    FUZZ_CHECK(world.answered == world.requests);
    while (world.nasked > 0)
        answer_one(0, -61, NULL, 0);
    holder_free(world.holder);
    return 0;
}

/* One act, as act() reads it. */
static void put_act(struct wire_out *out, uint8_t what, uint8_t node, const struct wire_out *body)
{
    wire_put_u8(out, what);
    wire_put_u8(out, (uint8_t)(node - 1));
    wire_put_u8(out, body != NULL ? (uint8_t)body->len : 0);
    if (body != NULL)
        wire_put_raw(out, body->data, body->len);
}

void fuzz_seeds(void)
{
    char key[] = "port", *keys[] = {key};
    const struct store_entry entry = {.who = {.nspace = "b", .rank = 1, .host = "n1"},
                                      .number = 7,
                                      .key = key,
                                      .value = key,
                                      .len = 4};
    const struct store_lookup lookup = {
        .who = {.nspace = "c"}, .nkeys = 1, .keys = keys, .want = 1};
    for (uint8_t op = 1; op < HOLDER_OPS; op++) {
        struct wire_out out = {0}, body = {0};
        wire_put_u8(&body, op);
        if (op == HOLDER_PUBLISH || op == HOLDER_KEEP || op == HOLDER_HEIR) {
            wire_put_u32(&body, 1);
            store_put_entry(&body, &entry);
        } else if (op == HOLDER_LOOKUP) {
            store_put_lookup(&body, &lookup);
        } else if (op == HOLDER_UNPUBLISH) {
            store_put_who(&body, &entry.who);
            wire_put_u8(&body, STORE_RANGES);
            wire_put_u32(&body, 0);
        } else if (op == HOLDER_ENDED || op == HOLDER_READ) {
            wire_put_str(&body, "b");
            wire_put_u32(&body, 1);
        }
        if (op == HOLDER_READ)
            wire_put_u64(&body, 7);
        put_act(&out, 3, 1, &body); /* our own, for which the holder is looked for */
        put_act(&out, 5, 1, NULL);  /* it is we */
        put_act(&out, 6, 4, NULL);
        put_act(&out, 0, 2, &body);
        put_act(&out, 4, 1, NULL);
        put_act(&out, 7, 1, NULL);
        fuzz_seed(out.data, out.len);
        wire_out_free(&out);
        wire_out_free(&body);
    }
}
