/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what a server is told of a job that it has spawned: the job's log and the word of its
 * server come different ways, and so in any order. The test plays Flux, and the output.
 */
#include "common/util/test_cmocka.h"
#include "plugins/flux/child.h"
#include "plugins/flux/children.h"
#include "plugins/flux/jobspec.h"
#include "shims/flux/shell_jobs_abi.h"

#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { NEWS_MAX = 8 };

static struct boot boot = {.nnodes = 2};
static struct children *children;
static int thing; /* what handles of Flux point to */
static flux_msg_handler_f asked, started;
static flux_continuation_f on_log;
static void *of_log;
static const char *event; /* the log's next one; NULL: its end */
static struct wire_out *request;
static struct child_output *output; /* NULL: all has come */
static struct rm_spawn_news told[NEWS_MAX];
static unsigned ntold, nends, nrefs;

/* ---- Flux ---- */

int flux_shell_service_register(flux_shell_t *shell, const char *method, flux_msg_handler_f cb,
                                void *arg)
{
    (void)shell, (void)arg;
    *(strcmp(method, "muster-spawn") == 0 ? &asked : &started) = cb;
    return 0;
}

int flux_shell_add_completion_ref(flux_shell_t *shell, const char *fmt, ...)
{
    (void)shell, (void)fmt;
    nrefs++;
    return 0;
}

int flux_shell_remove_completion_ref(flux_shell_t *shell, const char *fmt, ...)
{
    (void)shell, (void)fmt;
    nrefs--;
    return 0;
}

flux_t *flux_shell_get_flux(flux_shell_t *shell)
{
    return (flux_t *)shell;
}

int flux_get_rank(flux_t *h, uint32_t *rank)
{
    (void)h;
    *rank = 0;
    return 0;
}

int flux_msg_get_cred(const flux_msg_t *msg, struct flux_msg_cred *cred)
{
    (void)msg;
    *cred = (struct flux_msg_cred){.userid = getuid()};
    return 0;
}

int flux_request_decode_raw(const flux_msg_t *msg, const char **topic, const void **data,
                            size_t *len)
{
    (void)msg, (void)topic;
    *data = request->data;
    *len = request->len;
    return 0;
}

const flux_msg_t *flux_msg_incref(const flux_msg_t *msg)
{
    return msg;
}

void flux_msg_decref(const flux_msg_t *msg)
{
    (void)msg;
}

int flux_respond_raw(flux_t *h, const flux_msg_t *msg, const void *data, int len)
{
    char text[SPAWN_TEXT_MAX];
    struct wire_in in;
    (void)h, (void)msg;
    assert_true(ntold < NEWS_MAX);
    wire_in_init(&in, data, (size_t)len);
    assert_true(spawn_get_news(&in, &told[ntold++], text));
    return 0;
}

int flux_respond_error(flux_t *h, const flux_msg_t *msg, int errnum, const char *errstr)
{
    (void)h, (void)msg, (void)errstr;
    assert_int_equal(errnum, ENODATA);
    nends++;
    return 0;
}

flux_future_t *flux_job_submit(flux_t *h, const char *jobspec, int urgency, int flags)
{
    (void)jobspec, (void)urgency, (void)flags;
    return (flux_future_t *)h;
}

int flux_job_submit_get_id(flux_future_t *f, uint64_t *id)
{
    (void)f;
    *id = 1;
    return 0;
}

flux_future_t *flux_job_raise(flux_t *h, uint64_t id, const char *type, int severity,
                              const char *note)
{
    (void)id, (void)type, (void)severity, (void)note;
    return (flux_future_t *)h;
}

flux_future_t *flux_job_event_watch(flux_t *h, uint64_t id, const char *path, int flags)
{
    (void)id, (void)path, (void)flags;
    return (flux_future_t *)h;
}

int flux_job_event_watch_get(flux_future_t *f, const char **text)
{
    (void)f;
    *text = event;
    errno = ENODATA;
    return event != NULL ? 0 : -1;
}

int flux_future_then(flux_future_t *f, double timeout, flux_continuation_f cb, void *arg)
{
    (void)f, (void)timeout;
    on_log = cb;
    of_log = arg;
    return 0;
}

flux_future_t *flux_kvs_commit(flux_t *h, const char *ns, int flags, flux_kvs_txn_t *txn)
{
    (void)ns, (void)flags, (void)txn;
    return (flux_future_t *)h;
}

void flux_future_reset(flux_future_t *f)
{
    (void)f;
}

void flux_future_destroy(flux_future_t *f)
{
    (void)f;
}

int flux_future_wait_for(flux_future_t *f, double timeout)
{
    (void)f, (void)timeout;
    return -1;
}

const char *flux_future_error_string(flux_future_t *f)
{
    (void)f;
    return "";
}

flux_reactor_t *flux_get_reactor(flux_t *h)
{
    return (flux_reactor_t *)h;
}

flux_watcher_t *flux_timer_watcher_create(flux_reactor_t *r, double after, double repeat,
                                          flux_watcher_f cb, void *arg)
{
    (void)after, (void)repeat, (void)cb, (void)arg;
    return (flux_watcher_t *)r;
}

void flux_watcher_start(flux_watcher_t *w)
{
    (void)w;
}

void flux_watcher_destroy(flux_watcher_t *w)
{
    (void)w;
}

/* An event is its name. */
json_t *json_loads(const char *text, size_t flags, json_error_t *error)
{
    (void)flags, (void)error;
    return (json_t *)(uintptr_t)text;
}

void json_delete(json_t *json)
{
    (void)json;
}

int json_unpack(json_t *json, const char *fmt, ...)
{
    va_list ap;
    if (strcmp(fmt, "{s:s}") != 0)
        return -1;
    va_start(ap, fmt);
    va_arg(ap, const char *);
    *va_arg(ap, const char **) = (const char *)json;
    va_end(ap);
    return 0;
}

/* ---- the other files of the plugin ---- */

char *jobspec_make(flux_shell_t *shell, const struct rm_spawn *what, const char *channel,
                   uint32_t nnodes, struct err *err)
{
    (void)shell, (void)what, (void)channel, (void)nnodes, (void)err;
    return strdup("{}");
}

int child_output_open(struct child_output *o)
{
    output = o;
    return 0;
}

void child_output_close(struct child_output *o)
{
    (void)o;
}

/* ---- what happens ---- */

static void send_request(flux_msg_handler_f handler, struct wire_out *out)
{
    assert_false(out->failed);
    request = out;
    handler((flux_t *)&thing, NULL, (const flux_msg_t *)&thing, children);
    wire_out_free(out);
}

static void happens(const char *name)
{
    event = name;
    on_log((flux_future_t *)&thing, of_log);
}

/* The word of the spawned job's server. */
static void says(enum rm_spawn_result result)
{
    const struct rm_spawn_news news = {.result = result, .text = "text"};
    struct wire_out out = {0};
    wire_put_u32(&out, 0);
    spawn_put_news(&out, &news);
    send_request(started, &out);
}

static void output_ends(void)
{
    output->ended(output->arg);
    output = NULL;
}

/* A job of one process, which has been started. */
static int begin(void **state)
{
    char *plan[] = {(char *)"1"};
    const struct rm_spawn what = {
        .parent = "flux.f0", .ntasks = 1, .plan = plan, .nplan = 1, .apps = "1", .timeout = 60};
    struct wire_out out = {0};
    (void)state;
    ntold = nends = nrefs = 0;
    children = children_open((flux_shell_t *)&thing, &boot, 7);
    assert_non_null(children);
    spawn_put(&out, &what, false);
    send_request(asked, &out);
    happens(""); /* it is submitted */
    happens("alloc");
    happens("start");
    assert_int_equal(ntold, 0);
    assert_int_equal(nrefs, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(nends, 1);
    assert_int_equal(nrefs, 0);
    children_close(children);
    boot_free(&boot);
    boot = (struct boot){.nnodes = 2};
    return 0;
}

static void check_told(enum rm_spawn_result first)
{
    assert_int_equal(ntold, 2);
    assert_int_equal(told[0].result, first);
    assert_int_equal(told[1].result, RM_SPAWN_ENDED);
}

static void runs_and_ends(void **state)
{
    (void)state;
    says(RM_SPAWN_RUNS);
    assert_int_equal(ntold, 1);
    happens("clean");
    happens(NULL);
    assert_int_equal(ntold, 1);
    output_ends();
    check_told(RM_SPAWN_RUNS);
}

static void no_word(void **state)
{
    (void)state;
    output_ends();
    happens("clean");
    happens(NULL);
    check_told(RM_SPAWN_FAILED);
}

static void fails_late(void **state)
{
    (void)state;
    happens("clean");
    happens(NULL);
    says(RM_SPAWN_NO_PROGRAM);
    assert_int_equal(ntold, 1);
    output_ends();
    check_told(RM_SPAWN_NO_PROGRAM);
}

static void ran_as_is_said_late(void **state)
{
    (void)state;
    happens("clean");
    happens(NULL);
    says(RM_SPAWN_RUNS);
    says(RM_SPAWN_RUNS); /* once is enough */
    assert_int_equal(ntold, 1);
    output_ends();
    check_told(RM_SPAWN_RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_and_ends, begin, end),
        cmocka_unit_test_setup_teardown(no_word, begin, end),
        cmocka_unit_test_setup_teardown(fails_late, begin, end),
        cmocka_unit_test_setup_teardown(ran_as_is_said_late, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
