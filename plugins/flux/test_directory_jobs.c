/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of servers, between jobs: who may reach whom, who is told of losses, and where
 * servers meet. */
#include "plugins/flux/test_directory_kit.h"

#include "plugins/flux/directory_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void enter_both(void)
{
    enter_all();
    for (uint32_t node = 0; node < BROKERS; node++)
        assert_int_equal(enter(OTHER, node, other_client(node), &others[node]), 0);
}

static void relays_between_jobs(void **state)
{
    (void)state;
    enter_both();
    send_to(JOB, 0, client(0), OTHER, 2, &sent[0]);
    took_as(OTHER, 2, other_client(2), received(&others[2]));
    assert_int_equal(sent[0].answers, 1);
    assert_int_equal(sent[0].errnum, 0);
    assert_int_equal(streams[2].responses, 1); /* the one of the own job beside it is not meant */
    send_to(OTHER, 2, other_client(2), JOB, 0, &sent[1]);
    took_as(JOB, 0, client(0), received(&streams[0]));
    assert_int_equal(sent[1].answers, 1);
    assert_int_equal(sent[1].errnum, 0);
}

static void two_users_are_refused(void **state)
{
    struct client bob = {.uuid = "b", .uid = OWNER + 1};
    (void)state;
    assert_int_equal(enter(JOB, 0, client(0), &streams[0]), 0);
    assert_int_equal(enter(OTHER, 1, bob, &others[1]), 0);
    send_to(JOB, 0, client(0), OTHER, 1, &sent[0]);
    assert_int_equal(sent[0].errnum, EPERM);
    send_to(OTHER, 1, bob, JOB, 0, &sent[1]);
    assert_int_equal(sent[1].errnum, EPERM);
    send_to(JOB, 0, bob, JOB, 0, &sent[2]); /* says that it is of the other job */
    assert_int_equal(sent[2].errnum, EPERM);
    assert_int_equal(streams[0].responses + others[1].responses, 2);
    directory_disconnect(dirs[1], &bob);
    pump();
    assert_int_equal(streams[0].responses, 1); /* and hears nothing of them */
}

/* A server of another job is told of one that is gone if that one has had a message from it, or has
 * looked for its job on its broker. Others are not told. */
static void losses_cross_jobs(void **state)
{
    struct client dead = other_client(2), leaver = client(0);
    struct wire_out out = {0};
    (void)state;
    enter_both();
    send_to(JOB, 1, client(1), OTHER, 2, &sent[0]);
    directory_disconnect(dirs[2], &dead);
    pump();
    told_gone(&streams[1], OTHER, 2, PACKET_DIED);
    told_gone(&others[0], OTHER, 2, PACKET_DIED); /* of its own job, too */
    assert_int_equal(streams[2].responses, 1);
    wire_put_u64(&out, JOB);
    wire_put_u64(&out, OTHER);
    directory_found(dirs[0], &leaver, out.data, out.len, 1);
    directory_found(dirs[0], &leaver, out.data, out.len, BROKERS);
    wire_out_free(&out);
    leave_as(JOB, 0, leaver, NULL, 0);
    told_gone(&others[1], JOB, 0, PACKET_LEFT);
}

/* A broker of which a server says that it has reached it, and which is none of its job's. */
static void others_are_not_told(void **state)
{
    struct client far = {.uuid = "far", .uid = OWNER};
    const uint32_t named[] = {1, 2};
    struct wire_out out = registration(OTHER + 1, 0);
    struct registration reg;
    struct err err = {0};
    (void)state;
    enter_all();
    wire_set_u32(&out, 16, 2); /* nodes, on the first two brokers */
    assert_int_equal(directory_read(dirs[0], out.data, out.len - 4, &reg, &err), 0);
    wire_out_free(&out);
    assert_int_equal(directory_register(dirs[0], &far, &reg, &sent[0], &err), 0);
    leave_as(OTHER + 1, 0, far, named, 2);
    told_gone(&streams[1], OTHER + 1, 0, PACKET_LEFT);
    assert_int_equal(streams[2].responses, 1);
}

/* What waits for a server to take what it has, of however many that send. */
static void waiting_messages_are_bounded(void **state)
{
    enum { MANY = 1024 + BROKERS + 50 };
    struct request *requests = calloc(MANY, sizeof *requests);
    unsigned busy = 0, wait = 0;
    (void)state;
    enter_all();
    for (uint32_t i = 0; i < MANY; i++) {
        char uuid[16];
        snprintf(uuid, sizeof uuid, "x%u", i);
        send_to(OTHER, 0, (struct client){uuid, OWNER}, JOB, 1, &requests[i]);
        busy += requests[i].errnum == EBUSY;
        wait += requests[i].answers == 0;
    }
    assert_int_equal(wait, 1024 + BROKERS);
    assert_int_equal(busy, 50);
    took_as(JOB, 1, client(1), received(&streams[1]));
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(requests[i].answers, 1);
    free(requests);
}

/* As many bytes as that are not held in messages of many senders. */
static void waiting_bytes_are_bounded(void **state)
{
    enum { LEN = 1 << 20, MANY = 30 };
    static struct request requests[MANY]; /* those that wait are answered by teardown() */
    unsigned char *bytes = calloc(1, LEN);
    unsigned wait = 0;
    (void)state;
    enter_all();
    for (uint32_t i = 0; i < MANY; i++) {
        struct wire_out out = {0};
        char uuid[16];
        struct client sender = {uuid, OWNER};
        snprintf(uuid, sizeof uuid, "x%u", i);
        wire_put_u32(&out, PACKET_VERSION);
        wire_put_u64(&out, OTHER);
        wire_put_u32(&out, 0);
        wire_put_u32(&out, 0);
        wire_put_u64(&out, JOB);
        wire_put_u32(&out, 1);
        wire_put_raw(&out, bytes, LEN);
        directory_send(dirs[1], &sender, out.data, out.len, &requests[i]);
        wire_out_free(&out);
        wait += requests[i].answers == 0;
        assert_true(requests[i].answers == 0 || requests[i].errnum == EBUSY);
    }
    assert_int_equal(wait, 17); /* 16 MB, and a window of each node */
    free(bytes);
}

/* Where a server of @p job on broker @p rank is told to meet. */
static struct meeting meet(uint64_t job, uint32_t rank, struct client who)
{
    struct wire_out out = {0}, home = {0}, answer = {0};
    struct meeting found;
    struct wire_in in;
    wire_put_u64(&out, job);
    assert_int_equal(directory_meet(dirs[rank], &who, out.data, out.len, &home), 0);
    assert_int_equal(directory_home(dirs[0], home.data, home.len, &answer), 0);
    wire_in_init(&in, answer.data, answer.len);
    found.job = wire_get_u64(&in);
    found.node = wire_get_u32(&in);
    found.nnodes = wire_get_u32(&in);
    assert_true(wire_end(&in));
    wire_out_free(&out);
    wire_out_free(&home);
    wire_out_free(&answer);
    return found;
}

static void expect_home(struct meeting home, uint64_t job, uint32_t node)
{
    assert_int_equal(home.job, job);
    assert_int_equal(home.node, node);
    assert_int_equal(home.nnodes, BROKERS);
}

static void meet_at_the_first(void **state)
{
    struct client dead = client(1), bob = {.uuid = "b", .uid = OWNER + 1};
    (void)state;
    enter_both();
    expect_home(meet(JOB, 1, client(1)), JOB, 1);
    expect_home(meet(OTHER, 2, other_client(2)), JOB, 1);
    expect_home(meet(OTHER, 0, other_client(0)), JOB, 1);
    assert_int_equal(enter(OTHER + 1, 2, bob, &sent[0]), 0);
    expect_home(meet(OTHER + 1, 2, bob), OTHER + 1, 2); /* another user's home is another one */
    directory_disconnect(dirs[1], &dead);
    pump();
    expect_home(meet(OTHER, 2, other_client(2)), OTHER, 2);
    directory_offline(dirs[0], 2);
    expect_home(meet(JOB, 0, client(0)), JOB, 0);
    /* One who did not have to say so: its module was not loaded when it left. */
    directory_ended(dirs[2], OWNER, JOB);
    pump();
    expect_home(meet(OTHER, 1, other_client(1)), OTHER, 1);
}

static void only_servers_ask(void **state)
{
    struct client stranger = {.uuid = "s", .uid = OWNER}, me = client(0);
    struct wire_out out = {0}, home = {0};
    const unsigned char zeros[29] = {0};
    uint64_t job;
    (void)state;
    enter_all();
    wire_put_u64(&out, JOB);
    wire_put_u64(&out, OTHER);
    assert_int_equal(directory_find(dirs[0], &stranger, out.data, out.len, &job), ENOTCONN);
    assert_int_equal(directory_meet(dirs[0], &stranger, out.data, 8, &home), ENOTCONN);
    assert_int_equal(directory_find(dirs[0], &me, out.data, out.len, &job), 0);
    assert_int_equal(job, OTHER);
    for (size_t len = 0; len < out.len; len++)
        assert_int_equal(directory_find(dirs[0], &me, out.data, len, &job), EPROTO);
    assert_int_equal(directory_meet(dirs[0], &me, out.data, 7, &home), EPROTO);
    assert_int_equal(directory_meet(dirs[0], &me, out.data, out.len, &home), EPROTO); /* too long */
    assert_int_equal(home.len, 0);
    for (size_t len = 0; len <= sizeof zeros; len++)
        assert_int_equal(directory_home(dirs[0], zeros, len, &home), EPROTO);
    wire_out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(relays_between_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(two_users_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_cross_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_messages_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_bytes_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(meet_at_the_first, setup, teardown),
        cmocka_unit_test_setup_teardown(only_servers_ask, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
