/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_modex: the data of one process, from the server that hosts it. */
#include "common/notify/refuse.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long another server waits for a key when the process has put others, and the
 * caller sets no time: for one that is just being put. libpmix itself waits two seconds for a
 * process of the same node. */
enum { KEY_WAIT_S = 1 };

/* Our question to another server. */
struct modex {
    struct request request;
    pmix_proc_t proc;
    uint32_t timeout; /* seconds; 0: the default */
    char *key;        /* what the answer has to have, owned; NULL: whatever there is */
};

static void free_modex(struct modex *m)
{
    free(m->key);
    free(m);
}

/* @thread the loop's */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct modex *m = arg;
    struct shared_bytes *copy = len > 0 ? shared_bytes_copy(data, len) : NULL;
    if (status == PMIX_ERR_NOT_FOUND)
        refused(status,
                "PMIx_Get of %s rank %u, key \"%s\": its node's server has no such key, or no "
                "such process",
                m->proc.nspace, m->proc.rank, m->key != NULL ? m->key : "");
    answer_data(&m->request.answer, status, copy);
    free_modex(m);
}

/* Replaces a process of a connection's name. @return whether it was one. @thread the loop's */
static bool take_name(const struct server *server, pmix_proc_t *proc)
{
    const struct book_entry *named = book_named(&server->book, proc->nspace, NULL);
    const struct procset_part *part;
    uint32_t rank;
    if (named == NULL || !procset_at_place(&named->members, proc->rank, &part, &rank))
        return false;
    PMIX_LOAD_PROCID(proc, part->nspace, rank);
    return true;
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct modex *m = (struct modex *)item;
    struct server *server = upcall_server();
    struct wire_out body = {0};
    uint32_t node;
    bool named = take_name(server, &m->proc);
    if (nspace_node(server->nspace, m->proc.nspace, m->proc.rank, &node) != 0 ||
        (node == server->boot.node && !named)) {
        answer_status(
            &m->request.answer,
            refused(PMIX_ERR_NOT_FOUND,
                    "PMIx_Get of %s rank %u, key \"%s\": there is no such process, or it is "
                    "of this node and libpmix does not know it",
                    m->proc.nspace, m->proc.rank, m->key != NULL ? m->key : ""));
        free_modex(m);
        return;
    }
    wire_put_str(&body, m->proc.nspace);
    wire_put_u32(&body, m->proc.rank);
    wire_put_str(&body, m->key);
    wire_put_u32(&body, m->timeout > 0 ? m->timeout : KEY_WAIT_S);
    if (node == server->boot.node)
        upcall_serve_own(server, body.data, body.len, on_answer, m);
    else
        asks_send(server->asks, node, ASK_MODEX, body.data, body.len,
                  m->timeout > 0 ? m->timeout : (uint32_t)server->conf.timeouts.get, on_answer, m);
    wire_out_free(&body);
}

/* @return the key that is asked for, or NULL: none is named, or it has a qualifier, by which
 * libpmix alone finds which value is meant. @thread PMIx's */
static const char *required_key(const pmix_info_t info[], size_t ninfo)
{
    const char *key = NULL;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_INFO_IS_QUALIFIER(&info[i]))
            return NULL;
        if (PMIX_CHECK_KEY(&info[i], PMIX_REQUIRED_KEY))
            key = directive_text(&info[i]);
    }
    return key != NULL && strlen(key) <= PMIX_MAX_KEYLEN ? key : NULL;
}

pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    pmix_status_t fault = directives_check(CALL_GET, "", info, ninfo);
    if (fault != PMIX_SUCCESS)
        return fault;
    /* Once a callback has said so of a namespace, libpmix waits for its registration at each later
     * get. */
    if (strcmp(proc->nspace, upcall_server()->boot.nspace) != 0 &&
        !names_have(&upcall_server()->registered, proc->nspace))
        return refused(
            PMIX_ERR_NOT_FOUND,
            "PMIx_Get of %s rank %u: the namespace is not known here; connect to it, look "
            "up what it has published, or be in a group with it",
            proc->nspace, proc->rank);
    /* No process puts a reserved key, and libpmix has all that the host gives. To ask the process's
     * server would wait until the process commits anything, which it may never do. Refused here and
     * not by the callback, the get takes no other one along that waits for that process. */
    const char *key = required_key(info, ninfo);
    if (key != NULL && upcall_withheld(proc, key))
        return upcall_give(proc, cbfunc, cbdata);
    if (key != NULL && PMIX_CHECK_RESERVED_KEY(key))
        return refused(
            PMIX_ERR_NOT_FOUND,
            "PMIx_Get of %s rank %u: the host gives no key \"%s\" there; docs/keys.md has "
            "those that it gives",
            proc->nspace, proc->rank, key);
    struct modex *m = calloc(1, sizeof *m);
    m->key = key != NULL ? strdup(key) : NULL;
    m->proc = *proc;
    m->request.answer = answer_modex(cbfunc, cbdata);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT))
            directive_number(&info[i].value, &m->timeout);
    return upcall_post(&m->request.item, run);
}

void upcall_describe_modex(const char *node, const void *body, size_t len, char *buf, size_t cap)
{
    struct wire_in in;
    char name[PROCSET_NAME_MAX + 1], key[PMIX_MAX_KEYLEN + 1];
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    uint32_t rank = wire_get_u32(&in);
    wire_get_str(&in, key, sizeof key);
    if (in.bad)
        snprintf(buf, cap, "a direct modex from %s", node);
    else
        snprintf(buf, cap, "direct modex of %s rank %u%s%s%s: no answer of %s", name, rank,
                 key[0] != '\0' ? ", key \"" : "", key, key[0] != '\0' ? "\"" : "", node);
}
