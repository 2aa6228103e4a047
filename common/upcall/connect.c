/* SPDX-License-Identifier: BSD-3-Clause */
/* connect and disconnect: operations of the engine whose success is a status alone.
 *
 * Before a connect is answered, libpmix knows the namespaces of all participants on every server of
 * the step. The answer tells each process the job-level information of the others
 * (connect_reply.h), it finds their data by direct modex, and fences and events may name them. The
 * book (server/steps/book.h) keeps which processes are connected. One whose participants are all of
 * this node is not in it: libpmix does not hand up its disconnect.
 */
#include "common/notify/connection.h"
#include "common/notify/refuse.h"
#include "common/server/process/connect_reply.h"
#include "common/server/process/expiry.h"
#include "common/server/steps/steps.h"
#include "common/upcall/collective.h"
#include "common/upcall/directives.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* Each process here gets a message of half a kilobyte for each process of another step, and keeps
 * 2 KB. Meanwhile libpmix needs 7 KB for each, and all messages wait in this process. */
enum { TOLD_MAX = 16384, TOLD_TOGETHER_MAX = 262144 };

/* A connect that has succeeded. */
struct connected {
    struct spread_wait wait; /* until all servers of the step know the namespaces */
    struct collective *collective;
};

static void answer(struct collective *c, pmix_status_t status)
{
    answer_status(&c->request.answer, status);
    collective_free(c);
}

/* Adds the namespaces of other steps. @return how many processes they have */
static uint64_t name_others(const struct collective *c, struct connect_reply *reply)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->members.nparts; i++) {
        const struct nspace *ns = nspace_find(c->server->nspace, c->members.parts[i].nspace);
        if (ns == NULL || ns == c->server->nspace)
            continue;
        connect_reply_add(reply, ns->boot->nspace);
        n += ns->boot->ntasks;
    }
    return n;
}

/* What libpmix's answer tells each process here of the others. */
static struct connect_reply *introduction(const struct collective *c)
{
    struct connect_reply *reply = NULL;
    if (library_has(c->server->library, LIBRARY_CONNECT_TELLS_LOCAL))
        reply = connect_reply_new();
    if (reply == NULL)
        return NULL;
    uint64_t others = name_others(c, reply), here = server_members_here(c->server, &c->all);
    if (others <= TOLD_MAX && others * here <= TOLD_TOGETHER_MAX)
        return reply;
    log_info("connect: %llu processes here have to ask for the keys of %llu others, which are too "
             "many to tell",
             (unsigned long long)here, (unsigned long long)others);
    connect_reply_free(reply);
    return NULL;
}

/* A job that had ended before the connection was in the book has ended its connections then. */
static void on_known(struct spread_wait *wait)
{
    struct connected *done = (struct connected *)((char *)wait - offsetof(struct connected, wait));
    struct server *server = done->collective->server;
    struct procset members = done->collective->members;
    connect_reply_begin(introduction(done->collective));
    done->collective->members = (struct procset){0};
    answer(done->collective, PMIX_SUCCESS);
    connect_reply_end();
    free(done);
    for (uint32_t i = 0; i < members.nparts; i++)
        if (steps_has_ended(server, members.parts[i].nspace))
            connection_nspace_ended(server, members.parts[i].nspace);
    procset_free(&members);
}

static bool is_of_this_node(const struct collective *c)
{
    return server_members_here(c->server, &c->all) == procset_size(&c->all);
}

void connect_begin(struct collective *c)
{
    const struct book_entry *open = book_find(&c->server->book, c->id, &c->all);
    if (c->kind == COLL_CONNECT && c->notify_req)
        connection_tell_of_own(c->server, PMIX_CONNECT_REQUESTED, c->id, &c->all);
    if (c->kind == COLL_CONNECT && (c->call.flags & BOOK_NOTIFY_EACH))
        connection_tell_of_own(c->server, PMIX_PROC_HAS_CONNECTED, c->id, &c->all);
    if (c->kind != COLL_DISCONNECT)
        return;
    if (open == NULL && !is_of_this_node(c) && c->call.status == PMIX_SUCCESS)
        c->call.status =
            refused(PMIX_ERR_NOT_FOUND,
                    "disconnect: these processes are not connected%s%s%s; give the processes and "
                    "the PMIX_CONNECT_ID of the connect",
                    c->id[0] != '\0' ? " by the id \"" : "", c->id, c->id[0] != '\0' ? "\"" : "");
    if (open != NULL && ((c->call.flags | open->directives) & BOOK_NOTIFY_EACH))
        connection_tell_of_own(c->server, PMIX_PROC_HAS_DISCONNECTED, c->id, &c->all);
    c->survives = c->survives || (open != NULL && (open->directives & BOOK_EARLY_TERM));
}

/* What fails here fails on this server alone: memory, or the job of some participants has ended so
 * long ago that it is forgotten. The processes here get the error; for the others the connection is
 * open. When only the name failed, it stays in this book: then they are told when a process here
 * ends, and the processes here may disconnect. */
static pmix_status_t connected(struct collective *c, uint32_t directives)
{
    if (steps_register(c->server, &c->members) != 0)
        return refused(PMIX_ERR_NOT_FOUND,
                       "connect: a job that takes part has ended, and is not known here any more");
    if ((directives & BOOK_XCHG_ONLY) || is_of_this_node(c))
        return PMIX_SUCCESS;
    struct book_entry *entry = book_open(&c->server->book, c->id, &c->all, directives);
    if (entry == NULL)
        return PMIX_ERR_NOMEM;
    return (directives & BOOK_NAMED) && connection_name(c->server, entry) != 0 ? PMIX_ERROR
                                                                               : PMIX_SUCCESS;
}

void connect_complete(struct collective *c, const struct engine_result *result)
{
    struct connected *done = NULL;
    pmix_status_t status = result->status;
    if (status == PMIX_SUCCESS && c->kind == COLL_DISCONNECT)
        connection_close(c->server, c->id, &c->all);
    if (status == PMIX_SUCCESS && c->kind == COLL_CONNECT) {
        done = malloc(sizeof *done);
        status = done == NULL ? PMIX_ERR_NOMEM : connected(c, result->flags);
    }
    if (done == NULL || status != PMIX_SUCCESS) {
        free(done);
        answer(c, status);
        return;
    }
    *done = (struct connected){.collective = c, .wait = {.set = &c->members, .done = on_known}};
    steps_await(c->server, &done->wait);
}

static void refuse(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    answer(c, c->call.status);
}

/* @return the id, borrowed, or "". @thread PMIx's */
static const char *find_id(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_CONNECT_ID) && directive_text(&info[i]) != NULL)
            return directive_text(&info[i]);
    return "";
}

/* @thread PMIx's */
static void read_own_directives(struct collective *c, const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        c->survives = c->survives || directive_is_on(&info[i], PMIX_CONNECT_OPTIONAL);
        c->notify_req = c->notify_req || directive_is_on(&info[i], PMIX_CONNECT_NOTIFY_REQ);
        if (directive_is_on(&info[i], PMIX_CONNECT_EARLY_TERM_ALLOWED))
            c->call.flags |= BOOK_EARLY_TERM;
        if (directive_is_on(&info[i], PMIX_CONNECT_NOTIFY_EACH))
            c->call.flags |= BOOK_NOTIFY_EACH;
        if (directive_is_on(&info[i], PMIX_CONNECT_XCHG_ONLY))
            c->call.flags |= BOOK_XCHG_ONLY;
        if (directive_is_on(&info[i], MUSTER_CONNECT_NSPACE))
            c->call.flags |= BOOK_NAMED;
    }
}

/* Takes the own cluster's name, and a colon, from the front of namespaces (RFC 0003,
 * PMIX_MULTICLUSTER_NSPACE_CONSTRUCT). @return whether no other cluster is named. @thread PMIx's */
static bool take_clusters(struct collective *c)
{
    const char *cluster = c->server->boot.allocation.cluster;
    for (size_t i = 0; i < c->nprocs; i++) {
        char *nspace = c->procs[i].nspace, *colon = strchr(nspace, ':');
        if (colon == NULL)
            continue;
        if (cluster == NULL || strlen(cluster) != (size_t)(colon - nspace) ||
            memcmp(cluster, nspace, strlen(cluster)) != 0) {
            c->call.status =
                refused_aloud(PMIX_ERR_NOT_SUPPORTED,
                              "%s: namespace %s is of another cluster than \"%s\", and "
                              "clusters are not connected; name processes of this one",
                              coll_traits(c->kind)->name, nspace, cluster != NULL ? cluster : "");
            return false;
        }
        memmove(nspace, colon + 1, strlen(colon + 1) + 1);
    }
    return true;
}

/* @thread PMIx's */
static pmix_status_t post(enum coll_kind kind, const pmix_proc_t procs[], size_t nprocs,
                          const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                          void *cbdata)
{
    if (procs == NULL || nprocs == 0)
        return refused(PMIX_ERR_BAD_PARAM, "%s: it names no process", coll_traits(kind)->name);
    const char *id = find_id(info, ninfo);
    if (strlen(id) > PROCSET_NAME_MAX)
        return refused_aloud(PMIX_ERR_BAD_PARAM,
                             "%s: its PMIX_CONNECT_ID has %zu bytes, and may have %d",
                             coll_traits(kind)->name, strlen(id), PROCSET_NAME_MAX);
    struct collective *c = collective_new(kind, id, procs, nprocs);
    if (c == NULL)
        return PMIX_ERR_NOMEM;
    c->server = upcall_server();
    c->request.answer = answer_op(cbfunc, cbdata);
    collective_directives(c, info, ninfo);
    read_own_directives(c, info, ninfo);
    if (library_has(c->server->library, LIBRARY_CONNECT_TIMER_STAYS))
        expiry_handed_up(cbdata);
    if (!take_clusters(c))
        return upcall_post(&c->request.item, refuse);
    return upcall_post(&c->request.item, collective_run);
}

pmix_status_t upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post(COLL_CONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}

pmix_status_t upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post(COLL_DISCONNECT, procs, nprocs, info, ninfo, cbfunc, cbdata);
}
