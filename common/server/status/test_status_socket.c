/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of requests for the state: who is answered with what, and what is bounded.
 */
#include "common/server/status/status.h"
#include "common/server/status/test_status_kit.h"
#include "common/util/empty_dir.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "common/view/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* What a client got. */
struct client {
    int fd;
    char text[65536];
    size_t used;
};

static struct kit *kit;

static int open_kit(void **state)
{
    (void)state;
    char dir[] = "/tmp/muster-test.XXXXXX";
    status_block_signal();
    kit = kit_new(3, 2);
    free(kit->server.boot.tmpdir);
    kit->server.boot.tmpdir = strdup(mkdtemp(dir));
    kit->server.status = status_open(&kit->server);
    return kit->server.status == NULL;
}

static int close_kit(void **state)
{
    (void)state;
    int fd = open(kit->server.boot.tmpdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    empty_dir(fd);
    rmdir(kit->server.boot.tmpdir);
    kit_free(kit);
    return 0;
}

static struct client *client_new(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct client *c = calloc(1, sizeof *c);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/" STATUS_SOCKET, kit->server.boot.tmpdir);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return c;
}

static void client_free(struct client *c)
{
    close(c->fd);
    free(c);
}

/* Runs the loop until nothing happens any more, and reads. @return whether the connection ended */
static bool ended(struct client *c)
{
    ssize_t n = 0;
    for (int i = 0; i < 20; i++) {
        event_base_loop(kit->server.base, EVLOOP_NONBLOCK);
        n = recv(c->fd, c->text + c->used, sizeof c->text - 1 - c->used, MSG_DONTWAIT);
        if (n > 0)
            c->used += (size_t)n;
        else if (n == 0)
            return true;
    }
    return n < 0 && errno == ECONNRESET;
}

static void say(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static json_object *answer_of(struct client *c)
{
    assert_true(ended(c));
    assert_true(c->used > 0 && c->text[c->used - 1] == '\n');
    json_object *o = json_tokener_parse(c->text);
    assert_non_null(o);
    return o;
}

static void this_node(void **state)
{
    struct client *c = client_new();
    (void)state;
    say(c, "loc");
    assert_false(ended(c));
    say(c, "al\n");
    json_object *o = answer_of(c);
    assert_int_equal(json_object_array_length(kit_field(o, "nodes")), 1);
    kit_assert_text(o, "nodes.0.node", "c000");
    assert_int_equal(kit->sent, 0);
    json_object_put(o);
    client_free(c);
}

static void nonsense(void **state)
{
    static const char *const requests[] = {"\n",
                                           "local\n\n",
                                           "LOCAL\n",
                                           "all of you\n",
                                           "local all\n",
                                           "0123456789012345",
                                           "local"
                                           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct client *c = client_new();
        say(c, requests[i]);
        assert_true(ended(c));
        assert_int_equal(c->used, 0);
        client_free(c);
    }
}

static void too_many(void **state)
{
    struct client *c[STATUS_CONNECTIONS_MAX + 1];
    (void)state;
    for (int i = 0; i < STATUS_CONNECTIONS_MAX; i++) {
        c[i] = client_new();
        assert_false(ended(c[i]));
    }
    c[STATUS_CONNECTIONS_MAX] = client_new();
    assert_true(ended(c[STATUS_CONNECTIONS_MAX]));
    client_free(c[0]); /* makes room */
    assert_false(ended(c[1]));
    c[0] = client_new();
    say(c[0], "local\n");
    json_object_put(answer_of(c[0]));
    for (int i = 0; i <= STATUS_CONNECTIONS_MAX; i++)
        client_free(c[i]);
}

static void begin(struct wire_out *out, enum view_kind kind)
{
    wire_put_u8(out, kind);
    view_put_name(out, (struct view_name){.number = kit->view, .proposer = 0});
}

/* Server @p node answers what was asked last. */
static void answer(uint32_t node, const char *text)
{
    struct wire_out out = {0};
    begin(&out, VIEW_ANSWERS);
    wire_put_u64(&out, kit->ask);
    wire_put_u32(&out, node);
    wire_put_i32(&out, 0);
    wire_put_block(&out, text, strlen(text));
    view_take(kit->server.view, node, out.data, out.len);
    wire_out_free(&out);
}

/* The view goes on without server 1. */
static void leave_out(void)
{
    const struct ranges none = {0};
    struct wire_out out = {0};
    view_accuse(kit->server.view, 1, false);
    timers_run(&kit->server.timers);
    begin(&out, VIEW_STATE);
    view_put_name(&out, (struct view_name){.number = 0, .proposer = 0});
    ranges_write(&none, UINT32_MAX, &out);
    ranges_write(&none, UINT32_MAX, &out);
    wire_put_u32(&out, 0);
    view_take(kit->server.view, 2, out.data, out.len);
    wire_out_free(&out);
    assert_false(view_has(kit->server.view, 1));
}

static void all_nodes(void **state)
{
    struct client *c = client_new(), *second = client_new(), *gone = client_new();
    uint32_t sent;
    (void)state;
    say(c, "all\n");
    say(gone, "all\n");
    assert_false(ended(c));
    client_free(gone);
    say(second, "all\n"); /* joins */
    assert_false(ended(second));
    assert_int_equal(kit->sent, 2);
    answer(1, "{\"node\":\"c001\"}");
    assert_false(ended(c));
    for (int i = 0; i < 2; i++) { /* the second time, server 2 is asked by itself */
        assert_false(ended(c));
        kit->now += STATUS_ANSWER_S * 1000;
        timers_run(&kit->server.timers);
    }
    for (int i = 0; i < 2; i++) {
        json_object *o = answer_of(i == 0 ? c : second);
        assert_int_equal(json_object_array_length(kit_field(o, "nodes")), 2);
        kit_assert_text(o, "nodes.1.node", "c001");
        kit_assert_text(o, "silent.0.node", "c002");
        kit_assert_text(o, "silent.0.why", "no answer within 5 s");
        json_object_put(o);
    }
    client_free(c);
    client_free(second);
    sent = kit->sent;
    c = client_new(); /* another one can begin */
    say(c, "all\n");
    assert_false(ended(c));
    assert_int_equal(kit->sent, sent + 2);
    client_free(c);
}

static void answers_that_make_no_sense(void **state)
{
    static const char *const texts[] = {"", "[]", "{", "7",
                                        "{\"a\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct client *c = client_new();
        say(c, "all\n");
        assert_false(ended(c));
        answer(1, texts[i]);
        answer(2, "{}");
        json_object *o = answer_of(c);
        assert_int_equal(json_object_array_length(kit_field(o, "nodes")), 2);
        kit_assert_text(o, "silent.0.node", "c001");
        kit_assert_text(o, "silent.0.why", "its answer makes no sense");
        json_object_put(o);
        client_free(c);
    }
}

static void an_answer_that_is_too_long(void **state)
{
    struct client *c = client_new();
    char *text = malloc(STATUS_NODE_MAX + 2);
    (void)state;
    memset(text, ' ', STATUS_NODE_MAX + 1);
    memcpy(text + STATUS_NODE_MAX - 1, "{}", 3);
    say(c, "all\n");
    assert_false(ended(c));
    answer(1, text);
    answer(2, text + 1);
    json_object *o = answer_of(c);
    assert_int_equal(json_object_array_length(kit_field(o, "nodes")), 2);
    kit_assert_text(o, "silent.0.node", "c001");
    kit_assert_text(o, "silent.0.why", "its answer is too long");
    json_object_put(o);
    client_free(c);
    free(text);
}

static void a_lost_server(void **state)
{
    struct client *c = client_new();
    (void)state;
    leave_out();
    say(c, "all\n");
    assert_false(ended(c));
    answer(2, "{}");
    json_object *o = answer_of(c);
    kit_assert_text(o, "silent.0.node", "c001");
    kit_assert_text(o, "silent.0.why", "its server is lost");
    json_object_put(o);
    client_free(c);
}

static void a_server_that_has_left(void **state)
{
    struct client *c = client_new();
    (void)state;
    kit->peer.state = RM_PEER_LEFT;
    leave_out();
    say(c, "all\n");
    assert_false(ended(c));
    answer(2, "{}");
    json_object *o = answer_of(c);
    kit_assert_text(o, "silent.0.node", "c001");
    kit_assert_text(o, "silent.0.why", "its tasks have ended");
    json_object_put(o);
    client_free(c);
}

static void closing_while_one_waits(void **state)
{
    struct client *c = client_new();
    (void)state;
    say(c, "all\n");
    assert_false(ended(c));
    view_mute(kit->server.view);
    asks_close(kit->server.asks);
    json_object *o = answer_of(c);
    assert_int_equal(json_object_array_length(kit_field(o, "silent")), 2);
    json_object_put(o);
    client_free(c);
}

/* It stands until the client says so, or goes, and does not hinder others. */
static void a_guard(void **state)
{
    struct client *c = client_new(), *other;
    (void)state;
    say(c, "guard\n");
    assert_false(ended(c));
    assert_true(c->used > 0 && c->text[c->used - 1] == '\n');
    json_object *o = json_tokener_parse(c->text);
    kit_assert_text(o, "nodes.0.node", "c000");
    json_object_put(o);
    kit->now += 10 * STATUS_LIFE_S * 1000;
    timers_run(&kit->server.timers);
    assert_false(ended(c));
    other = client_new();
    say(other, "local\n");
    json_object_put(answer_of(other));
    say(c, "end\n");
    assert_true(ended(c));
    client_free(c);
    client_free(other);
}

static void the_signal(void **state)
{
    char path[256], text[65536] = "";
    struct stat st;
    (void)state;
    snprintf(path, sizeof path, "%s/" STATUS_FILE, kit->server.boot.tmpdir);
    for (int i = 0; i < 2; i++) { /* the second replaces the first */
        raise(SIGUSR1);
        event_base_loop(kit->server.base, EVLOOP_NONBLOCK);
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(read(fd, text, sizeof text - 1) > 0);
        close(fd);
        json_object *o = json_tokener_parse(text);
        kit_assert_text(o, "step", "4711.0");
        json_object_put(o);
        unlink(path);
        assert_int_equal(symlink("/nonexistent/elsewhere", path), 0);
    }
}

static void quiet(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        TEST(this_node),
        TEST(nonsense),
        TEST(too_many),
        TEST(all_nodes),
        TEST(answers_that_make_no_sense),
        TEST(an_answer_that_is_too_long),
        TEST(a_lost_server),
        TEST(a_server_that_has_left),
        TEST(closing_while_one_waits),
        TEST(a_guard),
        TEST(the_signal),
    };
    log_open(quiet, NULL, LOG_LEVEL_DEBUG, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
