/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which connection of a rank is the task's own. event_assign() is expiry.c's and
 * shutdown() is conns.c's here, too; the test plays libpmix.
 */
#include "common/server/process/conns.h"

#include "common/server/process/rounds.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char told[256]; /* of task slot 0 */
static struct event_base *base;
static bool one_by_one; /* what the next begin() says */

static void on_end(uint32_t slot, enum conns_end end)
{
    static const char *const names[] = {"own finalized", "own cut", "beside finalized",
                                        "beside cut"};
    size_t len = strlen(told);
    assert_int_equal(slot, 0);
    snprintf(told + len, sizeof told - len, "%s%s", len > 0 ? ", " : "", names[end]);
}

/* A client, and libpmix's end of its connection. */
struct client {
    int fd, peer;
    unsigned reads, writes;
    struct event event, out;
};

static void lose(struct client *client)
{
    event_del(&client->event);
    event_del(&client->out);
    shutdown(client->peer, SHUT_RDWR);
    close(client->peer);
    client->peer = -1;
}

/* As libpmix reads: an end closes. */
static void on_read(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    char c;
    (void)what;
    client->reads++;
    if (recv(fd, &c, 1, 0) <= 0)
        lose(client);
}

/* As libpmix sends, once: it loses a client to which it cannot. */
static void on_write(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    (void)what;
    client->writes++;
    event_del(&client->out);
    if (send(fd, "c", 1, MSG_NOSIGNAL) < 0)
        lose(client);
}

static bool come_with(struct client *client, event_callback_fn read)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    *client = (struct client){.fd = fds[0], .peer = fds[1]};
    bool own = conns_connected(0);
    event_assign(&client->event, base, client->peer, EV_READ | EV_PERSIST, read, client);
    event_assign(&client->out, base, client->peer, EV_WRITE | EV_PERSIST, on_write, client);
    event_add(&client->event, NULL);
    return own;
}

static bool come(struct client *client)
{
    return come_with(client, on_read);
}

static void leave(struct client *client)
{
    close(client->fd);
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static void expect(const char *what)
{
    assert_string_equal(told, what);
    told[0] = '\0';
}

static void begin(unsigned hold)
{
    told[0] = '\0';
    base = event_base_new();
    conns_open(1, hold, one_by_one, on_end);
}

static void end(void)
{
    conns_close();
    event_base_free(base);
}

/* One after the other: each is the task's own. */
static void in_turn(void **state)
{
    struct client client;
    (void)state;
    begin(4);
    for (int i = 0; i < 3; i++) {
        assert_true(come(&client));
        assert_true(conns_finalized(0, 0));
        leave(&client);
        expect("");
        assert_int_equal(client.peer, -1);
    }
    assert_true(come(&client));
    leave(&client);
    expect("own cut");
    end();
}

/* libpmix has yet to see that the first is gone. */
static void one_that_comes_at_once(void **state)
{
    struct client first, second;
    (void)state;
    begin(4);
    assert_true(come(&first));
    close(first.fd);
    assert_true(come(&second));
    expect("own cut");
    event_base_loop(base, EVLOOP_NONBLOCK);
    expect("");
    assert_true(conns_finalized(0, 0));
    leave(&second);
    expect("");
    end();
}

static unsigned done; /* what libpmix has done behind an end */

static void on_done(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    done++;
}

/* As libpmix reads, and does the rest of an end behind what waits in this turn. */
static void on_read_and_do(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    static struct event rest[2];
    static unsigned n;
    unsigned before = done;
    on_read(fd, what, arg);
    if (client->peer >= 0)
        return;
    assert_int_equal(before, n); /* all that earlier ends have begun */
    event_assign(&rest[n % 2], base, -1, EV_WRITE, on_done, NULL);
    event_active(&rest[n++ % 2], EV_WRITE, 1);
}

/* Two that end at once are seen one after the other. */
static void two_ends_at_once(void **state)
{
    struct client own, child;
    (void)state;
    one_by_one = true;
    begin(0);
    one_by_one = false;
    assert_true(come_with(&own, on_read_and_do));
    assert_false(come_with(&child, on_read_and_do));
    close(own.fd);
    close(child.fd);
    for (int turns = 0; turns < 8; turns++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(done, 2);
    assert_int_equal(own.peer, -1);
    assert_int_equal(child.peer, -1);
    end();
}

static unsigned looks;

/* conns.c's: whether a connection has gone. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    looks++;
    return ppoll(fds, n, &(struct timespec){.tv_nsec = timeout * 1000000L}, NULL);
}

/* Messages both ways cost no look, and an end is seen. */
static void messages_are_not_looked_at(void **state)
{
    struct client own;
    (void)state;
    one_by_one = true;
    begin(4);
    one_by_one = false;
    assert_true(come(&own));
    looks = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send(own.fd, "c", 1, 0), 1);
        event_add(&own.out, NULL);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(own.reads, 3);
    assert_int_equal(own.writes, 3);
    assert_int_equal(looks, 0);
    leave(&own);
    expect("own cut");
    end();
}

/* How a child and its task end, and in which order. */
static void a_child(void **state)
{
    struct client own, child;
    (void)state;
    for (int hold = 0; hold < 2; hold++) {
        begin(hold ? 4 : 0);
        assert_true(come(&own));
        assert_false(come(&child));
        assert_false(conns_finalized(0, 0));
        leave(&child);
        expect("beside finalized");
        assert_int_equal(child.peer == -1, !hold);
        leave(&own);
        expect("own cut");
        end();
        begin(hold ? 4 : 0);
        assert_true(come(&own));
        assert_false(come(&child));
        leave(&child);
        expect("beside cut");
        assert_true(conns_finalized(0, 0));
        leave(&own);
        expect("");
        end();
        begin(hold ? 4 : 0); /* it outlives the task, which starts anew meanwhile */
        assert_true(come(&own));
        assert_false(come(&child));
        assert_false(conns_finalized(0, 0));
        leave(&own);
        expect("own finalized");
        assert_true(come(&own));
        leave(&child);
        expect("beside cut");
        leave(&own);
        expect("own cut");
        end();
    }
}

/* The task has finalized, and its connection is slow to close. */
static void the_last_that_is_left(void **state)
{
    struct client own, one, two;
    (void)state;
    begin(4);
    assert_true(come(&own));
    assert_false(come(&one));
    assert_false(come(&two));
    for (int i = 0; i < 3; i++)
        assert_false(conns_finalized(0, 0));
    leave(&one);
    expect("beside finalized");
    leave(&two);
    expect("beside finalized, own finalized");
    leave(&own);
    expect("");
    end();
}

/* A task is killed, and its children finalize because of that before libpmix sees it. */
static void children_of_the_killed(void **state)
{
    struct client own, one, two;
    (void)state;
    begin(4);
    assert_true(come(&own));
    assert_false(come(&one));
    assert_false(come(&two));
    close(own.fd);
    assert_false(conns_finalized(0, 0));
    expect("own cut");
    assert_false(conns_finalized(0, 0));
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(own.peer, -1);
    leave(&one);
    expect("beside finalized");
    leave(&two);
    expect("beside finalized");
    end();
}

/* The same, when its connection closes last. */
static void children_of_the_dying(void **state)
{
    struct client own, child;
    siginfo_t info;
    (void)state;
    begin(4);
    assert_true(come(&own));
    assert_false(come(&child));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(conns_finalized(0, pid));
    expect("own cut");
    leave(&own);
    expect("");
    leave(&child);
    expect("beside finalized");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    end();
}

/* libpmix does not learn of a child's end by what it sends there, before we see the end and behind
 * it, and sends to one that is there. */
static void what_is_sent_to_it(void **state)
{
    struct client own, child, other;
    (void)state;
    begin(4);
    come(&own);
    come(&child);
    come(&other);
    assert_int_equal(write(child.fd, "ab", 2), 2);
    close(child.fd);
    event_add(&child.out, NULL);
    event_add(&other.out, NULL);
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(child.reads, 2);
    assert_int_equal(child.writes, 0);
    assert_int_equal(other.writes, 1);
    expect("beside cut");
    event_add(&child.out, NULL);
    for (int i = 0; i < 2; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(child.writes, 0);
    assert_true(child.peer >= 0);
    lose(&child);
    leave(&other);
    expect("beside cut");
    end();
}

/* What a child has sent before its end gets to libpmix; the end does not. */
static void what_is_sent_is_read(void **state)
{
    struct client own, child;
    (void)state;
    begin(4);
    come(&own);
    come(&child);
    assert_int_equal(write(child.fd, "ab", 2), 2);
    close(child.fd);
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(child.reads, 2);
    assert_true(child.peer >= 0);
    expect("beside cut");
    lose(&child);
    expect("");
    end();
}

/* Descriptors are not used up: libpmix is told again. */
static void not_more_than_so_many(void **state)
{
    struct client own, child;
    (void)state;
    begin(4);
    come(&own);
    for (unsigned i = 0; i <= 4; i++) {
        assert_false(come(&child));
        assert_false(conns_finalized(0, 0));
        leave(&child);
        expect("beside finalized");
        assert_int_equal(child.peer == -1, i == 4);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_turn),
        cmocka_unit_test(one_that_comes_at_once),
        cmocka_unit_test(two_ends_at_once),
        cmocka_unit_test(messages_are_not_looked_at),
        cmocka_unit_test(a_child),
        cmocka_unit_test(the_last_that_is_left),
        cmocka_unit_test(children_of_the_killed),
        cmocka_unit_test(children_of_the_dying),
        cmocka_unit_test(what_is_sent_is_read),
        cmocka_unit_test(what_is_sent_to_it),
        cmocka_unit_test(not_more_than_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
