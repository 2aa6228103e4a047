/* direct_modex: the data of one process, from the server that hosts it. */
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our question to another server. */
struct modex {
    struct request request;
    pmix_proc_t proc;
    uint32_t timeout; /* seconds; 0: the default */
};

/* Another server's question to us. */
struct served {
    struct handoff_item item;
    uint32_t from;
    uint64_t id;
    pmix_status_t status;
    char *data;
    size_t len;
};

/* @thread the loop's */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct modex *m = arg;
    char *copy = len > 0 ? malloc(len) : NULL;
    if (copy != NULL)
        memcpy(copy, data, len);
    else if (len > 0)
        status = PMIX_ERR_NOMEM;
    answer_data(&m->request.answer, status, copy, copy != NULL ? len : 0);
    free(m);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct modex *m = (struct modex *)item;
    struct server *server = upcall_server();
    struct wire_out body = {0};
    uint32_t node;
    if (nspace_node(server->nspace, m->proc.nspace, m->proc.rank, &node) != 0 ||
        node == server->boot.node) {
        log_debug("upcall: direct modex of %s:%u, who is not here", m->proc.nspace, m->proc.rank);
        answer_status(&m->request.answer, PMIX_ERR_NOT_FOUND);
        free(m);
        return;
    }
    wire_put_str(&body, m->proc.nspace);
    wire_put_u32(&body, m->proc.rank);
    asks_send(server->asks, node, ASK_MODEX, body.data, body.len,
              m->timeout > 0 ? m->timeout : (uint32_t)server->conf.timeouts.get, on_answer, m);
    wire_out_free(&body);
}

pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    struct modex *m = calloc(1, sizeof *m);
    if (m == NULL)
        return PMIX_ERR_NOMEM;
    m->proc = *proc;
    m->request.answer = answer_modex(cbfunc, cbdata);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            pmix_status_t rc;
            uint32_t seconds = 0;
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, seconds, uint32_t);
            m->timeout = rc == PMIX_SUCCESS ? seconds : 0;
        }
    return upcall_post(&m->request, run);
}

/* @thread the loop's */
static void reply(struct handoff_item *item)
{
    struct served *s = (struct served *)item;
    asks_reply(upcall_server()->asks, s->from, s->id, s->status, s->data, s->len);
    free(s->data);
    free(s);
}

/* @thread PMIx's */
static void on_local_data(pmix_status_t status, char *data, size_t len, void *cbdata)
{
    struct served *s = cbdata;
    s->status = status;
    if (status == PMIX_SUCCESS && len > 0) {
        s->data = malloc(len);
        if (s->data != NULL)
            memcpy(s->data, data, len);
        else
            s->status = PMIX_ERR_NOMEM;
        s->len = s->data != NULL ? len : 0;
    }
    s->item.run = reply;
    handoff_post(upcall_server()->handoff, &s->item);
}

void upcall_describe_modex(const char *node, const void *body, size_t len, char *buf, size_t cap)
{
    struct wire_in in;
    char name[PROCSET_NAME_MAX + 1];
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    uint32_t rank = wire_get_u32(&in);
    if (in.bad)
        snprintf(buf, cap, "a direct modex from %s", node);
    else
        snprintf(buf, cap, "direct modex of %s rank %u: no answer of %s", name, rank, node);
}

void upcall_serve_modex(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct wire_in in;
    char name[PROCSET_NAME_MAX + 1];
    uint32_t node;
    struct served *s = calloc(1, sizeof *s);
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    uint32_t rank = wire_get_u32(&in);
    if (s == NULL || !wire_end(&in) || nspace_node(server->nspace, name, rank, &node) != 0 ||
        node != server->boot.node) {
        asks_reply(server->asks, from, id, PMIX_ERR_NOT_FOUND, NULL, 0);
        free(s);
        return;
    }
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, name, rank);
    s->from = from;
    s->id = id;
    /* libpmix answers when the process has committed its data. */
    pmix_status_t rc = PMIx_server_dmodex_request(&proc, on_local_data, s);
    if (rc != PMIX_SUCCESS) {
        asks_reply(server->asks, from, id, rc, NULL, 0);
        free(s);
    }
}
