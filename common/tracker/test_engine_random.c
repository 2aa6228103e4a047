/** @file
 * A random campaign: each seed is one network with its operations and its mishaps, and every
 * invariant of the engine is checked at its end.
 *
 *     test_engine_random                 seeds 1 to 8000
 *     test_engine_random FIRST [COUNT]   those seeds; MUSTER_SEED=FIRST does the same under meson
 *
 * Four climates. Calm (delays, reordering, repetitions, statuses, deadlines): all servers must
 * agree. Deadly (servers die too): no survivor may hang. Lossy (frames vanish, links are cut) and
 * slow (frames take longer than an engine waits for the root's word): every call has a deadline
 * and must meet it. In each of them a success holds the bytes of all, and nobody's bytes twice.
 */
#include "common/tracker/test_kit.h"

#include "common/util/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum climate { CALM, DEADLY, LOSSY, SLOW, CLIMATES };

enum {
    SEEDS = 8000,
    OPS_MAX = 6,
    ROUNDS_MAX = 4,
    SPREAD_MS = 4000,   /* calls are made within it */
    TIMEOUT_MAX = 8,    /* s */
    SETTLE_MS = 300000, /* all is over by then */
    LATENESS_MS = 100,  /* a timer fires at once on the virtual clock; queued calls chain */
};

static uint64_t first_seed = 1;
static unsigned count = SEEDS;
static bool verbose;

struct run {
    struct kit *kit;
    struct loopback_random random;
    enum climate climate;
    uint64_t seed;
    bool deadlines, failures;
};

/* One call that will be made, and those after it of the same server and operation. */
struct plan {
    struct run *run;
    struct kit_op *op;
    uint32_t slot, left;
};

static bool chance(struct run *run, uint32_t percent)
{
    return loopback_below(&run->random, 100) < percent;
}

static void show_answer(struct kit_call *call)
{
    if (verbose)
        fprintf(stderr, "%8llu %u: op %u instance %u called at %llu (timeout %u): %d\n",
                (unsigned long long)call->answered_at, call->op->nodes[call->slot],
                call->op->number, call->instance, (unsigned long long)call->made_at,
                call->call.timeout, call->status);
}

static void make_call(struct loopback *net, void *arg)
{
    struct plan *plan = arg;
    struct run *run = plan->run;
    struct kit_ask ask = {.flags = plan->op->number % 2 ? ENGINE_WANT_CONTEXT_ID : 0,
                          .then = show_answer};
    if (run->climate >= LOSSY || (run->deadlines && chance(run, 30)))
        ask.timeout = 1 + loopback_below(&run->random, TIMEOUT_MAX);
    if (run->failures && chance(run, 10))
        ask.status = -200 - (int32_t)plan->slot;
    if (!loopback_dead(net, plan->op->nodes[plan->slot]))
        kit_call(run->kit, plan->op, plan->slot, ask);
    if (--plan->left == 0)
        free(plan);
    else /* sometimes at once: two calls are then queued */
        loopback_at(net,
                    loopback_now(net) +
                        (chance(run, 50) ? 0 : loopback_below(&run->random, SPREAD_MS)),
                    make_call, plan);
}

static void kill_one(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint32_t node = loopback_below(&run->random, run->kit->ops->n);
    node = run->kit->ops->nodes[node];
    if (loopback_dead(net, node))
        return;
    if (verbose)
        fprintf(stderr, "%8llu %u dies\n", (unsigned long long)loopback_now(net), node);
    loopback_kill(net, node, 0, 1000);
}

static void cut(struct loopback *net, void *arg)
{
    struct run *run = arg;
    uint8_t sides[64];
    for (size_t i = 0; i < sizeof sides; i++)
        sides[i] = chance(run, 30);
    loopback_partition(net, sides, loopback_now(net) + loopback_below(&run->random, 20000));
}

static void plan_op(struct run *run, uint32_t nnodes)
{
    uint32_t nodes[64], n = 0;
    char id[16];
    bool whole = chance(run, 40);
    for (uint32_t i = 0; i < nnodes; i++)
        if (whole || chance(run, 60))
            nodes[n++] = i;
    if (n == 0)
        nodes[n++] = loopback_below(&run->random, nnodes);
    snprintf(id, sizeof id, "g%u", run->kit->nops);
    struct kit_op *op = kit_op(run->kit, COLL_CONSTRUCT, id, nodes, n);
    uint32_t rounds = 1 + loopback_below(&run->random, ROUNDS_MAX);
    for (uint32_t slot = 0; slot < n; slot++) {
        struct plan *plan = calloc(1, sizeof *plan);
        if (plan == NULL)
            abort();
        *plan = (struct plan){run, op, slot, rounds};
        loopback_at(run->kit->net,
                    loopback_now(run->kit->net) + loopback_below(&run->random, SPREAD_MS),
                    make_call, plan);
    }
}

static void check_call(struct run *run, const struct kit_call *call)
{
    struct kit *kit = run->kit;
    if (call->answers != 1) {
        kit_fault(kit, "op %u slot %u instance %u: answered %u times", call->op->number, call->slot,
                  call->instance, call->answers);
        return;
    }
    /* A call's time counts from its turn: after that of those before it. */
    uint64_t turn = call->made_at;
    for (const struct kit_call *other = kit->calls; other != NULL; other = other->next)
        if (other->op == call->op && other->slot == call->slot &&
            other->instance < call->instance && other->answered_at > turn)
            turn = other->answered_at;
    if (call->call.timeout > 0 &&
        call->answered_at > turn + call->call.timeout * 1000ull + ENGINE_GRACE_MS + LATENESS_MS)
        kit_fault(kit, "op %u slot %u instance %u: answered after %llu ms with a timeout of %u s",
                  call->op->number, call->slot, call->instance,
                  (unsigned long long)(call->answered_at - turn), call->call.timeout);
}

/* A contribution is used once: a later result never holds one as old as an earlier result did. */
static void check_reuse(struct kit *kit)
{
    for (struct kit_call *a = kit->calls; a != NULL; a = a->next)
        for (struct kit_call *b = kit->calls; b != NULL; b = b->next)
            for (uint32_t i = 0; a->op == b->op && a->slot == b->slot && a->status == 0 &&
                                 b->status == 0 && a->instance < b->instance && i < a->op->n;
                 i++)
                if (a->seen[i] >= b->seen[i])
                    kit_fault(kit, "op %u slot %u: instances %u and %u both took slot %u's %u",
                              a->op->number, a->slot, a->instance, b->instance, i, b->seen[i]);
}

static void check(struct run *run)
{
    struct kit *kit = run->kit;
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        check_call(run, call);
        for (uint32_t i = 0; call->status == 0 && run->climate == CALM && i < call->op->n; i++)
            if (call->seen[i] != call->instance)
                kit_fault(kit, "op %u slot %u: instance %u has slot %u's %u", call->op->number,
                          call->slot, call->instance, i, call->seen[i]);
        if (run->climate == CALM && !run->deadlines && !run->failures && call->status != 0)
            kit_fault(kit, "op %u slot %u: status %d for no reason", call->op->number, call->slot,
                      call->status);
    }
    check_reuse(kit);
    if (run->climate == CALM)
        kit_check_agreement(kit);
    if (run->climate == CALM && !run->deadlines && !run->failures && kit_trackers(kit) != 0)
        kit_fault(kit, "%u trackers are left after nothing failed", kit_trackers(kit));
    loopback_run(kit->net, 2 * (uint64_t)ENGINE_REMEMBER_MS);
    if (kit_trackers(kit) != 0)
        kit_fault(kit, "%u trackers are never forgotten", kit_trackers(kit));
}

static void sink(void *arg, enum log_level level, const char *text)
{
    const struct run *run = arg;
    if (verbose)
        fprintf(stderr, "%8llu <%d>%s\n", (unsigned long long)loopback_now(run->kit->net),
                (int)level, text);
}

/* Shows a frame of a collective as it is sent. */
static bool show(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    const struct run *run = arg;
    struct wire_in in;
    size_t siglen;
    char what[320];
    if (!verbose)
        return true;
    wire_in_init(&in, (const unsigned char *)data + 4 + 8 + 4 + 8, len - 4 - 8 - 4 - 8);
    uint8_t type = wire_get_u8(&in);
    if (type == FRAME_WANTED)
        return true;
    const void *sig = wire_get_block(&in, &siglen);
    signature_describe(sig, siglen, what, sizeof what);
    uint64_t a = wire_get_u64(&in), b = wire_get_u64(&in);
    int32_t d = wire_get_i32(&in);
    fprintf(stderr, "%8llu %u -> %u %s %s: ", (unsigned long long)loopback_now(run->kit->net), from,
            to, what, type == FRAME_CONTRIB ? "contribution" : "release");
    if (type == FRAME_CONTRIB)
        fprintf(stderr, "known %llu number %llu\n", (unsigned long long)a, (unsigned long long)b);
    else
        fprintf(stderr, "generation %llu number %llu status %d\n", (unsigned long long)a,
                (unsigned long long)b, d);
    return true;
}

static bool run_seed(uint64_t seed)
{
    struct run run = {.seed = seed, .random = {seed * 2 + 1}, .climate = seed % CLIMATES};
    static const uint32_t arities[] = {2, 3, 16};
    uint32_t n = 1 + loopback_below(&run.random, chance(&run, 20) ? 40 : 9);
    struct loopback_conf conf = {
        .nnodes = n,
        .arity = arities[loopback_below(&run.random, 3)],
        .seed = seed,
        .delay_max = loopback_below(&run.random, run.climate == SLOW ? 12000 : 200),
        .reorder = chance(&run, 70),
        .duplicate = loopback_below(&run.random, 200),
        .drop = run.climate == LOSSY ? loopback_below(&run.random, 100) : 0,
        .stall = verbose ? 0 : 3,
        .arg = &run,
        .filter = show};
    run.deadlines = chance(&run, 50);
    run.failures = chance(&run, 30);
    run.kit = kit_new(&conf);
    log_open(sink, &run, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, NULL);
    for (uint32_t ops = 1 + loopback_below(&run.random, OPS_MAX); ops > 0; ops--)
        plan_op(&run, n);
    if (run.climate == DEADLY)
        for (uint32_t deaths = 1 + loopback_below(&run.random, 3); deaths > 0; deaths--)
            loopback_at(run.kit->net, 1000 + loopback_below(&run.random, SPREAD_MS), kill_one,
                        &run);
    if (run.climate == LOSSY && chance(&run, 50))
        loopback_at(run.kit->net, 1000 + loopback_below(&run.random, SPREAD_MS), cut, &run);
    loopback_run(run.kit->net, SETTLE_MS);
    check(&run);
    bool good = run.kit->fault[0] == '\0';
    if (!good)
        fprintf(stderr,
                "seed %llu: %s; again: test_engine_random %llu 1 (MUSTER_LOG=1 shows more)\n",
                (unsigned long long)seed, run.kit->fault, (unsigned long long)seed);
    kit_free(run.kit);
    return good;
}

static void every_seed_holds(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + count && bad < 10; seed++)
        bad += !run_seed(seed);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_seed_holds)};
    const char *env = getenv("MUSTER_SEED");
    verbose = getenv("MUSTER_LOG") != NULL;
    if (argc > 1 || env != NULL) {
        first_seed = strtoull(argc > 1 ? argv[1] : env, NULL, 10);
        count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
