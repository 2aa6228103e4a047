/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of PMIx_Allocation_request. The test plays libpmix and the resource manager.
 */
#include "common/server/server.h"
#include "common/server/status/shown.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <stdio.h>
#include <string.h>

static struct server server;
static char session[] = "4711";
static const pmix_proc_t me = {.nspace = "job.1", .rank = 3};
static struct handoff_item *posted;
static unsigned nasked, nanswers, nshown;
static pmix_status_t answered;
static char lines[512], infos[256];
static struct rm_alloc asked;
static char nodes[64];
static rm_alloc_fn *done;
static void *done_arg;

struct server *upcall_server(void)
{
    return &server;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    assert_null(posted);
    posted = item;
    posted->run = run;
    return PMIX_SUCCESS;
}

void shown_await(struct shown_wait *wait)
{
    nshown++;
    wait->done(wait);
}

void shown_forget(struct shown_wait *wait)
{
    (void)wait;
}

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_cbdata)
{
    assert_ptr_equal(cbdata, &server);
    answered = status;
    nanswers++;
    infos[0] = '\0';
    for (size_t i = 0; i < ninfo; i++) {
        size_t len = strlen(infos);
        if (info[i].value.type == PMIX_STRING)
            snprintf(infos + len, sizeof infos - len, "%s ", info[i].value.data.string);
        else
            snprintf(infos + len, sizeof infos - len, "%u ", (unsigned)info[i].value.data.uint64);
    }
    if (release != NULL)
        release(release_cbdata);
}

static void allocate(struct rm *rm, const struct rm_alloc *what, rm_alloc_fn *then, void *arg)
{
    (void)rm;
    nasked++;
    asked = *what;
    snprintf(nodes, sizeof nodes, "%s", what->nodes != NULL ? what->nodes : "");
    done = then;
    done_arg = arg;
}

static const struct rm_ops ops = {.name = "test", .allocate = allocate}, none = {.name = "test"};

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_ERROR)
        snprintf(lines, sizeof lines, "%s", text);
}

static int begin(void **state)
{
    (void)state;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    server = (struct server){.rm_ops = &ops, .rm = (struct rm *)&server};
    server.boot.session = session;
    server.conf.timeouts.spawn = 60;
    nasked = nanswers = nshown = 0;
    lines[0] = '\0';
    return 0;
}

/* A call, up to what the loop makes of it. */
static void call(pmix_alloc_directive_t directive, const pmix_info_t *info, size_t n)
{
    assert_int_equal(upcall_allocate(&me, directive, info, n, on_answer, &server), PMIX_SUCCESS);
    struct handoff_item *item = posted;
    posted = NULL;
    item->run(item);
}

static pmix_info_t number(const char *key, uint64_t value)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_LOAD_KEY(info.key, key);
    info.value.type = PMIX_UINT64;
    info.value.data.uint64 = value;
    return info;
}

static pmix_info_t text(const char *key, const char *value)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_LOAD_KEY(info.key, key);
    info.value.type = PMIX_STRING;
    info.value.data.string = (char *)value;
    return info;
}

/* ---- tests ---- */

static void nodes_that_come(void **state)
{
    const pmix_info_t info[] = {number(PMIX_ALLOC_NUM_NODES, 2), text(PMIX_ALLOC_REQ_ID, "mine"),
                                text(PMIX_ALLOC_ID, session), number(PMIX_TIMEOUT, 5)};
    const struct rm_alloc_news news = {.nodes = "c07,c08", .nnodes = 2, .ncpus = 32};
    (void)state;
    call(PMIX_ALLOC_EXTEND, info, 4);
    assert_int_equal(nasked, 1);
    assert_int_equal(asked.kind, RM_ALLOC_EXTEND);
    assert_int_equal(asked.nnodes, 2);
    assert_int_equal(asked.timeout, 5);
    done(done_arg, &news);
    assert_int_equal(nanswers, 1);
    assert_int_equal(answered, PMIX_SUCCESS);
    assert_string_equal(infos, "4711 mine c07,c08 2 32 ");
    assert_true(LIST_EMPTY(&server.allocations));
}

static void nodes_that_go(void **state)
{
    const pmix_info_t info[] = {text(PMIX_ALLOC_NODE_LIST, "c[07-08]")};
    const struct rm_alloc_news busy = {.result = RM_ALLOC_IN_USE, .text = "c07 has processes"};
    (void)state;
    call(PMIX_ALLOC_RELEASE, info, 1);
    assert_int_equal(asked.kind, RM_ALLOC_RELEASE);
    assert_string_equal(nodes, "c[07-08]");
    assert_int_equal(asked.timeout, 60);
    done(done_arg, &busy);
    assert_int_equal(answered, PMIX_ERR_RESOURCE_BUSY);
    assert_string_equal(lines, ""); /* a program may ask again and again */
}

static void the_user_reads_why(void **state)
{
    const pmix_info_t info[] = {number(PMIX_ALLOC_NUM_CPUS, 8)};
    const struct rm_alloc_news no = {.result = RM_ALLOC_FORBIDDEN, .text = "the site forbids it"};
    (void)state;
    call(PMIX_ALLOC_EXTEND, info, 1);
    assert_int_equal(asked.ncpus, 8);
    done(done_arg, &no);
    assert_int_equal(nshown, 1);
    assert_int_equal(answered, PMIX_ERR_NO_PERMISSIONS);
    assert_string_equal(lines, "PMIx_Allocation_request by rank 3 fails: the site forbids it");
}

static void times(void **state)
{
    static const struct {
        const char *text;
        uint32_t seconds; /* 0: it is no time */
    } cases[] = {{"90", 90},  {"2:30", 150},      {"1:00:00", 3600}, {"1:0:0:0", 86400},
                 {"", 0},     {"0", 0},           {"1h", 0},         {"-5", 0},
                 {"1::2", 0}, {"1:1:1:1:1:1", 0}, {"99999999999", 0}};
    const struct rm_alloc_news good = {.nodes = ""};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pmix_info_t info[] = {text(PMIX_ALLOC_TIME, cases[i].text)};
        nasked = 0;
        call(PMIX_ALLOC_EXTEND, info, 1);
        assert_int_equal(nasked, cases[i].seconds > 0);
        if (nasked > 0) {
            assert_int_equal(asked.kind, RM_ALLOC_TIME);
            assert_int_equal(asked.seconds, cases[i].seconds);
            done(done_arg, &good);
        }
        assert_int_equal(answered, nasked > 0 ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM);
    }
}

/* Nothing of it comes to the resource manager. */
static void what_makes_no_sense(void **state)
{
    const pmix_info_t both[] = {number(PMIX_ALLOC_NUM_NODES, 1), number(PMIX_ALLOC_TIME, 60)};
    const pmix_info_t other[] = {number(PMIX_ALLOC_NUM_NODES, 1), text(PMIX_ALLOC_ID, "12")};
    (void)state;
    call(PMIX_ALLOC_EXTEND, both, 2);
    assert_int_equal(answered, PMIX_ERR_BAD_PARAM);
    call(PMIX_ALLOC_EXTEND, other, 2);
    assert_int_equal(answered, PMIX_ERR_NOT_FOUND);
    call(PMIX_ALLOC_RELEASE, NULL, 0);
    assert_int_equal(answered, PMIX_ERR_BAD_PARAM);
    call(PMIX_ALLOC_NEW, both, 1);
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
    server.rm_ops = &none;
    call(PMIX_ALLOC_EXTEND, both, 1);
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(lines, "under test no job grows"));
    assert_int_equal(nasked, 0);
    assert_int_equal(nanswers, 5);
}

/* The back end may answer after that, or not. */
static void the_server_leaves(void **state)
{
    const pmix_info_t info[] = {number(PMIX_ALLOC_NUM_NODES, 1)};
    const struct rm_alloc_news late = {.nodes = "c07", .nnodes = 1};
    (void)state;
    call(PMIX_ALLOC_EXTEND, info, 1);
    upcall_answer_allocations(&server);
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    done(done_arg, &late);
    call(PMIX_ALLOC_EXTEND, info, 1);
    upcall_answer_allocations(&server);
    assert_int_equal(nanswers, 2);
    upcall_free_allocations(&server);
    server.leaving = true;
    call(PMIX_ALLOC_EXTEND, info, 1);
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    assert_int_equal(nanswers, 3);
    assert_true(LIST_EMPTY(&server.allocations));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nodes_that_come, begin),
        cmocka_unit_test_setup(nodes_that_go, begin),
        cmocka_unit_test_setup(the_user_reads_why, begin),
        cmocka_unit_test_setup(times, begin),
        cmocka_unit_test_setup(what_makes_no_sense, begin),
        cmocka_unit_test_setup(the_server_leaves, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
