/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Publish, PMIx_Lookup, PMIx_Unpublish: what is asked goes to the holder
 * (common/holder/holder.h). Values travel as libpmix packs them. */
#include "common/upcall/data.h"

#include "common/notify/refuse.h"
#include "common/nspace/library.h"
#include "common/server/steps/meeting.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 60000 /* for what waits for no data */ };

/* A request, and the callback that it ends with. */
struct data_request {
    struct handoff_item item;
    enum holder_op op;
    pmix_op_cbfunc_t say_op;
    pmix_lookup_cbfunc_t say_lookup;
    void *cbdata;
    struct wire_out body;
    struct store_lookup lookup; /* of HOLDER_LOOKUP */
    struct store_list entries;  /* of HOLDER_PUBLISH */
    uint32_t nentries;
    uint32_t ms; /* PMIX_TIMEOUT; 0: none */
    pmix_status_t status;
    pmix_pdata_t *pdata;
    size_t npdata;
};

/* ---- answers ---- */

static void free_request(struct data_request *r)
{
    struct store_entry *e;
    while ((e = TAILQ_FIRST(&r->entries)) != NULL) {
        TAILQ_REMOVE(&r->entries, e, link);
        store_entry_free(e);
    }
    if (r->pdata != NULL)
        PMIX_PDATA_FREE(r->pdata, r->npdata);
    store_free_lookup(&r->lookup);
    wire_out_free(&r->body);
    free(r);
}

/* libpmix copies the data before its callback returns. @thread PMIx's or the loop's */
static void say(pmix_status_t ignored, void *arg)
{
    struct data_request *r = arg;
    (void)ignored;
    if (r->op == HOLDER_LOOKUP && r->say_lookup != NULL)
        r->say_lookup(r->status, r->pdata, r->npdata, r->cbdata);
    else if (r->op != HOLDER_LOOKUP && r->say_op != NULL)
        r->say_op(r->status, r->cbdata);
    free_request(r);
}

/* @thread the loop's */
static void answer(struct data_request *r, pmix_status_t status)
{
    r->status = status;
    if (!answer_wanted())
        free_request(r);
    else if (library_has(upcall_server()->library, LIBRARY_DATA_ANSWER_RACES))
        upcall_call_there(say, r);
    else
        say(PMIX_SUCCESS, r);
}

static bool unpack(const void *bytes, size_t len, pmix_value_t *value)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t object = {.bytes = malloc(len + 1), .size = len};
    int32_t n = 1;
    memcpy(object.bytes, bytes, len);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    bool good = PMIx_Data_load(&buffer, &object) == PMIX_SUCCESS &&
                PMIx_Data_unpack(NULL, &buffer, value, &n, PMIX_VALUE) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return good;
}

/* @return PMIX_SUCCESS, PMIX_ERR_PARTIAL_SUCCESS, or why not */
static pmix_status_t read_found(struct data_request *r, const void *data, size_t len,
                                struct procset *publishers)
{
    char nspace[PROCSET_NAME_MAX + 1], key[STORE_KEY_MAX + 1];
    struct wire_in in;
    wire_in_init(&in, data, len);
    pmix_status_t status = wire_get_i32(&in);
    uint32_t n = wire_get_count(&in, 16);
    if (in.bad || n == 0)
        return PMIX_ERR_NOT_FOUND; /* told by on_answer() */
    PMIX_PDATA_CREATE(r->pdata, n);
    r->npdata = n;
    for (uint32_t i = 0; i < r->npdata; i++) {
        size_t size;
        wire_get_str(&in, nspace, sizeof nspace);
        pmix_rank_t rank = wire_get_u32(&in);
        wire_get_str(&in, key, sizeof key);
        const void *value = wire_get_block(&in, &size);
        if (in.bad || !unpack(value, size, &r->pdata[i].value))
            return PMIX_ERR_UNPACK_FAILURE;
        PMIX_LOAD_PROCID(&r->pdata[i].proc, nspace, rank);
        PMIX_LOAD_KEY(r->pdata[i].key, key);
        procset_add(publishers, nspace, rank, rank);
    }
    procset_canonical(publishers);
    return status;
}

/* @thread the loop's */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct data_request *r = arg;
    struct procset publishers = {0};
    if (r->op == HOLDER_LOOKUP && status == PMIX_SUCCESS) {
        status = read_found(r, data, len, &publishers);
        meeting_register(upcall_server(), &publishers);
        /* what is there is worth more than to know that some is missing */
        if (status == PMIX_ERR_PARTIAL_SUCCESS &&
            !library_has(upcall_server()->library, LIBRARY_LOOKUP_PARTIAL))
            status = PMIX_SUCCESS;
    }
    if (status == PMIX_ERR_NOT_FOUND && r->op == HOLDER_LOOKUP)
        refused(
            status,
            "PMIx_Lookup: no process has published \"%s\"%s in its range; with PMIX_WAIT it waits",
            r->lookup.keys[0], r->lookup.nkeys > 1 ? " or another one of its keys" : "");
    procset_free(&publishers);
    answer(r, status);
}

/* ---- requests ---- */

static struct data_request *new_request(enum holder_op op, void *cbdata)
{
    struct data_request *r = calloc(1, sizeof *r);
    TAILQ_INIT(&r->entries);
    r->op = op;
    r->cbdata = cbdata;
    wire_put_u8(&r->body, (uint8_t)op);
    return r;
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct data_request *r = (struct data_request *)item;
    struct server *server = upcall_server();
    struct store_entry *e;
    uint32_t ms = r->ms;
    if (server->leaving) {
        answer(r, PMIX_ERR_UNREACH);
        return;
    }
    if (r->op == HOLDER_PUBLISH) {
        wire_put_u32(&r->body, r->nentries);
        TAILQ_FOREACH (e, &r->entries, link) {
            e->number = ++server->published;
            store_put_entry(&r->body, e);
        }
    } else if (r->op == HOLDER_LOOKUP) {
        r->lookup.number = ++server->published;
        store_put_lookup(&r->body, &r->lookup);
    }
    if (ms == 0 && (r->op != HOLDER_LOOKUP || r->lookup.want == 0))
        ms = ANSWER_MS;
    if (r->body.failed)
        answer(r, PMIX_ERR_NOMEM);
    else
        holder_request(server->holder, r->body.data, r->body.len, ms, on_answer, r);
}

/* Posts the request, or frees it. @param d freed */
static pmix_status_t end(struct data_directives *d, struct data_request *r, pmix_status_t rc)
{
    data_directives_free(d);
    if (rc == PMIX_SUCCESS)
        upcall_post(&r->item, run);
    else
        free_request(r);
    return rc;
}

static uint32_t *copy_ids(const uint32_t *ids, uint32_t n)
{
    uint32_t *copy = calloc(n + 1ul, sizeof *copy);
    if (n > 0)
        memcpy(copy, ids, n * sizeof *ids);
    return copy;
}

/* @return NULL: libpmix cannot pack the value */
static struct store_entry *new_entry(const struct data_directives *d, const pmix_info_t *info)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {0};
    struct store_entry *e = calloc(1, sizeof *e);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (PMIx_Data_pack(NULL, &buffer, (void *)&info->value, 1, PMIX_VALUE) == PMIX_SUCCESS)
        PMIx_Data_unload(&buffer, &bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    e->who = d->who;
    e->range = d->range;
    e->life = d->life;
    e->has_uids = d->has_uids;
    e->has_gids = d->has_gids;
    e->nuids = d->nuids;
    e->ngids = d->ngids;
    e->uids = copy_ids(d->uids, d->nuids);
    e->gids = copy_ids(d->gids, d->ngids);
    e->key = strndup(info->key, PMIX_MAX_KEYLEN);
    e->value = bytes.bytes;
    e->len = bytes.size;
    procset_unite(&e->custom, &d->custom);
    if (e->value != NULL)
        return e;
    store_entry_free(e);
    return NULL;
}

/* What is no directive is published. */
static pmix_status_t add_entries(struct data_request *r, const struct data_directives *d,
                                 const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        if (directive_known(CALL_PUBLISH, &info[i]))
            continue;
        struct store_entry *e = new_entry(d, &info[i]);
        if (e == NULL)
            return PMIX_ERR_PACK_FAILURE;
        TAILQ_INSERT_TAIL(&r->entries, e, link);
        r->nentries++;
    }
    return r->nentries > 0
               ? PMIX_SUCCESS
               : refused(PMIX_ERR_BAD_PARAM, "PMIx_Publish: it has directives, and no data");
}

/* More than can be said, 49 days, is as good as for ever. */
static uint32_t to_ms(uint32_t seconds)
{
    return seconds < UINT32_MAX / 1000 ? seconds * 1000 : UINT32_MAX;
}

pmix_status_t upcall_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                             pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct data_directives *d = data_directives_new(CALL_PUBLISH, proc);
    struct data_request *r = new_request(HOLDER_PUBLISH, cbdata);
    pmix_status_t rc = data_directives_read(d, info, ninfo);
    if (rc == PMIX_SUCCESS)
        rc = add_entries(r, d, info, ninfo);
    if (rc == PMIX_SUCCESS) {
        r->say_op = cbfunc;
        r->ms = to_ms(d->seconds);
    }
    return end(d, r, rc);
}

static uint32_t count_keys(char **keys)
{
    uint32_t n = 0;
    while (keys != NULL && keys[n] != NULL && n <= STORE_KEYS_MAX)
        n++;
    return n;
}

static pmix_status_t take_keys(struct store_lookup *lookup, char **keys)
{
    uint32_t n = count_keys(keys);
    if (n == 0 || n > STORE_KEYS_MAX)
        return refused(PMIX_ERR_BAD_PARAM, "PMIx_Lookup: it names %s; name 1 to %d",
                       n == 0 ? "no key" : "too many keys", STORE_KEYS_MAX);
    lookup->keys = calloc(n, sizeof *lookup->keys);
    while (lookup->nkeys < n) {
        lookup->keys[lookup->nkeys] = strndup(keys[lookup->nkeys], STORE_KEY_MAX);
        lookup->nkeys++;
    }
    return PMIX_SUCCESS;
}

pmix_status_t upcall_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                            size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct data_directives *d = data_directives_new(CALL_LOOKUP, proc);
    struct data_request *r = new_request(HOLDER_LOOKUP, cbdata);
    pmix_status_t rc = data_directives_read(d, info, ninfo);
    if (rc == PMIX_SUCCESS)
        rc = take_keys(&r->lookup, keys);
    if (rc == PMIX_SUCCESS) {
        uint32_t all = r->lookup.nkeys;
        procset_unite(&r->lookup.custom, &d->custom);
        r->say_lookup = cbfunc;
        r->lookup.who = d->who;
        r->lookup.range = d->range;
        r->lookup.want = !d->wait ? 0 : d->want > 0 && d->want < all ? d->want : all;
        r->lookup.left = r->ms = to_ms(d->seconds);
    }
    return end(d, r, rc);
}

pmix_status_t upcall_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct data_directives *d = data_directives_new(CALL_UNPUBLISH, proc);
    struct data_request *r = new_request(HOLDER_UNPUBLISH, cbdata);
    uint32_t n = count_keys(keys);
    pmix_status_t rc = data_directives_read(d, info, ninfo);
    if (n > STORE_KEYS_MAX)
        rc = refused(PMIX_ERR_BAD_PARAM, "PMIx_Unpublish: it names more than %d keys",
                     STORE_KEYS_MAX);
    if (rc == PMIX_SUCCESS) {
        r->say_op = cbfunc;
        r->ms = to_ms(d->seconds);
        store_put_who(&r->body, &d->who);
        wire_put_u8(&r->body, (uint8_t)(d->any_range ? STORE_RANGES : d->range));
        wire_put_u32(&r->body, n);
        for (uint32_t i = 0; i < n; i++)
            wire_put_str(&r->body, keys[i]);
    }
    return end(d, r, rc);
}
