/* query: groups and process sets, of all servers of the session; the namespace. */
#include "common/nspace/procs.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* What is asked for, one key. */
enum wanted {
    WANT_NUM_GROUPS,
    WANT_GROUP_NAMES,
    WANT_GROUP_MEMBERS,
    WANT_NUM_PSETS,
    WANT_PSET_NAMES,
    WANT_PSET_MEMBERS,
    WANT_NAMESPACES,
    WANT_UNKNOWN,
};

static const char *const keys[WANT_UNKNOWN] = {
    [WANT_NUM_GROUPS] = PMIX_QUERY_NUM_GROUPS,
    [WANT_GROUP_NAMES] = PMIX_QUERY_GROUP_NAMES,
    [WANT_GROUP_MEMBERS] = PMIX_QUERY_GROUP_MEMBERSHIP,
    [WANT_NUM_PSETS] = PMIX_QUERY_NUM_PSETS,
    [WANT_PSET_NAMES] = PMIX_QUERY_PSET_NAMES,
    [WANT_PSET_MEMBERS] = PMIX_QUERY_PSET_MEMBERSHIP,
    [WANT_NAMESPACES] = PMIX_QUERY_NAMESPACES,
};

struct item {
    enum wanted wanted;
    char *id; /* group or set, where the key needs one */
};

struct query {
    struct request request;
    struct item *items;
    size_t nitems;
    bool partial;           /* some key has no answer */
    char *unknown;          /* a key that we do not know, or NULL */
    struct registry *found; /* of all servers */
    uint32_t open;          /* questions that are not answered yet */
    pmix_status_t status;
};

static void query_free(struct query *q)
{
    for (size_t i = 0; i < q->nitems; i++)
        free(q->items[i].id);
    free(q->items);
    free(q->unknown);
    registry_free(q->found);
    free(q);
}

static bool is_group(enum wanted wanted)
{
    return wanted <= WANT_GROUP_MEMBERS;
}

/* Whether an entry is the first of its name: groups of one id may stand beside each other. */
static bool counts(const struct registry *r, uint32_t i, enum registry_kind kind)
{
    for (uint32_t j = 0; j < i; j++)
        if (r->entries[j].kind == kind && strcmp(r->entries[j].id, r->entries[i].id) == 0)
            return false;
    return r->entries[i].kind == kind;
}

/* Names of process sets: one string, with commas. */
static bool load_list(pmix_info_t *info, const struct registry *r, enum registry_kind kind)
{
    size_t len = 1;
    for (uint32_t i = 0; i < r->n; i++)
        len += strlen(r->entries[i].id) + 1;
    char *list = malloc(len), *end = list;
    if (list == NULL)
        return false;
    *list = '\0';
    for (uint32_t i = 0; i < r->n; i++)
        if (counts(r, i, kind)) {
            if (end != list)
                *end++ = ',';
            end = stpcpy(end, r->entries[i].id);
        }
    info->value.type = PMIX_STRING;
    info->value.data.string = list;
    return true;
}

static bool load_names(pmix_info_t *info, const struct registry *r, enum registry_kind kind,
                       size_t n)
{
    /* By hand: libpmix 5 makes no array of nothing. */
    pmix_data_array_t *array = calloc(1, sizeof *array);
    char **names = calloc(n + 1, sizeof *names);
    if (array == NULL || names == NULL) {
        free(array);
        free(names);
        return false;
    }
    for (uint32_t i = 0, k = 0; i < r->n; i++)
        if (counts(r, i, kind))
            names[k++] = strdup(r->entries[i].id);
    array->type = PMIX_STRING;
    array->size = n;
    array->array = names;
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
    return true;
}

static bool load_members(pmix_info_t *info, const struct registry *r, enum registry_kind kind,
                         const char *id)
{
    const struct registry_entry *e = NULL;
    for (uint32_t i = 0; i < r->n && id != NULL && e == NULL; i++)
        if (r->entries[i].kind == kind && strcmp(r->entries[i].id, id) == 0)
            e = &r->entries[i];
    if (e == NULL)
        return false;
    return procs_load(info, keys[kind == REGISTRY_GROUP ? WANT_GROUP_MEMBERS : WANT_PSET_MEMBERS],
                      &e->members);
}

/* One key's answer. @return whether there is one */
static bool load(pmix_info_t *info, const struct query *q, const struct item *item)
{
    enum registry_kind kind = is_group(item->wanted) ? REGISTRY_GROUP : REGISTRY_PSET;
    size_t n = 0;
    for (uint32_t i = 0; i < q->found->n; i++)
        n += counts(q->found, i, kind);
    PMIX_INFO_CONSTRUCT(info);
    PMIX_LOAD_KEY(info->key, keys[item->wanted]);
    if (item->wanted == WANT_NAMESPACES) { /* a list with commas; ours is the one that we serve */
        info->value.type = PMIX_STRING;
        info->value.data.string = strdup(upcall_server()->boot.nspace);
        return info->value.data.string != NULL;
    }
    if (item->wanted == WANT_NUM_GROUPS || item->wanted == WANT_NUM_PSETS) {
        info->value.type = PMIX_SIZE;
        info->value.data.size = n;
        return true;
    }
    /* The standard has an array for both. Of the sets libpmix's own header has a list, which is
     * what Open MPI takes an answer for without looking at its type. */
    if (item->wanted == WANT_PSET_NAMES)
        return load_list(info, q->found, kind);
    if (item->wanted == WANT_GROUP_NAMES)
        return load_names(info, q->found, kind, n);
    return load_members(info, q->found, kind, item->id);
}

static void answer_query(struct query *q)
{
    pmix_info_t *info = NULL;
    size_t n = 0;
    if (q->status == PMIX_SUCCESS && q->nitems > 0)
        PMIX_INFO_CREATE(info, q->nitems);
    for (size_t i = 0; info != NULL && i < q->nitems; i++)
        if (load(&info[n], q, &q->items[i]))
            n++;
        else
            q->partial = true;
    pmix_status_t status = q->status;
    if (status == PMIX_SUCCESS && n == 0)
        status = PMIX_ERR_NOT_FOUND;
    else if (status == PMIX_SUCCESS && q->partial)
        status = PMIX_QUERY_PARTIAL_SUCCESS;
    if (n == 0 && info != NULL) {
        PMIX_INFO_FREE(info, q->nitems);
        info = NULL;
    }
    answer_infos(&q->request.answer, status, info, n);
    query_free(q);
}

/* @thread the loop's */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct query *q = arg;
    /* One that has left, or is lost, knows of nothing any more that others do not know. */
    if (status == PMIX_ERR_LOST_CONNECTION)
        status = PMIX_SUCCESS;
    else if (status == PMIX_SUCCESS && registry_merge(q->found, data, len) != 0)
        status = PMIX_ERR_UNPACK_FAILURE;
    if (q->status == PMIX_SUCCESS)
        q->status = status;
    if (--q->open == 0)
        answer_query(q);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct query *q = (struct query *)item;
    struct server *server = upcall_server();
    struct wire_out own = {0};
    if (q->unknown != NULL)
        refused_tell(REFUSED_QUERY, q->unknown);
    if (q->nitems == 0) {
        answer_infos(&q->request.answer, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
        query_free(q);
        return;
    }
    q->open = server->boot.nnodes;
    registry_write(server->registry, &own);
    for (uint32_t i = 0; i < server->boot.nnodes; i++)
        if (i != server->boot.node)
            asks_send(server->asks, i, ASK_QUERY, NULL, 0, (uint32_t)server->conf.timeouts.query,
                      on_answer, q);
    on_answer(q, PMIX_SUCCESS, own.data, own.len);
    wire_out_free(&own);
}

static enum wanted which(const char *key)
{
    for (int i = 0; i < WANT_UNKNOWN; i++)
        if (strcmp(key, keys[i]) == 0)
            return (enum wanted)i;
    return WANT_UNKNOWN;
}

/* @thread PMIx's */
static int add_item(struct query *q, const char *key, const pmix_query_t *query)
{
    enum wanted wanted = which(key);
    if (wanted == WANT_UNKNOWN) {
        q->partial = true;
        if (q->unknown == NULL)
            q->unknown = strndup(key, PMIX_MAX_KEYLEN);
        return 0;
    }
    struct item *items = realloc(q->items, (q->nitems + 1) * sizeof *items);
    if (items == NULL)
        return -1;
    q->items = items;
    items[q->nitems] = (struct item){.wanted = wanted};
    const char *qualifier = is_group(wanted) ? PMIX_GROUP_ID : PMIX_PSET_NAME;
    for (size_t i = 0; i < query->nqual; i++)
        if (PMIX_CHECK_KEY(&query->qualifiers[i], qualifier) &&
            query->qualifiers[i].value.type == PMIX_STRING &&
            query->qualifiers[i].value.data.string != NULL && items[q->nitems].id == NULL)
            items[q->nitems].id = strdup(query->qualifiers[i].value.data.string);
    q->nitems++;
    return 0;
}

pmix_status_t upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                           pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc;
    struct query *q = calloc(1, sizeof *q);
    if (q == NULL)
        return PMIX_ERR_NOMEM;
    q->found = registry_new();
    int rc = q->found == NULL ? -1 : 0;
    for (size_t i = 0; i < nqueries && rc == 0; i++)
        for (char **key = queries[i].keys; key != NULL && *key != NULL && rc == 0; key++)
            rc = add_item(q, *key, &queries[i]);
    if (rc != 0) {
        query_free(q);
        return PMIX_ERR_NOMEM;
    }
    q->request.answer = answer_info(cbfunc, cbdata);
    return upcall_post(&q->request, run);
}

void upcall_serve_query(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct wire_out out = {0};
    (void)body;
    (void)len;
    registry_write(server->registry, &out);
    asks_reply(server->asks, from, id, out.failed ? PMIX_ERR_NOMEM : PMIX_SUCCESS, out.data,
               out.len);
    wire_out_free(&out);
}
