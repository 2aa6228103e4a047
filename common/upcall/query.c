/* SPDX-License-Identifier: BSD-3-Clause */
/* A query: libpmix's thread copies it, the loop asks the servers that know more than this one, and
 * answers what it can. A key that has no value is left out, and the status then says so. */
#include "common/upcall/query.h"

#include "common/notify/refuse.h"
#include "common/server/peers/ask_all.h"
#include "common/server/peers/ask_far.h"
#include "common/upcall/refused.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void query_free(struct query *q)
{
    for (uint32_t i = 0; i < q->nfilters; i++)
        query_filter_free(&q->filters[i]);
    for (uint32_t i = 0; i < q->nreplies; i++)
        census_free(&q->replies[i].census);
    free(q->filters);
    free(q->items);
    free(q->replies);
    free(q->unknown);
    free(q->nodes);
    registry_free(q->groups);
    procset_free(&q->sought);
    free(q);
}

/* ---- asking other servers ---- */

/* Servers of other steps are asked for tasks alone. */
static void mark(struct query *q, const struct query_item *item, uint32_t node)
{
    if (node >= upcall_server()->boot.nnodes && item->key->parts != CENSUS_TASKS)
        return;
    if (node < q->nreplies && (!item->filter->local || node == upcall_server()->boot.node))
        q->replies[node].parts |= item->key->parts;
}

static void mark_all(struct query *q, const struct query_item *item, const struct nspace *ns)
{
    for (uint32_t i = 0; i < ns->nnodes; i++)
        mark(q, item, ns->base + i);
}

static void mark_apps(struct query *q, const struct query_item *item, const struct nspace *ns)
{
    for (uint32_t app = 0; app < boot_napps(ns->boot); app++)
        mark(q, item, ns->base + ns->node_of[boot_app(ns->boot, app).first]);
}

/* Finds the servers that an item needs. */
static void plan(struct query *q, const struct query_item *item)
{
    const struct nspace *own = upcall_server()->nspace, *ns = query_nspace(item->filter);
    uint32_t node;
    if (ns == NULL || item->filter->help)
        return;
    switch (item->key->from) {
    case QUERY_HERE:
        break;
    case QUERY_SESSION:
        mark_all(q, item, own);
        break;
    case QUERY_JOB:
        mark_all(q, item, ns);
        break;
    case QUERY_APPS:
        for (const struct nspace *n = own; n != NULL; n = n->next)
            if (query_is_active(n) && (item->filter->nspace[0] == '\0' || n == ns))
                mark_apps(q, item, n);
        break;
    case QUERY_NODE:
        node = query_node(ns, item->filter);
        if (node != UINT32_MAX)
            mark(q, item, ns->base + node);
        break;
    case QUERY_PROC:
        if (nspace_node(own, ns->boot->nspace, item->filter->rank, &node) == 0)
            mark(q, item, node);
        break;
    case QUERY_RM:
        q->asks_rm |= ns == own;
        break;
    }
}

/* Says what a key without a value was asked of. */
static pmix_status_t no_value(const struct query_item *item, pmix_status_t status)
{
    const struct query_filter *f = item->filter;
    const char *name = f->group != NULL ? f->group : f->set != NULL ? f->set : f->allocation;
    char rank[24] = "";
    if (f->rank != PMIX_RANK_UNDEF)
        snprintf(rank, sizeof rank, ", rank %u", f->rank);
    return refused(status, "PMIx_Query_info: %s has no value of namespace %s%s%s%s%s%s",
                   item->key->key, f->nspace[0] != '\0' ? f->nspace : "its own", rank,
                   f->host != NULL ? ", node " : "", f->host != NULL ? f->host : "",
                   name != NULL ? ", name " : "", name != NULL ? name : "");
}

/* @return PMIX_SUCCESS, or why there is no value */
static pmix_status_t load(const struct query_item *item, pmix_info_t *info)
{
    const struct query *q = item->query;
    PMIX_INFO_CONSTRUCT(info);
    PMIX_LOAD_KEY(info->key, item->key->key);
    if (item->filter->status != PMIX_SUCCESS)
        return item->filter->status;
    if (item->filter->help) {
        info->value.type = PMIX_STRING;
        info->value.data.string = strdup(item->key->qualifiers);
        return PMIX_SUCCESS;
    }
    if (item->key->load == NULL)
        return PMIX_ERR_NOT_SUPPORTED; /* told by run() */
    if ((item->key->parts & CENSUS_GROUPS) != 0 && q->groups_status != PMIX_SUCCESS)
        return q->groups_status;
    pmix_status_t rc = item->key->load(item, &info->value);
    return rc == PMIX_ERR_NOT_FOUND || rc == PMIX_ERR_NOT_SUPPORTED ? no_value(item, rc) : rc;
}

static void answer_query(struct query *q)
{
    pmix_info_t *info = NULL;
    size_t n = 0;
    pmix_status_t failed = PMIX_SUCCESS;
    if (q->unknown != NULL)
        failed = PMIX_ERR_NOT_SUPPORTED; /* told by run() */
    else if (q->nitems == 0)
        failed = refused(PMIX_ERR_BAD_PARAM, "PMIx_Query_info: it asks for no key; name one");
    if (q->nitems > 0)
        PMIX_INFO_CREATE(info, q->nitems);
    for (uint32_t i = 0; i < q->nitems; i++) {
        pmix_status_t rc = load(&q->items[i], &info[n]);
        if (rc == PMIX_SUCCESS)
            n++;
        else if (failed == PMIX_SUCCESS || failed == PMIX_ERR_NOT_SUPPORTED)
            failed = rc;
    }
    if (n == 0 && info != NULL) {
        PMIX_INFO_FREE(info, q->nitems);
        info = NULL;
    }
    answer_infos(&q->request.answer,
                 n > 0 && failed != PMIX_SUCCESS ? PMIX_ERR_PARTIAL_SUCCESS : failed, info, n);
    query_free(q);
}

/* @return whether the bytes make sense */
static bool take_answer(struct query *q, struct query_reply *reply, const void *data, size_t len)
{
    struct wire_in in;
    size_t size;
    wire_in_init(&in, data, len);
    const void *groups = wire_get_block(&in, &size);
    if (in.bad || census_read(&reply->census, reply->parts, &in) != 0)
        return false;
    return (reply->parts & CENSUS_GROUPS) == 0 || registry_merge(q->groups, groups, size) == 0;
}

static void take_reply(struct query_reply *reply, int32_t status, const void *data, size_t len)
{
    struct query *q = reply->query;
    if (status == PMIX_SUCCESS) {
        reply->known = take_answer(q, reply, data, len);
        if (!reply->known)
            status = PMIX_ERR_UNPACK_FAILURE;
    }
    /* A server that has left or is lost knows of no group that others do not know. */
    if ((reply->parts & CENSUS_GROUPS) != 0 && status != PMIX_SUCCESS &&
        status != PMIX_ERR_LOST_CONNECTION && q->groups_status == PMIX_SUCCESS)
        q->groups_status = status;
}

static void let_go(struct query *q)
{
    if (--q->open == 0)
        answer_query(q);
}

/* @thread the loop's */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct query_reply *reply = arg;
    take_reply(reply, status, data, len);
    let_go(reply->query);
}

/* @thread the loop's */
static void on_answer_of_all(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct query *q = arg;
    struct query_reply *reply = &q->replies[node];
    if (reply->parts != 0 && node != upcall_server()->boot.node)
        take_reply(reply, status, data, len);
    let_go(q);
}

/* @thread the loop's */
static void on_job(void *arg, int64_t seconds, const char *nodes, const char *why)
{
    struct query *q = arg;
    q->seconds = seconds;
    q->nodes = nodes != NULL ? strdup(nodes) : NULL;
    if (seconds < 0)
        log_info("nothing is known of " PMIX_TIME_REMAINING ": %s", why);
    let_go(q);
}

/* What this server itself has to say. */
static void write_own(struct server *server, unsigned parts, struct wire_out *out)
{
    struct wire_out groups = {0};
    struct census census;
    census_take(server, parts, &census);
    if ((parts & CENSUS_GROUPS) != 0)
        registry_write(server->registry, &groups);
    wire_put_block(out, groups.data, groups.len);
    census_write(&census, parts, out);
    census_free(&census);
    wire_out_free(&groups);
}

static void ask_one(struct query_reply *reply, uint32_t node)
{
    struct server *server = upcall_server();
    uint8_t parts = (uint8_t)reply->parts;
    reply->query->open++;
    asks_send(server->asks, node, ASK_QUERY, &parts, sizeof parts,
              (uint32_t)server->conf.timeouts.query, on_answer, reply);
}

/* Those that are not needed have nothing to say. */
static void ask_many(struct query *q, const struct ranges *nodes)
{
    struct server *server = upcall_server();
    struct wire_out body = {0};
    unsigned parts = 0;
    for (struct ranges_at at = {0}; ranges_next(nodes, &at);)
        parts |= q->replies[at.number].parts;
    for (struct ranges_at at = {0}; ranges_next(nodes, &at);)
        q->replies[at.number].parts = parts;
    wire_put_u8(&body, (uint8_t)parts);
    ranges_write(nodes, UINT32_MAX, &body);
    q->open += q->nreplies;
    ask_all(server, ASK_QUERY, body.data, body.len, (uint32_t)server->conf.timeouts.query,
            on_answer_of_all, q);
    wire_out_free(&body);
}

/* Asks the other servers that are needed: a few by themselves, many by a question to all. */
static void ask_own(struct query *q)
{
    const struct server *server = upcall_server();
    struct ranges nodes = {0};
    for (uint32_t i = 0; i < server->boot.nnodes; i++)
        if (i != server->boot.node && q->replies[i].parts != 0)
            ranges_put(&nodes, i);
    if (ranges_count(&nodes) > (uint64_t)server->conf.tree_arity)
        ask_many(q, &nodes);
    else
        for (struct ranges_at at = {0}; ranges_next(&nodes, &at);)
            ask_one(&q->replies[at.number], at.number);
    ranges_free(&nodes);
}

/* The servers of another step, from the handle on that the namespace begins with. */
struct far_replies {
    struct query *query;
    uint32_t base, open;
};

/* @thread the loop's */
static void on_far(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct far_replies *far = arg;
    struct query *q = far->query;
    struct query_reply *reply = &q->replies[far->base + node];
    if (reply->parts != 0)
        take_reply(reply, status, data, len);
    if (--far->open > 0)
        return;
    free(far);
    let_go(q);
}

/* One server of another step by itself, several by the first one that is there. */
static void ask_step(struct query *q, const struct nspace *ns)
{
    struct server *server = upcall_server();
    const uint8_t parts = CENSUS_TASKS;
    uint32_t n = 0, last = 0;
    for (uint32_t i = ns->base; i < ns->base + ns->nnodes && i < q->nreplies; i++)
        if (q->replies[i].parts != 0) {
            n++;
            last = i;
        }
    if (n == 1)
        ask_one(&q->replies[last], last);
    if (n <= 1)
        return;
    struct far_replies *far = malloc(sizeof *far);
    *far = (struct far_replies){q, ns->base, ns->nnodes};
    q->open++;
    ask_far(server, ns, ASK_QUERY, &parts, sizeof parts, (uint32_t)server->conf.timeouts.query,
            on_far, far);
}

static void ask_others(struct query *q)
{
    ask_own(q);
    for (const struct nspace *ns = upcall_server()->nspace->next; ns != NULL; ns = ns->next)
        ask_step(q, ns);
}

/* Asks all servers that are needed, this one last: its answer may be the last of all. */
static void ask(struct query *q)
{
    struct server *server = upcall_server();
    struct wire_out own = {0};
    struct query_reply *here = &q->replies[server->boot.node];
    q->open = 1;
    ask_others(q);
    if (q->asks_rm) {
        q->open++;
        q->wait = (struct job_wait){.done = on_job, .arg = q};
        job_now_ask(server, &q->wait);
    }
    write_own(server, here->parts, &own);
    on_answer(here, PMIX_SUCCESS, own.data, own.len);
    wire_out_free(&own);
}

static void begin(struct query *q)
{
    q->nreplies = nspace_handles(upcall_server()->nspace);
    q->replies = calloc(q->nreplies, sizeof *q->replies);
    for (uint32_t i = 0; i < q->nreplies; i++)
        q->replies[i].query = q;
    for (uint32_t i = 0; i < q->nitems; i++)
        plan(q, &q->items[i]);
    ask(q);
}

static void on_sought(struct seek_wait *wait)
{
    begin((struct query *)((char *)wait - offsetof(struct query, seek)));
}

/* Whether the query waits until the namespaces of its tasks are known here: they may be those of
 * steps that this one has never met. */
static bool seek(struct query *q)
{
    struct server *server = upcall_server();
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t i = 0; i < q->nitems; i++) {
        const struct query_filter *f = q->items[i].filter;
        if ((q->items[i].key->parts & CENSUS_TASKS) != 0 && !f->help && f->nspace[0] != '\0' &&
            nspace_find(server->nspace, f->nspace) == NULL)
            procset_add(&q->sought, f->nspace, 0, 0);
    }
    if (q->sought.nparts == 0 || server->seeks == NULL || here->ntasks == 0)
        return false;
    /* A task of this node is in the set, so this server looks for them. */
    procset_add(&q->sought, server->boot.nspace, here->ranks[0], here->ranks[0]);
    procset_canonical(&q->sought);
    q->seek = (struct seek_wait){.set = &q->sought, .done = on_sought};
    seek_begin(server, &q->seek, server->conf.timeouts.query * INT64_C(1000));
    return true;
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct query *q = (struct query *)item;
    if (q->unknown != NULL)
        refused_tell(REFUSED_QUERY, q->unknown, NULL);
    if (q->refused != NULL)
        refused_tell(REFUSED_QUERY, q->refused->key, q->refused->reason);
    if (!seek(q))
        begin(q);
}

int32_t upcall_answer_query(struct server *server, const void *body, size_t len,
                            struct wire_out *out)
{
    struct ranges nodes = {0};
    struct wire_in in;
    wire_in_init(&in, body, len);
    unsigned parts = wire_get_u8(&in);
    if (in.p < in.end)
        ranges_read(&nodes, server->boot.nnodes - 1, &in);
    bool good = wire_end(&in) && (parts & ~(unsigned)CENSUS_ALL) == 0;
    bool ours = nodes.n == 0 || ranges_have(&nodes, server->boot.node);
    ranges_free(&nodes);
    if (!good)
        return PMIX_ERR_UNPACK_FAILURE;
    if (!ours)
        return PMIX_SUCCESS; /* the asker does not look at it */
    write_own(server, parts, out);
    return PMIX_SUCCESS;
}

/* ---- taking a query; @thread PMIx's ---- */

static void add_item(struct query *q, const char *name, const struct query_filter *filter)
{
    const struct query_key *key = query_key(name);
    if (key == NULL) {
        if (q->unknown == NULL)
            q->unknown = strndup(name, PMIX_MAX_KEYLEN);
        return;
    }
    q->items = realloc(q->items, (q->nitems + 1) * sizeof *q->items);
    q->items[q->nitems++] = (struct query_item){.query = q, .key = key, .filter = filter};
    if (key->load == NULL)
        q->refused = key;
}

pmix_status_t upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                           pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc;
    struct query *q = calloc(1, sizeof *q);
    q->groups = registry_new();
    q->filters = calloc(nqueries + 1, sizeof *q->filters);
    for (size_t i = 0; i < nqueries; i++) {
        q->nfilters++;
        query_filter_read(&q->filters[i], &queries[i]);
        for (char **key = queries[i].keys; key != NULL && *key != NULL; key++)
            add_item(q, *key, &q->filters[i]);
    }
    q->request.answer = answer_info(cbfunc, cbdata);
    return upcall_post(&q->request.item, run);
}
