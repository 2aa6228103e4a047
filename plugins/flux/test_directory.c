/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of servers and what it hands over, within one job. */
#include "plugins/flux/directory_private.h"
#include "plugins/flux/test_directory_kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void malformed_registrations(void **state)
{
    struct wire_out out = registration(JOB, 1);
    struct registration reg;
    (void)state;
    for (size_t len = 0; len < out.len; len++) {
        struct err err = {0};
        assert_int_equal(directory_read(dirs[1], out.data, len, &reg, &err), EPROTO);
        assert_true(err.text[0] != '\0');
        free(reg.brokers);
    }
    struct err err = {0};
    assert_int_equal(directory_read(dirs[2], out.data, out.len, &reg, &err), EINVAL);
    free(reg.brokers);
    wire_set_u32(&out, 12, BROKERS); /* node */
    assert_int_equal(directory_read(dirs[1], out.data, out.len, &reg, &err), EPROTO);
    free(reg.brokers);
    wire_set_u32(&out, 12, 1);
    wire_set_u32(&out, 20, BROKERS); /* broker of node 0 */
    assert_int_equal(directory_read(dirs[1], out.data, out.len, &reg, &err), EPROTO);
    free(reg.brokers);
    wire_set_u32(&out, 20, 1); /* as of node 1 */
    assert_int_equal(directory_read(dirs[1], out.data, out.len, &reg, &err), EPROTO);
    free(reg.brokers);
    wire_set_u32(&out, 20, 0);
    wire_set_u32(&out, 16, BROKERS + 1); /* nodes */
    wire_put_u32(&out, 0);
    assert_int_equal(directory_read(dirs[1], out.data, out.len, &reg, &err), EPROTO);
    free(reg.brokers);
    wire_set_u32(&out, 16, 0xffffffff);
    assert_int_equal(directory_read(dirs[1], out.data, out.len, &reg, &err), EPROTO);
    free(reg.brokers);
    wire_out_free(&out);
}

/* Of a job there is one server on a broker, whatever node it says to be. */
static void one_server_a_job(void **state)
{
    struct request *first = &streams[0], *second = &streams[1], *third = &streams[2];
    struct wire_out out = registration(JOB, 1);
    struct registration reg;
    struct err err = {0};
    struct client other = {.uuid = "x", .uid = OWNER};
    (void)state;
    respond_rc = ENOMEM;
    assert_int_equal(enter(JOB, 0, client(0), first), ENOMEM);
    respond_rc = 0;
    assert_int_equal(enter(JOB, 0, client(0), second), 0);
    assert_int_equal(enter(JOB, 0, other, third), EEXIST);
    wire_set_u32(&out, 20, 1); /* the broker of node 0 */
    wire_set_u32(&out, 24, 0);
    assert_int_equal(directory_read(dirs[0], out.data, out.len, &reg, &err), 0);
    assert_int_equal(directory_register(dirs[0], &other, &reg, third, &err), EEXIST);
    free(reg.brokers);
    wire_out_free(&out);
    assert_int_equal(first->answers + third->answers + third->responses, 0);
    directory_disconnect(dirs[0], &other); /* is nobody's server */
    assert_int_equal(second->answers, 0);
    other = client(0);
    other.uid++;
    directory_disconnect(dirs[0], &other); /* forged */
    assert_int_equal(second->answers, 0);
}

/* A sender has its answer when the receiver has said to have taken the message, one for all that it
 * has sent. */
static void relays_and_answers(void **state)
{
    struct request *a = &sent[0], *b = &sent[1], *c = &sent[2], *d = &sent[3];
    (void)state;
    enter_all();
    send_as(0, client(0), 2, a);
    send_as(1, client(1), 2, c);
    send_as(0, client(0), 2, b);
    uint64_t ticket = received(&streams[2]);
    send_as(0, client(0), 2, d);
    assert_int_equal(streams[2].responses, 1 + 4);
    took_as(JOB, 2, client(1), ticket); /* another's */
    took_as(JOB, 1, client(1), ticket);
    assert_int_equal(a->answers + b->answers + c->answers + d->answers, 0);
    took_as(JOB, 2, client(2), ticket);
    took_as(JOB, 2, client(2), ticket); /* again */
    assert_int_equal(a->drops, 1);
    assert_int_equal(b->answers, 1);
    assert_int_equal(b->errnum, 0);
    assert_int_equal(c->answers, 1);
    assert_int_equal(d->answers + d->drops, 0);
    took_as(JOB, 2, client(2), received(&streams[2]));
    assert_int_equal(d->answers, 1);
    assert_int_equal(streams[2].answers, 0);
}

/* A sender may have a window under way, and others are not in it. */
static void a_window_of_messages(void **state)
{
    struct request window[PACKET_WINDOW_MESSAGES] = {0}, *more = &sent[0];
    (void)state;
    enter_all();
    for (int i = 0; i < PACKET_WINDOW_MESSAGES; i++) {
        send_as(0, client(0), 2, &window[i]);
        assert_int_equal(window[i].answers, 0);
    }
    uint64_t ticket = received(&streams[2]) - PACKET_WINDOW_MESSAGES + 1; /* the first */
    send_as(0, client(0), 2, more);
    assert_int_equal(more->errnum, EBUSY);
    send_as(1, client(1), 2, &sent[1]);
    assert_int_equal(sent[1].answers, 0);
    took_as(JOB, 2, client(2), ticket);
    assert_int_equal(window[0].answers, 1);
    send_as(0, client(0), 2, &sent[2]);
    assert_int_equal(sent[2].answers, 0);
    took_as(JOB, 2, client(2), received(&streams[2]));
    assert_int_equal(window[PACKET_WINDOW_MESSAGES - 1].drops, 1);
    assert_int_equal(sent[1].answers, 1);
    assert_int_equal(sent[2].answers, 1);
    assert_int_equal(sent[2].errnum, 0);
}

/* A message of so many bytes from server 0 to server 2. */
static void send_bytes(size_t len, struct request *request)
{
    struct client me = client(0);
    struct wire_out out = {0};
    unsigned char *bytes = calloc(1, len);
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, JOB);
    wire_put_u32(&out, 0);
    wire_put_u32(&out, 0);
    wire_put_u64(&out, JOB);
    wire_put_u32(&out, 2);
    wire_put_raw(&out, bytes, len);
    directory_send(dirs[2], &me, out.data, out.len, request);
    wire_out_free(&out);
    free(bytes);
}

/* A window is full when it has so many bytes, as the sender counts them: not what stands before. */
static void a_window_of_bytes(void **state)
{
    (void)state;
    enter_all();
    send_bytes(PACKET_WINDOW_BYTES - 1, &sent[0]);
    send_bytes(1, &sent[1]);
    assert_int_equal(sent[0].answers + sent[1].answers, 0);
    send_bytes(1, &sent[2]);
    assert_int_equal(sent[2].errnum, EBUSY);
    took_as(JOB, 2, client(2), 2);
    assert_int_equal(sent[0].drops, 1);
    assert_int_equal(sent[1].answers, 1);
    send_bytes(PACKET_WINDOW_BYTES, &sent[3]);
    assert_int_equal(sent[3].answers, 0);
    send_bytes(1, &sent[4]);
    assert_int_equal(sent[4].errnum, EBUSY);
}

/* A message costs as much when many others are under way: to another server, and of other senders
 * to the same one. Counted is what was looked at. */
static void many_do_not_slow_each_other(void **state)
{
    enum { MANY = 1000, EACH = 8 /* looks; a hash has chains */ };
    static struct request requests[2 * MANY];
    char uuid[32];
    struct client who = {.uuid = uuid, .uid = OWNER};
    (void)state;
    memset(requests, 0, sizeof requests);
    enter_all();
    assert_int_equal(enter(OTHER, 2, other_client(2), &others[2]), 0);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        snprintf(uuid, sizeof uuid, "connection-%u", i % MANY);
        send_to(JOB, 0, who, i < MANY ? JOB : OTHER, 2, &requests[i]);
        assert_int_equal(requests[i].answers, 0);
    }
    took_as(JOB, 2, client(2), received(&streams[2]));
    took_as(OTHER, 2, other_client(2), received(&others[2]));
    for (unsigned i = 0; i < 2 * MANY; i++)
        assert_int_equal(requests[i].answers, 1);
    uint64_t looked = 0;
    for (const struct server *server = dirs[2]->servers; server != NULL; server = server->next) {
        assert_int_equal(server->in.messages + server->in.bytes, 0);
        looked += server->in.looked;
    }
    assert_in_range(looked, 2 * MANY, 2 * MANY * EACH);
}

static void refuses(void **state)
{
    struct client other = {.uuid = "u1", .uid = OWNER + 1}, me = client(0);
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    send_as(0, client(0), 1, &sent[0]); /* has not come yet */
    assert_int_equal(sent[0].errnum, ENOENT);
    assert_true(sent[0].why[0] != '\0');
    assert_int_equal(enter(JOB, 1, other, &streams[1]),
                     0); /* another user says it is of that job */
    send_as(0, client(0), 1, &sent[1]);
    assert_int_equal(sent[1].errnum, EPERM);
    send_as(1, other, 0, &sent[2]);
    assert_int_equal(sent[2].errnum, EPERM);
    send_as(BROKERS, client(0), 0, &sent[3]); /* from a broker that there is not */
    assert_int_equal(sent[3].errnum, EPROTO);
    send_as(0, client(0), BROKERS, &sent[4]);
    assert_int_equal(sent[4].errnum, ENOENT);
    directory_send(dirs[0], &me, "short", 5, &sent[5]);
    assert_int_equal(sent[5].errnum, EPROTO);
    assert_int_equal(streams[0].responses, 1);
    assert_int_equal(streams[1].responses, 1);
}

static void the_receiver_dies(void **state)
{
    struct request *a = &sent[0], *c = &sent[2];
    struct client dead = client(2);
    (void)state;
    enter_all();
    send_as(0, client(0), 2, a);
    unsigned before = streams[1].responses;
    directory_disconnect(dirs[2], &dead);
    pump();
    assert_int_equal(a->errnum, ENOENT);
    assert_int_equal(streams[2].answers, 1);
    told_gone(&streams[0], JOB, 2, PACKET_DIED);
    told_gone(&streams[1], JOB, 2, PACKET_DIED);
    assert_int_equal(streams[1].responses, before + 1);
    send_as(0, client(0), 2, c);
    assert_int_equal(c->errnum, ENOENT);
}

static void the_receiver_leaves(void **state)
{
    struct client leaver = client(2), forger = {.uuid = "u2", .uid = OWNER + 1};
    (void)state;
    enter_all();
    leave_as(JOB, 2, forger, NULL, 0);
    assert_int_equal(streams[0].responses, 1);
    leave_as(JOB, 2, leaver, NULL, 0);
    told_gone(&streams[0], JOB, 2, PACKET_LEFT);
    directory_disconnect(dirs[2], &leaver); /* that follows: told once */
    pump();
    assert_int_equal(streams[0].responses, 2);
    assert_int_equal(streams[1].responses, 1); /* had nothing to do with it */
    send_as(1, client(1), 2, &sent[0]);
    assert_int_equal(sent[0].errnum, ESHUTDOWN);
    send_as(1, forger, 2, &sent[1]); /* another user hears nothing of it */
    assert_int_equal(sent[1].errnum, ENOENT);
}

/* Whom a server has reached, it names. */
static void those_reached_are_told(void **state)
{
    const uint32_t ranks[] = {BROKERS, 1, 0xffffffff};
    struct client me = client(2);
    struct wire_out out = {0};
    (void)state;
    enter_all();
    wire_put_u64(&out, JOB);
    wire_put_u32(&out, 0xffffffff);
    wire_put_u32(&out, 1);
    directory_leave(dirs[2], &me, out.data, out.len); /* malformed */
    wire_out_free(&out);
    assert_int_equal(streams[2].answers, 0);
    leave_as(JOB, 2, me, ranks, sizeof ranks / sizeof *ranks);
    told_gone(&streams[1], JOB, 2, PACKET_LEFT);
    assert_int_equal(streams[2].answers, 1);
}

/* Of so many that have left, the latest are known. */
static void many_leave(void **state)
{
    enum { MANY = 300, KNOWN = 256 };
    static struct request requests[MANY], gone[MANY];
    (void)state;
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(enter(JOB + i, 2, client(2), &requests[i]), 0);
        leave_as(JOB + i, 2, client(2), NULL, 0);
    }
    for (uint32_t i = 0; i < MANY; i++) { /* the same one again: counts once */
        static struct request again[MANY];
        assert_int_equal(enter(JOB + MANY - 1, 2, client(2), &again[i]), 0);
        leave_as(JOB + MANY - 1, 2, client(2), NULL, 0);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        send_to(JOB + i, 1, client(1), JOB + i, 2, &gone[i]);
        assert_int_equal(gone[i].errnum, i < MANY - KNOWN ? ENOENT : ESHUTDOWN);
    }
}

static void a_broker_is_lost(void **state)
{
    struct wire_in in;
    (void)state;
    enter_all();
    directory_offline(dirs[0], 1);
    wire_in_init(&in, streams[0].last, streams[0].len);
    assert_int_equal(wire_get_u8(&in), PACKET_OFFLINE);
    assert_int_equal(wire_get_u32(&in), 1);
    directory_offline(dirs[2], 2); /* our own: nobody to tell */
    assert_int_equal(streams[2].responses, 1);
}

static void unloading_answers_all(void **state)
{
    struct request *a = &sent[0];
    (void)state;
    enter_all();
    send_as(0, client(0), 2, a);
    directory_free(dirs[2], ENOSYS, "unloaded");
    dirs[2] = NULL;
    assert_int_equal(a->errnum, ENOSYS);
    assert_int_equal(streams[2].errnum, ENOSYS);
    assert_string_equal(streams[2].why, "unloaded");
    assert_int_equal(streams[1].answers, 0);
}

/* What any user may send, with bytes changed and cut: nothing but refusals, and no bytes beyond the
 * end are read (which the sanitizers see). */
static void random_bytes(void **state)
{
    struct client who = client(0);
    uint32_t seed = 1;
    (void)state;
    enter_all();
    for (int i = 0; i < 20000; i++) {
        struct wire_out whole = registration(JOB, 0);
        struct request *request = calloc(1, sizeof *request);
        struct registration reg;
        struct err err = {0};
        for (int changes = 0; changes < 3; changes++) {
            seed = seed * 1664525 + 1013904223;
            whole.data[(seed >> 8) % whole.len] = (unsigned char)(seed >> 24);
        }
        size_t len = (seed >> 4) % (whole.len + 1);
        void *data = malloc(len > 0 ? len : 1); /* its end is where the bytes end */
        memcpy(data, whole.data, len);
        struct wire_out out = {0};
        uint64_t job;
        directory_read(dirs[0], data, len, &reg, &err);
        free(reg.brokers);
        directory_find(dirs[0], &who, data, len, &job);
        directory_meet(dirs[0], &who, data, len, &out);
        directory_home(dirs[0], data, len, &out);
        wire_out_free(&out);
        directory_took(dirs[0], &who, data, len);
        directory_leave(dirs[1], &who, data, len);
        directory_state(dirs[0], &who, data, len);
        directory_gone(dirs[2], NULL, data, len);
        struct client stranger = {.uuid = "s", .uid = OWNER};
        directory_send(dirs[0], &stranger, data, len, request);
        assert_int_equal(request->answers, 1);
        assert_int_not_equal(request->errnum, 0); /* of no such job */
        free(request);
        free(data);
        wire_out_free(&whole);
    }
    assert_int_equal(streams[0].answers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(malformed_registrations, setup, teardown),
        cmocka_unit_test_setup_teardown(one_server_a_job, setup, teardown),
        cmocka_unit_test_setup_teardown(relays_and_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_of_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_of_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(many_do_not_slow_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(the_receiver_dies, setup, teardown),
        cmocka_unit_test_setup_teardown(the_receiver_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(those_reached_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(many_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(a_broker_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(unloading_answers_all, setup, teardown),
        cmocka_unit_test_setup_teardown(random_bytes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
