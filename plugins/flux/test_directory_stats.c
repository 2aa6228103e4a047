/* SPDX-License-Identifier: BSD-3-Clause */
/* What stats-get is answered: the directory, and what servers say of their operations. */
#include "plugins/flux/test_directory_kit.h"

#include "plugins/flux/state.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char waits[] =
    "{\"under_way\":{\"construct\":{\"gather\":1,\"early\":2},\"waits\":1},"
    "\"done\":{\"fence\":5,\"construct\":0},\"failed\":{\"fence\":1},\"trackers\":[{"
    "\"operation\":\"group \\\"ocean\\\" construct\",\"kind\":\"construct\",\"state\":\"gather\","
    "\"age\":3.5,\"left\":null,\"called\":true,\"missing\":["
    "{\"node\":\"c07\",\"nspace\":\"flux.fx\",\"ranks\":\"5,9\"}]}],"
    "\"waits\":[{\"about\":\"group \\\"ice\\\" bootstrap\",\"age\":1}]}";

/* muster.state of a server of @p job. */
static void say_bytes(uint64_t job, uint32_t rank, struct client who, const void *text, size_t len)
{
    struct wire_out out = {0};
    wire_put_u64(&out, job);
    wire_put_raw(&out, text, len);
    directory_state(dirs[rank], &who, out.data, out.len);
    wire_out_free(&out);
}

static void say(uint64_t job, uint32_t rank, struct client who, const char *text)
{
    say_bytes(job, rank, who, text, strlen(text));
}

/* The text by the rules of whoever reads it: strict JSON, UTF-8. */
static struct json_object *parse(const char *text)
{
    struct json_tokener *tokener = json_tokener_new_ex(16);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *o = json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1);
    assert_int_equal(json_tokener_get_error(tokener), json_tokener_success);
    assert_non_null(o);
    json_tokener_free(tokener);
    return o;
}

/* @return the answer to stats-get, parsed */
static struct json_object *answered(struct request *request)
{
    assert_int_equal(request->answers, 1);
    assert_int_equal(request->errnum, 0);
    assert_non_null(request->text);
    struct json_object *o = parse(request->text);
    free(request->text);
    request->text = NULL;
    return o;
}

/* @return a field, by keys and indices, or NULL: there is none */
static struct json_object *field(struct json_object *o, const char *path)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, ".", &rest); key != NULL && o != NULL;
         key = strtok_r(NULL, ".", &rest)) {
        if (json_object_is_type(o, json_type_array))
            o = json_object_array_get_idx(o, (size_t)atoi(key));
        else if (!json_object_object_get_ex(o, key, &o))
            o = NULL;
    }
    return o;
}

static int64_t number(struct json_object *o, const char *path)
{
    if (!json_object_is_type(field(o, path), json_type_int))
        fail_msg("%s is no number", path);
    return json_object_get_int64(field(o, path));
}

static void expect_text(struct json_object *o, const char *path, const char *text)
{
    const char *found = json_object_get_string(field(o, path));
    if (found == NULL || strcmp(found, text) != 0)
        fail_msg("%s is \"%s\", not \"%s\"", path, found, text);
}

/* Whether the last thing a server was told is to say its state. */
static bool was_asked(const struct request *stream)
{
    return stream->len == 1 && stream->last[0] == PACKET_STATE;
}

static void shows_who_is_waited_for(void **state)
{
    (void)state;
    enter_all();
    send_as(0, client(0), 2, &sent[0]);
    directory_stats(dirs[2], &sent[1]);
    assert_true(was_asked(&streams[2]));
    assert_false(was_asked(&streams[0])); /* which is on another broker */
    assert_int_equal(sent[1].answers, 0);
    say(JOB, 2, client(2), waits);
    struct json_object *o = answered(&sent[1]);
    assert_int_equal(json_object_array_length(field(o, "servers")), 1);
    assert_int_equal(number(o, "servers.0.job"), JOB);
    assert_int_equal(number(o, "servers.0.bytes"), 5);
    assert_int_equal(json_object_array_length(field(o, "waiting")), 1);
    assert_int_equal(number(o, "waiting.0.to"), 2);
    assert_int_equal(number(o, "silent"), 0);
    assert_null(field(o, "servers.0.silent"));
    struct json_object *said = field(o, "servers.0.state");
    expect_text(said, "trackers.0.operation", "group \"ocean\" construct");
    expect_text(said, "trackers.0.missing.0.node", "c07");
    expect_text(said, "trackers.0.missing.0.ranks", "5,9");
    expect_text(said, "trackers.0.age", "3.500");
    expect_text(said, "waits.0.about", "group \"ice\" bootstrap");
    assert_int_equal(number(said, "under_way.construct.early"), 2);
    assert_null(field(said, "trackers.0.left"));
    json_object_put(o);
}

static void sums_of_a_broker(void **state)
{
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 0, other_client(0), &others[0]), 0);
    directory_stats(dirs[0], &sent[0]);
    say(OTHER, 0, other_client(0), waits);
    assert_int_equal(sent[0].answers, 0);
    say(JOB, 0, client(0), waits);
    struct json_object *o = answered(&sent[0]);
    assert_int_equal(number(o, "under_way.construct.gather"), 2);
    assert_int_equal(number(o, "under_way.construct.early"), 4);
    assert_int_equal(number(o, "under_way.waits"), 2);
    assert_int_equal(number(o, "done.fence"), 10);
    assert_int_equal(number(o, "failed.fence"), 2);
    json_object_put(o);
    directory_stats(dirs[1], &sent[1]); /* where there is no server */
    json_object_put(answered(&sent[1]));
    assert_int_equal(alarm_ms, 2000);
}

static void one_collection_for_all(void **state)
{
    enum { MANY = 16 };
    static struct request askers[MANY + 1]; /* those that wait are answered by teardown() */
    (void)state;
    enter_all();
    directory_stats(dirs[0], &askers[0]);
    assert_int_equal(alarm_ms, 2000);
    alarm_ms = 0;
    for (int i = 1; i <= MANY; i++)
        directory_stats(dirs[0], &askers[i]);
    assert_int_equal(alarm_ms, 0); /* who comes later does not put off the end */
    assert_int_equal(streams[0].responses, 1 + 1);
    assert_int_equal(askers[MANY].errnum, EAGAIN);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(askers[i].answers, 0);
    say(JOB, 0, client(0), waits);
    for (int i = 0; i < MANY; i++)
        json_object_put(answered(&askers[i]));
    directory_stats(dirs[0], &sent[0]); /* asks anew: nothing was kept */
    assert_int_equal(streams[0].responses, 1 + 2);
    directory_alarm(dirs[0]);
    struct json_object *o = answered(&sent[0]);
    assert_null(field(o, "servers.0.state"));
    assert_null(field(o, "under_way"));
    json_object_put(o);
}

/* The others are shown; and it is asked once, however often somebody looks. */
static void a_server_that_hangs(void **state)
{
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 0, other_client(0), &others[0]), 0);
    for (int i = 0; i < 3; i++) {
        directory_stats(dirs[0], &sent[i]);
        say(JOB, 0, client(0), waits);
        assert_int_equal(sent[i].answers, 0);
        directory_alarm(dirs[0]);
        struct json_object *o = answered(&sent[i]);
        assert_int_equal(number(o, "silent"), 1);
        expect_text(o, "servers.0.silent", "no answer within 2 s"); /* OTHER's came last */
        assert_int_equal(number(o, "servers.0.job"), OTHER);
        assert_int_equal(number(o, "servers.1.state.under_way.waits"), 1);
        json_object_put(o);
    }
    assert_int_equal(others[0].responses, 1 + 1);
    assert_int_equal(streams[0].responses, 1 + 3);
    say(OTHER, 0, other_client(0), waits); /* too late for those, and kept for nobody */
    directory_stats(dirs[0], &sent[3]);
    assert_int_equal(others[0].responses, 1 + 2);
    say(OTHER, 0, other_client(0), waits);
    say(JOB, 0, client(0), waits);
    struct json_object *o = answered(&sent[3]);
    assert_int_equal(number(o, "silent"), 0);
    json_object_put(o);
    directory_alarm(dirs[0]); /* of a collection that has ended */
}

/* What a server says that was not asked, or not on this connection, does not count. */
static void answers_of_others(void **state)
{
    struct client forger = client(0);
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 0, other_client(0), &others[0]), 0);
    say(JOB, 0, client(0), waits); /* nobody has asked */
    directory_stats(dirs[0], &sent[0]);
    forger.uid++;
    say(JOB, 0, forger, waits);
    say(JOB, 0, other_client(0), waits);
    say(OTHER, 0, client(0), waits);
    say(OTHER + 1, 0, client(0), waits);
    directory_state(dirs[0], &(struct client){"u0", OWNER}, "short", 5);
    say(JOB, 0, client(0), "{}");
    say(JOB, 0, client(0), waits); /* again */
    assert_int_equal(sent[0].answers, 0);
    directory_alarm(dirs[0]);
    struct json_object *o = answered(&sent[0]);
    assert_null(field(o, "under_way"));
    assert_int_equal(number(o, "silent"), 1);
    json_object_put(o);
}

static void expect_silent(const void *text, size_t len, const char *why)
{
    static struct request request; /* as teardown() answers it if nothing else does */
    request = (struct request){0};
    directory_stats(dirs[0], &request);
    say_bytes(JOB, 0, client(0), text, len);
    struct json_object *o = answered(&request);
    expect_text(o, "servers.0.silent", why);
    assert_null(field(o, "servers.0.state"));
    json_object_put(o);
}

static void nonsense(void **state)
{
    static const char *const texts[] = {
        "",      " ",
        "7",     "null",
        "[]",    "\"\"",
        "{",     "{]",
        "{} {}", "{\"done\":}",
        "{}x",   "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}}}}}"};
    char *text = malloc(PACKET_STATE_MAX + 1);
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_silent(texts[i], strlen(texts[i]), "its answer makes no sense");
    memset(text, ' ', PACKET_STATE_MAX + 1);
    memcpy(text, "{}", 2);
    expect_silent(text, PACKET_STATE_MAX + 1, "its answer is too long");
    memset(text, '[', PACKET_STATE_MAX);
    expect_silent(text, PACKET_STATE_MAX, "its answer makes no sense");
    free(text);
}

/* @return what is taken over of it, which reads well */
static struct json_object *taken(const char *text, size_t len)
{
    const char *why = NULL;
    struct json_object *o = state_read(text, len, &why);
    assert_true((o == NULL) == (why != NULL));
    if (o == NULL)
        return NULL;
    struct json_object *again = parse(json_object_to_json_string(o));
    json_object_put(o);
    return again;
}

static void other_types_and_fields(void **state)
{
    static const char text[] =
        "{\"job\":1,\"under_way\":{\"fence\":7,\"construct\":{\"gather\":\"x\",\"sent\":-1,"
        "\"early\":1e3,\"doubt\":99999999999999999999,\"done\":1},\"spy\":{\"sent\":1},"
        "\"waits\":[]},\"done\":[1],\"failed\":{\"fence\":2000000000000},\"waits\":{},"
        "\"trackers\":[7,null,[],{\"operation\":{},\"kind\":null,\"age\":NaN,\"left\":1e300,"
        "\"in_state\":-1,\"called\":1,\"missing\":[{\"ranks\":5}],\"client\":\"x\"}]}";
    (void)state;
    struct json_object *o = taken(text, strlen(text));
    assert_string_equal(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
        "{\"under_way\":{\"construct\":{}},\"failed\":{},\"trackers\":[{\"missing\":[{}]}]}");
    json_object_put(o);
}

static void append(struct wire_out *out, const char *text)
{
    wire_put_raw(out, text, strlen(text));
}

/* Texts are cut and harmless, and lists end. */
static void bounded_and_harmless(void **state)
{
    struct wire_out out = {0};
    char bytes[700];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    append(&out, "{\"trackers\":[{\"operation\":\"a\xff\xc3\\u0007\x1b\\ud800\"},");
    memcpy(bytes + 510, "\xc3\xa4", 2); /* the cut goes through it */
    append(&out, "{\"operation\":\"");
    wire_put_raw(&out, bytes, sizeof bytes);
    append(&out, "\"}");
    for (int i = 0; i < 100; i++)
        append(&out, ",{\"kind\":\"a\\u0000b\"}");
    append(&out, "]}");
    struct json_object *o = taken((char *)out.data, out.len);
    assert_non_null(o);
    assert_int_equal(json_object_array_length(field(o, "trackers")), 64);
    assert_int_equal(json_object_get_string_len(field(o, "trackers.1.operation")), 511);
    bytes[510] = '?';
    assert_memory_equal(json_object_get_string(field(o, "trackers.1.operation")), bytes, 511);
    expect_text(o, "trackers.2.kind", "a");
    const char *text = json_object_get_string(field(o, "trackers.0.operation"));
    assert_memory_equal(text, "a????", 5);
    json_object_put(o);
    wire_out_free(&out);
}

static void random_text(void **state)
{
    uint32_t seed = 1, good = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char *text = strdup(waits);
        for (int changes = 0; changes < 3; changes++) {
            seed = seed * 1664525 + 1013904223;
            text[(seed >> 8) % strlen(waits)] = (char)(seed >> 24);
        }
        struct json_object *o = taken(text, strlen(waits));
        good += o != NULL;
        json_object_put(o);
        free(text);
    }
    assert_in_range(good, 1000, 19000); /* else it tries one thing only */
}

/* A server that goes is not waited for. */
static void servers_come_and_go(void **state)
{
    struct client dead = client(0);
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 0, other_client(0), &others[0]), 0);
    directory_stats(dirs[0], &sent[0]);
    assert_int_equal(enter(OTHER + 1, 0, client(1), &streams[1]), 0);
    assert_int_equal(streams[1].responses, 1);
    directory_disconnect(dirs[0], &dead);
    assert_int_equal(sent[0].answers, 0);
    leave_as(OTHER, 0, other_client(0), NULL, 0);
    struct json_object *o = answered(&sent[0]);
    assert_int_equal(json_object_array_length(field(o, "servers")), 1);
    expect_text(o, "servers.0.silent", "it has just come");
    json_object_put(o);
    directory_stats(dirs[0], &sent[1]);
    say(OTHER + 1, 0, client(1), waits);
    dead = client(1);
    assert_int_equal(number(o = answered(&sent[1]), "silent"), 0);
    json_object_put(o);
    directory_disconnect(dirs[0], &dead);
    pump();
}

static void what_cannot_be(void **state)
{
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    respond_rc = ENOMEM;
    directory_stats(dirs[0], &sent[0]);
    struct json_object *o = answered(&sent[0]);
    expect_text(o, "servers.0.silent", "it cannot be asked");
    json_object_put(o);
    respond_rc = 0;
    alarm_rc = -1;
    directory_stats(dirs[0], &sent[1]);
    o = answered(&sent[1]); /* and not when the server likes to */
    assert_int_equal(number(o, "silent"), 1);
    json_object_put(o);
}

/* With what has come, too. */
static void unloading_ends_it(void **state)
{
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 0, other_client(0), &others[0]), 0);
    directory_stats(dirs[0], &sent[0]);
    directory_stats(dirs[0], &sent[1]);
    say(JOB, 0, client(0), waits);
    directory_free(dirs[0], ENOSYS, "unloaded");
    dirs[0] = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sent[i].errnum, ENOSYS);
        assert_string_equal(sent[i].why, "unloaded");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_who_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_of_a_broker, setup, teardown),
        cmocka_unit_test_setup_teardown(one_collection_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_that_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense, setup, teardown),
        cmocka_unit_test(other_types_and_fields),
        cmocka_unit_test(bounded_and_harmless),
        cmocka_unit_test(random_text),
        cmocka_unit_test_setup_teardown(servers_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(unloading_ends_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
