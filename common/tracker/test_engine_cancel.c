/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of constructs that the PMIx library ends by itself, mostly since a process is lost.
 */
#include "common/tracker/recovery/recovery.h"
#include "common/tracker/test_kit.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>

enum { N = 7 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

/* PMIx's library has ended a construct here, before or after others have called for it: all get
 * one status at once, and the next one is not touched. */
static void a_construct_that_is_cancelled(void **state)
{
    (void)state;
    for (uint32_t where = 0; where < N; where++)
        for (int before = 0; before < 2; before++) {
            struct kit *kit = kit_new(&seven);
            struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
            uint32_t late = (where + 1) % N;
            if (before)
                engine_cancel(loopback_engine(kit->net, where), "cancel", false);
            for (uint32_t slot = 0; slot < N; slot++)
                if (slot != where && slot != late)
                    kit_call(kit, op, slot, (struct kit_ask){0});
            loopback_run(kit->net, 300);
            if (!before) {
                assert_int_equal(kit->calls->answers, 0);
                engine_cancel(loopback_engine(kit->net, where), "cancel", false);
            }
            loopback_run(kit->net, before ? 11000 : 300); /* two questions at most, or none */
            for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
                assert_int_equal(call->answers, 1);
                assert_int_equal(call->status, LOOPBACK_TIMEOUT);
            }
            op->made[late]++;
            op->made[where]++; /* the library's */
            struct kit_call *first = kit->calls;
            kit_call_all(kit, op, (struct kit_ask){0});
            loopback_run(kit->net, 1000);
            for (const struct kit_call *call = kit->calls; call != first; call = call->next) {
                assert_int_equal(call->answers, 1);
                assert_int_equal(call->status, 0);
            }
            loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
            assert_int_equal(kit_trackers(kit), 0);
            kit_end(kit);
        }
}

/* The second try comes before anybody else has called for the first: it stands behind it. */
static void a_second_try_after_a_cancel(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
    (void)state;
    engine_cancel(loopback_engine(kit->net, 2), "another", false);
    engine_cancel(loopback_engine(kit->net, 2), "cancel", false);
    loopback_run(kit->net, 300);
    op->made[2]++; /* the library's */
    struct kit_call *again = kit_call(kit, op, 2, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != 2) {
            op->made[slot]++;
            kit_call(kit, op, slot, (struct kit_ask){0});
        }
    loopback_run(kit->net, 1000);
    assert_int_equal(again->answers, 1);
    assert_int_equal(again->status, 0);
    kit_check_agreement(kit);
    loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
    assert_true(TAILQ_EMPTY(&loopback_engine(kit->net, 2)->recovery->cancelled));
    kit_end(kit);
}

/* It is cancelled while the one before is still under way, and the next one is called for before
 * that ends: it stands between the two. */
static void a_cancel_between_two_calls(void **state)
{
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) { /* whether the one before is cancelled, too */
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
        if (cancels) {
            engine_cancel(loopback_engine(kit->net, 2), "cancel", false);
            op->made[2]++;
        } else {
            kit_call(kit, op, 2, (struct kit_ask){0});
        }
        engine_cancel(loopback_engine(kit->net, 2), "cancel", false);
        op->made[2]++; /* the library's */
        struct kit_call *last = kit_call(kit, op, 2, (struct kit_ask){0});
        for (int i = 0; i < 3; i++) {
            bool succeeds = i == 2 || (i == 0 && !cancels);
            for (uint32_t slot = 0; slot < N; slot++)
                if (slot != 2 && succeeds)
                    kit_call(kit, op, slot, (struct kit_ask){0});
                else if (slot != 2)
                    op->made[slot]++; /* it has failed already */
            loopback_run(kit->net, 1000);
        }
        for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
        }
        assert_int_equal(last->instance, 2);
        kit_check_agreement(kit);
        kit_end(kit);
    }
}

/* What is cancelled had failed already when libpmix says so; meanwhile the others try again with
 * less, and that is not touched. */
static void a_cancel_of_what_has_failed(void **state)
{
    const uint32_t less[] = {0, 2, 3, 4, 5, 6};
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
    struct kit_op *again = kit_op(kit, COLL_CONSTRUCT, "cancel", less, N - 1);
    (void)state;
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != 2)
            kit_call(kit, op, slot, (struct kit_ask){.status = slot == 1 ? -88 : 0});
    loopback_run(kit->net, 1000);
    for (uint32_t slot = 0; slot < again->n; slot++)
        if (slot != 1)
            kit_call(kit, again, slot, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    engine_cancel(loopback_engine(kit->net, 2), "cancel", false);
    kit_call(kit, again, 1, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, call->op == op ? -88 : 0);
    }
    kit_end(kit);
}

/* Somebody here has ended, and the second try is with the others: it is not touched. */
static void a_cancel_for_a_loss(void **state)
{
    const uint32_t less[] = {0, 1, 2};
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
    struct kit_op *again = kit_op(kit, COLL_CONSTRUCT, "cancel", less, 3);
    (void)state;
    engine_cancel(loopback_engine(kit->net, 2), "cancel", true);
    kit_call_all(kit, again, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
        assert_int_equal(call->status, 0);
    loopback_local_status(kit->net, 2, -88);
    struct kit_call *waits = kit_call(kit, op, 0, (struct kit_ask){0});
    loopback_run(kit->net, 11000);
    assert_int_equal(waits->answers, 1);
    assert_int_equal(waits->status, -88);
    kit_end(kit);
}

/* A process here that has waited too long is told at once, and may have ended when the others' call
 * comes. Its end is not the reason why they fail. */
static void a_cancel_whose_caller_leaves(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "cancel", NULL, N);
    (void)state;
    engine_cancel(loopback_engine(kit->net, 2), "cancel", false);
    loopback_local_status(kit->net, 2, -88);
    struct kit_call *waits = kit_call(kit, op, 0, (struct kit_ask){0});
    loopback_run(kit->net, 11000);
    assert_int_equal(waits->answers, 1);
    assert_int_equal(waits->status, LOOPBACK_TIMEOUT);
    kit_end(kit);
}

struct said {
    uint32_t messages;
    unsigned char type;
};

static void note_said(void *arg, struct wire_out *frame)
{
    struct said *said = arg;
    said->messages++;
    said->type = frame->data[0];
}

/* One message for all, whatever the size of the step: it goes along the tree of all servers. */
static void a_cancel_is_said_once(void **state)
{
    struct said said = {0};
    struct timers timers = {0};
    const struct engine_env env = {
        .arg = &said, .nnodes = 1000, .arity = 16, .timers = &timers, .say = note_said};
    struct engine *engine = engine_new(&env);
    (void)state;
    assert_non_null(engine);
    engine_cancel(engine, "cancel", false);
    assert_int_equal(said.messages, 1);
    assert_int_equal(said.type, FRAME_CANCEL);
    engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_construct_that_is_cancelled),
        cmocka_unit_test(a_second_try_after_a_cancel),
        cmocka_unit_test(a_cancel_between_two_calls),
        cmocka_unit_test(a_cancel_of_what_has_failed),
        cmocka_unit_test(a_cancel_for_a_loss),
        cmocka_unit_test(a_cancel_whose_caller_leaves),
        cmocka_unit_test(a_cancel_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
