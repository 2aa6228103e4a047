/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of PMIx_Log. The test plays libpmix and the launcher.
 */
#include "common/server/server.h"
#include "common/server/status/shown.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <stdio.h>
#include <string.h>

static struct server server;
static const pmix_proc_t me = {.nspace = "job.1", .rank = 3};
static struct handoff_item *posted;
static unsigned nasked, nanswers;
static pmix_status_t answered;
static char lines[256], refused[64];

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

bool server_tell_launcher(unsigned char what)
{
    assert_int_equal(what, BOOT_SAYS_SHOW);
    nasked++;
    return true;
}

void refused_tell(enum refused_what what, const char *of, const char *why)
{
    assert_int_equal(what, REFUSED_LOG);
    assert_null(why);
    snprintf(refused, sizeof refused, "%s", of);
}

static void on_answer(pmix_status_t status, void *cbdata)
{
    assert_ptr_equal(cbdata, &server);
    answered = status;
    nanswers++;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    size_t len = strlen(lines);
    (void)arg;
    assert_int_equal(level, LOG_LEVEL_ERROR);
    snprintf(lines + len, sizeof lines - len, "%s|", text);
}

static int begin(void **state)
{
    (void)state;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    server = (struct server){.base = event_base_new()};
    nasked = nanswers = 0;
    lines[0] = refused[0] = '\0';
    return server.base == NULL;
}

static int end(void **state)
{
    (void)state;
    event_base_free(server.base);
    return 0;
}

/* A process calls PMIx_Log with a text for each of these channels. */
static void call(const char *const channels[], size_t n, const char *text)
{
    pmix_info_t data[2];
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_LOAD(&data[i], channels[i], text, PMIX_STRING);
    assert_int_equal(upcall_log2(&me, data, n, NULL, 0, on_answer, &server), PMIX_SUCCESS);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&data[i]);
    assert_non_null(posted);
    struct handoff_item *item = posted;
    posted = NULL;
    item->run(item);
}

/* A program that ends once it is answered may be faster than its line. */
static void answered_when_the_terminal_has_it(void **state)
{
    static const char *const channels[] = {PMIX_LOG_STDERR};
    (void)state;
    call(channels, 1, "one\n\ntwo\n");
    assert_string_equal(lines, "rank 3: one|rank 3: two|");
    assert_int_equal(nasked, 1); /* behind the lines */
    assert_int_equal(nanswers, 0);
    shown_take(&server, 1);
    assert_int_equal(nanswers, 1);
    assert_int_equal(answered, PMIX_SUCCESS);
}

/* No terminal shows that one. */
static void answered_at_once(void **state)
{
    static const char *const channels[] = {PMIX_LOG_EMAIL};
    (void)state;
    call(channels, 1, "one");
    assert_int_equal(nasked, 0);
    assert_int_equal(nanswers, 1);
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
    assert_string_equal(refused, PMIX_LOG_EMAIL);
}

static void one_channel_of_two(void **state)
{
    static const char *const channels[] = {PMIX_LOG_STDOUT, PMIX_LOG_EMAIL};
    (void)state;
    call(channels, 2, "one");
    assert_string_equal(lines, "rank 3: one|");
    assert_int_equal(nanswers, 0);
    shown_take(&server, 1);
    assert_int_equal(answered, PMIX_ERR_PARTIAL_SUCCESS);
}

/* The server leaves: whoever waits is answered. */
static void answered_at_the_end(void **state)
{
    static const char *const channels[] = {PMIX_LOG_STDERR};
    (void)state;
    call(channels, 1, "one");
    call(channels, 1, "two");
    assert_int_equal(nanswers, 0);
    shown_take(&server, UINT32_MAX);
    assert_int_equal(nanswers, 2);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answered_when_the_terminal_has_it),
        TEST(answered_at_once),
        TEST(one_channel_of_two),
        TEST(answered_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
