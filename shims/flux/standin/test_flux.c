/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The stand-in for libflux-core by itself: formats, messages as bytes, job ids, the tree.
 */
#include "common/util/test_cmocka.h"
#include "shims/flux/standin/flux.h"
#include "shims/flux/standin/play.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static struct json_object *pack(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct json_object *json = standin_vpack(fmt, ap);
    va_end(ap);
    return json;
}

static int unpack(struct json_object *json, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = standin_vunpack(json, fmt, ap);
    va_end(ap);
    return rc;
}

static void test_pack(void **state)
{
    struct json_object *json = pack("{s:I s:[sss] s:i, s:{s:s}}", "id", 1LL << 40, "attrs", "a",
                                    "b", "c", "n", -3, "in", "text", "a \"quote\"");
    (void)state;
    assert_non_null(json);
    assert_string_equal(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
                        "{\"id\":1099511627776,\"attrs\":[\"a\",\"b\",\"c\"],\"n\":-3,"
                        "\"in\":{\"text\":\"a \\\"quote\\\"\"}}");
    json_object_put(json);
    assert_null(pack("{s:x}", "key"));
}

static void test_unpack(void **state)
{
    struct json_object *json = json_tokener_parse(
        "{\"name\":\"node1\",\"n\":7,\"big\":1099511627776,\"in\":{\"n\":9},\"none\":null}");
    const char *name = NULL, *absent = "as it was";
    int n = 0, inner = 0, after = 0;
    long long big = 0;
    struct json_object *object = NULL;
    (void)state;
    assert_int_equal(unpack(json, "{s:s s:i s:I s:{s:i} s?o}", "name", &name, "n", &n, "big", &big,
                            "in", "n", &inner, "in", &object),
                     0);
    assert_string_equal(name, "node1");
    assert_int_equal(n, 7);
    assert_true(big == 1LL << 40);
    assert_int_equal(inner, 9);
    assert_true(json_object_is_type(object, json_type_object));
    /* What is missing takes its arguments all the same, and those below it. */
    assert_int_equal(
        unpack(json, "{s?s s?{s:i} s:i}", "no", &absent, "neither", "n", &inner, "n", &after), 0);
    assert_string_equal(absent, "as it was");
    assert_int_equal(after, 7);
    assert_int_equal(unpack(json, "{s:s}", "no", &absent), -1);
    assert_int_equal(errno, EPROTO);
    assert_int_equal(unpack(json, "{s:i}", "name", &n), -1);
    assert_int_equal(unpack(json, "{s:{s:i}}", "n", "n", &n), -1);
    assert_int_equal(unpack(json, "{s:s}", "none", &name), -1);
    assert_int_equal(unpack(json, "{s:[i]}", "n", &n), -1);
    json_object_put(json);
}

/* Byte by byte: a message is taken when all of it has come, and not before. */
static void test_bytes(void **state)
{
    struct evbuffer *out = evbuffer_new(), *in = evbuffer_new();
    flux_msg_t *msg = standin_msg_new(FLUX_MSGTYPE_REQUEST, "muster.send", "bytes", 5), *got;
    flux_msg_t *empty = standin_msg_new(FLUX_MSGTYPE_REQUEST, "muster.leave", NULL, 0);
    const char *topic;
    const void *data;
    size_t len;
    char byte;
    (void)state;
    msg->head.routes[msg->head.nroutes++] = 0x100000002;
    assert_int_equal(standin_msg_put(out, msg), 0);
    while (evbuffer_get_length(out) > 1) {
        evbuffer_remove(out, &byte, 1);
        evbuffer_add(in, &byte, 1);
        assert_null(standin_msg_take(in));
        assert_int_equal(errno, EAGAIN);
    }
    evbuffer_add_buffer(in, out);
    got = standin_msg_take(in);
    assert_non_null(got);
    assert_int_equal(flux_request_decode_raw(got, &topic, &data, &len), 0);
    assert_string_equal(topic, "muster.send");
    assert_int_equal(len, 5);
    assert_memory_equal(data, "bytes", 6);
    assert_string_equal(flux_msg_route_first(got), "0000000100000002");
    flux_msg_destroy(got);
    assert_int_equal(standin_msg_put(in, empty), 0);
    got = standin_msg_take(in);
    assert_int_equal(flux_request_decode_raw(got, NULL, &data, &len), 0);
    assert_null(data);
    flux_msg_destroy(got);
    flux_msg_destroy(empty);
    flux_msg_destroy(msg);
    evbuffer_free(out);
    evbuffer_free(in);
}

static void test_bad_bytes(void **state)
{
    struct evbuffer *in = evbuffer_new();
    struct msg_head head = {.type = FLUX_MSGTYPE_REQUEST, .nroutes = ROUTES_MAX + 1};
    (void)state;
    evbuffer_add(in, &head, sizeof(head));
    assert_null(standin_msg_take(in));
    assert_int_equal(errno, EPROTO);
    evbuffer_free(in);
}

static void test_tree(void **state)
{
    (void)state;
    assert_int_equal(tree_parent(1), 0);
    assert_int_equal(tree_parent(2), 0);
    assert_int_equal(tree_parent(6), 2);
    assert_true(tree_below(13, 2));
    assert_true(tree_below(2, 2));
    assert_false(tree_below(4, 2));
    assert_false(tree_below(2, 6));
    for (uint32_t rank = 0; rank < 999; rank++)
        assert_true(tree_below(rank, 0));
}

static void on_timer(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    unsigned *n = arg;
    (void)r;
    (void)w;
    (void)events;
    ++*n;
}

static void on_third(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    on_timer(r, w, events, arg);
    if (*(unsigned *)arg == 3)
        flux_watcher_stop(w);
}

/* Each of them comes once, but not one that was destroyed, and one comes until it is stopped. */
static void test_timers(void **state)
{
    struct event_base *base = event_base_new();
    flux_reactor_t *r = (flux_reactor_t *)base;
    unsigned first = 0, second = 0, third = 0, again = 0;
    flux_watcher_t *timers[] = {flux_timer_watcher_create(r, 0, 0, on_timer, &first),
                                flux_timer_watcher_create(r, 0.002, 0, on_timer, &second),
                                flux_timer_watcher_create(r, 0.001, 0, on_timer, &third),
                                flux_timer_watcher_create(r, 0.001, 0.001, on_third, &again)};
    (void)state;
    assert_null(flux_timer_watcher_create(r, 1, 2, on_timer, NULL)); /* which is not needed */
    for (int i = 0; i < 4; i++)
        flux_watcher_start(timers[i]);
    flux_watcher_destroy(timers[2]);
    flux_reactor_run(r, 0); /* until nothing is to come */
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
    assert_int_equal(third, 0);
    assert_int_equal(again, 3);
    flux_watcher_destroy(timers[0]);
    flux_watcher_destroy(timers[1]);
    flux_watcher_destroy(timers[3]);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),  cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_bad_bytes),
        cmocka_unit_test(test_tree),  cmocka_unit_test(test_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
