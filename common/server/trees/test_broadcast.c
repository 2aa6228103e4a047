/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of broadcast.c: every server that is left gets each message once and in order, whoever is
 * lost meanwhile, and no server sends more than its place in the tree asks for.
 */
#include "common/server/trees/broadcast.h"

#include "common/server/trees/test_frames.h"
#include "common/transport/frame.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { N = 40, LARGE = 4000, ARITY = 3, SPEAKER = 7 };

struct host {
    uint32_t self;
    struct broadcasts *broadcasts;
    bool dead;  /* frames to it vanish, whoever knows */
    bool known; /* all know */
    uint32_t sent, got;
    uint8_t last; /* byte of the last message */
};

static struct host hosts[LARGE];
static uint32_t nhosts;

static bool is_lost(void *arg, uint32_t node)
{
    (void)arg;
    return hosts[node].known;
}

static void send_frame(void *arg, uint32_t node, struct wire_out *head,
                       struct shared_bytes *message)
{
    struct host *host = arg;
    host->sent++;
    wire_put_raw(head, message->data, message->len);
    frames_send(host->self, node, head);
}

static void deliver(void *arg, uint32_t speaker, const void *message, size_t len)
{
    struct host *host = arg;
    const uint8_t *bytes = message;
    assert_int_equal(speaker, SPEAKER);
    assert_int_equal(len, 2);
    assert_int_equal(bytes[0], FRAME_EVENT);
    assert_int_equal(bytes[1], (uint8_t)(host->last + 1));
    host->last = bytes[1];
    host->got++;
}

static void open_all(uint32_t n)
{
    memset(hosts, 0, sizeof hosts);
    frames_open();
    nhosts = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct broadcast_env env = {.arg = &hosts[i],
                                          .self = i,
                                          .nnodes = n,
                                          .arity = ARITY,
                                          .is_lost = is_lost,
                                          .send = send_frame,
                                          .deliver = deliver};
        hosts[i].self = i;
        hosts[i].broadcasts = broadcast_new(&env);
        assert_non_null(hosts[i].broadcasts);
    }
}

static void close_all(void)
{
    frames_close();
    for (uint32_t i = 0; i < nhosts; i++)
        broadcast_free(hosts[i].broadcasts);
}

static void say(uint8_t what)
{
    struct wire_out message = {0};
    wire_put_u8(&message, FRAME_EVENT);
    wire_put_u8(&message, what);
    broadcast_say(hosts[SPEAKER].broadcasts, &message);
}

static void deliver_all(void)
{
    for (struct test_frame f; frames_take(&f); free(f.data))
        if (!hosts[f.to].dead)
            broadcast_receive(hosts[f.to].broadcasts, f.from, (char *)f.data + 1, f.len - 1);
}

/* All learn that the server is gone. */
static void tell_loss(uint32_t node)
{
    hosts[node].known = true;
    for (uint32_t i = 0; i < nhosts; i++)
        if (!hosts[i].dead)
            broadcast_lost(hosts[i].broadcasts, node);
}

static void assert_all_have(uint32_t n)
{
    for (uint32_t i = 0; i < nhosts; i++)
        if (i != SPEAKER && !hosts[i].dead)
            assert_int_equal(hosts[i].got, n);
    assert_int_equal(hosts[SPEAKER].got, 0);
}

/* @return the server next below the speaker that has servers below itself */
static uint32_t inner_server(void)
{
    const struct tree tree = {.n = nhosts, .root = SPEAKER, .arity = ARITY};
    uint32_t inner = tree_child(&tree, SPEAKER, 0);
    assert_int_not_equal(tree_child(&tree, inner, 0), TREE_NONE);
    return inner;
}

static void each_gets_it_once(void **state)
{
    (void)state;
    open_all(LARGE);
    say(1);
    say(2);
    deliver_all();
    assert_all_have(2);
    assert_int_equal(nframes, 2 * (LARGE - 1));
    for (uint32_t i = 0; i < LARGE; i++)
        assert_in_range(hosts[i].sent, 0, 2 * ARITY);
    close_all();
}

static void a_server_that_is_known_to_be_lost(void **state)
{
    (void)state;
    open_all(N);
    uint32_t inner = inner_server();
    hosts[inner].dead = true;
    tell_loss(inner);
    say(1);
    deliver_all();
    assert_all_have(1);
    assert_int_equal(nframes, N - 2);
    close_all();
}

/* It has the messages, and has not passed them on. */
static void a_server_is_lost_before_it_passes_on(void **state)
{
    (void)state;
    open_all(N);
    uint32_t inner = inner_server();
    say(1);
    deliver_all();
    hosts[inner].dead = true;
    say(2);
    say(3);
    deliver_all();
    uint32_t before = nframes;
    tell_loss(inner);
    assert_int_equal(nframes - before, 3 * ARITY); /* all that is kept, to those below it */
    say(4);
    deliver_all();
    assert_all_have(4);
    close_all();
}

static void several_are_lost_at_once(void **state)
{
    (void)state;
    open_all(N);
    const struct tree tree = {.n = N, .root = SPEAKER, .arity = ARITY};
    uint32_t inner = inner_server(), below = tree_child(&tree, inner, 0);
    hosts[inner].dead = hosts[below].dead = true;
    say(1);
    deliver_all();
    tell_loss(below); /* those above it are told of the nearer one later */
    tell_loss(inner);
    deliver_all();
    assert_all_have(1);
    close_all();
}

/* What is kept for that has a bound. */
static void not_all_is_kept(void **state)
{
    (void)state;
    open_all(N);
    uint32_t inner = inner_server();
    for (int i = 0; i < BROADCAST_KEPT_MAX + 9; i++)
        say((uint8_t)(i + 1));
    deliver_all();
    hosts[inner].dead = true;
    uint32_t before = nframes;
    tell_loss(inner);
    assert_int_equal(nframes - before, BROADCAST_KEPT_MAX * ARITY);
    close_all();
}

static void malformed(void **state)
{
    static const struct {
        uint32_t speaker;
        uint64_t number;
        const char *message;
    } bad[] = {{N, 1, "xy"}, {0, 1, "xy"}, {SPEAKER, 0, "xy"}, {SPEAKER, 1, ""}};
    struct wire_out out = {0};
    (void)state;
    open_all(N);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        out = (struct wire_out){0};
        wire_put_u32(&out, bad[i].speaker);
        wire_put_u64(&out, bad[i].number);
        wire_put_raw(&out, bad[i].message, strlen(bad[i].message));
        broadcast_receive(hosts[0].broadcasts, SPEAKER, out.data, out.len);
        if (i == 0)
            broadcast_receive(hosts[0].broadcasts, SPEAKER, out.data, 11);
        wire_out_free(&out);
    }
    assert_int_equal(nframes, 0);
    assert_int_equal(hosts[0].got, 0);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_it_once),
        cmocka_unit_test(a_server_that_is_known_to_be_lost),
        cmocka_unit_test(a_server_is_lost_before_it_passes_on),
        cmocka_unit_test(several_are_lost_at_once),
        cmocka_unit_test(not_all_is_kept),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
