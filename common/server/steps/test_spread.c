/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of spread.c: before anybody goes on, every server that is left has learnt, whoever is lost
 * meanwhile, and no server has more to say than its place in the tree.
 */
#include "common/server/steps/spread.h"

#include "common/server/trees/test_frames.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 40, ARITY = 3 };

static const char name[] = "job.2";

struct host {
    uint32_t self;
    struct spreads *spreads;
    struct spread_wait wait;
    bool member, learnt, lost, done, refuses;
    uint32_t sent;
};

static struct host hosts[N];
static uint32_t losing; /* after so many frames are delivered, a server is lost */
static int64_t now;
static struct procset set;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now;
}

static struct timers timers = {.now = clock_of};

static bool is_lost(void *arg, uint32_t node)
{
    (void)arg;
    return hosts[node].lost;
}

static void send_frame(void *arg, uint32_t node, struct wire_out *out)
{
    struct host *host = arg;
    host->sent++;
    frames_send(host->self, node, out);
}

static const void *registration(void *arg, const char *nspace, size_t *len)
{
    const struct host *host = arg;
    *len = sizeof name;
    return strcmp(nspace, name) == 0 && host->learnt ? name : NULL;
}

static void learn(void *arg, const char *nspace, const void *bytes, size_t len)
{
    struct host *host = arg;
    assert_string_equal(nspace, name);
    assert_int_equal(len, sizeof name);
    assert_memory_equal(bytes, name, len);
    host->learnt = !host->refuses;
}

static uint32_t speaker(void *arg, const struct procset *members)
{
    (void)arg;
    assert_ptr_equal(members, &set);
    for (uint32_t i = 0; i < N; i++)
        if (hosts[i].member && !hosts[i].lost)
            return i;
    return N;
}

static void done(struct spread_wait *wait)
{
    struct host *host = (struct host *)((char *)wait - offsetof(struct host, wait));
    assert_false(host->done);
    host->done = true;
}

static void open_all(uint32_t n)
{
    memset(hosts, 0, sizeof hosts);
    frames_open();
    now = 1000;
    procset_add(&set, "job.1", 0, 3);
    procset_add(&set, name, 0, 3);
    procset_canonical(&set);
    for (uint32_t i = 0; i < n; i++) {
        const struct spread_env env = {.arg = &hosts[i],
                                       .self = i,
                                       .nnodes = n,
                                       .arity = ARITY,
                                       .timers = &timers,
                                       .is_lost = is_lost,
                                       .send = send_frame,
                                       .registration = registration,
                                       .learn = learn,
                                       .speaker = speaker};
        hosts[i].self = i;
        hosts[i].spreads = spread_new(&env);
        hosts[i].wait = (struct spread_wait){.set = &set, .done = done};
        assert_non_null(hosts[i].spreads);
    }
}

static void close_all(uint32_t n)
{
    frames_close();
    for (uint32_t i = 0; i < n; i++) {
        bool waited = hosts[i].member && !hosts[i].done;
        spread_close(hosts[i].spreads);
        spread_free(hosts[i].spreads);
        assert_true(!waited || hosts[i].done);
    }
    procset_free(&set);
}

/* The construct's result has come to this server. */
static void member(uint32_t i)
{
    hosts[i].learnt = true;
    spread_await(hosts[i].spreads, &hosts[i].wait);
}

/* All servers that are left have learnt when one goes on. */
static void check(uint32_t n)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < n; i++) {
        any = any || (hosts[i].done && !hosts[i].lost);
        all = all && (hosts[i].learnt || hosts[i].lost);
    }
    assert_true(!any || all);
}

static void lose(uint32_t n, uint32_t node)
{
    hosts[node].lost = true;
    for (uint32_t i = 0; i < n; i++)
        if (!hosts[i].lost)
            spread_lost(hosts[i].spreads, node);
}

/* Delivers in any order that is one of each pair of servers; @p lost goes when it is time. */
static void run(uint32_t n, uint64_t seed, uint32_t lost)
{
    uint32_t delivered = 0;
    while (nframes > 0) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t at = (uint32_t)((seed >> 33) % nframes);
        for (uint32_t i = 0; i < at; i++)
            if (frames[i].from == frames[at].from && frames[i].to == frames[at].to)
                at = i;
        struct test_frame f = frames_remove(at);
        if (!hosts[f.to].lost)
            spread_receive(hosts[f.to].spreads, f.from, (char *)f.data + 1, f.len - 1);
        free(f.data);
        check(n);
        if (++delivered == losing && lost < n)
            lose(n, lost);
    }
}

/* Every one of a step's servers is told, by servers that each have a few frames to send. */
static void all_learn_before_anybody_goes_on(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= N; n++)
        for (uint32_t members = 1; members <= 3 && members <= n; members++) {
            open_all(n);
            for (uint32_t i = 0; i < members; i++)
                hosts[(n / 2 + i) % n].member = true;
            for (uint32_t i = members; i-- > 0;)
                member((n / 2 + i) % n);
            run(n, n * 7 + members, N);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(hosts[i].learnt);
                assert_int_equal(hosts[i].done, hosts[i].member);
                assert_in_range(hosts[i].sent, 0, 2 * ARITY + 1);
            }
            close_all(n);
        }
}

/* Any one server is lost, the one that speaks too, after any number of frames. */
static void a_server_is_lost_meanwhile(void **state)
{
    const uint32_t n = 14;
    (void)state;
    for (uint32_t lost = 0; lost < n; lost++)
        for (losing = 1; losing < 45; losing++) {
            open_all(n);
            hosts[2].member = hosts[7].member = true;
            member(7);
            member(2);
            run(n, lost * 97 + losing, lost);
            for (uint32_t i = 0; i < n; i++) {
                if (hosts[i].lost || !hosts[i].member)
                    continue;
                assert_true(hosts[i].done);
            }
            close_all(n);
        }
    losing = 0;
}

/* One that does not answer is not waited for any longer, and by later groups not at all. */
static void a_server_that_does_not_answer(void **state)
{
    (void)state;
    open_all(5);
    hosts[0].member = true;
    member(0);
    for (uint32_t i = 0; i < nframes; i++)
        if (frames[i].to == 2) {
            free(frames_remove(i).data);
        }
    hosts[2].learnt = true; /* check() is to say nothing of it */
    run(5, 3, N);
    assert_false(hosts[0].done);
    assert_int_equal(timers_wait(&timers), SPREAD_WAIT_MS);
    now += SPREAD_WAIT_MS;
    timers_run(&timers);
    assert_true(hosts[0].done);
    assert_int_equal(timers_wait(&timers), -1);
    hosts[0].done = false;
    member(0);
    assert_true(hosts[0].done);
    close_all(5);
}

/* One that refuses the registration has nothing to tell those below it, and is not waited for. */
static void a_server_that_refuses(void **state)
{
    enum { BELOW_ONE = ARITY + 2 }; /* the second one has another one below it */
    (void)state;
    open_all(BELOW_ONE);
    hosts[0].member = true;
    hosts[1].refuses = true;
    member(0);
    for (uint32_t i = 0; i < nframes; i++)
        spread_receive(hosts[frames[i].to].spreads, frames[i].from, (char *)frames[i].data + 1,
                       frames[i].len - 1);
    assert_true(hosts[0].done);
    assert_int_equal(hosts[1].sent, 1);
    close_all(BELOW_ONE);
}

/* What was forgotten is told anew. */
static void a_namespace_that_is_forgotten(void **state)
{
    (void)state;
    open_all(4);
    hosts[1].member = true;
    member(1);
    run(4, 5, N);
    assert_true(hosts[1].done);
    for (uint32_t i = 0; i < 4; i++) {
        spread_forget(hosts[i].spreads, name);
        hosts[i].learnt = hosts[i].done = false;
    }
    member(1);
    assert_false(hosts[1].done);
    run(4, 6, N);
    assert_true(hosts[1].done);
    close_all(4);
}

/* A call does not wait until all know a namespace that has ended. */
static void a_namespace_that_ends_meanwhile(void **state)
{
    (void)state;
    open_all(4);
    hosts[1].member = true;
    member(1);
    assert_false(hosts[1].done);
    hosts[1].learnt = false;
    spread_forget(hosts[1].spreads, name);
    assert_true(hosts[1].done);
    close_all(4);
}

static void malformed_frames(void **state)
{
    struct wire_out out = {0};
    (void)state;
    open_all(2);
    wire_put_u8(&out, 1);
    wire_put_u32(&out, 0);
    wire_put_str(&out, name);
    wire_put_block(&out, name, sizeof name);
    for (size_t len = 0; len < out.len; len++)
        spread_receive(hosts[1].spreads, 0, out.data, len);
    for (uint32_t word = 0; word < 6; word++) {
        ((unsigned char *)out.data)[0] = (unsigned char)word;
        if (word != 1)
            spread_receive(hosts[1].spreads, 0, out.data, out.len);
    }
    assert_false(hosts[1].learnt);
    assert_int_equal(nframes, 0);
    ((unsigned char *)out.data)[0] = 1;
    spread_receive(hosts[0].spreads, 1, out.data, out.len); /* it says that we speak */
    assert_false(hosts[0].learnt);
    spread_receive(hosts[1].spreads, 0, out.data, out.len);
    assert_true(hosts[1].learnt);
    wire_out_free(&out);
    close_all(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_before_anybody_goes_on),
        cmocka_unit_test(a_server_is_lost_meanwhile),
        cmocka_unit_test(a_server_that_does_not_answer),
        cmocka_unit_test(a_server_that_refuses),
        cmocka_unit_test(a_namespace_that_is_forgotten),
        cmocka_unit_test(a_namespace_that_ends_meanwhile),
        cmocka_unit_test(malformed_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
