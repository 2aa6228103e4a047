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
#include "common/server/steps/steps.h"
#include "common/upcall/collective.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdlib.h>

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
    if (!library_has(c->server->library, LIBRARY_CONNECT_TELLS_LOCAL))
        return NULL;
    struct connect_reply *reply = connect_reply_new();
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
    return (directives & BOOK_NAMED) && connection_name(c->server, entry) != 0 ? PMIX_ERROR
                                                                               : PMIX_SUCCESS;
}

void connect_complete(struct collective *c, const struct engine_result *result)
{
    pmix_status_t status = result->status;
    if (status == PMIX_SUCCESS && c->kind == COLL_DISCONNECT)
        connection_close(c->server, c->id, &c->all);
    if (status == PMIX_SUCCESS && c->kind == COLL_CONNECT)
        status = connected(c, result->flags);
    if (status != PMIX_SUCCESS || c->kind == COLL_DISCONNECT) {
        answer(c, status);
        return;
    }
    struct connected *done = malloc(sizeof *done);
    *done = (struct connected){.collective = c, .wait = {.set = &c->members, .done = on_known}};
    spread_await(c->server, &done->wait);
}
