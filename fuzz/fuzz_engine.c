/** @file
 * Whole servers, link and engine and questions, with peers that lie.
 *
 * An input is a program: a byte of the network, then a list of actions. Servers make local calls,
 * frames are forged in another server's name or bent under way, raw bytes arrive, servers and
 * participants are lost, time passes. Forged frames have right shapes and small numbers, so that
 * they fit to what stands and reach every state.
 *
 * Whatever comes, each call and question is answered once, and a success has one contribution of
 * each server. That all servers say the same holds only among those that do not lie: the tests
 * beside the engine check that.
 */
#include "common/transport/loopback.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 4, OPS = 4, STEP = 4711, LIBRARY = 4 << 16 | 2 << 8 | 2 };

/* Time passes fast while something waits only as far as timeouts go; what happens in an hour then
 * is one question after another. */
enum { WAIT_MAX_MS = 61000, TIME_MAX_MS = 4000000, STALL_S = 60 };

struct world {
    struct loopback *net;
    uint32_t nnodes;
    struct wire_out sigs[OPS];
    uint32_t servers[OPS]; /* how many take part */
    uint64_t passed;       /* ms */
    uint8_t bend, bend_at; /* what the next frame under way suffers; 0: nothing */
    unsigned made, answered;
};

/* A local call; it frees itself, so that a second answer is seen. */
struct call {
    struct engine_call call;
    struct world *world;
    uint32_t node, op;
    uint8_t how;
};

enum how { WANTS_ID = 1, IN_FAILURE = 2, WITH_TIMEOUT = 4, AGAIN = 8 /* from its own answer */ };

static void make_call(struct world *world, uint32_t node, uint32_t op, uint8_t how);

static void done(struct engine_call *engine_call, const struct engine_result *result)
{
    struct call *call = (struct call *)engine_call;
    struct world *world = call->world;
    world->answered++;
    FUZZ_CHECK(result->nentries == (result->status == 0 ? world->servers[call->op] : 0));
    FUZZ_CHECK(result->status == 0 || result->context_id == 0);
    for (uint32_t i = 0; i < result->nentries; i++) {
        const struct engine_entry *entry = &result->entries[i];
        FUZZ_CHECK(entry->slot == i && entry->status == 0);
        free(memcpy(malloc(entry->len + 1), entry->len > 0 ? entry->data : "", entry->len));
    }
    if (call->how & AGAIN)
        make_call(world, call->node, call->op, (uint8_t)(call->how & ~AGAIN));
    free(call);
}

static void make_call(struct world *world, uint32_t node, uint32_t op, uint8_t how)
{
    struct call *call = calloc(1, sizeof *call);
    FUZZ_CHECK(call != NULL);
    *call = (struct call){.world = world, .node = node, .op = op, .how = how};
    call->call = (struct engine_call){
        .sig = world->sigs[op].data,
        .siglen = world->sigs[op].len,
        .status = how & IN_FAILURE ? LOOPBACK_INVALID : 0,
        .flags = how & WANTS_ID ? ENGINE_WANT_CONTEXT_ID : 0,
        .data = "a contribution ",
        .len = how >> 4,
        .timeout = how & WITH_TIMEOUT ? 7 : 0,
        .done = done,
    };
    world->made++;
    engine_call(loopback_engine(world->net, node), &call->call);
}

static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct world *world = arg;
    world->answered++;
    FUZZ_CHECK(status == 0 || (data == NULL && len == 0));
    free(memcpy(malloc(len + 1), len > 0 ? data : "", len));
}

/* Answers a question by its first byte: now, with a failure, or never. */
static void serve(void *arg, uint32_t node, uint32_t from, uint64_t id, const void *body,
                  size_t len)
{
    struct world *world = arg;
    uint8_t how = len > 0 ? *(const uint8_t *)body : 0;
    if (how % 3 < 2)
        asks_reply(loopback_asks(world->net, node), from, id, how % 3 == 0 ? 0 : -1, body, len);
}

/* The network's own copy is bent. */
static bool filter(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    struct world *world = arg;
    (void)from;
    (void)to;
    if (world->bend != 0)
        ((uint8_t *)data)[world->bend_at % len] ^= world->bend;
    world->bend = 0;
    return true;
}

static void put_entries(struct fuzz_bytes *in, struct wire_out *out)
{
    uint32_t n = fuzz_below(in, NODES_MAX + 2);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t what = fuzz_byte(in);
        wire_put_u32(out, what & 7);
        wire_put_i32(out, what & 8 ? LOOPBACK_LOST : 0);
        wire_put_u32(out, what >> 4 & 3);
        wire_put_block(out, "forged", what >> 6);
    }
}

static void put_contrib(struct fuzz_bytes *in, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_u64(out, fuzz_byte(in)); /* generation */
    wire_put_u64(out, fuzz_byte(in)); /* number of the call */
    wire_put_u32(out, what & 1 ? LIBRARY + 1 : LIBRARY);
    wire_put_u32(out, what >> 4);
    wire_put_u64(out, what & 2 ? UINT64_MAX : 100u * (what & 0xc));
    put_entries(in, out);
}

static void put_release(struct fuzz_bytes *in, struct wire_out *out)
{
    static const int32_t status[] = {0, LOOPBACK_LOST, LOOPBACK_TIMEOUT, INT32_MIN};
    uint8_t what = fuzz_byte(in);
    wire_put_u64(out, fuzz_byte(in)); /* generation */
    wire_put_u64(out, fuzz_byte(in)); /* number of the call */
    wire_put_i32(out, status[what & 3]);
    wire_put_u64(out, what >> 2);
    put_entries(in, out);
}

/* A frame in another server's name. */
static void forge(struct world *world, struct fuzz_bytes *in)
{
    uint32_t from = fuzz_below(in, world->nnodes), to = fuzz_below(in, world->nnodes);
    uint8_t type = fuzz_byte(in);
    struct wire_out out = {0};
    size_t n, want;
    wire_put_u8(&out, type);
    if (type == FRAME_CONTRIB || type == FRAME_RELEASE || type == FRAME_WANTED) {
        const struct wire_out *sig = &world->sigs[fuzz_below(in, OPS)];
        wire_put_block(&out, sig->data, sig->len);
        if (type == FRAME_CONTRIB)
            put_contrib(in, &out);
        else if (type == FRAME_RELEASE)
            put_release(in, &out);
        else
            wire_put_u64(&out, fuzz_byte(in));
    } else {
        want = fuzz_byte(in);
        const uint8_t *bytes = fuzz_take(in, want, &n);
        wire_put_u64(&out, want & 7); /* id of a question */
        wire_put_raw(&out, bytes, n);
    }
    if (from != to)
        link_send(loopback_link(world->net, from), to, &out);
    wire_out_free(&out);
}

/* A frame whose body is raw, or bytes that are no frame; both as a peer's whole message. */
static void raw(struct world *world, struct fuzz_bytes *in)
{
    uint32_t to = fuzz_below(in, world->nnodes);
    uint8_t what = fuzz_byte(in);
    struct wire_out out = {0};
    size_t n, want = fuzz_byte(in);
    const uint8_t *bytes = fuzz_take(in, want, &n);
    if (what & 1) {
        wire_put_u32(&out, (uint32_t)(8 + 4 + 8 + n));
        wire_put_u64(&out, STEP);
        wire_put_u32(&out, what >> 1 & 3);
        wire_put_u64(&out, what >> 3);
    }
    wire_put_raw(&out, bytes, n);
    /* from a block of their exact size, so that a read past their end is seen */
    void *exact = memcpy(malloc(out.len + 1), out.len > 0 ? (void *)out.data : "", out.len);
    exact = realloc(exact, out.len > 0 ? out.len : 1);
    if (!loopback_dead(world->net, to))
        link_receive(loopback_link(world->net, to), exact, out.len);
    free(exact);
    wire_out_free(&out);
}

static void ask(struct world *world, struct fuzz_bytes *in)
{
    uint32_t from = fuzz_below(in, world->nnodes), to = fuzz_below(in, world->nnodes);
    uint8_t what = fuzz_byte(in);
    size_t n;
    const uint8_t *body = fuzz_take(in, what & 7, &n);
    if (from == to || loopback_dead(world->net, from))
        return;
    world->made++;
    asks_send(loopback_asks(world->net, from), to, what & 8 ? ASK_QUERY : ASK_MODEX, body, n,
              what >> 4, on_answer, world);
}

static void pass(struct world *world, uint8_t which)
{
    static const uint32_t ms[] = {0, 1, 10, 500, 1000, 5500, 12000, 61000, 601000, 3601000};
    uint32_t t = ms[which % (sizeof ms / sizeof *ms)];
    if (world->made != world->answered && t > WAIT_MAX_MS)
        t = WAIT_MAX_MS;
    if (world->passed + t > TIME_MAX_MS)
        return;
    world->passed += t;
    loopback_run(world->net, t);
}

static void act(struct world *world, struct fuzz_bytes *in)
{
    uint8_t what = fuzz_byte(in);
    uint32_t node = what >> 4 & 3;
    node = node < world->nnodes ? node : 0;
    switch (what & 15) {
    case 0:
    case 1:
    case 2:
        make_call(world, node, what & 3, fuzz_byte(in));
        break;
    case 3:
        make_call(world, node, 3, fuzz_byte(in));
        break;
    case 4:
    case 5:
        pass(world, fuzz_byte(in));
        break;
    case 6:
        raw(world, in);
        break;
    case 7:
        ask(world, in);
        break;
    case 8:
        if (!loopback_dead(world->net, node))
            loopback_kill(world->net, node, 0, fuzz_byte(in));
        break;
    case 9:
        loopback_local_status(world->net, node, fuzz_byte(in) & 1 ? LOOPBACK_LOST : 0);
        break;
    case 10:
        world->bend = fuzz_byte(in);
        world->bend_at = fuzz_byte(in);
        break;
    default:
        forge(world, in);
        break;
    }
}

static void write_sig(struct world *world, uint32_t op, enum coll_kind kind, const char *id,
                      uint32_t servers)
{
    struct procset members = {0};
    procset_add(&members, "job", 0, servers - 1);
    procset_canonical(&members);
    signature_write(&world->sigs[op], kind, id, &members);
    world->servers[op] = servers;
    procset_free(&members);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_bytes in = {data, data + len};
    struct world world = {0};
    uint8_t how = fuzz_byte(&in);
    world.nnodes = 2 + (how & 3) % (NODES_MAX - 1);
    const struct loopback_conf conf = {.nnodes = world.nnodes,
                                       .arity = 1 + (how >> 2 & 1) * 2,
                                       .seed = how,
                                       .delay_max = how & 8 ? 3 : 0,
                                       .reorder = how & 16,
                                       .duplicate = how & 32 ? 300 : 0,
                                       .drop = how & 64 ? 100 : 0,
                                       .stall = STALL_S,
                                       .arg = &world,
                                       .filter = filter,
                                       .serve = serve};
    write_sig(&world, 0, COLL_FENCE, "", world.nnodes);
    write_sig(&world, 1, COLL_CONSTRUCT, "ocean", world.nnodes);
    write_sig(&world, 2, COLL_CONSTRUCT, "ocean", 2);
    write_sig(&world, 3, COLL_DESTRUCT, "ocean", world.nnodes);
    world.net = loopback_new(&conf);
    while (in.p < in.end)
        act(&world, &in);
    loopback_free(world.net);
    FUZZ_CHECK(world.made == world.answered);
    for (uint32_t op = 0; op < OPS; op++)
        wire_out_free(&world.sigs[op]);
    return 0;
}

/* Actions of the seeds, for three servers. */
#define CALL(node, op, how) (node) << 4 | (op), how
#define PASS(which) 4, which
#define FORGE(from, to, type, op) 11, from, to, type, op
#define ASK(from, to, how) 7, from, to, how
#define KILL(node) (node) << 4 | 8, 0
#define LOSS(node) (node) << 4 | 9, 1

void fuzz_seeds(void)
{
    /* clang-format off */
    static const uint8_t good[] = {
        1, CALL(0, 0, 0), CALL(1, 0, 0x50), CALL(2, 0, 0xc0), PASS(2),
        CALL(0, 1, 1), CALL(1, 1, 1), PASS(3), PASS(5), CALL(2, 1, 0x31), PASS(2)};
    static const uint8_t losses[] = {
        1 | 4, CALL(0, 1, 4), CALL(1, 1, AGAIN), PASS(3), LOSS(2), PASS(5),
        CALL(0, 3, 2), PASS(6), CALL(1, 3, 4), KILL(2), PASS(7), PASS(8), CALL(0, 1, 0), PASS(9)};
    static const uint8_t lies[] = {
        1, CALL(0, 1, 0),
        FORGE(1, 0, FRAME_CONTRIB, 1), 0, 0, 1, 1, 0x41,
        FORGE(2, 0, FRAME_CONTRIB, 1), 2, 0, 1, 2, 0x02, 0x09, PASS(2),
        FORGE(0, 1, FRAME_RELEASE, 1), 1, 1, 0, 0,
        FORGE(1, 2, FRAME_RELEASE, 1), 0, 0, 0, 3, 0, 1, 2,
        FORGE(2, 1, FRAME_WANTED, 1), 0, PASS(5)};
    static const uint8_t questions[] = {
        1 | 32, ASK(0, 1, 0x71), 0, ASK(1, 2, 0x72), 1, 2, PASS(2),
        ASK(2, 0, 0x71), 2, PASS(6),
        11, 0, 2, FRAME_ANSWER, 9, 0, 0, 0, 0, 1, 2, 3, 4, 5,
        10, 0xff, 24, ASK(0, 1, 0), PASS(7)};
    static const uint8_t bytes[] = {
        1, 6, 0, 1 | 1 << 1 | 1 << 3, 12, FRAME_CONTRIB, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
        6, 1, 0, 3, 1, 2, 3, PASS(2)};
    /* clang-format on */
    fuzz_seed(good, sizeof good);
    fuzz_seed(losses, sizeof losses);
    fuzz_seed(lies, sizeof lies);
    fuzz_seed(questions, sizeof questions);
    fuzz_seed(bytes, sizeof bytes);
}
