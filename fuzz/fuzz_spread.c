/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What servers of a step tell each other of other steps' namespaces (spread.h): the words of
 * another server, and the order in which they come, while calls wait, servers are lost, time passes
 * and namespaces are forgotten. Each call that waits goes on once, by the end of its time at the
 * latest.
 */
#include "common/nspace/foreign.h"
#include "common/server/steps/spread.h"
#include "common/server/steps/steps.h"
#include "common/transport/frame.h"
#include "common/view/view.h"
#include "fuzz/fuzz.h"

#include <string.h>

enum { SERVERS = 7, SELF = 1, NAMES = 4, WAITS = 8, ACTS = 64 };

static char names[NAMES][4] = {"own", "b", "c", "d"};
static struct foreign foreigns[NAMES];
static struct nspace nspaces[NAMES];
static struct server server;

static struct world {
    int64_t now;
    uint64_t heard, settled; /* words */
    bool gone[SERVERS], known[NAMES], refuses;
    uint32_t speaker;
    struct spread_wait waits[WAITS];
    struct procset sets[WAITS];
    bool waiting[WAITS];
} world;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return world.now;
}

/* ---- the parts of the server that spread.c calls ---- */

void server_say(struct server *of, struct wire_out *word)
{
    (void)of;
    FUZZ_CHECK(word->len > 1 && word->data[0] == FRAME_SPREAD);
    wire_out_free(word);
}

/* @return its index, or NAMES */
static uint32_t find(const char *name)
{
    uint32_t i = 0;
    while (i < NAMES && strcmp(names[i], name) != 0)
        i++;
    return i;
}

const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    uint32_t i = find(name);
    (void)own;
    return i > 0 && i < NAMES && world.known[i] ? &nspaces[i] : NULL;
}

bool foreign_has_ended(const struct nspace *ns)
{
    (void)ns;
    return false;
}

/* A registration here is the name. */
struct nspace *steps_take(struct server *of, uint64_t step, const void *bytes, size_t len)
{
    char name[4] = "";
    (void)of, (void)step;
    FUZZ_CHECK(bytes != NULL && len > 0);
    memcpy(name, bytes, len < sizeof name ? len : 0);
    uint32_t i = find(name);
    if (i == 0 || i >= NAMES || world.refuses)
        return NULL;
    world.known[i] = true;
    return &nspaces[i];
}

int steps_register(struct server *of, const struct procset *set)
{
    (void)of;
    FUZZ_CHECK(set->nparts > 0);
    return 0;
}

uint32_t steps_speaker(void *arg, const struct procset *set)
{
    (void)arg;
    FUZZ_CHECK(set->nparts > 0);
    return world.gone[world.speaker] ? SELF : world.speaker;
}

uint64_t view_heard(const struct view *view)
{
    (void)view;
    return world.heard;
}

uint64_t view_settled(const struct view *view)
{
    (void)view;
    return world.settled;
}

static void done(struct spread_wait *wait)
{
    size_t i = (size_t)(wait - world.waits);
    FUZZ_CHECK(i < WAITS && world.waiting[i]);
    world.waiting[i] = false;
    procset_free(&world.sets[i]);
}

static void await(uint32_t which, uint32_t k)
{
    if (world.waiting[k])
        return;
    procset_add(&world.sets[k], names[0], 0, 3);
    for (uint32_t i = 1; i < NAMES; i++)
        if ((which >> i & 1) != 0)
            procset_add(&world.sets[k], names[i], 0, 3);
    procset_canonical(&world.sets[k]);
    world.waits[k] = (struct spread_wait){.set = &world.sets[k], .done = done};
    world.waiting[k] = true;
    spread_await(&server, &world.waits[k]);
}

static void pass(int64_t ms)
{
    world.now += ms;
    int64_t next = timers_wait(&server.timers);
    FUZZ_CHECK(next >= -1 && next <= SPREAD_WAIT_MS);
    timers_run(&server.timers);
    FUZZ_CHECK(timers_wait(&server.timers) != 0);
}

static void act(struct fuzz_bytes *in)
{
    uint32_t what = fuzz_below(in, 9), node = fuzz_below(in, SERVERS);
    size_t len;
    const uint8_t *body = fuzz_take(in, fuzz_byte(in), &len);
    if (what <= 3 && !world.gone[node]) {
        world.heard++;
        spread_hear(&server, node, body, len);
        world.settled = world.heard - what > world.settled ? world.heard - what : world.settled;
        spread_settled(&server);
    } else if (what == 4) {
        await((uint32_t)len, node % WAITS);
    } else if (what == 5 && node != SELF) {
        world.gone[node] = true;
        spread_lost(&server);
    } else if (what == 6) {
        pass((int64_t)(len * len));
    } else if (what == 7) {
        world.known[len % NAMES] = !world.known[len % NAMES];
        spread_forget(&server, names[len % NAMES]);
    } else if (what == 8) {
        world.speaker = node;
        world.refuses = len % 2 == 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_bytes in = {data, data + len};
    world = (struct world){.now = 1000, .heard = 4, .speaker = SELF};
    server = (struct server){.boot = {.node = SELF}, .timers = {.now = clock_of}};
    for (uint32_t i = 1; i < NAMES; i++) {
        foreigns[i].name = names[i];
        nspaces[i] =
            (struct nspace){.foreign = &foreigns[i], .bytes = names[i], .len = strlen(names[i])};
    }
    spread_open(&server);
    for (int i = 0; i < ACTS && in.p < in.end; i++)
        act(&in);
    pass(SPREAD_WAIT_MS);
    for (uint32_t k = 0; k < WAITS; k++)
        FUZZ_CHECK(!world.waiting[k]);
    await(~0u, 0);
    spread_close(&server);
    FUZZ_CHECK(!world.waiting[0]);
    return 0;
}

/* One act, as act() reads it. */
static void put_act(struct wire_out *out, uint8_t what, uint8_t node, const void *body, size_t len)
{
    wire_put_u8(out, what);
    wire_put_u8(out, node);
    wire_put_u8(out, (uint8_t)len);
    wire_put_raw(out, body, len);
}

static void put_word(struct wire_out *out, uint8_t what, uint8_t from)
{
    struct wire_out body = {0};
    wire_put_str(&body, names[2]);
    wire_put_block(&body, names[2], strlen(names[2]));
    put_act(out, what, from, body.data, body.len);
    wire_out_free(&body);
}

/* Two servers speak, of which one is lost; the words are heard by all sooner or later. */
void fuzz_seeds(void)
{
    static const uint8_t zeros[8];
    for (uint32_t order = 0; order < 4; order++) {
        struct wire_out out = {0};
        put_act(&out, 4, 0, zeros, 4);
        put_word(&out, (uint8_t)order, (uint8_t)(3 + order % 2));
        put_act(&out, 5, (uint8_t)order, zeros, 0);
        put_word(&out, 0, SELF);
        put_act(&out, 7, 0, zeros, 3);
        put_act(&out, 4, 1, zeros, 8);
        put_act(&out, 6, 0, zeros, 8);
        fuzz_seed(out.data, out.len);
        wire_out_free(&out);
    }
}
