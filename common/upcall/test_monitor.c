/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is asked of other nodes by PMIx_Process_monitor: who is asked, and that a server
 * which is asked does not wait for libpmix. libpmix is played; before its release 6 there is
 * nothing to test.
 */
#include "common/nspace/infos.h"
#include "common/server/server.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

static unsigned nreplies;
static pmix_status_t last;

pmix_status_t refused_monitor(const pmix_proc_t *requestor, const pmix_info_t *monitor,
                              pmix_status_t error, const pmix_info_t info[], size_t n,
                              pmix_info_cbfunc_t cb, void *cbdata)
{
    (void)requestor, (void)monitor, (void)error, (void)info, (void)n, (void)cb, (void)cbdata;
    return PMIX_ERR_NOT_SUPPORTED;
}

void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len)
{
    (void)asks, (void)node, (void)id, (void)data, (void)len;
    last = status;
    nreplies++;
}

#ifdef PMIX_MONITOR_PROC_RESOURCE_USAGE

enum { NODES = 3, TASKS = 6, SELF = 1 };

static uint32_t node_of[TASKS] = {0, 0, 1, 1, 2, 2};
static struct nspace nspace = {.node_of = node_of};
static struct boot_node boot_nodes[NODES] = {
    {.name = "c07", .ntasks = 2}, {.name = "c08", .ntasks = 2}, {.name = "c09", .ntasks = 2}};
static struct server server = {.boot = {.node = SELF,
                                        .nnodes = NODES,
                                        .ntasks = TASKS,
                                        .nodes = boot_nodes,
                                        .nspace = "job.1"},
                               .nspace = &nspace};
static bool asked[NODES];
static unsigned nasked, nanswers;
static struct wire_out question; /* the last one's body */
static ask_done_fn *done;
static void *done_arg;
static pmix_info_cbfunc_t read_cb;
static void *read_arg;

struct server *upcall_server(void)
{
    return &server;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    run(item);
    return PMIX_SUCCESS;
}

/* ---- libpmix packs only once it runs: here infos are their bytes, and their values another's ----
 */

pmix_status_t infos_pack(const pmix_info_t info[], size_t n, pmix_byte_object_t *bytes)
{
    bytes->size = n * sizeof *info;
    bytes->bytes = malloc(bytes->size + 1);
    if (n > 0)
        memcpy(bytes->bytes, info, bytes->size);
    return PMIX_SUCCESS;
}

pmix_status_t infos_unpack(struct infos *list, const void *data, size_t len)
{
    if (len % sizeof *list->info != 0)
        return PMIX_ERR_UNPACK_FAILURE;
    list->n = len / sizeof *list->info;
    list->info = malloc(len + 1);
    if (len > 0)
        memcpy(list->info, data, len);
    return PMIX_SUCCESS;
}

void infos_bool(struct infos *list, const char *key, bool value)
{
    list->info = realloc(list->info, (list->n + 1) * sizeof *list->info);
    PMIX_INFO_LOAD(&list->info[list->n], key, &value, PMIX_BOOL);
    list->n++;
}

void infos_free(struct infos *list)
{
    free(list->info);
    *list = (struct infos){0};
}

const char *nspace_name(const struct nspace *own, uint32_t node)
{
    (void)own;
    return boot_nodes[node].name;
}

void asks_send(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body, size_t len,
               uint32_t timeout, ask_done_fn *fn, void *arg)
{
    (void)asks, (void)timeout;
    assert_int_equal(topic, ASK_USAGE);
    assert_false(asked[node]);
    asked[node] = true;
    nasked++;
    wire_out_free(&question);
    wire_put_raw(&question, body, len);
    done = fn;
    done_arg = arg;
}

pmix_status_t PMIx_Process_monitor(const pmix_info_t *monitor, pmix_status_t error,
                                   const pmix_info_t directives[], size_t n, pmix_info_t **results,
                                   size_t *nresults)
{
    (void)monitor, (void)error, (void)directives, (void)n, (void)results, (void)nresults;
    fail_msg("the loop waits for libpmix");
    return PMIX_ERROR;
}

pmix_status_t PMIx_Process_monitor_nb(const pmix_info_t *monitor, pmix_status_t error,
                                      const pmix_info_t directives[], size_t n,
                                      pmix_info_cbfunc_t cb, void *arg)
{
    (void)error;
    assert_true(PMIX_CHECK_KEY(monitor, PMIX_MONITOR_NODE_RESOURCE_USAGE));
    assert_true(PMIX_CHECK_KEY(&directives[n - 1], PMIX_MONITOR_LOCAL_ONLY));
    read_cb = cb;
    read_arg = arg;
    return PMIX_SUCCESS;
}

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *arg,
                      pmix_release_cbfunc_t release, void *release_arg)
{
    (void)info, (void)n, (void)arg;
    last = status;
    nanswers++;
    if (release != NULL)
        release(release_arg);
}

static int begin(void **state)
{
    (void)state;
    memset(asked, 0, sizeof asked);
    nasked = nreplies = nanswers = 0;
    read_cb = NULL;
    return 0;
}

static void monitor(const char *target, void *array, size_t n, pmix_data_type_t type)
{
    const bool yes = true;
    pmix_info_t what, info;
    pmix_data_array_t list = {.type = type, .size = n, .array = array};
    PMIX_INFO_LOAD(&what, PMIX_MONITOR_NODE_RESOURCE_USAGE, &yes, PMIX_BOOL);
    memset(&info, 0, sizeof info);
    PMIX_LOAD_KEY(info.key, target);
    info.value.type = PMIX_DATA_ARRAY;
    info.value.data.darray = &list;
    assert_int_equal(upcall_monitor(NULL, &what, PMIX_SUCCESS, &info, 1, on_answer, NULL),
                     PMIX_SUCCESS);
}

static void those_that_are_meant_are_asked(void **state)
{
    char *names[] = {(char *)"c09", (char *)"elsewhere"};
    uint32_t ids[] = {0, 1, 77};
    (void)state;
    monitor(PMIX_MONITOR_TARGET_NODES, names, 2, PMIX_STRING);
    assert_true(asked[2] && nasked == 1);
    done(done_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    assert_int_equal(nanswers, 1);
    assert_int_equal(last, PMIX_ERR_PARTIAL_SUCCESS);
    begin(NULL);
    monitor(PMIX_MONITOR_TARGET_NODEIDS, ids, 3, PMIX_UINT32);
    assert_true(asked[0] && nasked == 1);
    done(done_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    begin(NULL);
    ids[0] = SELF;
    monitor(PMIX_MONITOR_TARGET_NODEIDS, ids, 2, PMIX_UINT32);
    assert_int_equal(nasked, 0);
    assert_int_equal(nanswers, 1);
    assert_int_equal(last, PMIX_SUCCESS);
}

static void the_loop_does_not_wait(void **state)
{
    uint32_t ids[] = {0};
    (void)state;
    monitor(PMIX_MONITOR_TARGET_NODEIDS, ids, 1, PMIX_UINT32);
    upcall_serve_usage(&server, 0, 7, question.data, question.len);
    assert_int_equal(nreplies, 0);
    assert_non_null(read_cb);
    read_cb(PMIX_ERR_NOT_FOUND, NULL, 0, read_arg, NULL, NULL);
    assert_int_equal(nreplies, 1);
    assert_int_equal(last, PMIX_ERR_NOT_FOUND);
    upcall_serve_usage(&server, 0, 8, "\0\0", 2);
    assert_int_equal(nreplies, 2);
    done(done_arg, PMIX_ERR_LOST_CONNECTION, NULL, 0);
    wire_out_free(&question);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(those_that_are_meant_are_asked, begin),
        cmocka_unit_test_setup(the_loop_does_not_wait, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return SKIPPED;
}

#endif
