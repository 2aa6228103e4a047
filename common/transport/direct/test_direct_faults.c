/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of direct connections that fail, and of those who have no business there: frames arrive all
 * the same, and nothing that another one has written counts.
 */
#include "common/transport/direct/test_kit.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_MS = 20000, FRAMES = 6, SIZE = 40, RECORD = SEAL_HEAD + RECORD_HEAD + 29 + SEAL_TAG };

static struct kit_proxy proxy;

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

static bool never(void)
{
    return false;
}

static uint32_t want;

/* Frames up to want have come from 0 at 1 and from 1 at 0. */
static bool all_came(void)
{
    for (uint32_t n = 0; n < want; n++)
        if (kit.servers[0].got[1][n] == 0 || kit.servers[1].got[0][n] == 0)
            return false;
    return true;
}

static bool seen_connection(void)
{
    return kit.servers[0].direct->nconnections > 0 || proxy.connections > 0;
}

/* Runs until a line with that text has been logged so often. @return whether it has been, and not
 * more often */
static const char *text;
static unsigned times;

static bool was_logged(void)
{
    return kit_logged(text) >= times;
}

static bool await_logged(const char *what, unsigned n)
{
    text = what;
    times = n;
    return kit_run(was_logged, LONG_MS) && kit_logged(what) == n;
}

static bool what_was_flipped_is_seen(void)
{
    return kit_logged("refused") + kit_logged("no direct connection") > 0;
}

/* Server 1 connects to 0 through the proxy. */
static void begin_talk(void)
{
    kit_send(0, 1, 0, SIZE);    /* with the announcement of 0 */
    kit.servers[0].deaf = true; /* it learns nothing of 1 */
    assert_true(kit_run(seen_connection, LONG_MS));
}

/* Both send. @return when all has come */
static void send_all(uint32_t frames)
{
    for (want = 1; want <= frames; want++) {
        kit_send(0, 1, want, SIZE);
        kit_send(1, 0, want - 1, SIZE);
        kit_run(never, 1);
    }
    want = frames;
    assert_true(kit_run(all_came, LONG_MS));
}

static void talk(uint32_t frames)
{
    begin_talk();
    send_all(frames);
}

/* The same, all of it on the connection as long as that works. */
static void talk_directly(uint32_t frames)
{
    begin_talk();
    kit_await_up(0, 1);
    send_all(frames);
}

/* Cut after each number of bytes that one side may have written: in each state there is. */
static void cut_in_every_state(void **state)
{
    (void)state;
    kit_end();
    for (int side = 0; side < 2; side++)
        for (size_t at = 1;
             at < CHALLENGE_BYTES + HELLO_BYTES + WELCOME_BYTES + 5 * (RECORD + SIZE);
             at += at < 200 ? 5 : 23) {
            kit_begin();
            assert_true(kit_open(0) && kit_open(1));
            proxy_open(&proxy, 0);
            proxy.cut_side = side;
            proxy.cut_at = at;
            talk(FRAMES);
            assert_true(proxy.connections > 0);
            proxy_close(&proxy);
            kit_end();
        }
    kit_begin();
}

/* Each byte changed on its way: nothing that was changed is taken (test_kit looks at each), and
 * frames arrive. */
static void each_byte_flipped(void **state)
{
    (void)state;
    kit_end();
    for (int side = 0; side < 2; side++)
        for (size_t at = 0;
             at < CHALLENGE_BYTES + HELLO_BYTES + WELCOME_BYTES + 4 * (RECORD + SIZE);
             at += at < 200 ? 5 : 19) {
            kit_begin();
            assert_true(kit_open(0) && kit_open(1));
            proxy_open(&proxy, 0);
            proxy.flip_side = side;
            proxy.flip_at = at;
            talk(FRAMES);
            bool came = proxy.seen[side] > at;
            assert_true(!came || kit_run(what_was_flipped_is_seen, LONG_MS));
            proxy_close(&proxy);
            kit_end();
        }
    kit_begin();
}

/* The other ends of connections that are no server's. */
enum { STRANGERS = 100, LET_IN = 64 };
static int ends[STRANGERS];

static bool has_bytes(void)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Those that server 0 has cut off. */
static bool others_are_cut_off(void)
{
    int n = 0;
    for (int i = 0; i < STRANGERS; i++) {
        struct pollfd p = {.fd = ends[i], .events = POLLRDHUP};
        n += poll(&p, 1, 0) > 0;
    }
    return n >= STRANGERS - LET_IN;
}

/* Whether so many bytes in a row are the same somewhere, as those of each frame are. */
static bool has_run(const unsigned char *bytes, size_t len, size_t run)
{
    size_t same = 1;
    for (size_t i = 1; i < len && same < run; i++)
        same = bytes[i] == bytes[i - 1] ? same + 1 : 1;
    return same >= run;
}

/* Whoever is between two servers sees nothing of their frames. */
static void nothing_can_be_read(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    proxy_open(&proxy, 0);
    talk_directly(FRAMES);
    size_t heard = proxy.seen[0] < sizeof proxy.heard ? proxy.seen[0] : sizeof proxy.heard;
    assert_true(kit_direct_in(0) >= FRAMES);
    assert_true(heard > FRAMES * SIZE);
    assert_false(has_run(proxy.heard, heard, SIZE / 2));
    proxy_close(&proxy);
}

/* What server 1 has said on its connection, hello and frames, is said again on another one. */
static void said_again(void **state)
{
    struct sockaddr_storage sa;
    unsigned char room[64];
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    proxy_open(&proxy, 0);
    talk_directly(FRAMES);
    assert_true(proxy.seen[0] > 300);
    unsigned before = kit.servers[0].got[1][FRAMES - 1], all = kit_direct_in(0);
    assert_true(all > 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = address_give(&kit.servers[0].direct->addresses.list[0], proxy.behind, &sa);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
    ends[0] = fd;
    assert_true(kit_run(has_bytes, LONG_MS));
    assert_int_equal(recv(fd, room, sizeof room, 0), CHALLENGE_BYTES);
    assert_true(send(fd, proxy.heard, proxy.seen[0], MSG_NOSIGNAL) > 0);
    assert_true(await_logged("it is no server of this step", 1));
    assert_true(kit_run(has_bytes, LONG_MS));
    assert_true(recv(fd, room, sizeof room, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
    close(fd);
    assert_int_equal(kit.servers[0].got[1][FRAMES - 1], before);
    assert_int_equal(kit_direct_in(0), all);
    proxy_close(&proxy);
}

/* A peer that takes nothing any more, and a connection of which one end is gone: what it has not
 * taken goes natively after some seconds, and so does all that is sent from then on. */
static void stands_still(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    proxy_open(&proxy, 0);
    proxy.stop_side = 1;
    proxy.cut_at = CHALLENGE_BYTES + WELCOME_BYTES + 300;
    int64_t since = now_ms();
    talk_directly(40);
    assert_in_range(now_ms() - since, 3000, LONG_MS);
    /* Both may see it, as what the other one has taken is not said either. */
    assert_in_range(kit_logged("it takes nothing any more"), 1, 2);
    assert_true(kit.servers[1].native_in > 30);
    proxy_close(&proxy);
}

/* The same, while more is written all the time: what the own kernel takes is no sign of the peer.
 */
static void stands_still_and_is_written_to(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    proxy_open(&proxy, 0);
    proxy.stop_side = 1;
    proxy.cut_at = CHALLENGE_BYTES + WELCOME_BYTES + 300;
    int64_t by = now_ms() + LONG_MS;
    begin_talk();
    kit_await_up(0, 1);
    for (want = 1; kit_logged("it takes nothing any more") == 0 && now_ms() < by; want++) {
        kit_send(0, 1, want % FRAMES, SIZE);
        kit_run(never, 100);
    }
    assert_in_range(kit_logged("it takes nothing any more"), 1, 2);
    proxy_close(&proxy);
}

/* Nobody answers, as behind a firewall that drops: all goes natively meanwhile. */
static void nobody_answers(void **state)
{
    struct sockaddr_storage sa;
    struct addresses at = {.n = 1, .list = {{.len = 4, .bytes = {127, 0, 0, 1}}}};
    socklen_t len = address_give(&at.list[0], 0, &sa);
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), waits[4];
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    assert_int_equal(bind(full, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(listen(full, 0), 0);
    assert_int_equal(getsockname(full, (struct sockaddr *)&sa, &len), 0);
    for (int i = 0; i < 4; i++) { /* the kernel drops whoever comes from now on */
        waits[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(waits[i], (struct sockaddr *)&sa, len);
    }
    kit.servers[0].direct->port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
    kit.servers[0].deaf = true; /* it does not connect */
    want = FRAMES;
    for (uint32_t i = 0; i <= want; i++) {
        kit_send(0, 1, i, SIZE);
        kit_run(never, 5);
        kit_send(1, 0, i, SIZE);
        assert_int_equal(link_owed(kit.servers[1].link, 0).frames, 0); /* nor is it kept */
    }
    assert_true(kit_run(all_came, LONG_MS));
    assert_int_equal(kit_direct_in(0) + kit_direct_in(1), 0);
    for (int i = 0; i < 4; i++)
        close(waits[i]);
    close(full);
}

/* Nothing but announcements goes natively: frames wait for a connection, and go on by the next one
 * when it is cut. */
static void required(void **state)
{
    (void)state;
    kit.conf.mode = CONF_DIRECT_REQUIRE;
    assert_true(kit_open(0) && kit_open(1));
    proxy_open(&proxy, 0);
    proxy.cut_side = 1;
    proxy.cut_at = CHALLENGE_BYTES + WELCOME_BYTES + 100;
    kit.servers[0].deaf = true; /* server 1 connects, and by the proxy */
    kit_send(0, 1, 0, SIZE);
    assert_int_equal(link_owed(kit.servers[0].link, 1).must, 1);
    send_all(FRAMES);
    assert_true(proxy.connections > 1);
    assert_int_equal(kit.servers[0].native_in + kit.servers[1].native_in, 0);
    proxy_close(&proxy);
}

/* No connection can be made: the server counts as lost after a while, which is said, and nothing is
 * kept for it. */
static bool is_given_up(void)
{
    return kit_logged("unreachable: ") > 0;
}

static void required_and_not_there(void **state)
{
    (void)state;
    kit.conf.mode = CONF_DIRECT_REQUIRE;
    assert_true(kit_open(0) && kit_open(1));
    kit.servers[0].direct->port = 1; /* where nobody listens */
    kit.servers[0].deaf = true;
    int64_t since = now_ms();
    kit_send(1, 0, 0, SIZE);
    kit_send(0, 1, 1, SIZE);
    assert_true(kit_run(is_given_up, LONG_MS));
    assert_true(now_ms() - since >= KIT_PATIENCE);
    assert_true(kit_logged("no direct connection with it, which muster.json requires") > 0);
    kit_run(never, WAITING_LOOK_MS + 100);
    assert_int_equal(kit_logged("unreachable: "), 2);
    assert_int_equal(kit_logged("port 1: Connection refused"), kit_logged("Connection refused"));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(link_owed(kit.servers[i].link, 1 - i).frames, 0);
        assert_int_equal(kit.servers[i].native_in, 0);
    }
}

/* There is no such interface, or no port is free: it is said, and all goes natively. */
static void nowhere_to_listen(void **state)
{
    struct addresses at = {.n = 1, .list = {{.len = 4, .bytes = {127, 0, 0, 1}}}};
    struct err err;
    uint16_t port;
    (void)state;
    strcpy(kit.conf.where, "nosuch0");
    assert_false(kit_open(0));
    assert_non_null(
        strstr(kit.err.text, "no interface \"nosuch0\" that is up has an address here"));
    strcpy(kit.conf.where, "203.0.113.0/24");
    assert_false(kit_open(0));
    assert_non_null(strstr(kit.err.text, "this node has no address that fits 203.0.113.0/24"));
    strcpy(kit.conf.where, "127.0.0.1");
    int taken = addresses_listen(&at, 0, 1, &port, &err);
    assert_true(taken >= 0);
    kit.conf.port = port;
    assert_false(kit_open(0));
    assert_non_null(strstr(kit.err.text, "can be listened on: Address already in use"));
    close(taken);
    assert_true(kit_open(0)); /* it was that */
}

/* What makes credentials hangs: frames go natively, which is said once; then it answers. */
static void credentials_hang(void **state)
{
    (void)state;
    kit_hang = true;
    assert_true(kit_open(0) && kit_open(1));
    for (uint32_t i = 0; i < FRAMES; i++) {
        kit_send(0, 1, i, SIZE);
        kit_send(1, 0, i, SIZE);
    }
    assert_int_equal(kit.warnings, 0);
    want = FRAMES;
    assert_true(kit_run(all_came, LONG_MS));
    assert_true(await_logged("credentials are neither made nor read", 2)); /* by both */
    kit_hang = false;
    kit_await_up(0, 1);
}

/* Ends while credentials are under way. */
static void ends_while_credentials_hang(void **state)
{
    (void)state;
    kit_hang = true;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, SIZE);
    int64_t since = now_ms();
    kit_close(0);
    kit_close(1);
    assert_true(now_ms() - since < LONG_MS); /* they hang until the test ends */
}

/* Announcements that server 1 gets in the name of server 0. */
static bool is_judged(void)
{
    return peer_find(kit.servers[1].direct, 0)->way != WAY_OPENING;
}

static void announce(const struct identity *who, const char *word, size_t cut, int change)
{
    struct wire_out secret = {0}, sealed = {0}, out = {0};
    struct direct *d = kit.servers[0].direct;
    announce_put_secret(who, &secret);
    wire_put_str(&sealed, word);
    wire_put_raw(&sealed, secret.data, secret.len);
    announce_write(who, &d->addresses, d->port, sealed.data, sealed.len, &out);
    if (change >= 0)
        out.data[change] ^= 1;
    direct_announced(kit.servers[1].direct, 0, out.data, out.len - cut);
    assert_true(kit_run(is_judged, LONG_MS));
    wire_out_free(&secret);
    wire_out_free(&sealed);
    wire_out_free(&out);
}

static void forged_announcements(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    struct peer *p = peer_make(kit.servers[1].direct, 0);
    struct identity own = kit.servers[0].direct->own, other = own;
    other.step++; /* another run */
    announce(&other, "sealed", 0, -1);
    assert_int_equal(p->way, WAY_UNKNOWN);
    other = own;
    other.self = 5; /* another server's credential */
    announce(&other, "sealed", 0, -1);
    assert_int_equal(p->way, WAY_UNKNOWN);
    announce(&own, "other", 0, -1); /* another user's */
    assert_int_equal(p->way, WAY_UNKNOWN);
    for (int at = 0; at < 24; at++) { /* another port, another address */
        announce(&own, "sealed", 0, at);
        assert_int_equal(p->way, WAY_UNKNOWN);
    }
    for (size_t cut = 1; cut < 100; cut += 7) {
        announce(&own, "sealed", cut, -1);
        assert_int_equal(p->way, WAY_UNKNOWN);
    }
    assert_int_equal(kit.servers[1].direct->nconnections, 0);
    assert_true(kit_logged("is another user's") > 0);
    assert_int_equal(kit.warnings, 4); /* and not more, however many come */
    announce(&own, "sealed", 0, -1);
    kit_await_up(0, 1);
}

/* A server that has just left refuses us. A server that still refuses at the next try is there. */
static void refused(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    struct direct *d = kit.servers[0].direct;
    uint16_t port = d->port;
    d->port = 1; /* where nobody listens */
    announce(&d->own, "sealed", 0, -1);
    d->port = port;
    assert_true(await_logged("Connection refused", 1));
    assert_int_equal(kit.warnings, 0);
    kit_run(never, 1100);
    kit_send(1, 0, 0, SIZE);
    assert_true(await_logged("Connection refused", 2));
    assert_int_equal(kit.warnings, 1);
}

/* Strangers that say nothing, in numbers, do not keep the step's own servers out. */
static void strangers(void **state)
{
    struct sockaddr_storage sa;
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    struct direct *d = kit.servers[0].direct;
    socklen_t len = address_give(&d->addresses.list[0], d->port, &sa);
    for (int i = 0; i < STRANGERS; i++) {
        ends[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(ends[i], (struct sockaddr *)&sa, len), 0);
        if (i % 10 == 0)
            kit_run(never, 5);
    }
    assert_true(kit_run(others_are_cut_off, LONG_MS));
    int cut = 0;
    for (int i = 0; i < STRANGERS; i++) {
        unsigned char room[64];
        ssize_t n = recv(ends[i], room, sizeof room, MSG_DONTWAIT);
        cut += n == CHALLENGE_BYTES && recv(ends[i], room, 1, MSG_DONTWAIT) == 0;
    }
    assert_int_equal(cut, STRANGERS - LET_IN);
    kit_send(0, 1, 0, SIZE);
    kit_await_up(0, 1);
    assert_true(await_logged("it does not say who it is", 1));
    kit_run(never, 500); /* and not for each */
    assert_int_equal(kit_logged("it does not say who it is"), 1);
    for (int i = 0; i < STRANGERS; i++)
        close(ends[i]);
}

/* The peer is given up while frames are under way: nothing is kept for it. */
static void given_up(void **state)
{
    (void)state;
    assert_true(kit_open(0) && kit_open(1));
    kit_send(0, 1, 0, SIZE);
    kit_await_up(0, 1);
    kit_send(0, 1, 1, 10 << 20);
    direct_forget(kit.servers[0].direct, 1);
    kit_run(never, 50);
    assert_int_equal(link_owed(kit.servers[0].link, 1).frames, 0);
    assert_int_equal(kit.servers[0].direct->nconnections, 0);
    kit_send(1, 0, 0, SIZE); /* it comes again, and is not let in */
    kit_run(never, 1500);
    kit_send(1, 0, 1, SIZE);
    kit_run(never, 200);
    assert_false(direct_is_up(kit.servers[0].direct, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cut_in_every_state),
        TEST(each_byte_flipped),
        TEST(nothing_can_be_read),
        TEST(said_again),
        TEST(stands_still),
        TEST(stands_still_and_is_written_to),
        TEST(nobody_answers),
        TEST(required),
        TEST(required_and_not_there),
        TEST(nowhere_to_listen),
        TEST(credentials_hang),
        TEST(ends_while_credentials_hang),
        TEST(forged_announcements),
        TEST(refused),
        TEST(strangers),
        TEST(given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
