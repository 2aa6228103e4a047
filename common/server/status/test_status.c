/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the state as JSON: what is shown, and that it is bounded and harmless.
 */
#include "common/server/status/status.h"
#include "common/server/status/test_status_kit.h"
#include "common/util/test_cmocka.h"
#include "muster_version.h"

#include <stdio.h>
#include <string.h>

static void an_idle_server(void **state)
{
    struct kit *kit = kit_new(2, 3);
    (void)state;
    kit->server.tasks[1].state = TASK_CONNECTED;
    kit->server.tasks[2].state = TASK_LOST;
    json_object *o = kit_state(kit);
    kit_assert_text(o, "step", "4711.0");
    kit_assert_text(o, "unit", "step");
    kit_assert_text(o, "node", "c000");
    kit_assert_text(o, "libpmix", "4.2.2");
    kit_assert_text(o, "version", MUSTER_VERSION);
    kit_assert_number(o, "tasks.2.rank", 4);
    kit_assert_text(o, "tasks.0.state", "started");
    kit_assert_text(o, "tasks.1.state", "connected");
    kit_assert_text(o, "tasks.2.state", "lost");
    assert_int_equal(json_object_array_length(kit_field(o, "trackers")), 0);
    assert_int_equal(json_object_array_length(kit_field(o, "asks")), 0);
    assert_int_equal(json_object_array_length(kit_field(o, "peers")), 0);
    json_object_put(o);
    kit_free(kit);
}

static void who_belongs_together(void **state)
{
    struct kit *kit = kit_new(2, 3);
    struct pset set = {.name = "ocean"};
    (void)state;
    assert_int_equal(procset_add(&set.members, "rm.4711.0", 0, 3), 0);
    kit->server.psets = (struct psets){1, &set};
    for (int i = 0; i < STATUS_LIST_MAX + 2; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        assert_non_null(book_open(&kit->server.book, id, &set.members, 0));
    }
    json_object *o = kit_state(kit);
    kit_assert_text(o, "psets.0.name", "ocean");
    kit_assert_number(o, "psets.0.size", 4);
    kit_assert_text(o, "connections.0.name", "c65");
    kit_assert_number(o, "connections.0.size", 4);
    kit_assert_number(o, "connections_omitted", 2);
    json_object_put(o);
    book_free(&kit->server.book);
    procset_free(&set.members);
    kit->server.psets = (struct psets){0};
    kit_free(kit);
}

static void an_operation_that_waits(void **state)
{
    struct kit *kit = kit_new(3, 4);
    (void)state;
    kit_construct(kit, "ocean", 100);
    kit->now += 65432;
    json_object *o = kit_state(kit);
    json_object *t = kit_field(o, "trackers.0");
    assert_non_null(strstr(json_object_get_string(kit_field(t, "operation")), "group \"ocean"));
    kit_assert_text(t, "kind", "construct");
    kit_assert_text(t, "state", "gather");
    kit_assert_number(t, "age", 65.432);
    kit_assert_number(t, "in_state", 65.432);
    kit_assert_number(t, "left", 100 - 65.432);
    kit_assert_text(t, "root", "c000");
    assert_true(json_object_get_boolean(kit_field(t, "decides")));
    assert_true(json_object_get_boolean(kit_field(t, "called")));
    assert_int_equal(json_object_array_length(kit_field(t, "missing")), 2);
    kit_assert_text(t, "missing.0.node", "c001");
    kit_assert_text(t, "missing.0.nspace", "rm.4711.0");
    kit_assert_text(t, "missing.0.ranks", "1,4,7,10");
    kit_assert_text(t, "missing.1.node", "c002");
    json_object_put(o);
    engine_close(kit->server.engine);
    o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers")), 0);
    kit_assert_number(o, "counters.failed.construct", 1);
    kit_assert_number(o, "counters.done.construct", 0);
    json_object_put(o);
    kit_free(kit);
}

static void an_operation_without_a_deadline(void **state)
{
    struct kit *kit = kit_new(2, 1);
    (void)state;
    kit_construct(kit, "x", 0);
    json_object *o = kit_state(kit);
    assert_null(kit_field(o, "trackers.0.left"));
    json_object_put(o);
    kit_free(kit);
}

static void operations_that_ended(void **state)
{
    struct kit *kit = kit_new(1, 1);
    (void)state;
    kit_construct(kit, "a", 0);
    kit_construct(kit, "b", 0);
    json_object *o = kit_state(kit);
    kit_assert_number(o, "counters.done.construct", 2);
    kit_assert_number(o, "counters.failed.construct", 0);
    json_object_put(o);
    kit_free(kit);
}

static void assert_about(json_object *o, const char *path, const char *part)
{
    const char *text = json_object_get_string(kit_field(o, path));
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void calls_that_belong_to_nothing_yet(void **state)
{
    struct kit *kit = kit_new(1, 4);
    (void)state;
    kit_wait(kit, "ocean\x1b", 0, 20);
    kit_wait(kit, "ice", 3, 0);
    kit->now += 1500;
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers")), 0);
    assert_int_equal(json_object_array_length(kit_field(o, "waits")), 2);
    assert_about(o, "waits.0.about", "group \"ice\" bootstrap: 2 of 3 leaders missing");
    kit_assert_number(o, "waits.0.age", 1.5);
    assert_null(kit_field(o, "waits.0.left"));
    assert_about(o, "waits.1.about", "group \"ocean?\" construct: called as an added member");
    assert_about(o, "waits.1.about", "rank 0 on c000");
    kit_assert_number(o, "waits.1.age", 1.5);
    kit_assert_number(o, "waits.1.left", 18.5);
    json_object_put(o);
    kit_free(kit);
}

/* Two servers; the id's home is the other one. */
static void a_leader_far_from_home(void **state)
{
    struct kit *kit = kit_new(2, 1);
    char id[16];
    (void)state;
    for (int i = 0; i == 0 || signature_hash(id, strlen(id)) % 2 == 0; i++)
        snprintf(id, sizeof id, "g%d", i);
    kit_wait(kit, id, 3, 0);
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "waits")), 1);
    assert_about(o, "waits.0.about", "bootstrap: called as one of 3 leaders");
    assert_about(o, "waits.0.about", "no word yet of c001");
    json_object_put(o);
    kit_free(kit);
}

static void take_nothing(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
}

static void a_question_that_waits(void **state)
{
    struct kit *kit = kit_new(2, 1);
    (void)state;
    asks_send(kit->server.asks, 1, ASK_MODEX, "who", 3, 20, take_nothing, NULL);
    asks_send(kit->server.asks, 1, ASK_STATUS, NULL, 0, 5, take_nothing, NULL); /* not shown */
    kit->now += 1500;
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "asks")), 1);
    kit_assert_text(o, "asks.0.about", "question \"who\" for 1");
    kit_assert_text(o, "asks.0.node", "c001");
    kit_assert_number(o, "asks.0.age", 1.5);
    kit_assert_number(o, "asks.0.left", 18.5);
    kit_assert_number(o, "counters.asked.modex", 1);
    json_object_put(o);
    kit_free(kit);
}

static void a_peer(void **state)
{
    struct kit *kit = kit_new(2, 1);
    struct wire_out frame = {0};
    (void)state;
    kit->server.events = (struct event_counts){.out = 2, .in = 3, .dropped = 1};
    kit->peer = (struct rm_peer){.reached = true, .retries = 7};
    wire_put_u8(&frame, FRAME_WANTED);
    link_send(kit->server.link, 1, &frame);
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "peers")), 1);
    kit_assert_text(o, "peers.0.node", "c001");
    assert_true(json_object_get_boolean(kit_field(o, "peers.0.reached")));
    assert_null(kit_field(o, "peers.0.unreachable"));
    assert_false(json_object_get_boolean(kit_field(o, "peers.0.direct")));
    kit_assert_number(o, "peers.0.queued", 1);
    kit_assert_number(o, "peers.0.queued_bytes", 4 + 20 + 1);
    kit_assert_number(o, "peers.0.bytes_out", 4 + 20 + 1);
    kit_assert_number(o, "counters.frames_out", 1);
    kit_assert_number(o, "counters.events.out", 2);
    kit_assert_number(o, "counters.events.in", 3);
    kit_assert_number(o, "counters.events.dropped", 1);
    kit_assert_number(o, "counters.retries", 2 * 7);
    json_object_put(o);
    kit_free(kit);
}

static void many_operations(void **state)
{
    struct kit *kit = kit_new(2, 1);
    char id[16];
    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "g%d.", i);
        kit_construct(kit, id, 0);
    }
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers")), STATUS_LIST_MAX);
    kit_assert_number(o, "trackers_omitted", 100 - STATUS_LIST_MAX);
    json_object_put(o);
    kit_free(kit);
}

static void many_missing(void **state)
{
    struct kit *kit = kit_new(300, 400);
    (void)state;
    kit_construct(kit, "large", 0);
    json_object *o = kit_state(kit);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers.0.missing")),
                     STATUS_MISSING_MAX);
    kit_assert_number(o, "trackers.0.missing_omitted", 299 - STATUS_MISSING_MAX);
    const char *ranks = json_object_get_string(kit_field(o, "trackers.0.missing.0.ranks"));
    assert_true(strlen(ranks) < 128);
    assert_string_equal(ranks + strlen(ranks) - 3, "...");
    json_object_put(o);
    kit_free(kit);
}

static void a_hostile_id(void **state)
{
    struct kit *kit = kit_new(2, 1);
    (void)state;
    kit_construct(kit, "\x1b[31m\xff\"\n\xc2\x9b", 0);
    json_object *o = kit_state(kit);
    const char *text = json_object_get_string(kit_field(o, "trackers.0.operation"));
    assert_non_null(strstr(text, "group \"?[31m?\"???"));
    json_object_put(o);
    kit_free(kit);
}

static json_object *operations(struct kit *kit, size_t max)
{
    size_t len;
    char *text = status_operations(&kit->server, max, &len);
    assert_non_null(text);
    assert_int_equal(len, strlen(text));
    assert_true(len <= max);
    json_object *o = json_tokener_parse(text);
    assert_non_null(o);
    free(text);
    return o;
}

static void operations_alone(void **state)
{
    struct kit *kit = kit_new(12, 1);
    char id[16];
    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "g%d.", i);
        kit_construct(kit, id, 0);
    }
    kit_wait(kit, "ice", 3, 0);
    asks_send(kit->server.asks, 1, ASK_MODEX, "who", 3, 20, take_nothing, NULL);
    json_object *o = operations(kit, 1 << 20);
    kit_assert_number(o, "under_way.construct.gather", 40);
    kit_assert_number(o, "under_way.waits", 2);
    kit_assert_number(o, "done.fence", 0);
    kit_assert_number(o, "failed.destruct", 0);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers")), STATUS_SHORT_MAX);
    kit_assert_number(o, "trackers_omitted", 40 - STATUS_SHORT_MAX);
    assert_int_equal(json_object_array_length(kit_field(o, "trackers.0.missing")),
                     STATUS_SHORT_MISSING_MAX);
    kit_assert_number(o, "trackers.0.missing_omitted", 11 - STATUS_SHORT_MISSING_MAX);
    assert_about(o, "waits.1.about", "question \"who\" for 1");
    json_object_put(o);
    o = operations(kit, 4000); /* where there is room for less */
    size_t listed = json_object_array_length(kit_field(o, "trackers"));
    assert_in_range(listed, 1, STATUS_SHORT_MAX / 2);
    kit_assert_number(o, "under_way.construct.gather", 40);
    kit_assert_number(o, "trackers_omitted", 40 - (double)listed);
    json_object_put(o);
    o = operations(kit, 400);
    kit_assert_number(o, "trackers_omitted", 40);
    kit_assert_number(o, "waits_omitted", 2);
    json_object_put(o);
    engine_close(kit->server.engine);
    o = operations(kit, 1 << 20);
    kit_assert_number(o, "failed.construct", 40);
    assert_int_equal(json_object_object_length(kit_field(o, "under_way")), 1); /* waits */
    json_object_put(o);
    kit_free(kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_server),
        cmocka_unit_test(who_belongs_together),
        cmocka_unit_test(an_operation_that_waits),
        cmocka_unit_test(an_operation_without_a_deadline),
        cmocka_unit_test(operations_that_ended),
        cmocka_unit_test(calls_that_belong_to_nothing_yet),
        cmocka_unit_test(a_leader_far_from_home),
        cmocka_unit_test(a_question_that_waits),
        cmocka_unit_test(a_peer),
        cmocka_unit_test(many_operations),
        cmocka_unit_test(many_missing),
        cmocka_unit_test(a_hostile_id),
        cmocka_unit_test(operations_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
