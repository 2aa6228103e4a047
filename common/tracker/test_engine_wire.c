/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what malformed frames do to the engine: nothing.
 */
#include "common/tracker/recovery/recovery.h"
#include "common/tracker/test_kit.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 4 + 8 + 4 + 8 };

static const struct loopback_conf three = {.nnodes = 3, .arity = 2, .seed = 1};

/* The body of a good frame of each kind, and who sent it to whom. */
struct good {
    uint32_t from, to;
    unsigned char body[4096];
    size_t len;
};

static struct good contrib, release;

static bool keep(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    struct good *good = bytes[HEADER] == FRAME_CONTRIB ? &contrib : &release;
    (void)arg;
    good->from = from;
    good->to = to;
    good->len = len - HEADER - 1;
    memcpy(good->body, bytes + HEADER + 1, good->len);
    return true;
}

static int record(void **state)
{
    struct loopback_conf conf = three;
    (void)state;
    conf.filter = keep;
    struct kit *kit = kit_new(&conf);
    kit_call_all(kit, kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3), (struct kit_ask){0});
    loopback_run(kit->net, 100);
    kit_assert_all(kit, 0);
    kit_end(kit);
    return 0;
}

/* Feeds bytes from a block of their exact size, so that a read past their end is seen. */
static void feed(struct kit *kit, const struct good *good, const void *body, size_t len,
                 uint32_t from)
{
    struct engine *engine = loopback_engine(kit->net, good->to);
    void *exact = malloc(len > 0 ? len : 1);
    assert_non_null(exact);
    memcpy(exact, body, len);
    if (good == &contrib)
        engine_take(engine, from, FRAME_CONTRIB, exact, len);
    else
        engine_take(engine, from, FRAME_RELEASE, exact, len);
    free(exact);
}

static void a_truncated_frame_counts_for_nothing(void **state)
{
    const struct good *frames[] = {&contrib, &release};
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (size_t len = 0; len < frames[kind]->len; len++) {
            const struct good *good = frames[kind];
            struct kit *kit = kit_new(&three);
            struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3);
            feed(kit, good, good->body, len, good->from);
            assert_int_equal(loopback_engine(kit->net, good->to)->count, 0);
            kit_call(kit, op, good->to, (struct kit_ask){0});
            feed(kit, good, good->body, len, good->from);
            assert_int_equal(kit->calls->answers, 0);
            /* the operation goes on as if nothing had come */
            for (uint32_t slot = 0; slot < 3; slot++)
                if (slot != good->to)
                    kit_call(kit, op, slot, (struct kit_ask){0});
            loopback_run(kit->net, 100);
            kit_assert_all(kit, 0);
            assert_int_equal(kit_trackers(kit), 0);
            kit_end(kit);
        }
}

static void a_frame_with_more_behind_it_counts_for_nothing(void **state)
{
    const struct good *frames[] = {&contrib, &release};
    unsigned char body[4097];
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct kit *kit = kit_new(&three);
        memcpy(body, frames[kind]->body, frames[kind]->len);
        body[frames[kind]->len] = 0;
        feed(kit, frames[kind], body, frames[kind]->len + 1, frames[kind]->from);
        assert_int_equal(kit->log[0] != '\0', kind == 0); /* nobody waits for the release */
        assert_int_equal(loopback_engine(kit->net, frames[kind]->to)->count, 0);
        kit_end(kit);
    }
}

/* One child's contribution, however bent, is never that of both children. */
static void a_bent_contribution_completes_nothing(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * contrib.len; bit++) {
        unsigned char body[sizeof contrib.body];
        struct kit *kit = kit_new(&three);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3);
        memcpy(body, contrib.body, contrib.len);
        body[bit / 8] ^= (unsigned char)(1 << bit % 8);
        kit_call(kit, op, contrib.to, (struct kit_ask){0});
        feed(kit, &contrib, body, contrib.len, contrib.from);
        feed(kit, &contrib, contrib.body, contrib.len, contrib.from);
        loopback_run(kit->net, 1000);
        assert_true(kit->calls->answers == 0 || kit->calls->status != 0);
        assert_string_equal(kit->fault, "");
        kit_end(kit);
    }
}

/* A call that was not made is never answered, and one that was is answered once. */
static void a_bent_release_answers_no_call_twice(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * release.len; bit++) {
        unsigned char body[sizeof release.body];
        struct kit *kit = kit_new(&three);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3);
        memcpy(body, release.body, release.len);
        body[bit / 8] ^= (unsigned char)(1 << bit % 8);
        feed(kit, &release, body, release.len, release.from);
        kit_call(kit, op, release.to, (struct kit_ask){0});
        feed(kit, &release, body, release.len, release.from);
        feed(kit, &release, body, release.len, release.from);
        feed(kit, &release, release.body, release.len, release.from);
        assert_int_equal(kit->calls->answers, 1);
        kit_free(kit);
    }
}

static void frames_of_those_who_have_no_say(void **state)
{
    const struct good *frames[] = {&contrib, &release};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const struct good *good = frames[kind];
        struct kit *kit = kit_new(&three);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3);
        kit_call(kit, op, good->to, (struct kit_ask){0});
        feed(kit, good, good->body, good->len, good->to); /* itself */
        feed(kit, good, good->body, good->len, 3);        /* nobody */
        if (kind == 1)                                    /* the other child */
            feed(kit, good, good->body, good->len, 3 - good->to - good->from);
        assert_int_equal(kit->calls->answers, 0);
        kit_free(kit);
    }
}

/* A release whose entries are not of servers, each once and in order, is no result. */
static void entries_that_make_no_sense(void **state)
{
    static const uint32_t slots[][2] = {{0, 0}, {1, 0}, {0, 3}};
    struct kit *kit = kit_new(&three);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "wire", NULL, 3);
    (void)state;
    kit_call(kit, op, release.to, (struct kit_ask){0});
    for (uint32_t variant = 0; variant < 4; variant++) {
        struct wire_out out = {0};
        struct engine_entry entries[2] = {{.data = "a", .len = 1}, {.data = "b", .len = 1}};
        struct tracker_release bent = {.generation = variant < 3,
                                       .result = {.nentries = 2, .entries = entries}};
        for (int i = 0; i < 2 && variant < 3; i++)
            entries[i].slot = slots[variant][i];
        entries[1].slot = variant < 3 ? entries[1].slot : 1; /* without a generation */
        const struct shared_bytes *bytes = release_bytes(&bent, op->sig, op->siglen);
        wire_put_u64(&out, 0);
        wire_put_raw(&out, bytes->data, bytes->len);
        feed(kit, &release, out.data, out.len, release.from);
        wire_out_free(&out);
        release_end(&bent);
        assert_int_equal(kit->calls->answers, 0);
    }
    kit_end(kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_truncated_frame_counts_for_nothing),
        cmocka_unit_test(a_frame_with_more_behind_it_counts_for_nothing),
        cmocka_unit_test(a_bent_contribution_completes_nothing),
        cmocka_unit_test(a_bent_release_answers_no_call_twice),
        cmocka_unit_test(frames_of_those_who_have_no_say),
        cmocka_unit_test(entries_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, record, NULL);
}
