/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of PMIx_Spawn: what is refused at once, and a server that leaves while a call waits.
 */
#include "common/notify/debug.h"
#include "common/notify/event.h"
#include "common/nspace/nspace.h"
#include "common/nspace/register.h"
#include "common/server/steps/steps.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/refused.h"
#include "common/upcall/spawn.h"
#include "common/util/test_cmocka.h"

#include <pmix_server.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

enum { NONE = 77 };

static char nspace[] = "job.1", nodes[] = "";
static uint32_t rank0[] = {0};
static struct boot_node node = {.name = "node1", .ranks = rank0, .ntasks = 1};
static struct server server;
static const pmix_proc_t task = {.nspace = "job.1", .rank = 0};

struct server *upcall_server(void)
{
    return &server;
}

bool answer_wanted(void)
{
    return true;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    run(item);
    return PMIX_SUCCESS;
}

void refused_tell(enum refused_what what, const char *of, const char *why)
{
    (void)what, (void)of, (void)why;
}

void notification_give(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                       pmix_info_t *info, size_t ninfo)
{
    (void)code, (void)source, (void)range, (void)info, (void)ninfo;
}

static unsigned awaited; /* spawns that are to tell when their processes wait for a debugger */

void debug_await(struct server *to, const pmix_proc_t *spawner, const char *child)
{
    (void)to, (void)spawner, (void)child;
    awaited++;
}

void upcall_call_there(pmix_op_cbfunc_t then, void *arg)
{
    then(PMIX_SUCCESS, arg);
}

/* ---- the servers of the step ---- */

static struct spread_wait *waits;

const char *steps_learn(struct server *to, const void *registration, size_t len)
{
    (void)to, (void)registration, (void)len;
    return "child";
}

int steps_register(struct server *to, const struct procset *set)
{
    (void)to, (void)set;
    return 0;
}

/* libpmix hears of the child behind the answer. */
static struct registration *const keys = (struct registration *)&server, *registered;

struct registration *steps_registration(struct server *to, const char *name)
{
    (void)to;
    assert_string_equal(name, "child");
    assert_null(registered);
    return keys;
}

void register_there(struct registration *r)
{
    registered = r;
}

void spread_await(struct server *to, struct spread_wait *wait)
{
    (void)to;
    waits = wait;
}

void steps_tell(struct server *to, struct nspace *ns, uint32_t first)
{
    (void)to, (void)ns, (void)first;
}

int nspace_node(const struct nspace *ns, const char *name, uint32_t rank, uint32_t *at)
{
    (void)ns, (void)name, (void)rank, (void)at;
    return -1;
}

void seek_begin(struct server *s, struct seek_wait *wait, int64_t ms)
{
    (void)s, (void)ms;
    wait->done(wait);
}

static const struct nspace *debuggee; /* that daemons are for */

const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    (void)own, (void)name;
    return debuggee;
}

/* ---- the user, who has to be told ---- */

static struct shown_wait *unseen;

void shown_await(struct shown_wait *wait)
{
    unseen = wait;
}

void shown_forget(struct shown_wait *wait)
{
    if (unseen == wait)
        unseen = NULL;
}

/* ---- its output ---- */

static bool forwarded, named, opened;
static void (*then)(void *arg);
static void *then_arg;

uint64_t forwards_number(struct server *to)
{
    (void)to;
    return 1;
}

void forwards_add(struct server *to, uint64_t number, const pmix_proc_t *parent,
                  const char *streams, uint32_t ntasks)
{
    (void)to, (void)number, (void)parent, (void)streams, (void)ntasks;
    forwarded = true;
}

void forwards_name(struct server *to, uint64_t number, const char *name)
{
    (void)to, (void)number;
    assert_string_equal(name, "child");
    named = true;
}

void forwards_open(struct server *to, uint64_t number)
{
    (void)to, (void)number;
    opened = true;
}

void forwards_drop(struct server *to, uint64_t number)
{
    void (*call)(void *) = then;
    (void)to, (void)number;
    forwarded = false;
    then = NULL;
    if (call != NULL)
        call(then_arg);
}

bool forwards_await_end(struct server *to, uint64_t number, void (*call)(void *arg), void *arg)
{
    (void)to, (void)number;
    then = forwarded ? call : NULL;
    then_arg = arg;
    return forwarded;
}

/* ---- its input ---- */

static bool inlet, inlet_opened;

struct inlet *inlet_new(struct server *to, const pmix_proc_t *parent, uint32_t rank)
{
    (void)to, (void)parent;
    assert_int_equal(rank, 1);
    inlet = true;
    return (struct inlet *)&inlet;
}

void inlet_open(struct inlet *of, const char *name)
{
    assert_ptr_equal(of, &inlet);
    assert_string_equal(name, "child");
    inlet_opened = true;
}

void inlet_drop(struct inlet *of)
{
    assert_ptr_equal(of, &inlet);
    inlet = false;
}

/* ---- the RM ---- */

static rm_spawn_fn *news_fn;
static void *news_arg;
static char hosts[64];   /* that the RM is asked for */
static char debug[64];   /* which processes wait for a debugger, as the RM is asked for it */
static uint32_t timeout; /* that the RM is asked for, in s */

static void start(struct rm *rm, const struct rm_spawn *what, rm_spawn_fn *news, void *arg)
{
    (void)rm;
    timeout = what->timeout;
    snprintf(hosts, sizeof hosts, "%s", what->hosts != NULL ? what->hosts : "");
    snprintf(debug, sizeof debug, "%s", what->debug != NULL ? what->debug : "");
    news_fn = news;
    news_arg = arg;
}

static const struct rm_ops ops = {.spawn = start};

static void tell(enum rm_spawn_result result)
{
    const struct rm_spawn_news news = {.result = result, .text = "so it is", .registration = ""};
    news_fn(news_arg, &news);
}

/* ---- the call ---- */

static int answered;
static unsigned nanswers, nspawns; /* spawns that there are when the answer comes */

static void on_answer(pmix_status_t status, char name[], void *arg)
{
    (void)name, (void)arg;
    assert_null(registered);
    if (status == PMIX_SUCCESS) /* the caller may pull at once */
        assert_true(named && !opened);
    answered = status;
    nanswers++;
    nspawns = !LIST_EMPTY(&server.spawns);
}

static void call(int maxprocs)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    pmix_app_t app = {.cmd = argv[0], .argv = argv, .maxprocs = maxprocs};
    pmix_info_t info[] = {{.key = PMIX_FWD_STDOUT, .value = {.type = PMIX_BOOL, .data.flag = true}},
                          {.key = PMIX_STDIN_TGT, .value = {.type = PMIX_UINT32, .data.uint32 = 1}},
                          {.key = PMIX_FWD_STDIN, .value = {.type = PMIX_BOOL, .data.flag = true}}};
    assert_int_equal(upcall_spawn(&task, info, 3, &app, 1, on_answer, NULL), PMIX_SUCCESS);
}

static int setup(void **state)
{
    (void)state;
    server = (struct server){.rm = (struct rm *)&server, .rm_ops = &ops};
    server.boot.nspace = nspace;
    server.boot.nodes = &node;
    server.boot.nnodes = 1;
    server.boot.ntasks = 1;
    server.boot.allocation.nodes = nodes;
    waits = NULL;
    registered = NULL;
    news_fn = NULL;
    then = NULL;
    forwarded = named = opened = inlet = inlet_opened = false;
    answered = NONE;
    nanswers = nspawns = awaited = 0;
    return 0;
}

/* ---- tests ---- */

static void test_in_order(void **state)
{
    (void)state;
    call(2);
    tell(RM_SPAWN_RUNS);
    assert_int_equal(nanswers, 0);
    assert_true(inlet && !inlet_opened);
    waits->done(waits);
    assert_int_equal(answered, PMIX_SUCCESS);
    assert_true(opened && inlet_opened);
    assert_ptr_equal(registered, keys);
    tell(RM_SPAWN_ENDED);
    assert_false(LIST_EMPTY(&server.spawns)); /* its last words are under way */
    then(then_arg);
    assert_true(LIST_EMPTY(&server.spawns));
    assert_int_equal(nanswers, 1);
}

/* The child has ended, its output is under way, and the servers do not all know it yet. */
static void test_leaves_while_it_waits(void **state)
{
    (void)state;
    call(2);
    tell(RM_SPAWN_RUNS);
    tell(RM_SPAWN_ENDED);
    assert_non_null(then);
    upcall_answer_spawns(&server);
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    assert_false(inlet);
    assert_int_equal(nspawns, 1); /* it is there while it is answered */
    assert_false(LIST_EMPTY(&server.spawns));
    waits->done(waits);
    assert_true(LIST_EMPTY(&server.spawns));
    assert_int_equal(nanswers, 1);
}

/* The call is refused, and the user has been told why. */
static void show(void)
{
    assert_int_equal(nanswers, 0);
    assert_non_null(unseen);
    assert_true(LIST_FIRST(&server.spawns)->refused[0] != '\0');
    unseen->done(unseen);
    assert_true(LIST_EMPTY(&server.spawns));
}

static void test_absurd(void **state)
{
    (void)state;
    call(1 << 30);
    show();
    assert_int_equal(answered, PMIX_ERR_OUT_OF_RESOURCE);
    assert_null(news_fn);
    assert_int_equal(nanswers, 1);
}

static void test_long_reason(void **state)
{
    struct spawn s = {.status = PMIX_SUCCESS};
    char path[4096];
    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    spawn_refuse(&s, PMIX_ERR_NOT_FOUND, "its host file cannot be read: %s: /%s", "why", path);
    assert_int_equal(strlen(s.refused), sizeof s.refused - 1);
    assert_string_equal(s.refused + sizeof s.refused - 6, "xx...");
}

/* The program may end when it has its answer. */
static void test_refusal_is_shown_first(void **state)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    pmix_app_t app = {.cmd = argv[0], .argv = argv, .maxprocs = 1};
    pmix_info_t info = {.key = PMIX_MAPBY,
                        .flags = PMIX_INFO_REQD,
                        .value = {.type = PMIX_STRING, .data.string = (char *)"board"}};
    (void)state;
    assert_int_equal(upcall_spawn(&task, &info, 1, &app, 1, on_answer, NULL), PMIX_SUCCESS);
    assert_non_null(unseen);
    assert_int_equal(nanswers, 0);
    unseen->done(unseen);
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
    assert_null(unseen);
    assert_true(LIST_EMPTY(&server.spawns));
    assert_int_equal(upcall_spawn(&task, &info, 1, &app, 1, on_answer, NULL), PMIX_SUCCESS);
    upcall_answer_spawns(&server); /* the server leaves */
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    upcall_free_spawns(&server);
    assert_null(unseen);
    assert_int_equal(nanswers, 2);
}

/* The rank that is to read is none of the spawned ones. */
static void test_nobody_reads(void **state)
{
    (void)state;
    call(1);
    show();
    assert_int_equal(answered, PMIX_ERR_BAD_PARAM);
    assert_false(inlet);
}

static void call_with(pmix_info_t *info)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    pmix_app_t app = {.cmd = argv[0], .argv = argv, .maxprocs = 1};
    assert_int_equal(upcall_spawn(&task, info, 1, &app, 1, on_answer, NULL), PMIX_SUCCESS);
}

/* Numbers that make no sense, and values of another type. */
static void test_bad_values(void **state)
{
    pmix_info_t infos[] = {
        {.key = PMIX_TIMEOUT, .value = {.type = PMIX_INT, .data.integer = -1}},
        {.key = PMIX_TIMEOUT, .value = {.type = PMIX_STRING, .data.string = (char *)"60"}},
        {.key = PMIX_WDIR, .value = {.type = PMIX_BOOL}},
        {.key = PMIX_NOTIFY_COMPLETION, .value = {.type = PMIX_INT}}};
    (void)state;
    for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
        nanswers = 0;
        call_with(&infos[i]);
        show();
        assert_int_equal(answered, PMIX_ERR_BAD_PARAM);
    }
}

/* A pipe that nobody writes to would hold PMIx's thread. */
static void test_hosts_of_a_pipe(void **state)
{
    char dir[] = "/tmp/test_spawn.XXXXXX", path[64];
    pmix_info_t info = {.key = PMIX_HOSTFILE, .value = {.type = PMIX_STRING, .data.string = path}};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/hosts", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60);
    call_with(&info);
    alarm(0);
    unlink(path);
    rmdir(dir);
    show();
    assert_int_equal(answered, PMIX_ERR_NOT_FOUND);
    assert_null(news_fn);
}

/* Of this no launcher has told the user. */
static void test_launcher_not_reached(void **state)
{
    (void)state;
    call(2);
    tell(RM_SPAWN_UNREACHED);
    show();
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    assert_false(inlet);
}

/* @return what the RM is asked for; NULL: refused */
static const char *stops(const char *key, pmix_value_t value, uint32_t library)
{
    pmix_info_t info = {.value = value};
    PMIX_LOAD_KEY(info.key, key);
    server.library = library;
    news_fn = NULL;
    nanswers = 0;
    call_with(&info);
    if (news_fn == NULL) {
        show();
        return NULL;
    }
    tell(RM_SPAWN_FAILED);
    return debug;
}

static void test_stops_for_a_debugger(void **state)
{
    const pmix_value_t yes = {.type = PMIX_BOOL, .data.flag = true}, no = {.type = PMIX_BOOL},
                       none = {.type = PMIX_UNDEF},
                       first = {.type = PMIX_PROC_RANK, .data.rank = 0},
                       third = {.type = PMIX_PROC_RANK, .data.rank = 3},
                       all = {.type = PMIX_PROC_RANK, .data.rank = PMIX_RANK_WILDCARD};
    enum { LIBPMIX_5 = 0x050007, LIBPMIX_7 = 0x070000 };
    (void)state;
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_INIT, yes, LIBPMIX_5), "stop-in-init");
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_INIT, none, LIBPMIX_5), "stop-in-init");
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_INIT, all, LIBPMIX_5), "stop-in-init");
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_INIT, no, LIBPMIX_5), "");
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_APP, first, LIBPMIX_5), "stop-in-app:0");
    assert_string_equal(stops(PMIX_DEBUG_STOP_IN_INIT, first, LIBPMIX_7), "stop-in-init:0");
    assert_string_equal(stops(PMIX_DEBUG_STOP_ON_EXEC, yes, LIBPMIX_5), "stop-on-exec");
    assert_string_equal(stops(PMIX_DEBUG_STOP_ON_EXEC, first, LIBPMIX_5), "stop-on-exec:0");
    assert_null(stops(PMIX_DEBUG_STOP_IN_INIT, first, LIBPMIX_5));
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
    assert_null(stops(PMIX_DEBUG_STOP_IN_INIT, third, LIBPMIX_7));
    assert_int_equal(answered, PMIX_ERR_BAD_PARAM);
}

/* @param target the process in PMIX_DEBUG_TARGET @param per PMIX_DEBUG_DAEMONS_PER_…, or NULL */
static void call_daemons(pmix_proc_t *target, const char *per)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    pmix_app_t app = {.cmd = argv[0], .argv = argv};
    pmix_info_t info[] = {
        {.key = PMIX_DEBUGGER_DAEMONS, .value = {.type = PMIX_BOOL, .data.flag = true}},
        {.key = PMIX_DEBUG_TARGET, .value = {.type = PMIX_PROC, .data.proc = target}},
        {.value = {.type = PMIX_UINT16, .data.uint16 = 2}}};
    if (per != NULL)
        PMIX_LOAD_KEY(info[2].key, per);
    news_fn = NULL;
    nanswers = 0;
    assert_int_equal(upcall_spawn(&task, info, per != NULL ? 3 : 2, &app, 1, on_answer, NULL),
                     PMIX_SUCCESS);
}

/* @return the hosts that the RM is asked for, and ends the spawn */
static const char *daemons(pmix_rank_t rank, const char *per)
{
    pmix_proc_t target;
    PMIX_LOAD_PROCID(&target, "other", rank);
    call_daemons(&target, per);
    assert_non_null(news_fn);
    tell(RM_SPAWN_FAILED);
    return hosts;
}

static void test_daemons(void **state)
{
    uint32_t ranks[] = {0, 1, 2}, node_of[] = {0, 0, 2};
    struct boot_node there[] = {{"c1", 2, ranks, 0}, {"c2", 0, NULL, 0}, {"c3", 1, ranks + 2, 0}};
    struct boot boot = {.nnodes = 3, .nodes = there, .ntasks = 3};
    const struct nspace ns = {.boot = &boot, .node_of = node_of};
    pmix_proc_t nobody = {0};
    (void)state;
    debuggee = &ns;
    assert_string_equal(daemons(PMIX_RANK_WILDCARD, NULL), "c1,c3");
    assert_string_equal(debug, "target:* other");
    assert_string_equal(daemons(PMIX_RANK_WILDCARD, PMIX_DEBUG_DAEMONS_PER_NODE), "c1,c1,c3,c3");
    assert_string_equal(daemons(PMIX_RANK_WILDCARD, PMIX_DEBUG_DAEMONS_PER_PROC),
                        "c1,c1,c1,c1,c3,c3");
    assert_string_equal(daemons(2, PMIX_DEBUG_DAEMONS_PER_PROC), "c3,c3");
    assert_string_equal(debug, "target:2 other");
    debuggee = NULL;
    PMIX_LOAD_PROCID(&nobody, "other", 0);
    call_daemons(&nobody, NULL);
    show();
    assert_int_equal(answered, PMIX_ERR_NOT_FOUND);
    PMIX_LOAD_PROCID(&nobody, "", 0);
    call_daemons(&nobody, NULL);
    show();
    assert_int_equal(answered, PMIX_ERR_NOT_SUPPORTED);
}

/* The spawner is told when they wait. */
static void test_asks_whether_they_are_ready(void **state)
{
    pmix_info_t info = {.key = PMIX_DEBUG_STOP_IN_INIT,
                        .value = {.type = PMIX_BOOL, .data.flag = true}};
    (void)state;
    call_with(&info);
    tell(RM_SPAWN_RUNS);
    assert_int_equal(awaited, 1);
    waits->done(waits);
    tell(RM_SPAWN_ENDED);
    assert_true(LIST_EMPTY(&server.spawns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, setup),
        cmocka_unit_test_setup(test_stops_for_a_debugger, setup),
        cmocka_unit_test_setup(test_daemons, setup),
        cmocka_unit_test_setup(test_asks_whether_they_are_ready, setup),
        cmocka_unit_test_setup(test_leaves_while_it_waits, setup),
        cmocka_unit_test_setup(test_absurd, setup),
        cmocka_unit_test(test_long_reason),
        cmocka_unit_test_setup(test_refusal_is_shown_first, setup),
        cmocka_unit_test_setup(test_nobody_reads, setup),
        cmocka_unit_test_setup(test_bad_values, setup),
        cmocka_unit_test_setup(test_hosts_of_a_pipe, setup),
        cmocka_unit_test_setup(test_launcher_not_reached, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
