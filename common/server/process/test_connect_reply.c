/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what libpmix finds while it makes a connect's answer: this plays its thread.
 */
#include "common/server/process/connect_reply.h"

#include "common/util/test_cmocka.h"

#include <event2/event_struct.h>
#include <pmix.h>
#include <stdio.h>
#include <string.h>

pmix_status_t pmix_gds_shmem2_get_job_tracker(const char *nspace, bool create, void **job);
#if PMIX_VERSION_MAJOR < 5
pmix_status_t PMIx_Argv_append_nosize(char ***argv, const char *arg);
#endif

/* What libpmix hands from the thread that gives the result to its own. */
struct shifted {
    struct event event;
    int made;
    bool asks;         /* shmem2, which is not set up here: its own function would crash */
    bool has_children; /* of shared memory */
    char names[256];
};

static bool has(const char *nspace)
{
    void *job;
    return pmix_gds_shmem2_get_job_tracker(nspace, false, &job) == PMIX_SUCCESS;
}

static void collect(struct shifted *shifted)
{
    char **names = NULL;
    if (PMIx_Argv_append_nosize(&names, "parents") != PMIX_SUCCESS)
        return; /* libpmix 4.2 has no such function */
    for (size_t i = 0; names[i] != NULL; i++) {
        strcat(shifted->names, names[i]);
        strcat(shifted->names, " ");
        free(names[i]);
    }
    free(names);
}

static void make(evutil_socket_t fd, short what, void *arg)
{
    struct shifted *shifted = arg;
    (void)fd;
    assert_int_equal(what, EV_WRITE);
    shifted->made++;
    if (shifted->asks)
        shifted->has_children = has("children");
    collect(shifted);
}

static void shift(struct event_base *base, struct shifted *shifted, bool asks)
{
    *shifted = (struct shifted){.asks = asks, .has_children = true};
    assert_int_equal(event_assign(&shifted->event, base, -1, EV_WRITE, make, shifted), 0);
    event_active(&shifted->event, EV_WRITE, 1);
}

static struct connect_reply *of_children(void)
{
    struct connect_reply *reply = connect_reply_new();
    assert_non_null(reply);
    connect_reply_add(reply, "children");
    connect_reply_add(reply, "more");
    return reply;
}

/* Beside it libpmix makes answers to other calls. */
static void the_answer_names_the_others(void **state)
{
    struct event_base *base = event_base_new();
    struct shifted before, answer, behind;
    (void)state;
    shift(base, &before, false);
    connect_reply_begin(of_children());
    shift(base, &answer, true);
    connect_reply_end();
    shift(base, &behind, false);
    event_base_dispatch(base);
    assert_int_equal(before.made + answer.made + behind.made, 3);
    assert_false(answer.has_children);
#if PMIX_VERSION_MAJOR >= 5
    assert_string_equal(before.names, "parents ");
    assert_string_equal(answer.names, "parents children more ");
    assert_string_equal(behind.names, "parents ");
#endif
    event_base_free(base);
}

static void nothing_is_named(void **state)
{
    struct event_base *base = event_base_new();
    struct shifted answer;
    (void)state;
    connect_reply_begin(of_children()); /* libpmix is gone, and makes no answer */
    connect_reply_end();
    connect_reply_begin(NULL);
    shift(base, &answer, false);
    connect_reply_end();
    event_base_dispatch(base);
    assert_int_equal(answer.made, 1);
#if PMIX_VERSION_MAJOR >= 5
    assert_string_equal(answer.names, "parents ");
#endif
    event_base_free(base);
}

int main(void)
{
    /* Without a call of its own the program would not be linked with libpmix, whose function stands
     * behind ours. */
    printf("libpmix: %s\n", PMIx_Get_version());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_names_the_others),
        cmocka_unit_test(nothing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
