/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of PMIx_IOF_push: which servers are asked in which order, what is refused, and what the end
 * of the process that has spawned means.
 */
#include "common/server/spawned/inputs.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <pmix_server.h>
#include <string.h>

enum { NOTHING = 77, BASE = 10, NODES = 2, TASKS = 4, ASKED_MAX = 8 };

static struct server server;
static struct boot boot;
static struct nspace child = {.boot = &boot, .base = BASE, .nnodes = NODES};
static const pmix_proc_t task = {.nspace = "job.1", .rank = 0};

struct server *upcall_server(void)
{
    return &server;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    run(item);
    return PMIX_SUCCESS;
}

static unsigned ntold; /* refusals that the log has */

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    ntold += level == LOG_LEVEL_INFO && strncmp(text, "PMIx_IOF_push: ", 15) == 0;
}

/* Two processes on each of two nodes. */
const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    (void)own;
    return strcmp(name, "child") == 0 ? &child : NULL;
}

int nspace_node(const struct nspace *own, const char *name, uint32_t rank, uint32_t *node)
{
    (void)own, (void)name;
    *node = BASE + rank / 2;
    return rank < TASKS ? 0 : -1;
}

/* ---- the servers that are asked ---- */

static struct asked {
    uint32_t node, rank;
    size_t len;
    char first;
    ask_done_fn *done;
    void *arg;
} asked[ASKED_MAX]; /* those that wait */
static unsigned nasked;
static int32_t lost; /* what an ask is answered at once; 0: later */

void asks_send(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body, size_t len,
               uint32_t timeout, ask_done_fn *done, void *arg)
{
    struct wire_in in;
    size_t n;
    (void)asks, (void)timeout;
    assert_int_equal(topic, ASK_INPUT);
    if (lost != 0) {
        done(arg, lost, NULL, 0);
        return;
    }
    wire_in_init(&in, body, len);
    uint32_t rank = wire_get_u32(&in);
    const char *data = wire_get_block(&in, &n);
    assert_true(wire_end(&in) && n <= INPUTS_PIECE && nasked < ASKED_MAX);
    asked[nasked++] = (struct asked){.node = node,
                                     .rank = rank,
                                     .len = n,
                                     .first = n > 0 ? *data : '0',
                                     .done = done,
                                     .arg = arg};
}

/* The first question that waits is this one, and is answered. */
static void taken(uint32_t node, uint32_t rank, size_t len, int32_t status)
{
    assert_true(nasked > 0);
    const struct asked a = asked[0];
    assert_int_equal(a.node, node);
    assert_int_equal(a.rank, rank);
    assert_int_equal(a.len, len);
    memmove(asked, asked + 1, --nasked * sizeof *asked);
    a.done(a.arg, status, NULL, 0);
}

/* ---- the calls ---- */

static int last; /* the last answer's status, or NOTHING */
static unsigned answers;

static void on_done(pmix_status_t status, void *arg)
{
    (void)arg;
    last = status;
    answers++;
}

static char much[PUSH_BYTES];

/* @return the answer, NOTHING while there is none */
static int push(uint32_t rank, size_t len)
{
    const pmix_byte_object_t bytes = {.bytes = much, .size = len};
    pmix_proc_t target = {.nspace = "child", .rank = rank};
    last = NOTHING;
    pmix_status_t rc = upcall_push_stdin(&task, &target, 1, NULL, 0, &bytes, on_done, NULL);
    return rc == PMIX_SUCCESS ? last : rc;
}

static struct inlet *spawn(uint32_t rank)
{
    struct inlet *inlet = inlet_new(&server, &task, rank);
    inlet_open(inlet, "child");
    return inlet;
}

static int setup(void **state)
{
    (void)state;
    server = (struct server){0};
    nasked = answers = 0;
    lost = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pushes_free(&server);
    return 0;
}

/* ---- tests ---- */

static void test_in_order(void **state)
{
    (void)state;
    spawn(3);
    assert_int_equal(push(3, INPUTS_PIECE + 1), NOTHING);
    assert_int_equal(push(PMIX_RANK_WILDCARD, 5), NOTHING);
    assert_int_equal(push(3, 0), NOTHING);
    assert_int_equal(nasked, 1);
    taken(BASE + 1, 3, INPUTS_PIECE, 0);
    assert_int_equal(answers, 0);
    taken(BASE + 1, 3, 1, 0);
    assert_int_equal(answers, 1);
    taken(BASE + 1, 3, 5, 0);
    taken(BASE + 1, 3, 0, 0);
    assert_int_equal(answers, 3);
    assert_int_equal(last, PMIX_SUCCESS);
    assert_int_equal(nasked, 0);
}

/* Data and end of file in one. */
static void test_complete(void **state)
{
    const pmix_byte_object_t bytes = {.bytes = much, .size = 5};
    pmix_proc_t target = {.nspace = "child", .rank = 0};
    pmix_info_t complete = {.key = PMIX_IOF_COMPLETE,
                            .value = {.type = PMIX_BOOL, .data.flag = true}};
    (void)state;
    spawn(0);
    assert_int_equal(upcall_push_stdin(&task, &target, 1, &complete, 1, &bytes, on_done, NULL),
                     PMIX_SUCCESS);
    taken(BASE, 0, 5, 0);
    assert_int_equal(answers, 0);
    taken(BASE, 0, 0, 0);
    assert_int_equal(answers, 1);
}

static void test_all(void **state)
{
    (void)state;
    spawn(PMIX_RANK_WILDCARD);
    push(PMIX_RANK_WILDCARD, 5);
    push(2, 6);
    assert_int_equal(nasked, NODES);
    taken(BASE, INPUTS_ALL, 5, 0);
    assert_int_equal(answers, 0);
    taken(BASE + 1, INPUTS_ALL, 5, 0);
    assert_int_equal(answers, 1);
    taken(BASE + 1, 2, 6, PMIX_ERR_NOT_AVAILABLE); /* that one has ended; others have not */
    assert_int_equal(last, PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(push(1, 7), NOTHING);
    taken(BASE, 1, 7, 0);
}

static void test_refused(void **state)
{
    pmix_proc_t targets[] = {{.nspace = "child", .rank = 3}, {.nspace = "other", .rank = 3}};
    pmix_proc_t many[PUSH_TARGETS_MAX + 1] = {{.nspace = "child"}};
    pmix_info_t required = {.key = PMIX_IOF_CACHE_SIZE, .flags = PMIX_INFO_REQD};
    const pmix_byte_object_t bytes = {.bytes = much, .size = 1};
    pmix_proc_t nameless = {.nspace = "", .rank = PMIX_RANK_WILDCARD};
    unsigned before = ntold;
    (void)state;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    assert_int_equal(push(3, 5), PMIX_ERR_NOT_SUPPORTED); /* nobody has spawned it */
    struct inlet *inlet = inlet_new(&server, &task, 3);
    assert_int_equal(push(3, 5), PMIX_ERR_NOT_SUPPORTED); /* not yet */
    assert_int_equal(upcall_push_stdin(&task, &nameless, 1, NULL, 0, &bytes, on_done, NULL),
                     PMIX_SUCCESS);
    assert_int_equal(last, PMIX_ERR_NOT_SUPPORTED);
    inlet_open(inlet, "child");
    assert_int_equal(push(2, 5), PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(push(TASKS, 5), PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(upcall_push_stdin(&task, targets, 2, NULL, 0, &bytes, on_done, NULL),
                     PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(upcall_push_stdin(&task, targets, 1, &required, 1, &bytes, on_done, NULL),
                     PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(upcall_push_stdin(&task, targets, 0, NULL, 0, &bytes, on_done, NULL),
                     PMIX_ERR_BAD_PARAM);
    assert_int_equal(ntold, before + 8);
    assert_int_equal(
        upcall_push_stdin(&task, many, PUSH_TARGETS_MAX + 1, NULL, 0, &bytes, on_done, NULL),
        PMIX_ERR_BAD_PARAM);
    assert_int_equal(ntold, before + 9);
    assert_int_equal(nasked, 0);
    assert_int_equal(push(3, 5), NOTHING); /* nothing is cut by all that */
    taken(BASE + 1, 3, 5, 0);
}

/* What waits is bounded. After a hole nothing follows. */
static void test_too_much(void **state)
{
    unsigned n = 0;
    (void)state;
    spawn(0);
    while (push(0, INPUTS_PIECE) == NOTHING)
        n++;
    assert_int_equal(last, PMIX_ERR_OUT_OF_RESOURCE);
    assert_true(n > PUSH_BYTES / INPUTS_PIECE / 2 && n <= PUSH_BYTES / INPUTS_PIECE);
    for (unsigned i = 0; i < n; i++)
        taken(BASE, 0, INPUTS_PIECE, 0);
    assert_int_equal(nasked, 0);
    assert_int_equal(push(0, 1), PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(push(0, 0), PMIX_ERR_OUT_OF_RESOURCE);
    pushes_parent_gone(&server, task.nspace, task.rank);
    taken(BASE, 0, 0, 0);
    assert_true(LIST_EMPTY(&server.inlets));
}

/* One push that is too large is a hole like any other. */
static void test_too_large(void **state)
{
    (void)state;
    spawn(0);
    assert_int_equal(push(0, 5), NOTHING);
    assert_int_equal(push(0, PUSH_BYTES + 1), PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(push(0, 1), PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(push(0, 0), PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(push(0, SIZE_MAX), PMIX_ERR_OUT_OF_RESOURCE);
    taken(BASE, 0, 5, 0);
    assert_int_equal(nasked, 0);
}

/* A process that has ended takes nothing from the others. */
static void test_one_of_several(void **state)
{
    const pmix_byte_object_t bytes = {.bytes = much, .size = INPUTS_PIECE + 1};
    pmix_proc_t targets[3];
    pmix_info_t complete = {.key = PMIX_IOF_COMPLETE,
                            .value = {.type = PMIX_BOOL, .data.flag = true}};
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        targets[i] = (pmix_proc_t){.nspace = "child", .rank = i};
    spawn(PMIX_RANK_WILDCARD);
    assert_int_equal(upcall_push_stdin(&task, targets, 3, &complete, 1, &bytes, on_done, NULL),
                     PMIX_SUCCESS);
    taken(BASE, 0, INPUTS_PIECE, PMIX_ERR_NOT_AVAILABLE);
    const size_t lens[] = {INPUTS_PIECE, 1, 0}; /* the last one: the end of file */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(answers, 0);
        taken(BASE + 1, 2, lens[i], 0);
        taken(BASE, 1, lens[i], 0);
    }
    assert_int_equal(answers, 1);
    assert_int_equal(last, PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(nasked, 0);
    assert_int_equal(upcall_push_stdin(&task, targets, 2, NULL, 0, &bytes, on_done, NULL),
                     PMIX_SUCCESS);
    taken(BASE, 0, INPUTS_PIECE, PMIX_ERR_NOT_AVAILABLE);
    taken(BASE, 1, INPUTS_PIECE, PMIX_ERR_TIMEOUT); /* the worse one is answered */
    assert_int_equal(last, PMIX_ERR_TIMEOUT);
    assert_int_equal(push(1, 1), PMIX_ERR_TIMEOUT);
}

/* A server stays until what was pushed has arrived. */
static void test_waits(void **state)
{
    (void)state;
    spawn(1);
    assert_false(pushes_wait(&server, true));
    push(1, 5);
    pushes_parent_gone(&server, task.nspace, task.rank);
    assert_true(pushes_wait(&server, false));
    taken(BASE, 1, 5, 0);
    assert_true(pushes_wait(&server, true)); /* the end of file */
    taken(BASE, 1, 0, 0);
    assert_false(pushes_wait(&server, true));
}

/* The end of file goes behind what was pushed. */
static void test_parent_goes(void **state)
{
    (void)state;
    spawn(1);
    push(1, 5);
    pushes_parent_gone(&server, task.nspace, 1); /* another one */
    pushes_parent_gone(&server, task.nspace, task.rank);
    assert_int_equal(push(1, 6), PMIX_ERR_NOT_SUPPORTED);
    taken(BASE, 1, 5, 0);
    assert_int_equal(answers, 2);
    pushes_parent_gone(&server, task.nspace, task.rank);
    taken(BASE, 1, 0, 0);
    assert_true(LIST_EMPTY(&server.inlets));
}

static void test_parent_goes_early(void **state)
{
    (void)state;
    struct inlet *inlet = inlet_new(&server, &task, 1);
    pushes_parent_gone(&server, task.nspace, task.rank);
    inlet_open(inlet, "child");
    taken(BASE, 1, 0, 0);
    assert_true(LIST_EMPTY(&server.inlets));
    inlet_drop(inlet_new(&server, &task, 1));
    assert_true(LIST_EMPTY(&server.inlets));
}

/* All that waits is answered, at whatever depth. */
static void test_child_goes(void **state)
{
    (void)state;
    spawn(1);
    for (int i = 0; i < 1000; i++)
        push(1, 5);
    lost = PMIX_ERR_LOST_CONNECTION;
    taken(BASE, 1, 5, lost);
    assert_int_equal(answers, 1000);
    assert_int_equal(last, PMIX_ERR_LOST_CONNECTION);
    assert_int_equal(push(1, 5), PMIX_ERR_LOST_CONNECTION);
    pushes_nspace_ended(&server, "child");
    assert_true(LIST_EMPTY(&server.inlets));
}

static void test_leaves(void **state)
{
    (void)state;
    spawn(1);
    server.leaving = true;
    assert_int_equal(push(1, 5), PMIX_ERR_UNREACH);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_in_order),   TEST(test_complete), TEST(test_all),
        TEST(test_refused),    TEST(test_too_much), TEST(test_parent_goes),
        TEST(test_child_goes), TEST(test_leaves),   TEST(test_parent_goes_early),
        TEST(test_too_large),  TEST(test_waits),    TEST(test_one_of_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
