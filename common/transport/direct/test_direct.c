/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of direct connections as they are when nothing fails.
 */
#include "common/transport/direct/stream_private.h"
#include "common/transport/direct/test_kit.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 20000 };

static int begin(void **state)
{
    (void)state;
    kit_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    kit_end();
    return 0;
}

static uint32_t want_from, want_to, want_n;

static bool all_came(void)
{
    for (uint32_t n = 0; n < want_n; n++)
        if (kit.servers[want_to].got[want_from][n] == 0)
            return false;
    return true;
}

static void await_frames(uint32_t from, uint32_t to, uint32_t n)
{
    want_from = from;
    want_to = to;
    want_n = n;
    assert_true(kit_run(all_came, LONG_MS));
}

static bool never(void)
{
    return false;
}

static bool are_sealed(void)
{
    return kit.servers[0].direct->sealed_at != 0 && kit.servers[1].direct->sealed_at != 0;
}

/* Both have the credential that they announce themselves with. */
static void open_both(void)
{
    assert_true(kit_open(0) && kit_open(1));
    assert_true(kit_run(are_sealed, LONG_MS));
}

/* The first frame goes natively behind an announcement, and the rest directly, both ways. */
static void first_natively_then_directly(void **state)
{
    (void)state;
    open_both();
    kit_send(1, 0, 0, 10);
    kit_await_up(0, 1);
    assert_int_equal(kit.servers[0].announced, 1);
    assert_int_equal(kit.servers[0].native_in, 1);
    assert_int_equal(kit.servers[0].heard, 2);
    assert_int_equal(kit.servers[1].heard, 1);
    for (uint32_t i = 0; i < 100; i++) {
        kit_send(0, 1, i, i * 1000);
        kit_send(1, 0, i + 1, i);
    }
    await_frames(0, 1, 100);
    await_frames(1, 0, 101);
    assert_int_equal(kit_direct_in(1), 100);
    assert_int_equal(kit.servers[1].native_in, 0);
    assert_int_equal(kit_direct_in(0), 100);
    assert_int_equal(kit.warnings, 0);
}

/* One that is far longer than what sockets hold, while another goes the other way. */
static void a_long_one(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, 1);
    kit_await_up(0, 1);
    kit_send(0, 1, 1, 40 << 20);
    kit_send(1, 0, 0, 30 << 20);
    kit_send(0, 1, 2, 0);
    await_frames(0, 1, 3);
    await_frames(1, 0, 1);
    assert_int_equal(kit_direct_in(1), 2);
}

static struct shared_bytes *shared;

static bool nobody_else_holds_it(void)
{
    return shared->owners == 1;
}

/* What several servers get is in memory once: sent natively at first, then directly, in frames that
 * are written in several goes, and let go when all have taken it. */
static void a_body_for_several(void **state)
{
    enum { BODY = 8 << 20 };
    (void)state;
    shared = shared_bytes_take(calloc(1, BODY), BODY);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(kit_open(i));
    for (uint32_t to = 1; to < 4; to++)
        kit_send_body(0, to, 0, 0, shared);
    assert_int_equal(shared->owners, 1);
    for (uint32_t to = 1; to < 4; to++)
        kit_await_up(0, to);
    shared_bytes_drop(shared);
    shared = shared_bytes_take(memset(malloc(BODY), 7, BODY), BODY);
    shared->spread = true;
    for (uint32_t to = 1; to < 4; to++)
        kit_send_body(0, to, 7, 5, shared);
    assert_int_equal(shared->owners, 4);
    assert_true(link_owed(kit.servers[0].link, 1).bytes > BODY);
    for (uint32_t to = 1; to < 4; to++) {
        await_frames(0, to, 1);
        assert_int_equal(kit.servers[to].native_in, 1);
    }
    assert_true(kit_run(nobody_else_holds_it, 20000));
    for (uint32_t to = 1; to < 4; to++) {
        assert_int_equal(kit.servers[to].got[0][7], 1);
        assert_int_equal(kit_direct_in(to), 1);
    }
    shared_bytes_drop(shared);
}

static bool nothing_queued(void)
{
    return link_owed(kit.servers[0].link, 1).frames == 0;
}

/* What was sent counts as delivered once it was taken, and that is said without being asked for. */
static void delivered_when_taken(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, 1);
    kit_await_up(0, 1);
    kit_send(0, 1, 1, 100);
    struct link_owed owed = link_owed(kit.servers[0].link, 1);
    assert_int_equal(owed.frames, 1);
    assert_int_equal(owed.must, 1);
    assert_int_equal(owed.bytes, 129);
    assert_true(kit_run(nothing_queued, LONG_MS));
    await_frames(0, 1, 2);
}

/* A server that leaves is told at once. */
static void delivered_in_a_hurry(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, 1);
    kit_await_up(0, 1);
    const struct stream *stream = peer_find(kit.servers[1].direct, 0)->stream;
    kit_send(0, 1, 1, 100);
    link_hurry(kit.servers[0].link);
    assert_true(kit_run(nothing_queued, LONG_MS));
    kit_send(0, 1, 2, 100);
    assert_true(kit_run(nothing_queued, LONG_MS));
    assert_ptr_equal(peer_find(kit.servers[1].direct, 0)->stream, stream);
}

static bool one_stays(void)
{
    return kit.servers[0].direct->nconnections == 1 && kit.servers[1].direct->nconnections == 1;
}

/* Both announce themselves, and both connect: one connection stays, no frame is lost. */
static void both_at_once(void **state)
{
    (void)state;
    open_both();
    kit_send(0, 1, 0, 1);
    kit_send(1, 0, 0, 1);
    kit_await_up(0, 1);
    for (uint32_t i = 1; i < 200; i++) {
        kit_send(0, 1, i, 500);
        kit_send(1, 0, i, 500);
        if (i % 10 == 0)
            kit_run(never, 1);
    }
    await_frames(0, 1, 200);
    await_frames(1, 0, 200);
    kit_run(never, 400);
    assert_true(kit_run(one_stays, LONG_MS));
    assert_int_equal(kit.warnings, 0);
}

/* The same connection twice, made by both in the same moment. */
static void both_connect(void **state)
{
    (void)state;
    open_both();
    for (uint32_t i = 0; i < 2; i++) { /* each knows the other, neither has connected */
        struct peer *p = peer_make(kit.servers[i].direct, 1 - i);
        p->addresses = kit.servers[1 - i].direct->addresses;
        p->port = kit.servers[1 - i].direct->port;
        memcpy(p->key, kit.servers[1 - i].direct->own.key, SEAL_SECRET);
        p->way = WAY_KNOWN;
    }
    for (uint32_t i = 0; i < 2; i++)
        peer_connect(peer_find(kit.servers[i].direct, 1 - i), now_ms());
    kit_await_up(0, 1);
    for (uint32_t i = 0; i < 50; i++) {
        kit_send(0, 1, i, 500);
        kit_send(1, 0, i, 500);
        kit_run(never, 1);
    }
    await_frames(0, 1, 50);
    await_frames(1, 0, 50);
    kit_run(never, 100);
    assert_true(kit_run(one_stays, LONG_MS));
    assert_true(peer_find(kit.servers[0].direct, 1)->ours);
    assert_int_equal(kit.warnings, 0);
}

static bool other_ended(void)
{
    return kit.servers[1].direct->nconnections == 0;
}

/* A server that ends says goodbye; what it has sent arrives, and nobody warns. */
static void ends_in_order(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, 1);
    kit_await_up(0, 1);
    for (uint32_t i = 1; i < 20; i++) {
        kit_send(0, 1, i, 20000);
        kit_send(1, 0, i - 1, 20000);
    }
    kit_close(0);
    await_frames(0, 1, 20);
    assert_true(kit_run(other_ended, LONG_MS));
    assert_int_equal(link_owed(kit.servers[1].link, 0).frames, 0);
    assert_int_equal(kit.servers[1].native_in, 1);
    assert_int_equal(kit.warnings, 0);
    assert_int_equal(kit_logged("no direct connection"), 0);
    await_frames(1, 0, 19);
}

static bool are_few(void)
{
    return kit.servers[0].direct->nconnections <= 3;
}

/* No more connections than there may be: the one that was used least recently ends in order, and is
 * there again when it is needed. */
static void a_bounded_number(void **state)
{
    (void)state;
    kit.connections = 2;
    for (uint32_t i = 0; i < KIT_SERVERS; i++)
        assert_true(kit_open(i));
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 1; i < KIT_SERVERS; i++) {
            kit_send(0, i, round, 1000);
            await_frames(0, i, round + 1);
            kit_run(never, 60); /* it is taken */
            assert_true(kit_run(are_few, LONG_MS));
        }
    assert_int_equal(kit.warnings, 0);
    uint32_t last = KIT_SERVERS - 1;
    kit_send(0, last, 3, 1000);
    kit_await_up(0, last);
}

/* Where the native way keeps secrets, there are no credentials. */
static void without_credentials(void **state)
{
    (void)state;
    kit.vouches = false;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(1, 0, 0, 10);
    kit_await_up(0, 1);
    kit_send(0, 1, 0, 10);
    await_frames(0, 1, 1);
    assert_int_equal(kit_direct_in(1), 1);
}

static void on_ipv6_alone(void **state)
{
    struct addresses own;
    struct err err;
    (void)state;
    strcpy(kit.conf.where, "::1");
    if (addresses_own("::1", &own, &err) != 0) {
        print_message("this machine has no IPv6\n");
        skip();
    }
    assert_true(kit_open(0) && kit_open(1));
    kit_send(1, 0, 0, 10);
    kit_await_up(0, 1);
    assert_int_equal(kit.servers[0].direct->addresses.list[0].len, 16);
    kit_send(0, 1, 0, 10);
    await_frames(0, 1, 1);
    assert_int_equal(kit_direct_in(1), 1);
}

static void in_a_range_of_ports(void **state)
{
    (void)state;
    kit.conf.port = 20000 + rand() % 20000;
    kit.conf.ports = 50;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(kit_open(i));
        assert_in_range(kit.servers[i].direct->port, kit.conf.port, kit.conf.port + 49);
    }
    kit_send(1, 3, 0, 10);
    kit_await_up(1, 3);
}

/* A connection that its server closes without BYE, as a dead one's does: the native way is used,
 * and so tells whether it is dead, although nobody has anything to send. */
static bool both_announce(void)
{
    return kit.servers[0].announced > 1 && kit.servers[1].announced > 0;
}

static void a_closed_connection_is_looked_into(void **state)
{
    (void)state;
    open_both();
    kit_send(1, 0, 0, 10);
    kit_await_up(0, 1);
    assert_int_equal(kit.servers[0].announced, 1);
    assert_int_equal(kit.servers[1].announced, 0);
    shutdown(peer_find(kit.servers[1].direct, 0)->stream->fd, SHUT_RDWR);
    assert_true(kit_run(both_announce, LONG_MS));
}

/* Nobody listens, nothing is announced, nothing is said. */
static void off(void **state)
{
    (void)state;
    kit.conf.mode = CONF_DIRECT_OFF;
    assert_false(kit_open(0));
    kit.conf.mode = CONF_DIRECT_ON;
    assert_true(kit_open(1));
    kit_send(1, 0, 0, 10);
    await_frames(1, 0, 1);
    assert_int_equal(kit.nlines, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_natively_then_directly),
        TEST(a_long_one),
        TEST(a_body_for_several),
        TEST(delivered_when_taken),
        TEST(delivered_in_a_hurry),
        TEST(both_at_once),
        TEST(both_connect),
        TEST(ends_in_order),
        TEST(a_bounded_number),
        TEST(without_credentials),
        TEST(on_ipv6_alone),
        TEST(in_a_range_of_ports),
        TEST(a_closed_connection_is_looked_into),
        TEST(off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
