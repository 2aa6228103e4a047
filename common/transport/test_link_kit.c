/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of the link's tests. */
#include "common/transport/test_link_kit.h"

#include "common/util/log.h"

#include <stdlib.h>

struct ends ends;

void keep(void *arg, uint32_t node)
{
    struct link *link = *(struct link **)arg;
    struct wire_out out = {0};
    uint64_t ticket;
    assert_int_equal(node, 1);
    while ((ticket = link_batch(link, node, 0, &out)) != 0) {
        ends.bytes[ends.nsent] = wire_out_take(&out, &ends.len[ends.nsent]);
        ends.nsent++;
        link_arrived(link, node, ticket);
    }
}

void take(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
          struct shared_bytes *whole)
{
    struct wire_in in;
    (void)arg, (void)whole;
    assert_int_equal(from, 0);
    assert_true(type == FRAME_ASK || type == FRAME_OUTSIDE);
    wire_in_init(&in, body, len);
    ends.got[ends.ngot++] = wire_get_u32(&in);
    assert_true(wire_end(&in));
}

static void silent(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

int open_ends(void **state)
{
    const struct link_env sender = {
        .arg = &ends.sender, .nnodes = 3, .step = STEP, .native = keep, .deliver = take};
    const struct link_env receiver = {
        .self = 1, .nnodes = 3, .step = STEP, .native = keep, .deliver = take};
    (void)state;
    memset(&ends, 0, sizeof ends);
    ends.sender = link_new(&sender);
    ends.receiver = link_new(&receiver);
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
    return ends.sender == NULL || ends.receiver == NULL;
}

int close_ends(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ends.nsent; i++)
        free(ends.bytes[i]);
    link_free(ends.sender);
    link_free(ends.receiver);
    return 0;
}

void send_frames(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, FRAME_ASK);
        wire_put_u32(&out, i);
        link_send(ends.sender, 1, &out);
        assert_null(out.data); /* the bytes were taken */
    }
    assert_int_equal(ends.nsent, n);
}

void receive(uint32_t i)
{
    link_receive(ends.receiver, ends.bytes[i], ends.len[i], NULL, false);
}

void assert_got(uint32_t first, uint32_t n)
{
    assert_int_equal(ends.ngot, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ends.got[i], first + i);
}
