/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what a process hears that has spawned others which wait for a debugger.
 */
#include "common/notify/debug.h"
#include "common/notify/event.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <string.h>

enum { BASE = 10, NODES = 3 };

static struct server server;
static const struct nspace child = {.base = BASE, .nnodes = NODES};
static const pmix_proc_t spawner = {.nspace = "job.1", .rank = 0};
static bool ended; /* the child's namespace is not known any more */
static bool lost[NODES];
static uint32_t asked; /* the server that is asked */
static unsigned nasked, ngiven;
static ask_done_fn *on_answer;
static void *answer_arg;

const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    (void)own;
    return !ended && strcmp(name, "child") == 0 ? &child : NULL;
}

bool asks_are_lost(const struct asks *asks, uint32_t node)
{
    (void)asks;
    return lost[node - BASE];
}

void asks_send(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body, size_t len,
               uint32_t timeout, ask_done_fn *done, void *arg)
{
    (void)asks, (void)body, (void)len, (void)timeout;
    assert_int_equal(topic, ASK_READY);
    nasked++;
    asked = node;
    on_answer = done;
    answer_arg = arg;
}

void notification_give(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                       pmix_info_t *info, size_t n)
{
    (void)source, (void)range;
    assert_int_equal(code, PMIX_READY_FOR_DEBUG);
    ngiven++;
    PMIX_INFO_FREE(info, n);
}

/* Not called. */
bool stop_target(const struct boot *boot, char *nspace, uint32_t *rank)
{
    (void)boot, (void)nspace, (void)rank;
    return false;
}

static int begin(void **state)
{
    (void)state;
    memset(lost, 0, sizeof lost);
    ended = false;
    nasked = ngiven = 0;
    debug_await(&server, &spawner, "child");
    return nasked != 1 || asked != BASE;
}

static void all_wait(void)
{
    struct wire_out out = {0};
    wire_put_u32(&out, 2);
    wire_put_str(&out, "pmix-init");
    on_answer(answer_arg, 0, out.data, out.len);
    wire_out_free(&out);
}

static void they_are_ready(void **state)
{
    (void)state;
    all_wait();
    assert_int_equal(nasked, 1);
    assert_int_equal(ngiven, 1);
}

/* The next server that lives is asked. */
static void the_server_that_is_asked_is_lost(void **state)
{
    (void)state;
    lost[1] = true;
    on_answer(answer_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    assert_int_equal(nasked, 2);
    assert_int_equal(asked, BASE + 2);
    all_wait();
    assert_int_equal(ngiven, 1);
}

static void all_are_lost(void **state)
{
    (void)state;
    for (uint32_t node = BASE; node < BASE + NODES; node++) {
        assert_int_equal(asked, node);
        on_answer(answer_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    }
    assert_int_equal(nasked, NODES);
    assert_int_equal(ngiven, 0);
}

static void they_have_ended(void **state)
{
    (void)state;
    ended = true;
    on_answer(answer_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    assert_int_equal(nasked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(they_are_ready, begin),
        cmocka_unit_test_setup(the_server_that_is_asked_is_lost, begin),
        cmocka_unit_test_setup(all_are_lost, begin),
        cmocka_unit_test_setup(they_have_ended, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
