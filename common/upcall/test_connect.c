/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what a connect leaves behind that has succeeded when the job of some participants has
 * ended: the processes here get its success, then they are told of that end, and the book is empty.
 * And of whose keys libpmix is to tell them.
 */
#include "common/notify/connection.h"
#include "common/server/process/connect_reply.h"
#include "common/server/process/expiry.h"
#include "common/server/steps/steps.h"
#include "common/upcall/collective.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>

static uint32_t r0[] = {0};
static struct boot_node nodes[] = {{"c01", 1, r0, 0}};
static struct server server;
static struct collective *collective;
static struct spread_wait *waits; /* until the servers of the step know the namespaces */
static int registered;            /* what steps_register() returns */
static bool over;                 /* the other job has ended */
static pmix_status_t status;      /* the answer; PMIX_ERROR: none yet */
static unsigned nends;            /* connections that were told of the job's end */
static char told[256];            /* namespaces that the answer has */

/* The job that the processes here connect to. */
static struct boot other_boot;
static struct nspace own, other = {.boot = &other_boot};

void answer_status(struct answer *answer, pmix_status_t given)
{
    (void)answer;
    assert_int_equal(nends, 0);
    status = given;
}

void collective_free(struct collective *c)
{
    procset_free(&c->all);
    procset_free(&c->members);
    free(c);
}

int steps_register(struct server *s, const struct procset *set)
{
    (void)s, (void)set;
    return registered;
}

void spread_await(struct server *s, struct spread_wait *wait)
{
    (void)s;
    waits = wait;
}

bool steps_has_ended(const struct server *s, const char *name)
{
    (void)s;
    return over && strcmp(name, "job.2") == 0;
}

void connection_nspace_ended(struct server *s, const char *nspace)
{
    struct book_entry *entry;
    bool was_open;
    assert_string_equal(nspace, "job.2");
    while ((entry = book_take(&s->book, nspace, &was_open)) != NULL) {
        nends += was_open;
        book_drop(entry);
    }
}

/* ---- what no test here comes to ---- */

void connection_tell_of_own(struct server *s, int32_t code, const char *id,
                            const struct procset *members)
{
    (void)s, (void)code, (void)id, (void)members;
    fail();
}

void connection_close(struct server *s, const char *id, const struct procset *members)
{
    (void)s, (void)id, (void)members;
    fail();
}

int connection_name(struct server *s, struct book_entry *entry)
{
    (void)s, (void)entry;
    fail();
    return -1;
}

struct collective *collective_new(enum coll_kind kind, const char *id, const pmix_proc_t procs[],
                                  size_t nprocs)
{
    (void)kind, (void)id, (void)procs, (void)nprocs;
    return NULL;
}

void collective_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    (void)c, (void)info, (void)ninfo;
}

void collective_run(struct handoff_item *item)
{
    (void)item;
    fail();
}

struct server *upcall_server(void)
{
    return &server;
}

/* The node has rank 0 alone. */
uint32_t server_members_here(const struct server *s, const struct procset *set)
{
    return procset_has(set, s->boot.nspace, 0);
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    (void)item, (void)run;
    return PMIX_ERROR;
}

struct answer answer_op(pmix_op_cbfunc_t callback, void *cbdata)
{
    (void)callback, (void)cbdata;
    return (struct answer){0};
}

void expiry_handed_up(const void *cbdata)
{
    (void)cbdata;
}

struct connect_reply *connect_reply_new(void)
{
    static int reply;
    return (struct connect_reply *)&reply;
}

void connect_reply_add(struct connect_reply *reply, const char *nspace)
{
    (void)reply;
    strcat(told, nspace);
}

void connect_reply_free(struct connect_reply *reply)
{
    (void)reply;
    told[0] = '\0';
}

void connect_reply_begin(struct connect_reply *reply)
{
    assert_int_equal(reply != NULL, told[0] != '\0');
    assert_int_equal(status, PMIX_ERROR);
}

void connect_reply_end(void)
{
    assert_int_equal(status, PMIX_SUCCESS);
}

/* ---- */

static int begin(void **state)
{
    static char id[] = "", nspace[] = "job.1", other_nspace[] = "job.2";
    (void)state;
    server = (struct server){.boot = {.nspace = nspace, .nnodes = 1, .ntasks = 1, .nodes = nodes}};
    own = (struct nspace){.boot = &server.boot, .next = &other};
    server.nspace = &own;
    other_boot = (struct boot){.nspace = other_nspace, .ntasks = 4};
    told[0] = '\0';
    collective = calloc(1, sizeof *collective);
    assert_non_null(collective);
    collective->server = &server;
    collective->kind = COLL_CONNECT;
    collective->id = id;
    assert_int_equal(procset_add(&collective->all, "job.1", 0, 0), 0);
    assert_int_equal(procset_add(&collective->all, "job.2", 0, 3), 0);
    assert_int_equal(procset_unite(&collective->members, &collective->all), 0);
    registered = 0;
    over = false;
    waits = NULL;
    status = PMIX_ERROR;
    nends = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    book_free(&server.book);
    return 0;
}

static void succeed(void)
{
    const struct engine_result result = {.status = PMIX_SUCCESS};
    connect_complete(collective, &result);
    if (waits != NULL) {
        assert_int_equal(status, PMIX_ERROR);
        waits->done(waits);
    }
}

static void both_jobs_live(void **state)
{
    bool was_open = false;
    (void)state;
    succeed();
    assert_int_equal(status, PMIX_SUCCESS);
    assert_int_equal(nends, 0);
    struct book_entry *entry = book_take(&server.book, "job.2", &was_open);
    assert_non_null(entry);
    assert_true(was_open);
    book_drop(entry);
}

static void one_has_ended(void **state)
{
    (void)state;
    over = true;
    succeed();
    assert_int_equal(status, PMIX_SUCCESS);
    assert_int_equal(nends, 1);
}

/* So long ago that it is forgotten. */
static void one_is_forgotten(void **state)
{
    (void)state;
    over = true;
    registered = -1;
    succeed();
    assert_null(waits);
    assert_int_equal(status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(nends, 0);
}

static void the_others_are_told_of(void **state)
{
    (void)state;
    server.library = 0x050007;
    succeed();
    assert_string_equal(told, "job.2");
}

static void too_many_are_not(void **state)
{
    (void)state;
    server.library = 0x050007;
    other_boot.ntasks = 1000000;
    succeed();
    assert_string_equal(told, "");
}

/* 4.2 cannot. */
static void another_release_does_not(void **state)
{
    (void)state;
    server.library = 0x040202;
    succeed();
    assert_string_equal(told, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_jobs_live, begin, end),
        cmocka_unit_test_setup_teardown(one_has_ended, begin, end),
        cmocka_unit_test_setup_teardown(one_is_forgotten, begin, end),
        cmocka_unit_test_setup_teardown(the_others_are_told_of, begin, end),
        cmocka_unit_test_setup_teardown(too_many_are_not, begin, end),
        cmocka_unit_test_setup_teardown(another_release_does_not, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
