/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the life of a task: what libpmix and the launcher tell of it, in any order. */
#include "common/server/tasks/task.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <string.h>

static unsigned nwarnings;
static char last[256];

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    nwarnings += level == LOG_LEVEL_WARNING;
    strncpy(last, text, sizeof last - 1);
}

static int begin(void **state)
{
    (void)state;
    nwarnings = 0;
    log_open(sink, NULL, LOG_LEVEL_DEBUG, NULL);
    return 0;
}

/* A task to which that happens, and where it is then. */
static const struct life {
    enum task_event events[5];
    int n;
    enum task_state end;
    const char *name; /* as muster-status shows it */
    bool ended, lost;
} lives[] = {
    {{0}, 0, TASK_STARTED, "started", false, false},
    {{TASK_INIT}, 1, TASK_CONNECTED, "connected", false, false},
    {{TASK_INIT, TASK_FINALIZE}, 2, TASK_FINALIZED, "finalized", false, false},
    {{TASK_INIT, TASK_FINALIZE, TASK_INIT}, 3, TASK_CONNECTED, "connected", false, false},
    {{TASK_INIT, TASK_FINALIZE, TASK_END}, 3, TASK_ENDED, "ended", true, false},
    {{TASK_INIT, TASK_FINALIZE, TASK_INIT, TASK_END}, 4, TASK_LOST, "lost", true, true},
    {{TASK_INIT, TASK_CLOSE}, 2, TASK_CUT, "cut", false, false},
    {{TASK_INIT, TASK_CLOSE, TASK_INIT}, 3, TASK_CONNECTED, "connected", false, false},
    {{TASK_INIT, TASK_CLOSE, TASK_END}, 3, TASK_LOST, "lost", true, true},
    {{TASK_INIT, TASK_END, TASK_CLOSE}, 3, TASK_LOST, "lost", true, true},
    {{TASK_INIT, TASK_FINALIZE, TASK_CLOSE}, 3, TASK_FINALIZED, "finalized", false, false},
    {{TASK_END}, 1, TASK_EARLY, "ended", true, false},
    {{TASK_INIT, TASK_END}, 2, TASK_LOST, "lost", true, true},
    {{TASK_INIT, TASK_END, TASK_TELL}, 3, TASK_TOLD, "lost", true, true},
    /* libpmix's word comes after the launcher's */
    {{TASK_END, TASK_INIT, TASK_FINALIZE}, 3, TASK_EARLY, "ended", true, false},
    {{TASK_INIT, TASK_END, TASK_FINALIZE}, 3, TASK_ENDED, "ended", true, false},
    {{TASK_INIT, TASK_END, TASK_INIT}, 3, TASK_LOST, "lost", true, true},
    {{TASK_INIT, TASK_END, TASK_TELL, TASK_FINALIZE}, 4, TASK_ENDED, "ended", true, false},
};

static void lives_of_tasks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        struct task task = {0};
        for (int k = 0; k < lives[i].n; k++)
            assert_true(task_move(&task, 7, lives[i].events[k]));
        assert_int_equal(task.state, lives[i].end);
        assert_string_equal(task_state_name(task.state), lives[i].name);
        assert_int_equal(task_has_ended(&task), lives[i].ended);
        assert_int_equal(task_is_lost(&task), lives[i].lost);
    }
    assert_int_equal(nwarnings, 0);
}

/* A second end, and the word of a loss that is none. */
static void what_cannot_happen(void **state)
{
    struct task task = {0};
    (void)state;
    assert_false(task_move(&task, 7, TASK_TELL));
    assert_string_equal(last, "rank 7: tell cannot happen in state started; ignored");
    assert_int_equal(task.state, TASK_STARTED);
    for (task.state = TASK_ENDED; task.state < TASK_STATES; task.state++)
        assert_false(task_move(&task, 7, TASK_END));
    assert_int_equal(nwarnings, 5);
}

static void changes_are_logged(void **state)
{
    struct task task = {0};
    (void)state;
    task_move(&task, 7, TASK_INIT);
    assert_string_equal(last, "rank 7: init: started -> connected");
    last[0] = '\0';
    task_move(&task, 7, TASK_INIT);
    assert_string_equal(last, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lives_of_tasks, begin),
        cmocka_unit_test_setup(what_cannot_happen, begin),
        cmocka_unit_test_setup(changes_are_logged, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
