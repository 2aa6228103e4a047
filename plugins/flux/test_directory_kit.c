/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Stands in for Flux: the functions that a directory calls to respond, to send and to set an alarm
 * note what they were given.
 */
#include "plugins/flux/test_directory_kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event {
    struct event *next;
    uint32_t to;
    void *data;
    size_t len;
};

struct directory *dirs[BROKERS];
static struct event *events, **events_end = &events;
struct request streams[BROKERS], others[BROKERS], sent[6];
int respond_rc;
int64_t clock_ms;
unsigned alarm_ms;
int alarm_rc;

static int64_t now(void *arg)
{
    (void)arg;
    return clock_ms;
}

static int respond(void *arg, const void *request, const void *data, size_t len)
{
    struct request *r = (struct request *)request;
    (void)arg;
    if (respond_rc != 0)
        return respond_rc;
    r->len = len < sizeof r->last ? len : sizeof r->last; /* as much as the tests look at */
    memcpy(r->last, data, r->len);
    r->responses++;
    return 0;
}

static void answer(void *arg, const void *request, int errnum, const char *text)
{
    struct request *r = (struct request *)request;
    (void)arg;
    assert_int_equal(r->answers + r->drops, 0);
    r->answers++;
    r->errnum = errnum;
    snprintf(r->why, sizeof r->why, "%s", errnum != 0 && text != NULL ? text : "");
    if (errnum == 0 && text != NULL)
        r->text = strdup(text);
}

static void drop(void *arg, const void *request)
{
    struct request *r = (struct request *)request;
    (void)arg;
    assert_int_equal(r->answers + r->drops, 0);
    r->drops++;
}

static void tell(void *arg, uint32_t rank, const void *data, size_t len)
{
    struct event *e = calloc(1, sizeof *e);
    (void)arg;
    assert_non_null(e);
    *e = (struct event){.to = rank, .len = len};
    e->data = malloc(len);
    memcpy(e->data, data, len);
    *events_end = e;
    events_end = &e->next;
}

static int set_alarm(void *arg, unsigned ms)
{
    (void)arg;
    alarm_ms = ms;
    return alarm_rc;
}

void pump(void)
{
    while (events != NULL) {
        struct event *e = events;
        events = e->next;
        if (events == NULL)
            events_end = &events;
        directory_gone(dirs[e->to], NULL, e->data, e->len);
        free(e->data);
        free(e);
    }
}

struct directory *open_broker(uint32_t rank)
{
    struct directory_env env = {
        .arg = (void *)(uintptr_t)rank,
        .rank = rank,
        .size = BROKERS,
        .now = now,
        .respond = respond,
        .answer = answer,
        .drop = drop,
        .tell = tell,
        .alarm = set_alarm,
    };
    return directory_new(&env);
}

int setup(void **state)
{
    (void)state;
    memset(streams, 0, sizeof streams);
    memset(others, 0, sizeof others);
    memset(sent, 0, sizeof sent);
    respond_rc = 0;
    alarm_ms = 0;
    alarm_rc = 0;
    clock_ms = 1000;
    for (uint32_t rank = 0; rank < BROKERS; rank++)
        dirs[rank] = open_broker(rank);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < BROKERS; rank++) {
        pump();
        directory_free(dirs[rank], ENOSYS, "unloaded");
        dirs[rank] = NULL;
    }
    return 0;
}

static const char *const uuids[] = {"u0", "u1", "u2", "v0", "v1", "v2"};

struct client client(uint32_t node)
{
    return (struct client){.uuid = uuids[node], .uid = OWNER};
}

struct client other_client(uint32_t node)
{
    return (struct client){.uuid = uuids[BROKERS + node], .uid = OWNER};
}

struct wire_out registration(uint64_t job, uint32_t node)
{
    struct wire_out out = {0};
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, job);
    wire_put_u32(&out, node);
    wire_put_u32(&out, BROKERS);
    for (uint32_t rank = 0; rank < BROKERS; rank++)
        wire_put_u32(&out, rank);
    return out;
}

int enter(uint64_t job, uint32_t node, struct client who, struct request *stream)
{
    struct wire_out out = registration(job, node);
    struct registration reg;
    struct err err = {0};
    int rc = directory_read(dirs[node], out.data, out.len, &reg, &err);
    wire_out_free(&out);
    assert_int_equal(rc, 0);
    rc = directory_register(dirs[node], &who, &reg, stream, &err);
    if (rc != 0)
        free(reg.brokers);
    return rc;
}

void enter_all(void)
{
    for (uint32_t node = 0; node < BROKERS; node++) {
        assert_int_equal(enter(JOB, node, client(node), &streams[node]), 0);
        assert_int_equal(streams[node].responses, 1);
        assert_int_equal(streams[node].last[0], PACKET_WELCOME);
    }
}

void send_to(uint64_t job, uint32_t rank, struct client who, uint64_t to_job, uint32_t to,
             struct request *request)
{
    struct wire_out out = {0};
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, job);
    wire_put_u32(&out, rank); /* its node */
    wire_put_u32(&out, rank);
    wire_put_u64(&out, to_job);
    wire_put_u32(&out, to);
    wire_put_raw(&out, "hello", 5);
    directory_send(dirs[to < BROKERS ? to : 0], &who, out.data, out.len, request);
    wire_out_free(&out);
    pump();
}

void send_as(uint32_t rank, struct client who, uint32_t to, struct request *request)
{
    send_to(JOB, rank, who, JOB, to, request);
}

uint64_t received(const struct request *stream)
{
    struct wire_in in;
    size_t len;
    wire_in_init(&in, stream->last, stream->len);
    assert_int_equal(wire_get_u8(&in), PACKET_BYTES);
    uint64_t ticket = wire_get_u64(&in);
    const void *data = packet_rest(&in, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(data, "hello", 5);
    return ticket;
}

void took_as(uint64_t job, uint32_t rank, struct client who, uint64_t ticket)
{
    struct wire_out out = {0};
    wire_put_u64(&out, job);
    wire_put_u64(&out, ticket);
    directory_took(dirs[rank], &who, out.data, out.len);
    wire_out_free(&out);
    pump();
}

void leave_as(uint64_t job, uint32_t rank, struct client who, const uint32_t reached[], uint32_t n)
{
    struct wire_out out = {0};
    wire_put_u64(&out, job);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u32(&out, reached[i]);
    directory_leave(dirs[rank], &who, out.data, out.len);
    wire_out_free(&out);
    pump();
}

void told_gone(const struct request *stream, uint64_t job, uint32_t node, enum packet_loss loss)
{
    struct wire_in in;
    wire_in_init(&in, stream->last, stream->len);
    assert_int_equal(wire_get_u8(&in), PACKET_GONE);
    assert_int_equal(wire_get_u64(&in), job);
    assert_int_equal(wire_get_u32(&in), node);
    assert_int_equal(wire_get_u8(&in), loss);
    assert_true(wire_end(&in));
}
