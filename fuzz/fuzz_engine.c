/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Whole servers, link and engine and questions, with peers that lie.
 *
 * An input is a program: a byte of the network, then a list of actions. Servers make local calls,
 * frames are forged in another server's name or bent under way, raw bytes arrive, servers and
 * participants are lost, time passes. Forged frames have right shapes and small numbers, so that
 * they fit to what stands and reach every state.
 *
 * Whatever comes, each call and question is answered once, and a success has at most one
 * contribution of each server. That all servers say the same holds only among those that do not
 * lie: the tests beside the engine check that.
 */
#include "ci/loopback/loopback.h"
#include "fuzz/forge.h"

#include <stdlib.h>
#include <string.h>

#define GROUP "ocean"

enum { NODES_MAX = 4, OPS = 4, STEP = 4711 };
enum { OP_NONE = OPS /* a call whose operation depends on who else calls */ };

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
    struct call *member;   /* the latest of an added member or a leader that waits, or NULL */
    unsigned made, answered;
};

/* A local call; it frees itself, so that a second answer is seen. */
struct call {
    struct engine_call call;
    struct world *world;
    uint32_t node, op;
    uint8_t how;
    struct procset caller; /* of a member's or leader's */
    struct wire_out added; /* whom it adds */
};

enum how { WANTS_ID = 1, IN_FAILURE = 2, WITH_TIMEOUT = 4, AGAIN = 8 /* from its own answer */ };

static void make_call(struct world *world, uint32_t node, uint32_t op, uint8_t how);

static void free_call(struct call *call)
{
    if (call->world->member == call)
        call->world->member = NULL;
    procset_free(&call->caller);
    wire_out_free(&call->added);
    free(call);
}

static void done(struct engine_call *engine_call, const struct engine_result *result)
{
    struct call *call = (struct call *)engine_call;
    struct world *world = call->world;
    world->answered++;
    FUZZ_CHECK(result->status == 0 || (result->nentries == 0 && result->context_id == 0));
    if (result->status == 0 && call->op != OP_NONE)
        FUZZ_CHECK(result->members != NULL || result->nentries <= world->servers[call->op]);
    for (uint32_t i = 0; i < result->nentries; i++) {
        const struct engine_entry *entry = &result->entries[i];
        FUZZ_CHECK(entry->len > 0 && (i == 0 || entry->slot > entry[-1].slot));
        free(memcpy(malloc(entry->len + 1), entry->len > 0 ? entry->data : "", entry->len));
    }
    if (call->how & AGAIN && call->op != OP_NONE)
        make_call(world, call->node, call->op, (uint8_t)(call->how & ~AGAIN));
    free_call(call);
}

static struct call *new_call(struct world *world, uint32_t node, uint32_t op, uint8_t how)
{
    struct call *call = calloc(1, sizeof *call);
    FUZZ_CHECK(call != NULL);
    *call = (struct call){.world = world, .node = node, .op = op, .how = how};
    call->call = (struct engine_call){
        .status = how & IN_FAILURE ? LOOPBACK_INVALID : 0,
        .flags = how & WANTS_ID ? ENGINE_WANT_CONTEXT_ID : 0,
        .data = "a contribution ",
        .len = how >> 4,
        .timeout = how & WITH_TIMEOUT ? 7 : 0,
        .done = done,
    };
    world->made++;
    return call;
}

static void make_call(struct world *world, uint32_t node, uint32_t op, uint8_t how)
{
    struct call *call = new_call(world, node, op, how);
    call->call.sig = world->sigs[op].data;
    call->call.siglen = world->sigs[op].len;
    engine_call(loopback_engine(world->net, node), &call->call);
}

/* The last server's rank, and perhaps one more, is added. */
static void add_members(struct call *call, bool more)
{
    struct procset set = {0};
    procset_add(&set, "job", call->world->nnodes - 1, call->world->nnodes - 1);
    if (more)
        procset_add(&set, "job", 0, 0);
    procset_canonical(&set);
    procset_write(&set, &call->added);
    procset_free(&set);
    call->call.added = call->added.data;
    call->call.addedlen = call->added.len;
}

/* Calls of constructs whose members are not known from the start. */
static void make_open_call(struct world *world, uint32_t node, uint8_t kind, uint8_t how)
{
    enum { CONSTRUCT, JOIN, LEAD };
    struct engine *engine = loopback_engine(world->net, node);
    bool construct = kind % 3 == CONSTRUCT;
    struct call *call = new_call(world, node, construct ? 2 : OP_NONE, how);
    call->call.id = GROUP;
    call->call.caller = &call->caller;
    procset_add(&call->caller, "job", node, node);
    procset_canonical(&call->caller);
    if (kind & 0x40)
        add_members(call, kind & 0x80);
    if (construct) {
        call->call.sig = world->sigs[2].data;
        call->call.siglen = world->sigs[2].len;
        engine_call(engine, &call->call);
        return;
    }
    world->member = call; /* it may be answered, and gone, before this ends */
    call->call.leaders = 1 + (kind >> 4 & 3);
    if (kind % 3 == LEAD)
        engine_lead(engine, &call->call);
    else
        engine_join(engine, &call->call);
}

/* libpmix has ended a construct by itself, or takes back a call. */
static void take_back(struct world *world, uint32_t node, uint8_t how)
{
    struct call *call = world->member;
    if (how & 1) {
        engine_cancel(loopback_engine(world->net, node), GROUP, how & 2);
    } else if (call != NULL &&
               engine_withdraw(loopback_engine(world->net, call->node), &call->call)) {
        world->answered++;
        free_call(call);
    }
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

/* A frame in another server's name. */
static void forge(struct world *world, struct fuzz_bytes *in)
{
    const struct forge about = {.id = GROUP, .sigs = world->sigs, .nsigs = OPS};
    uint32_t from = fuzz_below(in, world->nnodes), to = fuzz_below(in, world->nnodes);
    struct wire_out out = {0};
    forge_frame(&about, in, fuzz_byte(in), &out);
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
    struct shared_bytes *whole = shared_bytes_take(exact, out.len);
    if (!loopback_dead(world->net, to))
        link_receive(loopback_link(world->net, to), exact, out.len, whole, false);
    shared_bytes_drop(whole);
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
    case 11:
    case 12:
        make_open_call(world, node, fuzz_byte(in), fuzz_byte(in));
        break;
    case 13:
        take_back(world, node, fuzz_byte(in));
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
                                       .large = how >> 7,
                                       .piece = 1,
                                       .arg = &world,
                                       .filter = filter,
                                       .serve = serve};
    write_sig(&world, 0, COLL_FENCE, "", world.nnodes);
    write_sig(&world, 1, COLL_CONSTRUCT, GROUP, world.nnodes);
    write_sig(&world, 2, COLL_CONSTRUCT, GROUP, 2);
    write_sig(&world, 3, COLL_DESTRUCT, GROUP, world.nnodes);
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
#define FORGE(from, to, type, op) 15, from, to, type, op
#define OPEN(node, kind, how) (node) << 4 | 11, kind, how
#define TAKE_BACK(node, how) (node) << 4 | 13, how
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
        FORGE(2, 1, FRAME_WANTED, 1), 0, 0, PASS(5)};
    static const uint8_t pieces[] = {
        1 | 128, CALL(0, 0, 0x10), CALL(1, 0, 0x50), CALL(2, 0, 0xc0), PASS(2),
        CALL(0, 0, 0x10), CALL(1, 0, 0x50), FORGE(0, 1, FRAME_RELEASE, 0), 1, 0x80, 9, 0, 0, 0,
        FORGE(0, 1, FRAME_PIECE, 0), 9, 1, 0x40, FORGE(2, 1, FRAME_PIECE, 0), 9, 1, 0x41,
        FORGE(0, 1, FRAME_RELEASE, 0), 0, 1, 10, 0, 0, 0, KILL(0), PASS(7)};
    static const uint8_t members[] = {
        1, OPEN(0, 0x60, 0), OPEN(1, 0x60, 0x10), OPEN(2, 1, 0x20), PASS(3),
        OPEN(0, 0x60, 1), OPEN(1, 0, 4), KILL(2), PASS(7), PASS(8)};
    static const uint8_t leaders[] = {
        1, OPEN(0, 0x50, 1), OPEN(1, 0x11, 0), OPEN(2, 1, 0), PASS(3),
        OPEN(0, 0x11, 4), TAKE_BACK(0, 0), OPEN(2, 1, 4), TAKE_BACK(2, 0), TAKE_BACK(1, 3), PASS(7)};
    static const uint8_t member_lies[] = {
        1, OPEN(0, 0x60, 0), OPEN(2, 1, 0), PASS(2),
        FORGE(1, 0, FRAME_JOINED, 0), 1, 0, 0, 6, 1, 0x40,
        FORGE(0, 2, FRAME_CLAIM, 2), 1, 6, PASS(2),
        FORGE(0, 2, FRAME_OUTCOME, 2), 1, 4, 0, 3, 0, 1, 2,
        FORGE(1, 0, FRAME_LEAD, 0), 2, 0, 4, 1, 0, PASS(3),
        FORGE(1, 2, FRAME_DOUBT, 2), 5, 0, 1, 0, 0, FORGE(2, 0, FRAME_HAVE, 2), 1,
        FORGE(1, 0, FRAME_CANCEL, 0), PASS(7)};
    static const uint8_t questions[] = {
        1 | 32, ASK(0, 1, 0x71), 0, ASK(1, 2, 0x72), 1, 2, PASS(2),
        ASK(2, 0, 0x71), 2, PASS(6),
        15, 0, 2, FRAME_ANSWER, 0, 9, 0, 0, 0, 0, 1, 2, 3, 4, 5,
        10, 0xff, 24, ASK(0, 1, 0), PASS(7)};
    static const uint8_t bytes[] = {
        1, 6, 0, 1 | 1 << 1 | 1 << 3, 12, FRAME_CONTRIB, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
        6, 1, 0, 3, 1, 2, 3, PASS(2)};
    /* clang-format on */
    fuzz_seed(good, sizeof good);
    fuzz_seed(losses, sizeof losses);
    fuzz_seed(lies, sizeof lies);
    fuzz_seed(pieces, sizeof pieces);
    fuzz_seed(members, sizeof members);
    fuzz_seed(leaders, sizeof leaders);
    fuzz_seed(member_lies, sizeof member_lies);
    fuzz_seed(questions, sizeof questions);
    fuzz_seed(bytes, sizeof bytes);
}
