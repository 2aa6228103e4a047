/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of publish, lookup and unpublish between libpmix and the holder: what directives become,
 * which are refused, and what an answer becomes. A value travels here as its four bytes.
 */
#include "common/holder/holder.h"
#include "common/server/steps/meeting.h"
#include "common/upcall/upcall.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLD = 0x040202, NEW = 0x070000, INFOS = 8 };

static struct boot_node node;
static struct server server;
static bool ended; /* libpmix takes no answers any more */
static const pmix_proc_t me = {.nspace = "job.1", .rank = 3};

struct server *upcall_server(void)
{
    return &server;
}

bool answer_wanted(void)
{
    return !ended;
}

static struct handoff_item *posted;

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    assert_null(posted);
    posted = item;
    posted->run = run;
    return PMIX_SUCCESS;
}

static void run_posted(void)
{
    struct handoff_item *item = posted;
    assert_non_null(item);
    posted = NULL;
    item->run(item);
}

static struct wire_out asked;
static uint32_t asked_ms, nasked;
static holder_done_fn *asked_done;
static void *asked_arg;

void holder_request(struct holder *holder, const void *body, size_t len, uint32_t ms,
                    holder_done_fn *done, void *arg)
{
    (void)holder;
    nasked++;
    wire_out_free(&asked);
    wire_put_raw(&asked, body, len);
    asked_ms = ms;
    asked_done = done;
    asked_arg = arg;
}

static char introduced[PMIX_MAX_NSLEN + 1];

void meeting_register(struct server *to, const struct procset *set)
{
    assert_ptr_equal(to, &server);
    snprintf(introduced, sizeof introduced, "%s", set->nparts > 0 ? set->parts[0].nspace : "");
}

/* ---- libpmix ---- */

pmix_status_t PMIx_Data_pack(const pmix_proc_t *target, pmix_data_buffer_t *buffer, void *src,
                             int32_t n, pmix_data_type_t type)
{
    const pmix_value_t *value = src;
    (void)target;
    assert_int_equal(n, 1);
    assert_int_equal(type, PMIX_VALUE);
    buffer->base_ptr = malloc(sizeof value->data.uint32);
    assert_non_null(buffer->base_ptr);
    memcpy(buffer->base_ptr, &value->data.uint32, sizeof value->data.uint32);
    buffer->bytes_used = sizeof value->data.uint32;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_unload(pmix_data_buffer_t *buffer, pmix_byte_object_t *bytes)
{
    *bytes = (pmix_byte_object_t){.bytes = buffer->base_ptr, .size = buffer->bytes_used};
    buffer->base_ptr = NULL;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_load(pmix_data_buffer_t *buffer, pmix_byte_object_t *bytes)
{
    buffer->base_ptr = bytes->bytes;
    buffer->bytes_used = bytes->size;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_unpack(const pmix_proc_t *source, pmix_data_buffer_t *buffer, void *to,
                               int32_t *n, pmix_data_type_t type)
{
    pmix_value_t *value = to;
    (void)source, (void)n, (void)type;
    if (buffer->bytes_used != sizeof value->data.uint32)
        return PMIX_ERR_UNPACK_FAILURE;
    value->type = PMIX_UINT32;
    memcpy(&value->data.uint32, buffer->base_ptr, sizeof value->data.uint32);
    return PMIX_SUCCESS;
}

void upcall_call_there(pmix_op_cbfunc_t then, void *arg)
{
    then(PMIX_SUCCESS, arg);
}

static unsigned answers;
static pmix_status_t answered;
static size_t nfound;
static pmix_pdata_t found;

static void on_op(pmix_status_t status, void *cbdata)
{
    assert_ptr_equal(cbdata, &server);
    answers++;
    answered = status;
}

static void on_lookup(pmix_status_t status, pmix_pdata_t data[], size_t ndata, void *cbdata)
{
    on_op(status, cbdata);
    nfound = ndata;
    if (ndata > 0)
        found = data[0];
}

static pmix_info_t infos[INFOS];
static size_t ninfos;

static pmix_value_t *info(const char *key, pmix_data_type_t type)
{
    pmix_info_t *one = &infos[ninfos++];
    assert_in_range(ninfos, 1, INFOS);
    memset(one, 0, sizeof *one);
    snprintf(one->key, sizeof one->key, "%s", key);
    one->value.type = type;
    return &one->value;
}

static void number(const char *key, uint32_t value)
{
    info(key, PMIX_UINT32)->data.uint32 = value;
}

static void range(pmix_data_range_t value)
{
    info(PMIX_RANGE, PMIX_DATA_RANGE)->data.range = value;
}

static pmix_status_t publish(void)
{
    pmix_status_t rc = upcall_publish(&me, infos, ninfos, on_op, &server);
    ninfos = 0;
    return rc;
}

static pmix_status_t look_up(char **keys)
{
    pmix_status_t rc = upcall_lookup(&me, keys, infos, ninfos, on_lookup, &server);
    ninfos = 0;
    return rc;
}

static void tell(pmix_status_t status, const struct wire_out *data)
{
    unsigned before = answers;
    asked_done(asked_arg, status, data != NULL ? data->data : NULL, data != NULL ? data->len : 0);
    assert_int_equal(answers, before + 1);
}

/* What the holder was asked. */
static struct wire_in question(enum holder_op op)
{
    struct wire_in in;
    run_posted();
    wire_in_init(&in, asked.data, asked.len);
    assert_int_equal(wire_get_u8(&in), op);
    return in;
}

static struct store_entry *published(void)
{
    struct wire_in in = question(HOLDER_PUBLISH);
    assert_int_equal(wire_get_u32(&in), 1);
    struct store_entry *e = store_get_entry(&in);
    assert_non_null(e);
    assert_true(wire_end(&in));
    return e;
}

static int open_server(void **state)
{
    (void)state;
    node.name = (char *)"n1";
    server = (struct server){.library = NEW};
    server.boot.nodes = &node;
    ended = false;
    answers = nasked = 0;
    ninfos = 0;
    introduced[0] = '\0';
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    wire_out_free(&asked);
    assert_null(posted);
    return 0;
}

static void what_is_no_directive_is_published(void **state)
{
    (void)state;
    number("port", 4711);
    number(PMIX_TIMEOUT, 7);
    range(PMIX_RANGE_NAMESPACE);
    info(PMIX_PERSISTENCE, PMIX_PERSIST)->data.persist = PMIX_PERSIST_FIRST_READ;
    number(PMIX_USERID, 1001);
    assert_int_equal(publish(), PMIX_SUCCESS);
    struct store_entry *e = published();
    assert_string_equal(e->key, "port");
    assert_int_equal(e->len, 4);
    assert_string_equal(e->who.nspace, "job.1");
    assert_int_equal(e->who.rank, 3);
    assert_string_equal(e->who.host, "n1");
    assert_int_equal(e->who.uid, 1001);
    assert_int_equal(e->who.gid, getgid());
    assert_int_equal(e->range, STORE_NSPACE);
    assert_int_equal(e->life, STORE_FIRST_READ);
    assert_int_equal(asked_ms, 7000);
    store_entry_free(e);
    tell(PMIX_ERR_DUPLICATE_KEY, NULL);
    assert_int_equal(answered, PMIX_ERR_DUPLICATE_KEY);
}

static void ranges(void **state)
{
    static const struct {
        pmix_data_range_t range;
        int expected;
    } all[] = {
        {PMIX_RANGE_UNDEF, STORE_SESSION},
        {PMIX_RANGE_RM, -1},
        {PMIX_RANGE_LOCAL, STORE_LOCAL},
        {PMIX_RANGE_NAMESPACE, STORE_NSPACE},
        {PMIX_RANGE_SESSION, STORE_SESSION},
        {PMIX_RANGE_GLOBAL, STORE_SESSION},
        {PMIX_RANGE_PROC_LOCAL, STORE_SELF},
        {PMIX_RANGE_CUSTOM, -1}, /* for no process */
        {PMIX_RANGE_INVALID, -1},
        {200, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        number("port", 1);
        range(all[i].range);
        assert_int_equal(publish(), all[i].expected < 0 ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS);
        if (all[i].expected < 0)
            continue;
        struct store_entry *e = published();
        assert_int_equal(e->range, all[i].expected);
        assert_int_equal(e->life, STORE_APP);
        assert_int_equal(asked_ms, 60000);
        store_entry_free(e);
        tell(PMIX_SUCCESS, NULL);
    }
}

static void a_custom_range(void **state)
{
    pmix_proc_t procs[] = {{.nspace = "job.2", .rank = PMIX_RANK_WILDCARD}, {.nspace = "job.1"}};
    pmix_data_array_t array = {.type = PMIX_PROC, .size = 2, .array = procs};
    (void)state;
    number("port", 1);
    range(PMIX_RANGE_CUSTOM);
    info(PMIX_EVENT_CUSTOM_RANGE, PMIX_DATA_ARRAY)->data.darray = &array;
    assert_int_equal(publish(), PMIX_SUCCESS);
    struct store_entry *e = published();
    assert_int_equal(e->range, STORE_CUSTOM);
    assert_true(procset_has(&e->custom, "job.2", 77));
    assert_true(procset_has(&e->custom, "job.1", 0));
    assert_false(procset_has(&e->custom, "job.1", 1));
    store_entry_free(e);
    tell(PMIX_SUCCESS, NULL);
}

/* The users that may read a value come in an array of directives. */
static void access_permissions(void **state)
{
    uint32_t uids[] = {7, 9};
    pmix_data_array_t ids = {.type = PMIX_UINT32, .size = 2, .array = uids};
    pmix_info_t inner = {.value = {.type = PMIX_DATA_ARRAY, .data.darray = &ids}};
    pmix_data_array_t array = {.type = PMIX_INFO, .size = 1, .array = &inner};
    (void)state;
    snprintf(inner.key, sizeof inner.key, "%s", PMIX_ACCESS_USERIDS);
    for (int what = 0; what < 4; what++) {
        array.type = what == 1 ? PMIX_PROC : PMIX_INFO;
        ids.type = what == 2 ? PMIX_UINT64 : PMIX_UINT32;
        ids.size = what == 3 ? STORE_IDS_MAX + 1 : 2;
        number("port", 1);
        info(PMIX_ACCESS_PERMISSIONS, PMIX_DATA_ARRAY)->data.darray = &array;
        assert_int_equal(publish(), what == 0 ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM);
        if (what > 0)
            continue;
        struct store_entry *e = published();
        assert_true(e->has_uids);
        assert_false(e->has_gids);
        assert_int_equal(e->nuids, 2);
        assert_memory_equal(e->uids, uids, sizeof uids);
        store_entry_free(e);
        tell(PMIX_SUCCESS, NULL);
    }
}

static void what_is_refused(void **state)
{
    char *none[] = {NULL}, *many[STORE_KEYS_MAX + 2];
    (void)state;
    number(PMIX_TIMEOUT, 7); /* nothing to publish */
    assert_int_equal(publish(), PMIX_ERR_BAD_PARAM);
    number("port", 1);
    number(PMIX_RANGE, 3); /* of another type */
    assert_int_equal(publish(), PMIX_ERR_BAD_PARAM);
    number("port", 1);
    info(PMIX_PERSISTENCE, PMIX_PERSIST)->data.persist = 99;
    assert_int_equal(publish(), PMIX_ERR_BAD_PARAM);
    number("port", 1);
    info(PMIX_TIMEOUT, PMIX_BOOL)->data.flag = true;
    assert_int_equal(publish(), PMIX_ERR_BAD_PARAM);
    assert_int_equal(look_up(NULL), PMIX_ERR_BAD_PARAM);
    assert_int_equal(look_up(none), PMIX_ERR_BAD_PARAM);
    for (size_t i = 0; i < STORE_KEYS_MAX + 1; i++)
        many[i] = (char *)"k";
    many[STORE_KEYS_MAX + 1] = NULL;
    assert_int_equal(look_up(many), PMIX_ERR_BAD_PARAM);
    assert_int_equal(upcall_unpublish(&me, many, NULL, 0, on_op, &server), PMIX_ERR_BAD_PARAM);
    assert_int_equal(answers + nasked, 0);
}

/* How many keys a lookup waits for, and how long. */
static void how_a_lookup_waits(void **state)
{
    char *keys[] = {(char *)"a", (char *)"b", (char *)"c", NULL};
    static const struct {
        bool waits, is_number;
        uint32_t number, seconds, want, ms;
    } all[] = {{false, false, 0, 0, 0, 60000}, {false, false, 0, 5, 0, 5000},
               {true, false, 1, 0, 3, 0},      {true, false, 0, 0, 0, 60000},
               {true, true, 7, 0, 3, 0},       {true, true, 2, 4294968, 2, UINT32_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct store_lookup lookup;
        if (all[i].waits && all[i].is_number)
            number(PMIX_WAIT, all[i].number);
        else if (all[i].waits)
            info(PMIX_WAIT, PMIX_BOOL)->data.flag = all[i].number;
        if (all[i].seconds > 0)
            number(PMIX_TIMEOUT, all[i].seconds);
        range(200); /* Open MPI 5.0.7 has not set it */
        assert_int_equal(look_up(keys), PMIX_SUCCESS);
        struct wire_in in = question(HOLDER_LOOKUP);
        assert_int_equal(store_get_lookup(&in, &lookup), 0);
        assert_int_equal(lookup.nkeys, 3);
        assert_string_equal(lookup.keys[2], "c");
        assert_int_equal(lookup.range, STORE_SESSION);
        assert_int_equal(lookup.want, all[i].want);
        assert_int_equal(asked_ms, all[i].ms);
        store_free_lookup(&lookup);
        tell(PMIX_ERR_NOT_FOUND, NULL);
        assert_int_equal(answered, PMIX_ERR_NOT_FOUND);
    }
}

static void put_found(struct wire_out *out, pmix_status_t status, uint32_t n, size_t len)
{
    uint32_t value = 4711;
    wire_out_free(out);
    wire_put_i32(out, status);
    wire_put_u32(out, n);
    wire_put_str(out, "job.2");
    wire_put_u32(out, 5);
    wire_put_str(out, "port");
    wire_put_block(out, &value, len);
}

static void what_is_found(void **state)
{
    char *keys[] = {(char *)"port", NULL};
    struct wire_out out = {0};
    static const struct {
        uint32_t library;
        pmix_status_t said, expected;
        uint32_t n;
        size_t len;
    } all[] = {{OLD, PMIX_SUCCESS, PMIX_SUCCESS, 1, 4},
               {NEW, PMIX_SUCCESS, PMIX_SUCCESS, 1, 4},
               {NEW, PMIX_ERR_PARTIAL_SUCCESS, PMIX_ERR_PARTIAL_SUCCESS, 1, 4},
               {OLD, PMIX_ERR_PARTIAL_SUCCESS, PMIX_SUCCESS, 1, 4}, /* it drops the data */
               {NEW, PMIX_SUCCESS, PMIX_ERR_UNPACK_FAILURE, 1, 3},
               {NEW, PMIX_SUCCESS, PMIX_ERR_NOT_FOUND, 0, 4},
               {NEW, PMIX_SUCCESS, PMIX_ERR_NOT_FOUND, 1000000, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        server.library = all[i].library;
        introduced[0] = '\0';
        assert_int_equal(look_up(keys), PMIX_SUCCESS);
        run_posted();
        put_found(&out, all[i].said, all[i].n, all[i].len);
        tell(PMIX_SUCCESS, &out);
        assert_int_equal(answered, all[i].expected);
        if (all[i].len != 4 || all[i].n != 1)
            continue;
        assert_int_equal(nfound, 1);
        assert_string_equal(found.key, "port");
        assert_string_equal(found.proc.nspace, "job.2");
        assert_int_equal(found.proc.rank, 5);
        assert_int_equal(found.value.data.uint32, 4711);
        assert_string_equal(introduced, "job.2");
    }
    wire_out_free(&out);
}

static void unpublish(void **state)
{
    char *keys[] = {(char *)"a", (char *)"b", NULL};
    (void)state;
    for (int some = 0; some < 2; some++) {
        struct store_who who;
        if (some)
            range(PMIX_RANGE_LOCAL);
        assert_int_equal(upcall_unpublish(&me, some ? keys : NULL, infos, ninfos, on_op, &server),
                         PMIX_SUCCESS);
        ninfos = 0;
        struct wire_in in = question(HOLDER_UNPUBLISH);
        store_get_who(&in, &who);
        assert_string_equal(who.nspace, "job.1");
        assert_int_equal(wire_get_u8(&in), some ? STORE_LOCAL : STORE_RANGES);
        assert_int_equal(wire_get_u32(&in), some ? 2 : 0);
        tell(PMIX_SUCCESS, NULL);
        assert_int_equal(answered, PMIX_SUCCESS);
    }
}

static void a_server_that_leaves(void **state)
{
    (void)state;
    number("port", 1);
    assert_int_equal(publish(), PMIX_SUCCESS);
    server.leaving = true;
    run_posted();
    assert_int_equal(nasked, 0);
    assert_int_equal(answers, 1);
    assert_int_equal(answered, PMIX_ERR_UNREACH);
    server.leaving = false;
    number("port", 1);
    assert_int_equal(publish(), PMIX_SUCCESS);
    run_posted();
    ended = true; /* libpmix has ended meanwhile: no client gets an answer, and nothing leaks */
    asked_done(asked_arg, PMIX_SUCCESS, NULL, 0);
    assert_int_equal(answers, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_directive_is_published),
        TEST(ranges),
        TEST(a_custom_range),
        TEST(access_permissions),
        TEST(what_is_refused),
        TEST(how_a_lookup_waits),
        TEST(what_is_found),
        TEST(unpublish),
        TEST(a_server_that_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
