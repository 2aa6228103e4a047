/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the holder's end: several steps of several servers in one process, with a clock,
 * messages that take a while, servers that leave and die, and a resource manager that may name the
 * wrong one.
 *
 * Whatever happens, each request is answered, what a living server has published is found, and no
 * range of context ids is given twice.
 */
#include "common/server/holder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 5, NODES = 3, SERVERS = STEPS * NODES, SEEDS = 500, RANGES = 256 };
enum { SUCCESS = 0, LOST = -61, TIMEOUT = -24, UNREACH = -25, NOT_FOUND = -46, PARTIAL = -52 };

struct world;

struct server {
    struct world *world;
    uint32_t step, node;
    bool alive;
    struct holder *holder;
    uint64_t asks;         /* ids of questions */
    bool tried;            /* to publish */
    int32_t published;     /* what came of it */
    int64_t last[SERVERS]; /* when the last message to each arrives: they keep their order */
    bool told[SERVERS];    /* that each is lost */
    bool met[SERVERS];
};

struct event {
    struct event *next;
    int64_t at;
    uint64_t order;
    enum { ASK, REPLY, FOUND, OTHER, GONE } what;
    struct server *to, *from;
    uint64_t id;
    int32_t status;
    void *data;
    size_t len;
};

/* A question that waits for its answer. */
struct question {
    struct question *next;
    struct server *asker, *asked;
    uint64_t id;
    ask_done_fn *done;
    void *arg;
    int64_t deadline;
};

/* A range of context ids, and the step that has it. */
struct given {
    uint64_t range;
    uint32_t step;
};

struct world {
    int64_t now;
    uint64_t order, random;
    struct server servers[SERVERS];
    struct event *events;
    struct question *questions;
    uint32_t wrong; /* of 100 answers of the RM, how many pass over the oldest step */
    struct given ranges[RANGES];
    uint32_t nranges;
    uint32_t requests, answered, missed;
};

static struct world *world;

static uint32_t dice(uint32_t n)
{
    world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(world->random >> 33) % n;
}

static struct server *server_of(const struct server *from, uint32_t handle)
{
    return handle < NODES ? &world->servers[from->step * NODES + handle]
                          : &world->servers[handle - NODES];
}

static uint32_t handle_of(const struct server *from, const struct server *of)
{
    return from->step == of->step ? of->node : NODES + (uint32_t)(of - world->servers);
}

static uint32_t index_of(const struct server *s)
{
    return (uint32_t)(s - world->servers);
}

static void post(struct event *e, int64_t ms)
{
    struct event **at = &world->events;
    e->at = world->now + ms;
    if (e->from != NULL) { /* in order */
        int64_t *last = &e->from->last[index_of(e->to)];
        if (e->at < *last)
            e->at = *last;
        *last = e->at;
    }
    e->order = ++world->order;
    while (*at != NULL && ((*at)->at < e->at || ((*at)->at == e->at && (*at)->order < e->order)))
        at = &(*at)->next;
    e->next = *at;
    *at = e;
}

static struct event *event(int what, struct server *to, struct server *from)
{
    struct event *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->what = what;
    e->to = to;
    e->from = from;
    return e;
}

static void *copy(const void *data, size_t len)
{
    void *to = malloc(len + 1);
    assert_non_null(to);
    if (len > 0)
        memcpy(to, data, len);
    return to;
}

/* ---- surroundings ---- */

static int64_t clock_of(void *arg)
{
    (void)arg;
    return world->now;
}

static bool is_lost(void *arg, uint32_t node)
{
    const struct server *s = arg;
    return s->told[index_of(server_of(s, node))];
}

static void ask(void *arg, uint32_t node, const void *body, size_t len, uint32_t timeout,
                ask_done_fn *done, void *done_arg)
{
    struct server *s = arg, *to = server_of(s, node);
    struct question *q = calloc(1, sizeof *q);
    assert_non_null(q);
    assert_true(to != s);
    *q = (struct question){world->questions, s, to, ++s->asks, done, done_arg, 0};
    q->deadline = timeout > 0 ? world->now + timeout * 1000 : 0;
    world->questions = q;
    s->met[index_of(to)] = to->met[index_of(s)] = true;
    for (int i = dice(10) == 0; i >= 0; i--) { /* some are asked again */
        struct event *e = event(ASK, to, s);
        e->id = q->id;
        e->data = copy(body, len);
        e->len = len;
        post(e, 1 + dice(20));
    }
}

static void reply(void *arg, uint32_t node, uint64_t id, int32_t status, const void *data,
                  size_t len)
{
    struct server *s = arg;
    struct event *e = event(REPLY, server_of(s, node), s);
    e->id = id;
    e->status = status;
    e->data = copy(data, len);
    e->len = len;
    post(e, 1 + dice(20));
}

static void find(void *arg)
{
    post(event(FOUND, arg, NULL), 1 + dice(30));
}

static bool others(void *arg)
{
    post(event(OTHER, arg, NULL), 1 + dice(30));
    return true;
}

static const char *nspace_of(void *arg, uint32_t node)
{
    static char names[STEPS][8];
    uint32_t step = server_of(arg, node)->step;
    snprintf(names[step], sizeof names[step], "job.%u", step);
    return names[step];
}

static int server_at(void *arg, const char *nspace, uint32_t index, uint32_t *node)
{
    unsigned step;
    if (sscanf(nspace, "job.%u", &step) != 1 || step >= STEPS || index >= NODES)
        return -1;
    *node = handle_of(arg, &world->servers[step * NODES + index]);
    return 0;
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

static struct server *first_of(uint32_t step)
{
    for (uint32_t node = 0; node < NODES; node++)
        if (world->servers[step * NODES + node].alive)
            return &world->servers[step * NODES + node];
    return NULL;
}

static void ranged(void *arg, uint64_t range)
{
    const struct server *s = arg;
    for (uint32_t i = 0; i < world->nranges; i++)
        assert_true(world->ranges[i].range != range || world->ranges[i].step == s->step);
    assert_true(world->nranges < RANGES);
    world->ranges[world->nranges++] = (struct given){range, s->step};
}

static void start(uint32_t step)
{
    for (uint32_t node = 0; node < NODES; node++) {
        struct server *s = &world->servers[step * NODES + node];
        const struct holder_env env = {.arg = s,
                                       .self = node,
                                       .nnodes = NODES,
                                       .mark = (uint8_t)(step * NODES + node),
                                       .codes = {.success = SUCCESS,
                                                 .duplicate = -2,
                                                 .full = -3,
                                                 .not_found = NOT_FOUND,
                                                 .partial = PARTIAL,
                                                 .timeout = TIMEOUT,
                                                 .unreach = UNREACH,
                                                 .bad = -27,
                                                 .lost = LOST},
                                       .now = clock_of,
                                       .is_lost = is_lost,
                                       .find = find,
                                       .others = others,
                                       .ask = ask,
                                       .reply = reply,
                                       .nspace = nspace_of,
                                       .server = server_at,
                                       .node_of = server_at,
                                       .acquaint = acquaint,
                                       .settle = settle,
                                       .ranged = ranged};
        s->world = world;
        s->step = step;
        s->node = node;
        s->alive = true;
        s->holder = holder_new(&env);
        assert_non_null(s->holder);
    }
}

/* ---- events ---- */

static void answer(struct question **at, int32_t status, const void *data, size_t len)
{
    struct question *q = *at;
    *at = q->next;
    if (q->asker->alive)
        q->done(q->arg, status, status == 0 ? data : NULL, status == 0 ? len : 0);
    free(q);
}

/* A server hears that another one is gone: what it has asked of it, then the loss. */
static void lose(struct server *s, struct server *gone)
{
    struct question **at = &world->questions;
    if (s->told[index_of(gone)] || !s->alive)
        return;
    s->told[index_of(gone)] = true;
    while (*at != NULL)
        if ((*at)->asker == s && (*at)->asked == gone) {
            answer(at, LOST, NULL, 0);
            at = &world->questions;
        } else {
            at = &(*at)->next;
        }
    holder_lost(s->holder, handle_of(s, gone));
}

/* The server of the oldest step, but now and then another one. */
static void found(struct server *s)
{
    bool wrong = dice(100) < world->wrong;
    for (uint32_t step = 0; step < s->step; step++) {
        struct server *first = first_of(step);
        if (first == NULL || first->holder == NULL || (wrong && dice(2) == 0))
            continue;
        holder_found(s->holder, handle_of(s, first), NULL);
        return;
    }
    holder_found(s->holder, s->node, NULL);
}

static void run_event(struct event *e)
{
    struct question **at = &world->questions;
    if (!e->to->alive) {
        if (e->what == ASK && e->from->alive)
            lose(e->from, e->to);
        return;
    }
    switch (e->what) {
    case ASK:
        holder_serve(e->to->holder, handle_of(e->to, e->from), e->id, e->data, e->len);
        break;
    case REPLY:
        while (*at != NULL && ((*at)->asker != e->to || (*at)->id != e->id))
            at = &(*at)->next;
        if (*at != NULL)
            answer(at, e->status, e->data, e->len);
        break;
    case FOUND:
        found(e->to);
        break;
    case OTHER:
        for (uint32_t step = 0; step < STEPS && e->to->alive; step++)
            if (step != e->to->step && first_of(step) != NULL)
                holder_other(e->to->holder, handle_of(e->to, first_of(step)));
        holder_other(e->to->holder, HOLDER_NONE);
        break;
    case GONE:
        lose(e->to, e->from);
        break;
    }
}

static void expire(void)
{
    struct question **at = &world->questions;
    while (*at != NULL)
        if ((*at)->deadline != 0 && (*at)->deadline <= world->now) {
            answer(at, TIMEOUT, NULL, 0);
            at = &world->questions;
        } else {
            at = &(*at)->next;
        }
}

static void run_until(int64_t end)
{
    while (world->now < end) {
        int64_t next = end;
        for (uint32_t i = 0; i < SERVERS; i++) {
            int64_t ms = world->servers[i].alive ? holder_next(world->servers[i].holder) : -1;
            if (ms >= 0 && world->now + ms < next)
                next = world->now + ms;
        }
        for (struct question *q = world->questions; q != NULL; q = q->next)
            if (q->deadline != 0 && q->deadline < next)
                next = q->deadline;
        if (world->events != NULL && world->events->at < next)
            next = world->events->at;
        world->now = next > world->now ? next : world->now;
        expire();
        for (uint32_t i = 0; i < SERVERS; i++)
            if (world->servers[i].alive && holder_next(world->servers[i].holder) == 0)
                holder_tick(world->servers[i].holder);
        while (world->events != NULL && world->events->at <= world->now) {
            struct event *e = world->events;
            world->events = e->next;
            run_event(e);
            free(e->data);
            free(e);
        }
    }
}

/* ---- what processes do ---- */

static void done(void *arg, int32_t status, const void *data, size_t len)
{
    int32_t *to = arg;
    (void)data, (void)len;
    world->answered++;
    if (to != NULL)
        *to = status;
}

static struct store_who process_of(const struct server *s)
{
    struct store_who w = {.rank = s->node};
    snprintf(w.nspace, sizeof w.nspace, "job.%u", s->step);
    return w;
}

static void publish(struct server *s, int32_t *status)
{
    struct store_entry e = {.who = process_of(s), .number = 1, .life = STORE_APP};
    struct wire_out out = {0};
    char key[32];
    snprintf(key, sizeof key, "key.%u", index_of(s));
    e.key = key;
    e.value = key;
    e.len = strlen(key);
    wire_put_u8(&out, HOLDER_PUBLISH);
    wire_put_u32(&out, 1);
    store_put_entry(&out, &e);
    world->requests++;
    holder_request(s->holder, out.data, out.len, 60000, done, status);
    wire_out_free(&out);
}

static void lookup(struct server *s, const struct server *of, bool wait, int32_t *status)
{
    char key[32], *keys[] = {key};
    struct store_lookup l = {.who = process_of(s), .want = wait, .left = wait ? 60000 : 0};
    struct wire_out out = {0};
    snprintf(key, sizeof key, "key.%u", index_of(of));
    l.nkeys = 1;
    l.keys = keys;
    wire_put_u8(&out, HOLDER_LOOKUP);
    store_put_lookup(&out, &l);
    world->requests++;
    holder_request(s->holder, out.data, out.len, 60000, done, status);
    wire_out_free(&out);
}

static void got_range(void *arg, int32_t status, const void *data, size_t len)
{
    struct wire_in in;
    uint64_t range;
    world->answered++;
    if (status != SUCCESS)
        return;
    wire_in_init(&in, data, len);
    range = wire_get_u64(&in);
    assert_true(range != 0);
    ranged(arg, range);
}

static void kill_server(struct server *s, bool in_order)
{
    if (in_order)
        holder_leave(s->holder);
    holder_close(s->holder);
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct server *other = &world->servers[i];
        if (other == s || !other->alive)
            continue;
        if (other->step == s->step)
            post(event(GONE, other, s), in_order ? 5 + dice(300) : 50 + dice(3000));
        else if (in_order && s->met[i])
            post(event(GONE, other, s), 5 + dice(50));
    }
    s->alive = false;
    holder_free(s->holder);
    s->holder = NULL;
    for (struct question **at = &world->questions; *at != NULL;)
        if ((*at)->asker == s) {
            struct question *q = *at;
            *at = q->next;
            free(q);
        } else {
            at = &(*at)->next;
        }
}

static void end_step(uint32_t step, bool in_order)
{
    for (uint32_t node = 0; node < NODES; node++)
        if (world->servers[step * NODES + node].alive)
            kill_server(&world->servers[step * NODES + node], in_order);
}

static void open_world(uint64_t seed, uint32_t wrong)
{
    world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->now = 1000;
    world->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world->wrong = wrong;
}

static void close_world(void)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        if (world->servers[i].alive)
            holder_close(world->servers[i].holder);
    for (uint32_t i = 0; i < SERVERS; i++)
        holder_free(world->servers[i].holder);
    while (world->events != NULL) {
        struct event *e = world->events;
        world->events = e->next;
        free(e->data);
        free(e);
    }
    while (world->questions != NULL) {
        struct question *q = world->questions;
        world->questions = q->next;
        free(q);
    }
    free(world);
}

/* All that lives finds all that lives has published, at once. */
static void check_all(uint64_t seed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        for (uint32_t k = 0; k < SERVERS; k++) {
            struct server *s = &world->servers[i], *of = &world->servers[k];
            int32_t status = 1;
            if (!s->alive || !of->alive || !of->tried)
                continue;
            if (of->published != SUCCESS)
                fail_msg("seed %llu: %u.%u could not publish: %d", (unsigned long long)seed,
                         of->step, of->node, of->published);
            lookup(s, of, false, &status);
            run_until(world->now + 3000);
            if (status != SUCCESS)
                fail_msg("seed %llu: server %u.%u finds nothing of %u.%u: %d; it %s, the other %s",
                         (unsigned long long)seed, s->step, s->node, of->step, of->node, status,
                         holder_view(s->holder).state, holder_view(of->holder).state);
        }
}

static void one_holder(uint64_t seed)
{
    uint32_t holders = 0;
    for (uint32_t i = 0; i < SERVERS; i++)
        holders += world->servers[i].alive &&
                   strcmp(holder_view(world->servers[i].holder).state, "holds") == 0;
    if (holders > 1)
        fail_msg("seed %llu: %u holders", (unsigned long long)seed, holders);
}

/* Steps come and go, in order and killed, while all publish and look up. */
static void run_seed(uint64_t seed, uint32_t wrong)
{
    uint32_t started = 0;
    open_world(seed, wrong);
    for (uint32_t round = 0; round < 30; round++) {
        if (started < STEPS && (started == 0 || dice(3) == 0))
            start(started++);
        struct server *s = &world->servers[dice(started * NODES)],
                      *of = &world->servers[dice(started * NODES)];
        if (s->alive && !s->tried) {
            s->tried = true;
            s->published = 1;
            publish(s, &s->published);
        } else if (s->alive && of->alive && of->tried) {
            lookup(s, of, true, NULL);
        }
        if (s->alive && dice(4) == 0) {
            world->requests++;
            holder_range(s->holder, got_range, s);
        }
        run_until(world->now + dice(400));
        if (dice(8) == 0 && started == STEPS && first_of(STEPS - 1) != NULL)
            end_step(dice(STEPS - 1), dice(2) == 0);
        else if (dice(20) == 0 && started > 1)
            kill_server(first_of(started - 1), dice(2) == 0);
        if (first_of(started - 1) == NULL)
            break;
    }
    world->wrong = 0;
    run_until(world->now + 400000); /* the checks of holders, and silence of what has ended */
    one_holder(seed);
    check_all(seed);
    close_world();
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed, 0);
}

static void test_wrong(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed, 40);
}

/* A waiting lookup and a publisher that does nothing more outlive the holder. */
static void outlives(bool in_order)
{
    int32_t status = 1, waits = 1, found_it = 1;
    open_world(7, 0);
    for (uint32_t step = 0; step < 3; step++)
        start(step);
    publish(&world->servers[NODES + 1], &status);
    run_until(world->now + 2000);
    assert_int_equal(status, SUCCESS);
    assert_string_equal(holder_view(world->servers[0].holder).state, "holds");
    assert_int_equal(holder_view(world->servers[0].holder).held.entries, 1);
    lookup(&world->servers[2 * NODES + 2], &world->servers[2 * NODES], true, &waits);
    run_until(world->now + 1000);
    assert_int_equal(waits, 1);
    end_step(0, in_order);
    lookup(&world->servers[2 * NODES], &world->servers[NODES + 1], false, &found_it);
    run_until(world->now + 5000);
    assert_int_equal(found_it, SUCCESS);
    assert_int_equal(waits, 1);
    publish(&world->servers[2 * NODES], &status);
    run_until(world->now + 5000);
    assert_int_equal(waits, SUCCESS);
    assert_int_equal(world->answered, world->requests);
    close_world();
}

static void test_outlives(void **state)
{
    (void)state;
    outlives(true);
    outlives(false);
}

/* What a step has published ends with it, if it says so, and not before. */
static void test_ends(void **state)
{
    int32_t status = 1;
    (void)state;
    open_world(3, 0);
    start(0);
    start(1);
    publish(&world->servers[NODES], &status);
    run_until(world->now + 2000);
    assert_int_equal(holder_view(world->servers[0].holder).held.entries, 1);
    kill_server(&world->servers[NODES], true); /* others of its step live */
    run_until(world->now + 20000);
    assert_int_equal(holder_view(world->servers[0].holder).held.entries, 1);
    end_step(1, true);
    run_until(world->now + 20000);
    assert_int_equal(holder_view(world->servers[0].holder).held.entries, 0);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outlives),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
